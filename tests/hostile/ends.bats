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
  kill_again 15 "$recorder"
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
  kill_again 15 "$recorder"
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
  # A recording of the shell that executes churn would end at the exec.
  wait_until grep -qx churn "/proc/$program/comm"
  "$HEAPTAPE" record --format logalloc -o fifo --pid $program 2>err 7>&- 3>&- &
  recorder=$!
  wait_until waits_in $recorder pipe_write
  # The program waits in the library, whose memory a detach would unmap.
  wait_until waits_in $program futex
  kill -TERM $recorder
  kill_again 15 $recorder
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
  records lockall future
  expect "output" [ "$output" = "mlockall ok, 0 KiB more" ]
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

# Writes late.so, which sends $LATE_SIGNAL to heaptape when a recording with --no-pages has ended and
# releases its memory, and at each later lstat(2), such as the one in which heaptape compares the
# name of the output. The size of the file $LATE_SIGNALS is the number of signals.
late_signals() {
  cat >late.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int late;
static void send_signal(void)
{
    const char *number = getenv("LATE_SIGNAL"), *count = getenv("LATE_SIGNALS");
    if (!number || !count || strcmp(program_invocation_short_name, "heaptape") != 0)
        return;
    int fd = open(count, O_WRONLY | O_CREAT | O_APPEND, 0600);
    late = write(fd, ".", 1) == 1;
    close(fd);
    kill(getpid(), atoi(number));
}
int pthread_cond_destroy(pthread_cond_t *c)
{
    send_signal();
    return 0;
}
int lstat(const char *path, struct stat *st)
{
    if (late)
        send_signal();
    return (int)syscall(SYS_lstat, path, st);
}
int lstat64(const char *path, struct stat64 *st) __attribute__((alias("lstat")));
END
  gcc -w -fPIC -shared -o late.so late.c
}

# late SIGNAL ARG...: records a program, and sends SIGNAL to the recorder when the recording has
# ended. The recording must be complete and reported.
late() {
  local signal=$1
  shift
  rm -f sent
  run timeout -k 1 120 env --default-signal=PIPE LD_PRELOAD="$PWD/late.so" LATE_SIGNALS=sent LATE_SIGNAL="$signal" \
    "$HEAPTAPE" record -f --no-pages "$@" -- sh -c 'known _exit 2000 >/dev/null; exit 3'
  echo "signal $signal: record $*: status $status: $output"
  [ -s sent ]
  expect "status 3" [ "$status" -eq 3 ]
  has "$output" "heaptape: recorded "
}

@test "a signal after the end of a recording: the output is completed and reported" {
  skip_under_sanitizer
  late_signals
  for signal in 1 2 3 13 15; do
    rm -f ./*.ht ./*.log
    late $signal -o t.ht
    "$HEAPTAPE" check -q t.ht
    [ "$(wc -c <sent)" -ge 2 ]
    late $signal -o t.ht # replaces the file
    "$HEAPTAPE" check -q t.ht
    late $signal --aggregate -o t.hta
    "$HEAPTAPE" check -q t.hta
    late $signal --flight 1M -o flight.%n.ht
    "$HEAPTAPE" check -q flight.1.ht
    late $signal --segment 1M --on-segment true -o segment.%n.ht
    "$HEAPTAPE" check -q segment.1.ht
    # SIGINT leaves the process that writes another format one second.
    [ $signal -eq 2 ] || late $signal --format logalloc -o t.log
    grep -q 'malloc' t.log || [ $signal -eq 2 ]
  done
}

@test "standard error is a closed pipe: the recording is completed, with the status of the program" {
  skip_under_sanitizer
  mkfifo fifo go
  exec 7<>fifo
  status=0
  env --default-signal=PIPE "$HEAPTAPE" record -o t.ht -- \
    sh -c 'echo >started; read -r _ <go; known _exit 2000 >/dev/null; exit 3' 2>fifo 7>&- 3>&- &
  recorder=$!
  wait_until [ -e started ]
  exec 7>&- # the only reader
  echo >go
  wait "$recorder" || status=$?
  expect "status 3" [ "$status" -eq 3 ]
  "$HEAPTAPE" check -q t.ht
}

@test "a signal that is forwarded to a program before its exec ends the program" {
  skip_under_sanitizer
  cat >forked.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
pid_t fork(void)
{
    pid_t (*real)(void) = dlsym(RTLD_NEXT, "fork"), child = real();
    if (child == 0 && strcmp(program_invocation_short_name, "heaptape") == 0)
        raise(SIGTERM);
    return child;
}
END
  gcc -w -fPIC -shared -o forked.so forked.c
  LD_PRELOAD=$PWD/forked.so run timeout -k 1 120 "$HEAPTAPE" record -o t.ht -- sh -c 'echo survived >survived; exit 3'
  expect "nothing recorded" [ "$status" -eq 125 ]
  [ ! -e survived ]
}
