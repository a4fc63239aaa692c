# Shared by the tests in this directory: `load hostile`.
load ../helper

# records [OPTION] COMMAND...: records it, for at most two minutes. It must not hang, and each loss
# must be reported.
records() {
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 600 "$HEAPTAPE" record -f -o t.ht "$@"
  expect "no hang" [ "$status" -ne 124 ]
  expect "no hang" [ "$status" -ne 137 ]
}

# events: prints the number of events of all processes in t.ht.
events() {
  "$HEAPTAPE" stat --json --brief t.ht | jq .events
}

# known_calls: the number of calls in t.ht that only `known` makes. The number of calloc calls by
# the C library depends on the number of concurrent threads.
known_calls() {
  { trace_lines -n t.ht 2>/dev/null || true; } | awk '/^(memalign|aligned_alloc|posix_memalign) / { n += $2 } END { print n + 0 }'
}

# at_least N COMMAND...: the command prints at least N.
at_least() {
  local want=$1 have
  shift
  have=$("$@")
  echo "$have of at least $want"
  [ "$have" -ge "$want" ]
}

# waits_in PID FUNCTION: the process is blocked in this kernel function.
waits_in() {
  grep -q "$2" "/proc/$1/wchan" 2>/dev/null
}

# has_received PID SIGNAL-NUMBER: the signal is no longer pending. Two pending signals would merge
# into one.
has_received() {
  local pending
  pending=$(awk '/^ShdPnd/ { print $2 }' "/proc/$1/status")
  [ $((16#$pending >> ($2 - 1) & 1)) -eq 0 ]
}

# kill_again SIGNAL PID: sends the recorder a second signal (15 or 2). The recorder counts signals
# from one sender within 0.1 s once.
kill_again() {
  wait_until has_received "$2" "$1"
  sleep 0.3
  kill -"$1" "$2"
}

# Skips the test if these namespaces are not available.
need_unshare() {
  unshare "$@" true 2>/dev/null || skip "unshare $* is not permitted here"
}
