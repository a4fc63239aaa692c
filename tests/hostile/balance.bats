# The balance of a recording: `record` ends with a line for each cause of missing data, with the next
# step, and `stat` prints the same line from the trace. A clean recording has one line.
load hostile

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  printf '#include <stdlib.h>\nint main(void) { for (int i = 0; i < 1000; i++) free(malloc(100)); return 0; }\n' >plain.c
  gcc -w -fno-builtin -o plain plain.c
  # With an argument, exits after the recorder has examined it.
  printf '#include "recorder.h"\nint main(int n, char **a) { if (n > 1) recorder_wait_examined(); return 0; }\n' >static.c
  gcc -I"$HEAPTAPE_SOURCE/tests/hostile" -static -o static static.c
  printf '#include <sys/wait.h>\n#include <unistd.h>\nint main(void) { for (int i = 0; i < 8000; i++) { if (!fork()) _exit(0); wait(0); } return 0; }\n' >forks.c
  gcc -static -o forks forks.c
  printf '#include <stdlib.h>\nvoid work(void) { for (int i = 0; i < 9; i++) malloc(1000); }\n' >deep.c
  gcc -w -fno-builtin -shared -fPIC -o deep.so deep.c
  cat >opens.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
int main(int n, char **a)
{
    ((void (*)(void))dlsym(dlopen("./deep.so", RTLD_NOW | (n > 1 ? RTLD_DEEPBIND : 0)), "work"))();
    return 0;
}
END
  gcc -w -o opens opens.c -ldl
  cat >limited.c <<'END'
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
static void *none(void *a) { return a; }
int main(int n, char **a)
{
    const struct rlimit low = {1 << 20, 1 << 20};
    pthread_t t;
    // The heap is large enough for all blocks, so they need no memory from the system.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    free(malloc(32 << 20));
    pthread_create(&t, NULL, none, NULL);
    pthread_join(t, NULL);
    if (n > 1)
        setrlimit(RLIMIT_AS, &low);
    for (int i = 0; i < 1500; i++)
        malloc(10000);
    return 0;
}
END
  gcc -w -fno-builtin -o limited limited.c -pthread
  cat >own.c <<'END'
#include <stddef.h>
static char a[1 << 20];
void *malloc(size_t n) { return a; }
void *calloc(size_t n, size_t m) { return a; }
void *realloc(void *p, size_t n) { return a; }
int main(void) { free(malloc(10)); return 0; }
END
  short_function free
  gcc -w -fno-builtin -o own own.c short.s
}

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_CLOCK
  skip_under_sanitizer
  ln -s "$BATS_FILE_TMPDIR"/{plain,static,forks,deep.so,opens,limited,own} .
  PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

teardown() {
  show_failure
  [ ! -s map ] || rm -f "$(cat map)"
}

# Part of a program for `sh -c`: waits until the recorder has opened the shell's spool.
# shellcheck disable=SC2016 # the inner shell's
opened='until grep -q "/$$-[0-9]*[.]spool" /proc/$PPID/maps; do sleep 0.01; done'

# missing: prints the section `missing` of `stat`.
missing() {
  "$HEAPTAPE" stat --brief t.ht | awk '/^$/ { on = 0 } on; /^missing from the recording/ { on = 1 }'
}

