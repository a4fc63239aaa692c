load ../helper

# glibc fills each block of heaptape and of the programs that it starts.
export MALLOC_PERTURB_=$((RANDOM % 255 + 1))

# Recording of programs.
record_setup() {
  skip_under_sanitizer
  [ -f "$HEAPTAPE_BUILD/src/capture/libheaptape.so" ] || skip "no capture library in this build"
}

# no_session_left: the session directory of the program, which wrote its name to the file `session`,
# is gone. root's sessions are in a separate directory.
no_session_left() {
  local folder
  folder=$(sed -n 's,\(/heaptape-[^/]*\).*,\1,p' session)
  expect "the name of a folder" [ -n "$folder" ]
  expect "no $folder is left" [ ! -e "$folder" ]
}

@test "the program's exit status is passed on" {
  record_setup
  heaptape record -o a.ht -- sh -c 'exit 7'
  expect "status 7" [ "$status" -eq 7 ]
  has "$stderr" "a.ht"
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
}

@test "128 + N when a signal ends the program" {
  record_setup
  heaptape record -o a.ht -- sh -c 'kill -9 $$'
  expect "status 137" [ "$status" -eq 137 ]
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
}

@test "a program that does not exist" {
  record_setup
  heaptape record -o a.ht -- ./no-such-program
  fails_with 127 "./no-such-program: not found"
  expect "no file" [ ! -e a.ht ]
}

@test "a program that is not executable" {
  record_setup
  echo text >plain
  heaptape record -o a.ht -- ./plain
  fails_with 126 "./plain: Permission denied"
  heaptape record -o a.ht -- "$PWD"
  fails_with 126 "Permission denied"
}

@test "a static program" {
  record_setup
  echo 'int main(void) { return 3; }' | cc -static -x c -o static - || skip "no static C library"
  heaptape record -o a.ht -- ./static
  fails_with 125 "./static: nothing was recorded: the program is statically linked"
  expect "no file" [ ! -e a.ht ]
  printf '#!%s/static\n' "$PWD" >script
  chmod +x script
  heaptape record -o a.ht -- ./script
  fails_with 125 "statically linked"
}

@test "an existing file is kept without -f" {
  record_setup
  echo precious >a.ht
  heaptape record -o a.ht -- true
  fails_with 125 "a.ht: exists; use -f"
  expect "kept" [ "$(cat a.ht)" = precious ]
  heaptape record -f -o a.ht -- ls
  expect "status 0" [ "$status" -eq 0 ]
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
}

@test "the default name" {
  record_setup
  heaptape record -q ls
  expect "status 0" [ "$status" -eq 0 ]
  expect "silent" [ -z "$stderr" ]
  heaptape check heaptape.ht
  expect "status 0" [ "$status" -eq 0 ]
}

@test "to a pipe" {
  record_setup
  "$HEAPTAPE" record -q -o - -- sh -c 'ls >/dev/null' | cat >a.ht
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
  "$HEAPTAPE" record -q -z none -o - -- sh -c 'ls >/dev/null' | "$HEAPTAPE" check -
}

@test "a pipe gets the same trace as a file" {
  record_setup
  for z in none zstd; do
    "$HEAPTAPE" record -q -f -z $z -o a.ht -- perl -e '@x = map { "x" x $_ } 1 .. 20000'
    "$HEAPTAPE" record -q -z $z -o - -- perl -e '@x = map { "x" x $_ } 1 .. 20000' | cat >b.ht
    heaptape check b.ht
    expect "status 0" [ "$status" -eq 0 ]
    n=$("$HEAPTAPE" stat --json a.ht | tr -d ' \n' | grep -o '"malloc":[0-9]*' | cut -d: -f2)
    m=$("$HEAPTAPE" stat --json b.ht | tr -d ' \n' | grep -o '"malloc":[0-9]*' | cut -d: -f2)
    expect "many: $n" [ "$n" -gt 10000 ]
    # The path of the output may cost a block.
    expect "the same number: $n, $m" [ $(((n - m) * (n - m))) -le 100 ]
  done
}

