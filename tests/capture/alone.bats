load ../helper

# LD_PRELOAD=libheaptape.so without `heaptape record`: the library starts the recorder.

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL MALLOC_LOG MTRACE_CTL_FILE TCMALLOC_TRACE_OUTPUT
  bats_require_minimum_version 1.5.0
  skip_under_sanitizer
  library=$HEAPTAPE_BUILD/src/capture/libheaptape.so
}

# alone OPTIONS COMMAND...: runs the command with the library, for at most two minutes.
alone() {
  local options=$1
  shift
  run --separate-stderr timeout -k 1 120 env HEAPTAPE_RECORD="$options" LD_PRELOAD="$library" "$@"
}

# events PROGRAM: the number of events in processes of t.ht with that command.
events() {
  "$HEAPTAPE" stat --json --brief t.ht | jq "[.processes[] | select(.argv[0] | endswith(\"$1\")) | .events] | add"
}

# Waits until the recorder has completed the trace; the program does not wait for the recorder.
completes() {
  wait_until "$HEAPTAPE" check -q t.ht 2>/dev/null
}

@test "alone: the same output, status and events, and a complete trace at the end of the program" {
  status=0
  "$HEAPTAPE" record -q -o t.ht -- "$HEAPTAPE_PROGRAMS/children" >want || status=$?
  expect "its status" [ "$status" -eq 5 ]
  local n
  n=$(events children)
  for _ in 1 2 3 4 5 6 7 8; do
    rm t.ht
    alone "-o t.ht" "$HEAPTAPE_PROGRAMS/children"
    expect "its status" [ "$status" -eq 5 ]
    expect "nothing on stderr" [ -z "$stderr" ]
    "$HEAPTAPE" check -q t.ht
    expect "the number of events" [ "$(events children)" -eq "$n" ]
  done
}

@test "alone: the recorder does not change children, descriptors and signals of the program" {
  # timeout(1) restores signals that a shell ignores, so both runs use it.
  timeout -k 1 120 "$HEAPTAPE_PROGRAMS/children" >want || true
  alone "-o t.ht" "$HEAPTAPE_PROGRAMS/children"
  diff want - <<<"$output"
  has "$output" "own: the child
wait: no child
signals: 1"
  # A parent that ignores or blocks SIGCHLD.
  (trap '' CHLD && timeout -k 1 120 "$HEAPTAPE_PROGRAMS/children" >want2) || true
  (trap '' CHLD && HEAPTAPE_RECORD='-o u.ht' LD_PRELOAD=$library timeout -k 1 120 "$HEAPTAPE_PROGRAMS/children" >got2) || true
  diff want2 got2
}

@test "alone: a shell and its children, into heaptape.PID.ht" {
  alone "" sh -c 'ls / >/dev/null; (ls / >/dev/null) & wait; echo $?; exit 7'
  expect "its status" [ "$status" -eq 7 ]
  expect "its output" [ "$output" = 0 ]
  mv heaptape.*.ht t.ht
  "$HEAPTAPE" check -q t.ht
  expect "ls twice" [ "$("$HEAPTAPE" stat --json --brief t.ht | jq '[.processes[] | select(.argv[0] == "ls")] | length')" -eq 2 ]
  expect "no process is missed" [ "$("$HEAPTAPE" stat --json --brief t.ht | jq .unrecorded.processes)" -eq 0 ]
}