# same LINE...: `record` and `stat` print the lines that match the arguments (patterns), each with a
# next step, and no others.
same() {
  # Lines about memory and stacks are computed from the trace: `stat` shows their figures in tables.
  sed -n 's/^heaptape: //p' <<<"$stderr" | grep -vE '^(recorded [0-9]|process [0-9]+ \(.*\): (private memory|malloc had)|paused |[0-9]+ preexisting)' >record || true
  missing >stat
  cat record
  diff record stat
  expect "$# lines" [ "$(wc -l <record)" -eq $# ]
  local n=0 line
  for line; do
    n=$((n + 1))
    expect "line $n is: $line" grep -qE "^$line\$" <(sed -n "${n}p" record)
  done
  run -1 --separate-stderr grep -vE '\((try|see|link|open|correct|record|to record|end|remedies|their|later|remove) ?.*\)$' record
}

# has_finding NAME
has_finding() {
  "$HEAPTAPE" stat --json t.ht | jq -e --arg name "$1" '[.findings[].name] | index($name)' >found
}

number='[0-9][0-9 ]*'

@test "balance: clean programs have one line" {
  ./opens
  local program
  for program in ./plain 'sh -c "./plain; ./plain"' './opens' 'known fork 20 5' 'known exec 20 5' 'known abort 200' 'known threads 100 4' 'ls /' \
    '/usr/bin/python3 -c "import json"' 'node -e 0'; do
    command -v "${program%% *}" >/dev/null || continue
    eval "records $program"
    echo "$program: $stderr"
    expect "one line" [ "$(grep -c '^heaptape: ' <<<"$stderr")" -eq 1 ]
    "$HEAPTAPE" stat -v t.ht >text
    expect "no section" [ "$(grep -c '^missing from the recording' text)" -eq 0 ]
    "$HEAPTAPE" stat --json --brief t.ht | jq -e '.balance | del(.clock_pid) | all(.[]; . == 0)'
  done
}

@test "balance: a limit on memory, because of which the clock is read at more events" {
  records ./limited
  same
  records ./limited 1
  same "the clock was read at each event in a part of the heap of process $number \(limited\), because its limits or its sandbox left no memory to avoid that: no event is missing, but recording took more CPU time \(try a higher ulimit -v, -d or -l\)"
}

@test "balance: events that --lossy dropped" {
  # shellcheck disable=SC2016 # the inner shell's
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record --lossy -f -o t.ht -- sh -c 'kill -STOP $PPID; known _exit 60000; kill -CONT $PPID'
  same "$number records were lost: the recorder fell behind \(try without --lossy, or with -z none\)"
  has_finding lost_records
}

@test "balance: processes without a spool" {
  # shellcheck disable=SC2016 # the inner shell's
  records sh -c "$opened; "'prlimit --pid $PPID --nofile=10; ./plain; ./plain; :'
  same "$number records were lost \(see the lines below\)" \
    "$number processes were not recorded: no space, memory or file descriptor was left for a spool \(try more space .*\)"
  has_finding missing_spools
}

@test "balance: spools that the recorder could not open" {
  # shellcheck disable=SC2016 # the inner shell's
  records sh -c "$opened; "'prlimit --pid $PPID --nofile=5; ./plain; sleep 0.3; :'
  has "$stderr" "could not be opened: the recorder had no memory or file descriptor left (try a higher ulimit -n or -v)"
  sed -n 's/^heaptape: //p' <<<"$stderr" | tail -n +2 >record
  missing >stat
  diff record stat
  has_finding missing_spools
}

@test "balance: a spool that a program truncated" {
  # shellcheck disable=SC2016 # the inner shell's
  records sh -c 'kill -STOP $PPID; evil trunc 0 1; kill -CONT $PPID; churn 10'
  has "$stderr" "1 spool could not be read: a program truncated or overwrote it before the recorder read it (try --follow"
  sed -n 's/^heaptape: //p' <<<"$stderr" | tail -n +2 >record
  missing >stat
  diff record stat
  has_finding missing_spools
}

@test "balance: a program that overwrites its records" {
  # shellcheck disable=SC2016 # the inner shell's
  records sh -c 'kill -STOP $PPID; evil records 0 1; kill -CONT $PPID; ./plain; :'
  same "$number records were lost: overwritten by the program, or cut off with the recording \(record again\)"
  has_finding lost_records
}

@test "balance: a program that overwrites the session" {
  records sh -c 'evil truncsession 0.2 1; ./plain; :'
  has "$stderr" "a program overwrote the memory that it shares with the recorder: the recording may be incomplete (correct its"
  "$HEAPTAPE" stat --brief t.ht | grep -q '^a program overwrote the memory that it shares with the recorder'
  has_finding overwritten_session
}

@test "balance: nothing was recorded, for lack of files or because the spool was truncated" {
  # A library that starts before libheaptape.so limits the recorder's files, or stops the recorder.
  # glibc first runs the constructor of the last library that has the flag initfirst, and libc knows
  # no environment then.
  cat >first.c <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
static const char *find(char **e, const char *name)
{
    while (*e && strncmp(*e, name, strlen(name)))
        e++;
    return *e ? *e + strlen(name) : NULL;
}
__attribute__((constructor)) static void begin(int argc, char **argv, char **environment)
{
    const char *n = find(environment, "RECORDER_FILES=");
    struct rlimit limit = {n ? atoi(n) : 0, n ? atoi(n) : 0};
    if (!find(environment, "HEAPTAPE_SPOOL="))
        return;
    if (n)
        prlimit(getppid(), RLIMIT_NOFILE, &limit, NULL);
    else
        kill(getppid(), SIGSTOP);
}
END
  gcc -w -shared -fPIC -Wl,-z,initfirst -o first.so first.c
  local with="env LD_PRELOAD=$PWD/first.so"
  run --separate-stderr env RECORDER_FILES=10 $with timeout -k 1 60 "$HEAPTAPE" record -f -o t.ht -- ./plain
  [ "$stderr" = "heaptape: ./plain: nothing was recorded: no space, memory or file descriptor was left for its spool" ]
  run --separate-stderr env RECORDER_FILES=5 $with timeout -k 1 60 "$HEAPTAPE" record -f -o t.ht -- ./plain
  [ "$stderr" = "heaptape: ./plain: nothing was recorded: the recorder had no memory or file descriptor left for its spool" ]
  cat >truncates.c <<'END'
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    char line[4096], path[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        if (strstr(line, ".spool") && sscanf(line, "%*s %*s %*s %*s %*s %s", path) == 1)
            break;
    }
    truncate(path, 0);
    kill(getppid(), SIGCONT);
    _exit(0);
}
END
  gcc -w -o truncates truncates.c
  run --separate-stderr $with timeout -k 1 60 "$HEAPTAPE" record -f -o t.ht -- ./truncates
  [ "$stderr" = "heaptape: ./truncates: nothing was recorded: its spool was truncated or overwritten" ]
  records ./plain
  same
}

