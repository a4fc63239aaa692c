# Records programs whose order of calls is known: the workload must have this order.
load ../helper

# Command prefix of the truth program, and its modes.
before=()
modes=()

# record_truth ALLOCATOR THREADS [CALLS]: records the truth program into a.ht and log. glibc runs
# without thread caches, so that all threads share its free blocks.
record_truth() {
  local allocator=()
  if [ "$1" = glibc ]; then
    export GLIBC_TUNABLES=glibc.malloc.tcache_count=0
  else
    unset GLIBC_TUNABLES
    allocator=(-a "$1")
  fi
  "$HEAPTAPE" record -q -f --follow=truth "${allocator[@]}" -o a.ht -- "${before[@]}" "$HEAPTAPE_PROGRAMS/truth" \
    "$2" "${3:-20000}" log "${modes[@]}" 2>said
  unset GLIBC_TUNABLES
}

# convert_truth ALLOCATOR THREADS [CALLS]: records the truth program, and converts a.ht to a.htw.
convert_truth() {
  record_truth "$@"
  "$HEAPTAPE" convert -q -f -o a.htw a.ht
  "$HEAPTAPE" stat --json a.htw >stat.json
}

# truth_holds ALLOCATOR THREADS [CALLS]: the workload has every call, block and order known to the
# program, without ambiguity.
truth_holds() {
  convert_truth "$@"
  converted_truth_holds "$@"
}

# converted_truth_holds TEXT...: the same for the last recording.
converted_truth_holds() {
  read -r ambiguous unmatched lost < <(jq -r '"\(.order.ambiguous) \(.unmatched_frees) \([.processes[].lost_records] | add)"' stat.json)
  echo "$*: $ambiguous ambiguous"
  expect "all frees matched" [ "$unmatched" -eq 0 ]
  expect "nothing lost" [ "$lost" -eq 0 ]
  expect "nothing ambiguous" [ "$ambiguous" -eq 0 ]
  "$HEAPTAPE_PROGRAMS/check_truth" a.htw log
  "$HEAPTAPE" convert -q -f --strict -o strict.htw a.ht
  cmp a.htw strict.htw
  heaptape replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" a.htw
  expect "a replay that the verifying allocator passes" [ "$status" -eq 0 ]
  # The guard allocator maps and unmaps each of the big blocks.
  [ "${modes[*]}" != mremap ] || return 0
  heaptape replay -q -r 1 --no-latency -a guard a.htw
  expect "a replay that the guard allocator passes" [ "$status" -eq 0 ]
}

# truth_holds_often ALLOCATOR: the same for 2, 4 and 16 threads, HEAPTAPE_TEST_ROUNDS times with
# HEAPTAPE_TEST_CALLS calls.
truth_holds_often() {
  local round threads
  for round in $(seq "${HEAPTAPE_TEST_ROUNDS:-1}"); do
    for threads in 2 4 16; do truth_holds "$1" $threads "${HEAPTAPE_TEST_CALLS:-20000}"; done
  done
}

# stopped STOPS COMMAND...: stops and continues the process of the command at random.
stopped() {
  local pid=$$ left=$1
  while [ $((left--)) -gt 0 ] && sleep "0.00$((RANDOM % 10))" && kill -STOP "$pid"; do
    sleep "0.00$((RANDOM % 10))"
    kill -CONT "$pid"
  done >/dev/null 2>&1 3>&- &
  exec "${@:2}"
}
export -f stopped

setup_file() {
  "$HEAPTAPE" allocators --json | jq -r '.allocators[] | select(.available).name' >"$BATS_FILE_TMPDIR/installed"
}

is_installed() {
  grep -qx "$1" "$BATS_FILE_TMPDIR/installed"
}

needs_allocator() {
  is_installed "$1" || skip "$1 is not installed"
}

@test "truth: 2, 4 and 16 threads on glibc without thread caches" {
  skip_under_sanitizer
  truth_holds_often glibc
}

@test "truth: 2, 4 and 16 threads on jemalloc" {
  skip_under_sanitizer
  needs_allocator jemalloc
  truth_holds_often jemalloc
}

@test "truth: 2, 4 and 16 threads on mimalloc" {
  skip_under_sanitizer
  needs_allocator mimalloc
  truth_holds_often mimalloc
}

# truth_holds_rarely ALLOCATOR...: as truth_holds_often for the installed allocators, but without
# HEAPTAPE_TEST_ROUNDS only for 4 threads on glibc.
truth_holds_rarely() {
  local allocator
  [ -n "${HEAPTAPE_TEST_ROUNDS:-}" ] || { truth_holds glibc 4 && return; }
  for allocator; do
    ! is_installed "$allocator" || truth_holds_often "$allocator"
  done
}