@test "a killed recorder leaves a truncated trace, which converts and can be salvaged" {
  record_setup
  "$HEAPTAPE" record -q -o a.ht -- sh -c 'echo "$HEAPTAPE_SPOOL" >session; while [ -e session ] && [ ! -e killed ]; do ls / >/dev/null; sleep 0.02; done; echo done >finished' &
  pid=$!
  has_bytes() { [ -s a.ht ] && [ "$(stat -c %s a.ht)" -gt 4000 ]; }
  wait_until has_bytes
  kill -9 $pid
  wait $pid || true
  : >killed
  wait_until [ -s finished ]
  expect "the program continued" [ "$(cat finished)" = done ]
  # No recorder is left to remove the directory. root's sessions are in a separate directory.
  rm -rf "$(cat session)"
  rmdir "$(dirname "$(cat session)")" 2>/dev/null || true
  heaptape check a.ht
  fails_with 1 "cut off"
  heaptape convert -q -f -o a.htw a.ht
  expect "status 0" [ "$status" -eq 0 ]
  heaptape check --salvage -o b.ht a.ht
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "the end is missing"
  heaptape check b.ht
  expect "status 0" [ "$status" -eq 0 ]
}

@test "a file size limit of the recorder stops the recording, not the program" {
  record_setup
  bats_require_minimum_version 1.5.0
  run --separate-stderr bash -c 'ulimit -S -f 1; "$HEAPTAPE" record -z none -o a.ht -- bash -c "ulimit -S -f unlimited; python3 -c \"x = [bytes(1000 + i % 1000) for i in range(50000)]\"; echo done >finished"'
  fails_with 125 "a.ht: cannot write at byte" "File too large"
  expect "the program continued" [ "$(cat finished)" = done ]
  heaptape check a.ht
  fails_with 1 "cut off"
}

@test "every compression" {
  record_setup
  for z in none lz4 zstd zstd:9; do
    heaptape record -z $z -o "$z.ht" -- ls -l /
    expect "status 0" [ "$status" -eq 0 ]
    heaptape check "$z.ht"
    expect "status 0" [ "$status" -eq 0 ]
  done
  for z in '' gzip zstd: zstd:0 zstd:20 zstd:1x; do
    heaptape record -z "$z" -o a.ht -- ls
    usage_fails "--compress: "
  done
}

@test "a disk that is full from the start" {
  record_setup
  [ -c /dev/full ] || skip "no /dev/full"
  heaptape record -o /dev/full -- sh -c 'ls /; sleep 0.1; echo done >finished'
  fails_with 125 "/dev/full: cannot write at byte 0: No space left on device"
  expect "the program continued" [ "$(cat finished)" = done ]
}

@test "a disk that fills up stops the recording, not the program" {
  record_setup
  mkdir small
  mount -t tmpfs -o size=64k none small 2>/dev/null || skip "cannot mount a small file system"
  heaptape record -z none -o small/a.ht -- python3 -c '
x = [bytes(1000 + i % 1000) for i in range(100000)]
open("finished", "w").write("done")'
  cp small/a.ht . || true
  umount -l small # another process of the host may use it, as df does
  fails_with 125 "small/a.ht: cannot write at byte" "No space left on device"
  expect "the program continued" [ "$(cat finished)" = done ]
  heaptape check a.ht
  fails_with 1 "cut off"
}

@test "a reader that closes the pipe stops the recording, not the program" {
  record_setup
  # The trace has 370 kB, five times the capacity of the pipe.
  "$HEAPTAPE" record -z none -o - -- sh -c 'i=0; while [ $i -lt 100 ]; do ls / >/dev/null; i=$((i+1)); done; echo done >finished' 2>err | head -c 100 >/dev/null
  expect "the program continued" [ "$(cat finished)" = done ]
  has "$(cat err)" "Broken pipe"
}