@test "balance: processes that were not recorded" {
  records sh -c './static examined; ./plain; :'
  same "process [0-9]+ \(static\) was not recorded: is statically linked.* \(remedies: heaptape-record\(1\)\)"
  has_finding unrecorded_processes
}

@test "balance: a process that ended before the recorder examined it" {
  mkfifo go end
  "$HEAPTAPE" record -f -o t.ht -- sh -c 'echo >begun; read -r line <go; ./static; echo >over; read -r line <end' 2>err 3>&- &
  local recorder=$!
  wait_until [ -s begun ]
  kill -STOP "$recorder"
  wait_until is_stopped "$recorder"
  echo >go
  wait_until [ -s over ]
  kill -CONT "$recorder"
  echo >end
  wait "$recorder"
  stderr=$(cat err)
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" != proc ] || skip "the kernel reports nothing here"
  same "process [0-9]+ \(ended before its name was read\) was not recorded: it ended before it could be examined; .*"
  has_finding unrecorded_processes
}

@test "balance: the kernel drops reports on processes" {
  mkfifo go
  # shellcheck disable=SC2016 # the inner shell's
  "$HEAPTAPE" record -f -o t.ht -- sh -c './static examined; echo >begun; read -r line <go' 2>err 3>&- &
  local recorder=$!
  wait_until [ -s begun ]
  # The kernel queues 4 MiB of reports for the recorder: this starts and ends more processes.
  kill -STOP "$recorder"
  wait_until is_stopped "$recorder"
  ./forks
  kill -CONT "$recorder"
  echo >go
  wait "$recorder"
  stderr=$(cat err)
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" != proc ] || skip "the kernel reports nothing here"
  same "process [0-9]+ \(static\) was not recorded: .*" \
    "the kernel did not report all processes: others may not have been recorded \(record fewer processes, with --follow\)"
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = kernel_with_gaps ]
  # Here, the static program does not fork.
  records sh -c './static examined; ./plain; :'
  same "process [0-9]+ \(static\) was not recorded: .*"
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = kernel ]
}

@test "balance: processes that the kernel does not report" {
  need_unshare -rpf --mount-proc
  run --separate-stderr timeout -k 1 120 unshare -rpf --mount-proc "$HEAPTAPE" record -f -o t.ht -- sh -c './static examined; ./static examined; ./plain; :'
  has "$stderr" "others that lived for less than 0.1 s may not have been recorded (record "
  sed -n 's/^heaptape: //p' <<<"$stderr" | tail -n +2 >record
  missing >stat
  diff record stat
}

@test "balance: a program with its own malloc" {
  records sh -c './own; ./plain; :'
  same "process [0-9]+ \(own\) calls its own malloc \(in the executable\): those calls were not recorded \(record again if the machine was busy; otherwise link it .*\)"
  has_finding own_malloc
}

@test "balance: an object that was opened with RTLD_DEEPBIND" {
  records ./opens deepbind
  same ".*deep.so was opened with RTLD_DEEPBIND: .* \(open it without the flag\)"
  has_finding bypassing_objects
}