# HEAPTAPE_TEST_ROUNDS=20 HEAPTAPE_TEST_CALLS=100000 HEAPTAPE_TEST_STOPS=20 tools/test truth SIGSTOP
# is the whole matrix of threads and allocators.
@test "truth: 2, 4 and 16 threads, stopped by SIGSTOP at random" {
  skip_under_sanitizer
  before=(bash -c 'stopped "$@"' stopped "${HEAPTAPE_TEST_STOPS:-5}")
  truth_holds_rarely glibc jemalloc mimalloc
}

@test "truth: realloc moves blocks by mremap" {
  skip_under_sanitizer
  modes=(mremap)
  truth_holds_rarely glibc
}

# Blocks of these allocators are 16 bytes apart, so two blocks share the byte that contains the
# thread of the last event.
@test "truth: blocks of 16 bytes" {
  skip_under_sanitizer
  local allocator
  modes=(small ring lock pool realloc birth)
  truth_holds_often glibc
  for allocator in jemalloc mimalloc tcmalloc; do
    ! is_installed "$allocator" || truth_holds_often "$allocator"
  done
}

# Uninterrupted threads exchange blocks as fast as the CPUs can. Without a fence, the CPU reads the
# counter before a pointer has arrived from another thread, and seven of ten runs were ambiguous.
@test "truth: at real-time priority" {
  skip_under_sanitizer
  chrt -f 1 true 2>said || skip "real-time priority is not allowed"
  before=(chrt -f 1)
  truth_holds_often glibc
  needs_allocator jemalloc
  truth_holds_often jemalloc
  needs_allocator mimalloc
  truth_holds_often mimalloc
}

# The order must be right if a thread is stopped between its timestamp and the record.
# HEAPTAPE_TEST_STOPS=200 stops 200 times. Late records show that threads were stopped there.
@test "truth: threads stopped for seconds between timestamp and record" {
  skip_under_sanitizer
  local stops=${HEAPTAPE_TEST_STOPS:-5} repaired
  [ -x "$HEAPTAPE_PROGRAMS/stopper" ] || skip "knows the instruction of x86-64 only"
  before=("$HEAPTAPE_PROGRAMS/stopper" "$stops")
  modes=(slow ring lock pool realloc)
  record_truth glibc 2 1000 || ! grep "may not be traced" said || skip "ptrace(2) is not allowed"
  # The stops of a recording miss that place in about one of five recordings, or the program ends
  # before the last stop.
  for _ in {1..20}; do
    convert_truth "${HEAPTAPE_TEST_ALLOCATOR:-glibc}" 4 $((6000 * stops))
    repaired=$(jq .order.repaired stat.json)
    ! grep -q "^$stops stops" said || [ "$repaired" -lt $((stops / 5)) ] || break
  done
  converted_truth_holds "${HEAPTAPE_TEST_ALLOCATOR:-glibc}" 4 $((6000 * stops))
  has "$(cat said)" "$stops stops"
  expect "late records" [ "$repaired" -ge $((stops / 5)) ]
}

@test "truth: a missing dependency and a missing call are found" {
  skip_under_sanitizer
  truth_holds glibc 4 2000
  local waits step failed=0
  waits=$("$HEAPTAPE_PROGRAMS/check_truth" a.htw log | sed 's/.* ops, \([0-9]*\) dependencies.*/\1/')
  # About a third is required. Others are implied through a third thread, or order the creation of a
  # thread instead of a block. At least 5 of 250 dependencies are required.
  step=$((waits / 40 + 1))
  for n in $(for ((i = 1; i <= step; i++)); do seq $i $step "$waits"; done); do
    [ $failed -lt 5 ] || break
    run "$HEAPTAPE_PROGRAMS/check_truth" --drop "$n" a.htw log
    [ "$status" -eq 0 ] || { has "$output" "does not come after op"; failed=$((failed + 1)); }
  done
  expect "required dependencies" [ $failed -ge 5 ]
  head -c -24 log >short
  run "$HEAPTAPE_PROGRAMS/check_truth" a.htw short
  has "$output" "makes more calls than it logged"
  { cat log; tail -c 24 log; } >long
  run "$HEAPTAPE_PROGRAMS/check_truth" a.htw long
  [ "$status" -eq 1 ]
  # Two blocks are swapped.
  python3 - <<'END'
import struct
log = bytearray(open("log", "rb").read())
frees = [at for at in range(0, len(log), 24) if struct.unpack_from("<I", log, at + 4)[0] == 5]
a, b = frees[len(frees) // 2], frees[len(frees) // 2 + 1]
log[a + 8 : a + 16], log[b + 8 : b + 16] = log[b + 8 : b + 16], log[a + 8 : a + 16]
open("swapped", "wb").write(log)
END
  run "$HEAPTAPE_PROGRAMS/check_truth" a.htw swapped
  has "$output" "but the log has block"
}
