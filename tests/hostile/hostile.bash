# What the tests of hostile surroundings share: `load hostile`.
load ../helper

# records COMMAND...: under record, within two minutes; nothing may hang, and nothing may be lost that is not said.
records() {
  bats_require_minimum_version 1.5.0
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht -- "$@"
  expect "no hang" [ "$status" -ne 124 ]
  expect "no hang" [ "$status" -ne 137 ]
}

# events: of all processes of t.ht.
events() {
  "$HEAPTAPE" stat --json --brief t.ht | jq .events
}

# known_calls: those in t.ht that only known makes. How often the C library calls calloc for threads depends on how many run
# at a time.
known_calls() {
  { trace_lines -n t.ht 2>/dev/null || true; } | awk '/^(memalign|aligned_alloc|posix_memalign) / { n += $2 } END { print n + 0 }'
}

# at_least N COMMAND...: the number that the command prints.
at_least() {
  local want=$1 have
  shift
  have=$("$@")
  echo "$have of at least $want"
  [ "$have" -ge "$want" ]
}

# waits_in PID FUNCTION: the kernel has it wait there.
waits_in() {
  grep -q "$2" "/proc/$1/wchan" 2>/dev/null
}

# has_received PID SIGNAL-NUMBER: none that was sent to it is pending; two that are pending would be one.
has_received() {
  local pending
  pending=$(awk '/^ShdPnd/ { print $2 }' "/proc/$1/status")
  [ $((16#$pending >> ($2 - 1) & 1)) -eq 0 ]
}

# Namespaces that are to be had here, or the test is skipped.
need_unshare() {
  unshare "$@" true 2>/dev/null || skip "unshare $* is not permitted here"
}