@test "balance: recording that turned itself off" {
  records sh -c 'evil trunc 0.2 1; ./plain; :'
  case $stderr in *"could not be read"*) skip "the recorder did not find the spool in time" ;; esac
  # Records that the recorder had not read yet are lost.
  lost=()
  [[ "$stderr" != *" lost (see"* ]] || lost=("at least $number records? w(as|ere) lost \(see the lines below\)")
  same "${lost[@]}" "recording turned itself off in process [0-9]+ \(evil\): its spool was truncated \(remove the cause, and record again\)"
  has_finding turned_off
}

@test "balance: a clock that is ahead of the recorder's, and one that is behind" {
  need_unshare -T
  export HEAPTAPE_CLOCK=monotonic
  records unshare -T --monotonic 1000 --fork ./plain
  same "the clock of process [0-9]+ is (9[0-9][0-9]|1000)[.0-9]* s ahead of the recorder's: times and the order of its events are wrong \(try .*\)"
  has_finding clock
  records unshare -T --monotonic -1000 --fork ./plain
  same "the clock of process [0-9]+ is (9[0-9][0-9]|1000)[.0-9]* s behind the recorder's: times and the order of its events are wrong \(try .*\)"
  has_finding clock
  # Another thread, another process, and a recorder that was stopped use the same clock.
  # shellcheck disable=SC2016 # the inner shell's
  records sh -c './plain; kill -STOP $PPID; (sleep 0.3; kill -CONT $PPID) & known threads 1000 4; ./plain'
  same
  # The counter does not depend on the namespace.
  unset HEAPTAPE_CLOCK
  [ "$("$HEAPTAPE" record -q -f -o t.ht -- ./plain; "$HEAPTAPE" stat --brief t.ht | awk '/^clock/ { print $2 }')" != monotonic ] || return 0
  records unshare -T --monotonic 1000 --fork ./plain
  same
}

@test "balance: a counter that differs between CPUs, or changes its rate" {
  [ "$(uname -m)" = x86_64 ] || skip "the program emulates the counter of x86-64"
  records ./plain
  [ "$("$HEAPTAPE" stat --json --brief t.ht | jq -r .recorded.clock)" = tsc ] || skip "the kernel does not trust the counter"
  # Without changes, the emulated counter is the true counter.
  records skewed 0 0 100%
  expect "one line" [ "$(grep -c '^heaptape: ' <<<"$stderr")" -eq 1 ]
  local far=100000000000 says
  says=': times and the order of its events are wrong \(try .*HEAPTAPE_CLOCK=monotonic\)'
  records skewed 0 $far
  same "the clock of process [0-9]+ is [0-9.]+ s ahead of the recorder's$says"
  has_finding clock
  records skewed 0 -$far
  same "the clock of process [0-9]+ is [0-9.]+ s behind the recorder's$says"
  has_finding clock
  # The thread moves to a CPU whose counter is late by a few milliseconds. The recorder notices
  # because it reads the records in between.
  records skewed stopped 10000000 0
  same "the clock of process [0-9]+ is [0-9.]+ m?s (ahead of|behind) the recorder's$says"
  # The counter is ahead by 4.5 s at the end, so the recorder may be late by this time.
  records skewed 1000%
  same "the clock of process [0-9]+ is [0-9.]+ m?s ahead of the recorder's$says"
  # heaptape does not notice a difference of less than 2^18 ticks, or a slow counter (see
  # heaptape(1)).
  records skewed 0 100000
  same
  records skewed 90%
  same
  # The system's clock does not depend on the counter of the library.
  export HEAPTAPE_CLOCK=monotonic
  records skewed 0 $far
  same
}

@test "balance: the kernel stops using the counter" {
  local source=/sys/devices/system/clocksource/clocksource0/current_clocksource
  [ "$(uname -m)" = x86_64 ] || skip "other processors have one counter"
  need_unshare -m
  # shellcheck disable=SC2016 # the inner shell's
  replace='echo tsc >source && mount --bind source "$1" && shift && exec "$@"'
  unshare -m sh -c "$replace" sh $source true || skip "cannot replace $source"
  run --separate-stderr timeout -k 1 120 unshare -m sh -c "$replace" sh $source \
    "$HEAPTAPE" record -f -o t.ht -- sh -c './plain; echo hpet >source'
  same "the kernel stopped using the processor's counter as its clock: times and the order of events may be wrong \(try HEAPTAPE_CLOCK=monotonic\)"
  has_finding clock
  # The kernel uses the counter in another way.
  run --separate-stderr timeout -k 1 120 unshare -m sh -c "$replace" sh $source \
    "$HEAPTAPE" record -f -o t.ht -- sh -c './plain; echo kvm-clock >source'
  same
  # The recording does not depend on the counter.
  HEAPTAPE_CLOCK=monotonic run --separate-stderr timeout -k 1 120 unshare -m sh -c "$replace" sh $source \
    "$HEAPTAPE" record -f -o t.ht -- sh -c './plain; echo hpet >source'
  same
}

