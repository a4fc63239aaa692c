# The player under system limits, and workloads that no allocator can replay.
load hostile

# limited KIB OPTION...: replays w.htw in an address space of KIB.
limited() {
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 120 bash -c 'ulimit -v "$1" && shift && exec "$HEAPTAPE" replay -q -r 1 "$@" w.htw' - "$@"
}

@test "an address space of twice the live bytes and 1 GiB suffices" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 4 3000 30 >/dev/null
  for options in "" --verify "--memory 4M" "--threads one" "--internal-fragmentation --fragmentation"; do
    # shellcheck disable=SC2086
    limited 1052672 $options
    expect "status 0 with $options" [ "$status" -eq 0 ]
  done
  for allocator in jemalloc tcmalloc mimalloc tbb; do
    "$HEAPTAPE" allocators --json | jq -e ".allocators[] | select(.name == \"$allocator\") | .available" || continue
    limited 1052672 -a $allocator
    expect "status 0 with $allocator" [ "$status" -eq 0 ]
  done
}

@test "an address space that is too small for the measurement of the overhead" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 100 >/dev/null
  limited 60000
  fails_with 1 "replay overhead: ended by exit status 127 before the player started: the allocator that measures it cannot map its own memory (try a higher ulimit -v)"
  # With a little more, the player itself cannot map the memory for its results.
  for kib in $(seq 65000 1500 80000); do
    limited "$kib"
    fails_with 1 "cannot map its own memory"
  done
}

@test "more threads than the system allows: their number, and the limit" {
  skip_under_sanitizer
  for call in '"malloc","size":32,"result"' '"free","ptr"'; do
    seq -f "%.0f" 10 5009 | awk -v call="$call" '{ printf "{\"pid\":5,\"tid\":%d,\"kind\":%s:\"0x%x\"}\n", $1, call, $1 * 64 }'
  done >threads.json
  "$HEAPTAPE" import -q --format json -o w.htw threads.json
  limited 1052672 --no-latency
  fails_with 1 "glibc: thread " " cannot be started in addition to " " others: " "kernel.pid_max" "--threads one"
  limited 1052672 --no-latency --threads one
  expect "status 0" [ "$status" -eq 0 ]
}

@test "a run that times calls needs little memory per thread" {
  skip_under_sanitizer
  # Replays concurrent threads, with two kinds of calls and a size. glibc's arenas would use the
  # remaining address space.
  for call in '"malloc","size":32,"result"' '"free","ptr"'; do
    seq -f "%.0f" 10 1009 | awk -v call="$call" '{ printf "{\"pid\":5,\"tid\":%d,\"kind\":%s:\"0x%x\"}\n", $1, call, $1 * 64 }'
  done >threads.json
  "$HEAPTAPE" import -q --format json -o w.htw threads.json
  limited 1052672 -a glibc,MALLOC_ARENA_MAX=1
  expect "status 0" [ "$status" -eq 0 ]
}

@test "a product of 2^66 bytes is not replayed as 0 bytes" {
  printf '%s\n' '{"kind":"calloc","pid":5,"tid":5,"count":8589934592,"size":8589934592,"result":"0x1000"}' \
    '{"kind":"free","pid":5,"tid":5,"ptr":"0x1000"}' >huge.json
  "$HEAPTAPE" import -q --format json -o huge.htw huge.json
  heaptape replay -q -r 1 huge.htw
  fails_with 1 "huge.htw: op 0 of thread 0 requests 8589934592 × 8589934592 bytes, more than any allocator can provide"
  # A failed call is skipped.
  sed '1s/0x1000/0x0/; 2s/0x1000/0x0/' huge.json >failed.json
  "$HEAPTAPE" import -q --format json -o failed.htw failed.json
  heaptape replay -q -r 1 failed.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "${lines[0]}" "; 1 ops skipped"
}
