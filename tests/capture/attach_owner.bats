# Which recorder owns an attached recording, and how the recording ends.
load trace

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  skip_without_ptrace
}

teardown() {
  show_failure
  [ -z "${started:-}" ] || kill -9 "$started" 2>/dev/null || true
}

# Starts a program that calls malloc from time to time.
calls() {
  cat >calls.c <<'END'
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    write(1, "ready\n", 6);
    while (access("end", F_OK) != 0) {
        free(malloc(100));
        usleep(1000);
    }
    return 0;
}
END
  gcc -w -fno-builtin -o calls calls.c
  starts ./calls
}

# are_refused: three of the four recorders have exited.
are_refused() {
  [ "$(cat ./*.status 2>/dev/null | wc -l)" -ge 3 ]
}

@test "several recorders at once: one records the process, the others are refused with its PID" {
  calls
  local i winner=
  for i in 1 2 3 4; do
    ("$HEAPTAPE" record -f -o "$i.ht" --pid "$started" 2>"$i.err" 3>&- & echo $! >"$i.pid"; s=0; wait $! || s=$?; echo $s >"$i.status") 3>&- &
  done
  wait_until are_refused
  for i in 1 2 3 4; do
    [ -s "$i.status" ] || { [ -z "$winner" ] && winner=$i; }
  done
  [ -n "$winner" ]
  wait_until has_events "$started" 10
  kill -TERM "$(cat "$winner.pid")"
  wait_until [ -s "$winner.status" ]
  cat "$winner.err"
  [ "$(cat "$winner.status")" -eq 0 ]
  # The other recorders did not end this recording.
  expect "one line" [ "$(wc -l <"$winner.err")" -eq 2 ]
  for i in 1 2 3 4; do
    [ "$i" -ne "$winner" ] || continue
    expect "refused" [ "$(cat "$i.status")" -eq 125 ]
    # On a busy machine, the attempts of the other recorders may continue until the last try.
    cat "$i.err"
    grep -Eqx "heaptape: $started: (is already recorded by process $(cat "$winner.pid")|process [0-9]+, another heaptape, is attaching to it or detaching; try again)" "$i.err"
    [ ! -e "$i.ht" ]
  done
}

@test "a program under record keeps its recorder, and can get another after that was killed" {
  calls
  kill -9 "$started"
  rm out
  "$HEAPTAPE" record -q -f -o first.ht -- ./calls >out 3>&- &
  local recorder=$! child
  wait_until grep -qsx ready out
  child=$(pgrep -P "$recorder" -x calls)
  run -125 "$HEAPTAPE" record -f -o t.ht --pid "$child" --duration 1
  [ "$output" = "heaptape: $child: is already recorded by process $recorder" ]
  run -0 "$HEAPTAPE" ctl "$child" status
  # The recorder is also named if the process cannot be attached to.
  kill -STOP "$child"
  run -125 "$HEAPTAPE" record -f -o t.ht --pid "$child" --duration 1
  [ "$output" = "heaptape: $child: is already recorded by process $recorder" ]
  kill -9 "$child"
  wait "$recorder" || true
  # A killed recorder no longer owns the process.
  starts ./calls
  "$HEAPTAPE" record -q -f -o first.ht --pid "$started" 3>&- &
  recorder=$!
  wait_until has_events "$started" 10
  kill -9 "$recorder"
  wait "$recorder" || true
  run -0 "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 1 3>&-
}

@test "a recording that ends early: the cause, and exit 1" {
  calls
  "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 100 2>err 3>&- &
  local recorder=$! status=0 by
  wait_until has_events "$started" 10
  "$HEAPTAPE" ctl "$started" detach &
  by=$!
  wait "$by"
  wait "$recorder" || status=$?
  [ "$status" -eq 1 ]
  grep -qx "heaptape: process $by ended the recording, as 'heaptape ctl PID detach' does; the program continued (to continue the recording, attach again)" err
  "$HEAPTAPE" stat --brief t.ht >text
  grep -qx "process $by ended the recording, as 'heaptape ctl PID detach' does; the program continued (to continue the recording, attach again)" text
  "$HEAPTAPE" stat --json t.ht | jq -e '[.findings[].name] | index("stopped_early")'
  "$HEAPTAPE" check -q t.ht
  # Without --duration, the recording lasts until the detach.
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>err 3>&- &
  recorder=$!
  wait_until has_events "$started" 10
  "$HEAPTAPE" ctl "$started" detach
  wait "$recorder"
  grep -q "ended the recording, as 'heaptape ctl PID detach' does" err
}

# has_child PID: the process has a child.
has_child() {
  [ -n "$(pgrep -P "$1")" ]
}

@test "a detach whose command is killed while it waits for the process: its PID" {
  calls
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>err 3>&- &
  local recorder=$! by
  wait_until has_events "$started" 10
  kill -STOP "$started"
  wait_until is_stopped "$started"
  "$HEAPTAPE" ctl "$started" detach &
  by=$!
  wait_until has_child "$by"
  kill -9 "$by"
  wait "$by" || true
  kill -CONT "$started"
  wait "$recorder"
  cat err
  grep -q "^heaptape: process $by ended the recording" err
}

@test "a recorder whose recording was ended does not end that of the next recorder" {
  calls
  "$HEAPTAPE" record -f -o first.ht --pid "$started" 2>first.err 3>&- &
  local first=$! second status=0
  wait_until has_events "$started" 10
  kill -STOP "$first"
  "$HEAPTAPE" ctl "$started" detach
  "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 2 2>err 3>&- &
  second=$!
  wait_until grep -qs . t.ht
  kill -TERM "$first"
  kill -CONT "$first"
  wait "$first" || true
  wait "$second" || status=$?
  cat first.err err
  [ "$status" -eq 0 ]
  [ "$("$HEAPTAPE" stat --json --brief t.ht | jq '.duration_ns >= 1.9e9')" = true ]
}

