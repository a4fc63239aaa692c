load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

# Stops processes left by a failed test.
teardown() {
  show_failure
  [ ! -f daemon ] || kill "$(cat daemon)" 2>/dev/null || true
}

# foreground COMMAND...: runs it in the background with the signals of a terminal's foreground,
# which background jobs ignore.
foreground() {
  exec python3 -c 'import os, signal, sys
for s in signal.SIGINT, signal.SIGQUIT: signal.signal(s, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}

# ends_within SECONDS PID: sets $code to its status.
ends_within() {
  local i
  for ((i = 0; i < $1 * 20; i++)); do
    kill -0 "$2" 2>/dev/null || break
    sleep 0.05
  done
  if kill -9 "$2" 2>/dev/null; then
    echo "still running after $1 s"
    return 1
  fi
  code=0
  wait "$2" || code=$?
}

# Sends two SIGTERMs to a recorder whose output is blocked: the recorder must end, and the program
# must continue.
stops_though_blocked() {
  mkfifo fifo
  exec 7<>fifo
  "$HEAPTAPE" record "$@" -o fifo -- sh -c 'trap "echo got >got" TERM; churn 20000000; echo done >finished' 2>err 7>&- 3>&- &
  recorder=$!
  wait_until waits_in "$recorder" pipe_write
  kill -TERM "$recorder"
  wait_until has_received "$recorder" 15
  kill -TERM "$recorder"
  ends_within 40 "$recorder"
  exec 7>&-
  cat err
  wait_until [ -s finished ]
  expect "the first SIGTERM was forwarded" [ -s got ]
}

# has_no_children PID: the process has no children except zombies.
has_no_children() {
  [ -z "$(ps -o stat= --ppid "$1" | grep -v '^Z')" ]
}

@test "a blocked output: the second SIGTERM ends the recording" {
  skip_under_sanitizer
  stops_though_blocked -z none
  expect "status 143" [ "$code" -eq 143 ]
  has "$(cat err)" "fifo accepted no more data: the trace is cut off"
}

@test "a blocked output after the program has exited: status 125" {
  skip_under_sanitizer
  mkfifo fifo
  exec 7<>fifo
  "$HEAPTAPE" record -z none -o fifo -- sh -c 'known _exit 20000 >/dev/null; exit 3' 2>err 7>&- 3>&- &
  recorder=$!
  wait_until waits_in "$recorder" pipe_write
  wait_until has_no_children "$recorder"
  kill -TERM "$recorder"
  wait_until has_received "$recorder" 15
  kill -TERM "$recorder"
  ends_within 40 "$recorder"
  exec 7>&-
  cat err
  expect "status 125" [ "$code" -eq 125 ]
  has "$(cat err)" "fifo accepted no more data: the trace is cut off"
  # If the FIFO has a reader, the exit status is the status of the program.
  cat fifo >whole.ht &
  run "$HEAPTAPE" record -q -z none -o fifo -- sh -c 'known _exit 20000 >/dev/null; exit 3'
  expect "status 3" [ "$status" -eq 3 ]
}

@test "a blocked output in another format" {
  skip_under_sanitizer
  stops_though_blocked --format logalloc
  grep -qx "heaptape: the output accepts no data: it was cut off" err
}

# has_run PID: the process has used more CPU time than $before.
has_run() {
  [ "$(awk '{ print $14 }' "/proc/$1/stat")" -gt "$before" ]
}

@test "a blocked output of an attached recording in another format: two signals end it, and the program continues" {
  skip_under_sanitizer
  mkfifo fifo
  exec 7<>fifo
  churn 20000000000 >churned 7>&- 3>&- &
  program=$!
  "$HEAPTAPE" record --format logalloc -o fifo --pid $program 2>err 7>&- 3>&- &
  recorder=$!
  wait_until waits_in $recorder pipe_write
  # The program waits in the library, whose memory a detach would unmap.
  wait_until waits_in $program futex
  kill -TERM $recorder
  wait_until has_received $recorder 15
  kill -TERM $recorder
  # The process that writes the log still waits for a reader.
  ends_within 40 $recorder
  exec 7>&-
  cat err
  expect "status 125" [ "$code" -eq 125 ]
  grep -qx "heaptape: the output accepts no data: it was cut off" err
  local before
  before=$(awk '{ print $14 }' /proc/$program/stat)
  wait_until has_run $program
  kill $program
  # With a reader.
  cat fifo >log 3>&- &
  "$HEAPTAPE" record --format logalloc -f -o fifo -- known _exit 2000 2>err
  run grep "no more data\|accepts no data" err
  [ "$status" -eq 1 ]
}

@test "^C belongs to the program while it runs, and to the recorder while only its children run" {
  skip_under_sanitizer
  mkfifo go
  foreground "$HEAPTAPE" record -o t.ht -- sh -c '(while :; do churn 10 >churned; sleep 0.1; done) & echo $! >daemon; echo $$ >program; read -r _ <go; exit 3' 2>err 3>&- &
  recorder=$!
  wait_until [ -s program ]
  kill -INT "$recorder"
  wait_until has_received "$recorder" 2
  kill -0 "$recorder"
  echo >go
  while kill -0 "$(cat program)" 2>/dev/null; do sleep 0.05; done
  kill -INT "$recorder"
  ends_within 40 "$recorder"
  kill "$(cat daemon)"
  cat err
  expect "the program's status" [ "$code" -eq 3 ]
  has "$(cat err)" "signal 2 stopped the recording"
  "$HEAPTAPE" check -q t.ht
}

@test "a program that locks its memory, under a limit" {
  skip_under_sanitizer
  [ "$(id -u)" -eq 0 ] || skip "the program sets its limit as root"
  records lockall
  expect "output" [ "$output" = "mlockall ok" ]
}

@test "a program with AddressSanitizer: the reason for its end, and recording when requested" {
  skip_under_sanitizer
  echo '#include <stdlib.h>
int main(void) { for (int i = 0; i < 1000; i++) { void *volatile p = malloc(4999); free(p); } return 0; }' >asan.c
  gcc -fno-builtin -fsanitize=address -o asan asan.c 2>/dev/null || skip "no AddressSanitizer"
  ASAN_OPTIONS= records ./asan
  expect "status" [ "$status" -eq 125 ]
  has "$stderr" "set ASAN_OPTIONS=verify_asan_link_order=0"
  ASAN_OPTIONS=verify_asan_link_order=0 records ./asan
  expect "status" [ "$status" -eq 0 ]
  at_least 2000 events
}