@test "standard input, output and error belong to the program" {
  record_setup
  run bash -c 'echo hello | "$HEAPTAPE" record -q -o a.ht -- sh -c "cat; echo error >&2" 2>err'
  expect "output" [ "$output" = hello ]
  expect "error" [ "$(cat err)" = error ]
}

@test "the recorder is invisible to the program" {
  record_setup
  cat >look.sh <<'END'
ls /proc/self/fd | wc -l
trap
cat /proc/self/status | grep -E 'Sig(Blk|Ign|Cgt)'
END
  sh look.sh >before
  "$HEAPTAPE" record -q -o a.ht -- sh look.sh >after
  diff before after
}

@test "blocked and ignored signals are inherited" {
  record_setup
  run python3 -c '
import signal, subprocess, os, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
signal.signal(signal.SIGINT, signal.SIG_IGN)
def look(words):
    text = subprocess.run(words + ["cat", "/proc/self/status"], capture_output=True, text=True, restore_signals=False).stdout
    return [line for line in text.splitlines() if line[:6] in ("SigBlk", "SigIgn", "SigCgt")]
plain = look([])
traced = look([os.environ["HEAPTAPE"], "record", "-q", "-o", "a.ht", "--"])
assert plain and plain == traced, (plain, traced)
'
  expect "equal" [ "$status" -eq 0 ]
}

@test "SIGINT is left to the program" {
  record_setup
  # A background job of a script ignores SIGINT.
  python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
    "$HEAPTAPE" record -q -o a.ht -- bash -c 'trap "exit 9" INT; echo $$ >pid; mv pid ready; while :; do sleep 0.05; done' &
  pid=$!
  until [ -e ready ]; do sleep 0.05; done
  kill -INT $pid
  sleep 0.2
  kill -0 $pid
  kill -INT "$(cat ready)"
  code=0
  wait $pid || code=$?
  expect "status 9" [ "$code" -eq 9 ]
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
}

@test "SIGTERM is forwarded, the second one ends the recording" {
  record_setup
  "$HEAPTAPE" record -o a.ht -- bash -c 'trap "echo got >got" TERM; echo "$HEAPTAPE_SPOOL" >session; echo ready >ready
    while [ -e ready ] && [ ! -e over ]; do sleep 0.1; done' 2>err &
  pid=$!
  until [ -e ready ]; do sleep 0.05; done
  kill -TERM $pid
  until [ -e got ]; do sleep 0.05; done
  sleep 0.3 # signals from one sender within 0.1 s count once
  kill -TERM $pid
  code=0
  wait $pid || code=$?
  expect "status 143" [ "$code" -eq 143 ]
  has "$(cat err)" "signal 15 stopped the recording"
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
  no_session_left
  : >over
}

@test "two signals of one sender at once are one request" {
  record_setup
  "$HEAPTAPE" record -o a.ht -- bash -c 'trap "echo got >>got" TERM HUP; echo ready >ready
    until [ -e over ]; do sleep 0.05; done; exit 6' 2>err &
  pid=$!
  until [ -e ready ]; do sleep 0.05; done
  kill -STOP $pid
  kill -TERM $pid
  kill -HUP $pid
  kill -CONT $pid
  until [ -e got ]; do sleep 0.05; done
  : >over
  code=0
  wait $pid || code=$?
  cat err
  expect "the program's status" [ "$code" -eq 6 ]
  expect "one signal forwarded" [ "$(wc -l <got)" -eq 1 ]
}

@test "a signal that the program sends to heaptape is not sent back" {
  record_setup
  # A signal to the process group also reaches the program, where both signals may merge.
  heaptape record -o a.ht -- python3 -c '
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.kill(os.getppid(), signal.SIGTERM)
while "\nShdPnd:\t0000000000000000\n" not in open("/proc/%d/status" % os.getppid()).read(): pass
os._exit(6 if signal.sigtimedwait([signal.SIGTERM], 0.3) is None else 7)'
  expect "status 6" [ "$status" -eq 6 ]
}