@test "alone: python waits only for its own children" {
  command -v python3 >/dev/null || skip "no python3"
  cat >p.py <<'P'
import os, subprocess, sys
try:
    os.waitpid(-1, 0)
    print("a child")
except ChildProcessError:
    print("no child")
print(subprocess.run(["ls", "/nothing"], stderr=subprocess.DEVNULL).returncode, "HEAPTAPE_ATTACH" in os.environ)
pid = os.fork()
if pid == 0:
    os._exit(4)
print(os.wait()[1] >> 8, sorted(int(f) for f in os.listdir("/proc/self/fd"))[:3])
P
  alone "-o t.ht" python3 p.py
  expect "its output" [ "$output" = "no child
2 False
4 [0, 1, 2]" ]
  "$HEAPTAPE" check -q t.ht
}

@test "alone: other tools' variables" {
  run --separate-stderr timeout 120 env MALLOC_LOG=3 LD_PRELOAD="$library" ls / 3>log
  expect "status" [ "$status" -eq 0 ]
  expect "many lines" [ "$(wc -l <log)" -gt 20 ]
  MALLOC_LOG=named LD_PRELOAD=$library ls / >/dev/null
  expect "many lines" [ "$(wc -l <named)" -gt 20 ]
  MTRACE_CTL_FILE=m.mtrace LD_PRELOAD=$library ls / >/dev/null
  "$HEAPTAPE" import -q -F mtrace -o m.htw m.mtrace
  TCMALLOC_TRACE_OUTPUT=raw LD_PRELOAD=$library ls / >/dev/null
  "$HEAPTAPE" import -q -F tcmalloc -o raw.htw raw
}

@test "alone: the program closes the recorder's descriptor, or starts without standard descriptors" {
  alone "-o t.ht" sh -c 'exec 0<&- 1>&- 2>&-; ls /'
  "$HEAPTAPE" check -q t.ht
  rm t.ht
  HEAPTAPE_RECORD='-o t.ht' LD_PRELOAD=$library timeout 120 ls / <&- >&- 2>&- || true
  "$HEAPTAPE" check -q t.ht
}

@test "alone: a program that a signal ends; the recorder completes the trace" {
  alone "-o t.ht" sh -c 'ls / >/dev/null; kill -9 $$'
  expect "its status" [ "$status" -eq 137 ]
  completes
}

@test "alone: the program does not wait for processes that it leaves running" {
  alone "-o t.ht" sh -c 'sleep 1000 </dev/null >/dev/null 2>&1 & echo $!'
  expect "its status" [ "$status" -eq 0 ]
  kill "$output" || { echo "it has waited for sleep"; return 1; }
  completes
}

@test "alone: records nothing without a variable, and never heaptape itself" {
  mkdir empty
  cd empty
  run --separate-stderr env LD_PRELOAD="$library" ls /nothing
  expect "no file" [ -z "$(ls)" ]
  expect "one line" [ "${#stderr_lines[@]}" -eq 1 ]
  HEAPTAPE_RECORD='' LD_PRELOAD=$library "$HEAPTAPE_BUILD/heaptape" --version
  expect "no file" [ -z "$(ls)" ]
}

# refuses STATUS WHY: the last run printed one line with WHY and recorded nothing.
refuses() {
  expect "status $1" [ "$status" -eq "$1" ]
  expect "one line" [ "$stderr" = "heaptape: cannot record with LD_PRELOAD alone: $2; use 'heaptape record'" ]
  expect "no file" [ -z "$(ls -- *.ht 2>/dev/null)" ]
}

@test "alone: one line gives the reason when recording is impossible" {
  cp "$library" elsewhere.so
  library=$PWD/elsewhere.so alone "" sh -c 'exit 3'
  [ "$status" -eq 3 ]
  has "$stderr" "heaptape: cannot record with LD_PRELOAD alone: cannot find heaptape next to libheaptape.so; use 'heaptape record'"
  # heaptape reports errors of its options.
  alone "--no-such-option" sh -c 'exit 3'
  expect "its status" [ "$status" -eq 3 ]
  has "$stderr" "no-such-option"
  expect "no file" [ -z "$(ls -- *.ht 2>/dev/null)" ]
  echo >full.ht
  alone "-o full.ht" sh -c 'exit 3'
  expect "its status" [ "$status" -eq 3 ]
  has "$stderr" "full.ht: exists"
}

@test "alone: refused if the recorder would become a child of the program" {
  unshare -rpf true 2>/dev/null || skip "no pid namespaces"
  run --separate-stderr timeout 120 unshare -rpf env HEAPTAPE_RECORD= LD_PRELOAD="$library" sh -c 'exit 3'
  refuses 3 "the program adopts orphaned processes, so the recorder would become its child"
}

@test "alone: HEAPTAPE_STACKS selects stacks, unless HEAPTAPE_RECORD does" {
  for stacks in 4 sample:16 nonsense; do
    HEAPTAPE_STACKS=$stacks alone "-f -o t.ht" "$HEAPTAPE_PROGRAMS/stacks" deep 12
    expect "its status" [ "$status" -eq 0 ]
    expect "nothing on stderr" [ -z "$stderr" ]
    "$HEAPTAPE" dump -k heaptape.frames t.ht | grep -o ", 0x" | wc -l >"n.$stacks"
  done
  expect "stacks of four" [ "$(cat n.4)" -ge 4 ]
  expect "sampled stacks" [ "$(cat n.sample:16)" -ge 12 ]
  expect "an invalid value is ignored" [ "$(cat n.nonsense)" -eq 0 ]
  HEAPTAPE_STACKS=1 alone "-f --stacks=16 -o t.ht" "$HEAPTAPE_PROGRAMS/stacks" deep 12
  expect "the options apply" [ "$("$HEAPTAPE" dump -k heaptape.frames t.ht | grep -o ", 0x" | wc -l)" -ge 12 ]
}
