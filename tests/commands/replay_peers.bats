# Features of other players that heaptape has, too.
load ../helper

bats_require_minimum_version 1.5.0

@test "replay uses a preloaded allocator" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  local library="$HEAPTAPE_PROGRAMS/libtest-bump.so"
  LD_PRELOAD="$library" run "$HEAPTAPE" replay -q -r 1 --no-latency w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "allocator    libtest-bump.so ($(realpath "$library"))"
  LD_PRELOAD="$library" run "$HEAPTAPE" trace_run "$HEAPTAPE_SOURCE/tests/foreign/mt2.wl"
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "allocator libtest-bump.so ("
  # The allocator of -a takes precedence, and libraries without malloc are not allocators.
  LD_PRELOAD="$library" run "$HEAPTAPE" replay -q -r 1 --no-latency -a glibc w.htw
  has "$output" "allocator    glibc ("
  LD_PRELOAD="$library" run --separate-stderr "$HEAPTAPE" replay -r 1 --no-latency -a glibc w.htw
  fails_with 0 "the allocator $(realpath "$library") in LD_PRELOAD is not used, because -a names another one"
  LD_PRELOAD="$library" run --separate-stderr "$HEAPTAPE" replay -r 1 --no-latency -a "$library" w.htw
  expect "no message" [ -z "$stderr" ]
  LD_PRELOAD="$HEAPTAPE_PROGRAMS/libtest-bogus.so" run "$HEAPTAPE" replay -q -r 1 --no-latency w.htw
  has "$output" "allocator    glibc ("
}

# LD_PRELOAD separates paths by spaces and colons.
@test "an allocator and heaptape in folders with spaces and colons" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  mkdir -p "a b:c"
  cp "$HEAPTAPE_PROGRAMS/libtest-bump.so" "a b:c/lib.so"
  heaptape replay -q -r 1 --no-latency --json -a "a b:c/lib.so" w.htw
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(jq -r .allocator.library <<<"$output")" = "$PWD/a b:c/lib.so" ]
  heaptape compare --real --runs 1 -a glibc -a "a b:c/lib.so" w.htw -- ls /
  expect "status 0" [ "$status" -eq 0 ]
  (cd "$HEAPTAPE_BUILD" && cp --parents heaptape src/replay/player/heaptape-replay src/replay/player/*.so "$BATS_TEST_TMPDIR/a b:c")
  run "a b:c/heaptape" replay -r 1 -a glibc w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "overhead"
}

@test "recording a replay does not make the capture library its allocator" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  heaptape record -q -o a.ht -- "$HEAPTAPE" replay -q -r 1 --no-latency w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "allocator    glibc ("
}

@test "statistics of the allocator, every N calls" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 3000 >/dev/null
  heaptape replay -q -r 1 --no-latency --stats-every 10000 w.htw
  expect "status 0" [ "$status" -eq 0 ]
  expect "the head" grep -qE '^ after calls +live +RSS +allocated +mapped$' <<<"$output"
  expect "a row" grep -qE '^ +10 000 +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB$' <<<"$output"
  expect "a row" grep -qE '^ +20 000 ' <<<"$output"
  "$HEAPTAPE" allocators --json | jq -e '.allocators[] | select(.name == "jemalloc") | .available' || return 0
  heaptape replay -q -r 1 --no-latency --stats-every 10000 -a jemalloc w.htw
  expect "the head" grep -qE ' active +metadata +resident +mapped +retained +dirty +bin unused$' <<<"$output"
  expect "bins" grep -qE '^ +bin +unused after [0-9 ]+ calls$' <<<"$output"
  expect "a bin" grep -qE '^ +[0-9.]+ (KiB|B) +[0-9.]+ (KiB|B)$' <<<"$output"
  "$HEAPTAPE" replay -q -r 1 --no-latency --stats-every 10000 -a jemalloc --json w.htw |
    jq -e '.stats[-1] | (.bins_size_unused | length > 30) and (.bins_size_unused | map(.[1]) | add) == .bin_unused_bytes'
  "$HEAPTAPE" replay -q -r 1 --no-latency --stats-every 10000 -a jemalloc --json w.htw |
    jq -e '.stats[-1] | .metadata_bytes > 0 and .retained_bytes >= 0 and .dirty_bytes >= 0 and .bin_unused_bytes > 0
      and .resident_bytes > .metadata_bytes'
}

@test "statistics of the allocator where the log requests them" {
  skip_under_sanitizer
  printf '%s\n' '1 1 malloc(100000)=#1' '1 1 jemalloc_stats()' '1 1 free(#1)' '1 1 jemalloc_stats()' >munged
  "$HEAPTAPE" import -q --format logalloc-munged -o w.htw munged
  heaptape replay -q -r 1 --no-latency w.htw
  expect "status 0" [ "$status" -eq 0 ]
  expect "the head" grep -qE '^ after calls +live ' <<<"$output"
  expect "two rows" [ "$(grep -cE '^ +[12] +[0-9.]+ (KiB|B) ' <<<"$output")" -eq 2 ]
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw | jq -e '[.stats[].live_bytes] == [100000, 0]'
}

@test "VmSize is in the timeline" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw big-malloc 1 20 >/dev/null
  "$HEAPTAPE" replay -q -r 1 --no-latency --touch none --json w.htw |
    jq -e '.timeline[0][4] < 20971520 and .timeline[-1][4] >= 20 * 8388608'
}

@test "calls a second, and thread caches swapped" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 2 1000 >/dev/null
  heaptape replay -q -r 1 --no-latency --threads one -a "$HEAPTAPE_PROGRAMS/libtest-cached.so" w.htw
  expect "status 0" [ "$status" -eq 0 ]
  expect "the rate" grep -qE '^time .*, [0-9 ]+ calls/s, ' <<<"$output"
  expect "the caches" grep -qE '^thread cache +[0-9 ]+ swapped, in [0-9 ]+ switches between the recorded threads$' <<<"$output"
}