@test "children that outlive the program are recorded to the end" {
  record_setup
  heaptape record -o a.ht -- sh -c '(sleep 0.3; ls / >late) >/dev/null 2>&1 & exit 4'
  expect "status 4" [ "$status" -eq 4 ]
  expect "the child had exited" [ -s late ]
}

@test "a program killed while it allocates leaves no files and no waiting recorder" {
  record_setup
  heaptape record -o a.ht -- python3 -c '
import os, signal
open("session", "w").write(os.environ["HEAPTAPE_SPOOL"])
x = [str(i) * 10 for i in range(300000)]
os.kill(os.getpid(), signal.SIGKILL)'
  expect "status 137" [ "$status" -eq 137 ]
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
  no_session_left
}

@test "a path with spaces and colons" {
  record_setup
  mkdir "a place: here"
  cp "$HEAPTAPE_BUILD/src/capture/libheaptape.so" "a place: here/"
  HEAPTAPE_LIBEXEC="$PWD/a place: here" heaptape record -o a.ht -- ls
  expect "status 0" [ "$status" -eq 0 ]
}

@test "a missing capture library" {
  mkdir empty
  HEAPTAPE_LIBEXEC="$PWD/empty" heaptape record -o a.ht -- ls
  fails_with 125 "libheaptape.so"
}

@test "usage" {
  heaptape record
  usage_fails "operand is missing"
  heaptape record -o
  usage_fails "-o"
}

@test "options that exclude each other" {
  local line
  while read -r line; do
    # shellcheck disable=SC2086  # words of a command line
    heaptape record ${line%%: *}
    usage_fails "${line#*: }"
  done <<'END'
--pid 1 ls: --pid takes no PROGRAM
--collect d ls: --collect takes no PROGRAM
--pid 1 --collect d: --collect cannot be combined with --pid
--pid 1 --allocator x: --pid cannot be combined with --allocator
--pid 1 --walk --start paused: --walk cannot be combined with --start paused
--duration 3 ls: --duration requires --pid
--flight 1s --format mtrace ls: --flight cannot be combined with --format
--aggregate --max-size 3M ls: --aggregate cannot be combined with --max-size
--aggregate --flight 1s ls: --aggregate cannot be combined with --flight
--segment 1s --on-dump x ls: --segment cannot be combined with --on-dump
--format mtrace --max-size 1M ls: --format cannot be combined with --max-size
--collect d --format mtrace: --collect cannot be combined with --format
-o a --log-fd 3 ls: --log-fd cannot be combined with --output
-o http://h/ --flight 1s ls: -o URL cannot be combined with --flight
-o http://h/ --segment 1s --keep 3 ls: -o URL cannot be combined with --keep
--spool d ls: --spool requires -o URL
--spool-limit 1M ls: --spool-limit requires -o URL
--upload-wait 1 ls: --upload-wait requires -o URL
--upload-timeout 1 ls: --upload-timeout requires -o URL
--period 60 ls: --period requires --aggregate
--collect d --stacks: --collect cannot be combined with --stacks
--collect d --no-pages: --collect cannot be combined with --no-pages
--flight 16K ls: --flight: the size in '16K' is below 1.0 MiB
--segment 1min,16K -o %n.ht ls: --segment: the size in '1min,16K' is below 1.0 MiB
--segment 1M,2M -o %n.ht ls: --segment: '1M,2M' is not one of SIZE|DURATION[,...]
--trigger exit ls: --trigger requires --flight
--keep 3 ls: --keep requires --flight or --segment
-o a.ht --segment 1M ls: --segment requires %n in FILE for the number of the segment
-o http://h/ --spool d%n ls: --spool names a directory: 'd%n' must not contain %n
END
  for line in '' "$(printf '%0256d' 0)"; do
    heaptape record --follow "$line" ls
    usage_fails "--follow must be all, none or a pattern of at most 255 bytes"
  done
  MALLOC_LOG=log heaptape record --max-size 1M ls
  usage_fails "--max-size applies to traces, not to format logalloc"
}
