# Allocators that lie, hang or end the player: tests/hostile/badalloc.c misbehaves from its 3,000th
# call on.
load hostile

bats_require_minimum_version 1.5.0

BAD=libtest-badalloc.so

# plays MODE [OPTION...]: replays w.htw once on the allocator in that mode, for at most two minutes.
# Descriptor 3 is closed, so that forks do not block bats.
plays() {
  bats_require_minimum_version 1.5.0
  local seconds=60
  case $1 in
    deadlock | spin) seconds=1 ;;
    slow) seconds=3 ;; # less than its replay takes
  esac
  BADMODE=$1 run --separate-stderr timeout -k 1 120 "$HEAPTAPE" replay -q -r 1 --no-latency --timeout $seconds "${@:2}" \
    -a "$HEAPTAPE_PROGRAMS/hostile/$BAD" w.htw 3>&-
  expect "no hang" [ "$status" -ne 124 ]
  expect "no hang" [ "$status" -ne 137 ]
}

# fails MODE HOW TEXT...: a replay ends with one line that contains each TEXT. HOW is verify or
# plain.
fails() {
  local options=()
  [ "$2" = plain ] || options=(--verify)
  plays "$1" "${options[@]}"
  fails_with 1 "$BAD: " "${@:3}"
}

passes() {
  plays "$1" "${@:2}"
  expect "status 0" [ "$status" -eq 0 ]
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 2 3000 30 >/dev/null
}

@test "an allocator that hangs is stopped, and each thread's call is named" {
  for how in plain verify; do
    fails deadlock $how "no progress for 1 s during the replay (see --timeout): in malloc of " " at op " " of thread 0"
    fails spin $how "no progress for 1 s during the replay (see --timeout): in malloc of " " at op " " of thread 0"
  done
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw orphans 4 20000 30 >/dev/null
  fails deadlock plain "no progress for 1 s" ": in malloc of " "; waiting for thread "
}

@test "trace_run stops an allocator that hangs, too" {
  "$HEAPTAPE" export -q -F wl -o w.wl w.htw
  run --separate-stderr env BADMODE=deadlock timeout -k 1 120 "$HEAPTAPE" trace_run --timeout 1 \
    -a "$HEAPTAPE_PROGRAMS/hostile/$BAD" w.wl
  fails_with 1 "no progress for 1 s during the replay (see --timeout): in malloc of "
}

@test "a slow allocator is not stopped" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 2000 >/dev/null
  passes slow
}

@test "an allocator that ends the player: how, and in which call" {
  for how in plain verify; do
    fails crash $how "ended by signal 11 (Segmentation fault) during the replay: in malloc of " " of thread 0"
    fails abort $how "ended by signal 6 (Aborted) during the replay: in malloc of " " of thread 0"
    fails exit $how "ended by exit status 0 during the replay: in malloc of "
    fails _exit $how "ended by exit status 0 during the replay: in malloc of "
    fails _exit7 $how "ended by exit status 7 during the replay: in malloc of "
    fails null $how "out of memory: malloc of " " failed at op " " of thread 0"
    fails closefds $how "cannot read its memory use"
  done
}

@test "wild and read-only pointers are named with call and place" {
  fails garbage verify "unusable: malloc of " " at op " " of thread 0 returned 0x123450, whose byte 0 is not mapped"
  fails readonly verify "unusable: malloc of " " of thread 0 returned 0x" ", whose byte 0 is read-only or protected"
  fails garbage plain "ended by signal 11" " in malloc of " " of thread 0"
  fails readonly plain "ended by signal 11" " in malloc of " " of thread 0"
}

@test "blocks that break the contract" {
  fails misalign verify "misaligned: malloc of "
  fails overlap verify "overlap: malloc of "
  plays misalign
  plays overlap
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw kinds 1 20000 >/dev/null
  fails dirty verify "not zeroed: calloc of "
  fails realloclose verify "lost content: realloc"
}

@test "output, threads and children of the allocator do no harm" {
  for mode in none print printerr thread fork nofree; do
    passes $mode
    passes $mode --verify
    passes $mode --json
    jq -e .allocator.name <<<"$output" >/dev/null
  done
}

@test "an allocator that sends SIGTERM to heaptape ends the replay" {
  plays killparent
  fails_with 143 "heaptape: SIGTERM from process " " ended the replay"
}

@test "a thread that sleeps until its next call is not reported as hanging" {
  printf '%s\n' '{"kind":"malloc","pid":5,"tid":5,"time_ns":1000,"size":32,"result":"0x1000"}' \
    '{"kind":"free","pid":5,"tid":5,"time_ns":2500001000,"ptr":"0x1000"}' >pause.json
  "$HEAPTAPE" import -q --format json -o pause.htw pause.json
  heaptape replay -q -r 1 --no-latency --timeout 1 --speed recorded --idle 2 pause.htw
  expect "status 0" [ "$status" -eq 0 ]
}
