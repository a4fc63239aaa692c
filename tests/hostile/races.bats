# Tests for data races in the recorder, the converter and the player. They run only in the build
# with ThreadSanitizer (./check).
load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  [ "$HEAPTAPE_SANITIZED" = thread ] || skip "needs -Db_sanitize=thread"
  # Writes a log for every process, because some processes redirect standard error.
  export TSAN_OPTIONS="log_path=$PWD/race exitcode=66"
}

teardown() {
  for race in race.*; do
    [ ! -e "$race" ] || { cat "$race" && return 1; }
  done
}

# The player measures the sanitizer's allocator, because the sanitizer does not allow another
# malloc.
player_allocator() {
  ldd "$HEAPTAPE_BUILD/src/replay/player/heaptape-replay" | awk '/libtsan/ { print $3 }'
}

# replays WORKLOAD OPTION...
replays() {
  local workload=$1
  shift
  timeout 100 "$HEAPTAPE" replay --runs=1 -a "$(player_allocator)" "$@" "$workload" >out
}

@test "recorder: threads, fork children, backpressure, control, live export" {
  local format
  # The events do not fit into the spool, so threads wait, and the backup drainer and the
  # encoder run at the same time.
  timeout 120 "$HEAPTAPE" record -f -o t.ht -- known threads 6000 4
  timeout 120 "$HEAPTAPE" record -f -z none --usable -o t.ht -- known fork 300 10
  timeout 120 "$HEAPTAPE" record -f --stacks=4 --max-size=200K -o t.ht -- churn 300000
  timeout 120 "$HEAPTAPE" record -f --lossy -o t.ht -- churn 300000
  for format in json android mtrace; do
    timeout 120 "$HEAPTAPE" record -f -F "$format" -o t.txt -- known threads 500 4
  done
  timeout 120 "$HEAPTAPE" record -f -o t.ht -- churn 1000000000 &
  sleep 0.3
  kill -TERM $!
  wait $! || true
}

@test "recorder: processes exit while the backup drains" {
  # Many small bundles keep the encoder's thread busy; the backup drainer may see processes exit in
  # between.
  for _ in 1 2 3; do
    timeout 120 "$HEAPTAPE" record -q -f -z none -o t.ht -- sh -c 'for i in 1 2 3 4 5 6 7 8; do known fork 20 4 & done; wait' >/dev/null
  done
}

@test "converter, statistics, and the reader thread" {
  timeout 120 "$HEAPTAPE" record -q -o t.ht -- known threads 3000 4
  timeout 120 "$HEAPTAPE" convert -o t.htw t.ht
  timeout 120 "$HEAPTAPE" convert -o each.htw -p all t.ht
  timeout 120 "$HEAPTAPE" stat t.ht >/dev/null
  timeout 120 "$HEAPTAPE" check t.htw
  timeout 120 "$HEAPTAPE" slice --from=1000 --to=200000 -o part.htw t.htw
  timeout 120 "$HEAPTAPE" merge -o two.htw t.htw part.htw
  timeout 120 "$HEAPTAPE" dump t.htw >/dev/null
  timeout 120 "$HEAPTAPE" export -F wl -o t.wl t.htw
}

@test "player" {
  "$HEAPTAPE_PROGRAMS/make_workload" churn.htw churn 4 40000 30 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" threads.htw threads 40 50 0 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" wait.htw dependencies 2 5000 50 >/dev/null
  replays churn.htw
  replays churn.htw --no-latency
  replays churn.htw --verify
  replays churn.htw --stats-every=1000
  replays churn.htw --fragmentation
  replays threads.htw
  replays wait.htw
  # Replays a streamed workload.
  "$HEAPTAPE_PROGRAMS/make_workload" big.htw churn 4 150000 30 >/dev/null
  replays big.htw --memory=2M
}