@test "balance: --max-size" {
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht --max-size 64K -- known _exit 100000
  # Only record counts the losses after the end of the trace.
  sed -n 's/^heaptape: //p' <<<"$stderr" | grep -v '^recorded\|records were lost' >record
  missing | grep -v 'records were lost' >stat
  diff record stat
  [ "$(cat record)" = "the recording stopped at --max-size; the program continued untraced (try --flight or --segment)" ]
  has_finding stopped_early
  # The program ends after the trace.
  # shellcheck disable=SC2016 # the inner shell's
  HEAPTAPE=$HEAPTAPE "$HEAPTAPE" record -q -f -o t.ht --max-size 64K -- \
    sh -c 'known _exit 100000; unset LD_PRELOAD; until "$HEAPTAPE" check -q t.ht 2>/dev/null; do sleep 0.05; done'
  "$HEAPTAPE" stat --json --brief t.ht | jq -e '.balance | .lost_at_least == 1 and .size_limit == 1'
}

@test "balance: a signal" {
  mkfifo go
  "$HEAPTAPE" record -f -o t.ht -- sh -c 'trap "" TERM; ./plain; echo >begun; read -r line <go' 2>err 3>&- &
  local recorder=$!
  wait_until [ -s begun ]
  kill -TERM $recorder
  kill_again 15 $recorder
  wait $recorder || true
  echo >go
  stderr=$(grep -v 'records\? w.* lost' err)
  "$HEAPTAPE" stat --brief t.ht | grep -q '^signal 15 stopped the recording before its processes exited (end the program instead)$'
  has "$stderr" "signal 15 stopped the recording before its processes exited (end the program instead)"
  has_finding stopped_early
}

@test "balance: names of code" {
  [ "$(uname -m)" = x86_64 ] || skip "the program's code is x86-64's"
  printf '@ 1000 fine\nno line\n12 zz name\n' >lines
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record --stacks -f -o t.ht -- "$HEAPTAPE_PROGRAMS/jit" lines stay
  printf '%s\n' "$output" >map
  same "2 records of perf-PID.map or jit-PID.dump were skipped: .* \(their functions .*\)"
  has_finding code_names
  rm -f "$(cat map)"
  printf '@ 1000 fine\n' >lines
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record --stacks -f -o t.ht -- "$HEAPTAPE_PROGRAMS/jit" lines stay
  printf '%s\n' "$output" >map
  same
  rm -f "$(cat map)"
  # The map has 70 MiB.
  { cat lines; yes '1000000 10 a function whose name is not short' | head -n 1700000; } >many
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record --stacks -f -o t.ht -- "$HEAPTAPE_PROGRAMS/jit" many stay
  printf '%s\n' "$output" >map
  same "only the first 64 MiB of perf-PID.map and jit-PID.dump were read, of 1 process \(later functions .*\)"
  has_finding code_names
}

@test "balance: segments, dumps, aggregates and joined files carry it" {
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record --segment 1M -f -o 's%n.ht' -- sh -c './own; ./static examined; ./plain; :'
  cp s1.ht t.ht
  same "process [0-9]+ \(static\) was not recorded: .*" "process [0-9]+ \(own\) calls its own malloc .*"
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record --aggregate -f -o t.ht -- sh -c './own; ./static examined; ./plain; :'
  same "process [0-9]+ \(static\) was not recorded: .*" "process [0-9]+ \(own\) calls its own malloc .*"
  export HEAPTAPE_CLOCK=monotonic
  need_unshare -T
  for how in '--flight 1M' --aggregate '--segment 1M'; do
    rm -f [0-9]*.ht
    # shellcheck disable=SC2086 # words
    run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record $how -f -o '%n.ht' -- unshare -T --monotonic 1000 --fork ./plain
    [ ! -e 1.ht ] || mv 1.ht t.ht
    [ ! -e %n.ht ] || mv %n.ht t.ht
    "$HEAPTAPE" stat --brief t.ht | grep -q '^the clock of process [0-9]* is \(9[0-9][0-9]\|1000\)'
  done
}