@test "a detach by another program than heaptape: the recording ended early, without a PID" {
  cat >detaches.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>
static int detach(struct dl_phdr_info *info, size_t size, void *data)
{
    void *library = info->dlpi_name[0] ? dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_NOW) : NULL;
    int (*function)() = library ? dlsym(library, "heaptape_end") : NULL;
    if (!function)
        return 0;
    function(0);
    function = dlsym(library, "heaptape_clear");
    function();
    return 1;
}
int main(void)
{
    write(1, "ready\n", 6);
    for (int detached = 0;;) {
        free(malloc(100));
        usleep(1000);
        if (!detached && access("go", F_OK) == 0)
            detached = dl_iterate_phdr(detach, NULL);
    }
}
END
  gcc -w -fno-builtin -o detaches detaches.c -ldl
  starts ./detaches
  "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 100 2>err 3>&- &
  local recorder=$! status=0
  wait_until has_events "$started" 10
  touch go
  wait "$recorder" || status=$?
  cat err
  [ "$status" -eq 1 ]
  grep -qx "heaptape: the recording ended early; the program continued (to continue the recording, attach again)" err
  "$HEAPTAPE" stat --brief t.ht | grep -qx "the recording ended early; the program continued (to continue the recording, attach again)"
  "$HEAPTAPE" stat --json t.ht | jq -e '[.findings[].name] | index("stopped_early")'
  # The remedy.
  "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 1 2>err 3>&-
  run grep 'ended early' err
  [ "$status" -eq 1 ]
}

@test "a program under record: its library is not detached" {
  cat >ends.c <<'END'
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
static void call(void)
{
    for (int i = 0; i < 100; i++)
        free(malloc(777));
}
int main(void)
{
    int (*end)(int) = dlsym(RTLD_DEFAULT, "heaptape_end");
    call();
    int error = end ? end(0) : 0;
    call();
    return error != ENOTSUP;
}
END
  gcc -w -fno-builtin -D_GNU_SOURCE -o ends ends.c -ldl
  run -0 "$HEAPTAPE" record -q -f -o t.ht -- ./ends
  [ "$("$HEAPTAPE" dump t.ht | grep -c 'malloc(777)')" -eq 200 ]
}

@test "a debugger that traces the process at the end: a line says that the library remains" {
  command -v strace >/dev/null || skip "no strace"
  calls
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>err 3>&- &
  local recorder=$! tracer
  wait_until has_events "$started" 10
  strace -qq -o strace.out -p "$started" 3>&- &
  tracer=$!
  wait_until grep -q '^TracerPid:.[1-9]' /proc/"$started"/status
  kill -TERM "$recorder"
  wait "$recorder"
  kill "$tracer"
  wait "$tracer" || true
  cat err
  grep -qx "heaptape: libheaptape.so remains in the process: $started: is traced by process $tracer.* (try 'heaptape ctl PID detach')" err
  # The remedy.
  "$HEAPTAPE" ctl "$started" detach
  # A debugger that detaches in time.
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>err 3>&- &
  recorder=$!
  wait_until has_events "$started" 10
  strace -qq -o strace.out -p "$started" 3>&- &
  tracer=$!
  wait_until grep -q '^TracerPid:.[1-9]' /proc/"$started"/status
  kill -TERM "$recorder"
  wait_until pgrep -P "$recorder" >pids
  kill "$tracer"
  wait "$recorder"
  cat err
  run grep 'remains in the process' err
  [ "$status" -eq 1 ]
  "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 1 2>err 3>&-
  run grep 'remains in the process' err
  [ "$status" -eq 1 ]
}

@test "a recording that ends as requested: no message" {
  calls
  "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 1 2>err 3>&-
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>>err 3>&- &
  local recorder=$!
  wait_until has_events "$started" 10
  kill -TERM "$recorder"
  wait "$recorder"
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>>err 3>&- &
  recorder=$!
  wait_until has_events "$started" 10
  kill -9 "$started"
  wait "$recorder"
  # An exiting process waits in the library for the end of the recorder.
  starts ./calls
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>>err 3>&- &
  recorder=$!
  wait_until has_events "$started" 10
  touch end
  wait "$recorder"
  wait "$started"
  cat err
  [ "$(grep -c '^heaptape: recorded ' err)" -eq 4 ]
  run grep -cE 'ended the recording|ended early|remains in the process' err
  [ "$output" -eq 0 ]
}

@test "threads that constantly start and exit" {
  cat >threads.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *work(void *a)
{
    for (int i = 0; i < 5; i++)
        free(malloc(100));
    return a;
}
static void *starts(void *a)
{
    pthread_t t[4];
    for (;;) {
        for (int i = 0; i < 4; i++)
            pthread_create(&t[i], 0, work, 0);
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], 0);
    }
    return a;
}
int main(void)
{
    pthread_t t;
    for (int i = 0; i < 3; i++)
        pthread_create(&t, 0, starts, 0);
    write(1, "ready\n", 6);
    pause();
    return 0;
}
END
  gcc -w -fno-builtin -pthread -o threads threads.c
  starts ./threads
  "$HEAPTAPE" record -q -f -o t.ht --pid "$started" --duration 1 3>&-
  # Each round attaches to all threads once.
  local i
  for i in $(seq $((30 * ${HEAPTAPE_TEST_ROUNDS:-1}))); do
    "$HEAPTAPE" ctl "$started" detach || { echo "round $i"; return 1; }
  done
  "$HEAPTAPE" record -q -f -o t.ht --pid "$started" --duration 1 3>&-
  "$HEAPTAPE" check -q t.ht
}
