# The memory of running processes, read from outside.
load ../helper

# prepare FOLDER: for setup and setup_file.
prepare() {
  bats_require_minimum_version 1.5.0
  cd "$1" || return
  # glibc would write to all blocks.
  unset MALLOC_PERTURB_
  if [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" -gt 0 ] && [ "$(id -u)" -ne 0 ]; then
    skip "kernel.yama.ptrace_scope forbids reading the memory of other processes"
  fi
}

setup() {
  prepare "$BATS_TEST_TMPDIR"
}

# watch NAME CAUSE OPTION...: runs `doctor` on a service that shows CAUSE, in the background. The
# test reads the answer with `watched NAME`. $under may hold words before the service.
watch() {
  run_watch "$@" >"$1.log" 2>&1 3>&- &
  echo $! >"$1.watcher"
}

run_watch() {
  local name=$1 cause=$2 service status=0
  shift 2
  ${under:-} "$HEAPTAPE_PROGRAMS/verdicts" "$cause" >"$name.out" &
  service=$!
  trap 'kill -9 "$service"' EXIT
  wait_until grep -qsx ready "$name.out"
  for _ in 1 2 3; do
    status=0
    "$HEAPTAPE" doctor "$@" "$service" >"$name.answer" || status=$?
    # The last look of a saw-tooth may read the heap while a batch changes it. The answer then
    # contains a note.
    [ "$cause" = saw ] && grep -q "live blocks are not known" "$name.answer" || break
  done
  echo "$service $status" >"$name.ended.new"
  mv "$name.ended.new" "$name.ended"
}

# The services are watched for 10 s each, so they run at the same time, in parallel with the first
# tests.
setup_file() {
  local name path
  prepare "$BATS_FILE_TMPDIR"
  watch leak leak --json --watch 10s
  watch cache cache --json --watch 12s
  watch saw saw --json --watch 10s
  watch mapping mapping --watch 10s
  for name in $others; do
    path=$(library "$name")
    [ -z "$path" ] || under="env LD_PRELOAD=$path" watch "$name" leak --json --watch 8s
  done
}

# Ends the services whose answers no test has read.
teardown_file() {
  local watcher pid
  for watcher in "$BATS_FILE_TMPDIR"/*.watcher; do
    [ -e "$watcher" ] && [ ! -e "${watcher%.watcher}.ended" ] || continue
    pid=$(cat "$watcher")
    pkill -P "$pid" || true
    kill "$pid" 2>/dev/null || true
  done
  check_json
}

# watched NAME: waits for the answer, sets $output and $status to it, and $watched to the PID of the
# service.
watched() {
  wait_until test -e "$BATS_FILE_TMPDIR/$1.ended" || { cat "$BATS_FILE_TMPDIR/$1.log"; return 1; }
  read -r watched status <"$BATS_FILE_TMPDIR/$1.ended"
  output=$(cat "$BATS_FILE_TMPDIR/$1.answer")
  expect "status 0" [ "$status" -eq 0 ]
}

# Allocators other than glibc's, and the path of an installed allocator.
others="libjemalloc.so.2 libtcmalloc_minimal.so.4"
library() {
  ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

teardown() {
  show_failure
  [ -z "${program:-}" ] || kill -9 "$program" 2>/dev/null || true
}

# begin COMMAND...: starts the command, sets $program to its pid, and waits until it prints "ready".
# The command before it is killed.
begin() {
  [ -z "${program:-}" ] || kill -9 "$program" 2>/dev/null || true
  rm -f out
  "$@" >out 3>&- &
  program=$!
  wait_until grep -qsx ready out
}

# cause NAME: starts tests/capture/verdicts.c.
cause() {
  begin ${under:-} "$HEAPTAPE_PROGRAMS/verdicts" "$1"
}

# doctor ARGUMENT...: runs doctor. A look has a time limit. If heaptape had no CPU for a second, the
# limit left blocks unread, as the answer says, and doctor runs again.
doctor() {
  for _ in 1 2 3 4 5; do
    heaptape doctor "$@"
    [[ "$output" == *" was not read."* ]] || return 0
  done
}

# doctor_json OPTION...: runs `doctor --json` on $program.
doctor_json() {
  doctor --json "$@" "$program"
  [ "$status" -eq 0 ]
}

# says TEXT: the output contains the text, in any lines.
says() {
  has "$(tr -s '\n ' ' ' <<<"$output")" "$1"
}

# says_not TEXT
says_not() {
  ! says "$1" >/dev/null || { printf "unexpected '%s' in: %s\n" "$1" "$output"; return 1; }
}

# json FILTER: the last JSON through jq.
json() {
  jq -r "$1" <<<"$output"
}

# holds CONDITION: a condition of jq about the last JSON.
holds() {
  jq -e "$1" <<<"$output" >/dev/null || { echo "not: $1"; return 1; }
}

# fits: the text is one screen.
fits() {
  expect "at most 25 lines" [ "${#lines[@]}" -le 25 ]
  expect "at most 80 columns" [ "$(wc -L <<<"$output")" -le 80 ]
}

# is_verdict NAME: the verdict of the first answer, in JSON and in one screen of text.
is_verdict() {
  doctor_json
  expect "verdict $1" [ "$(json .verdict.kind)" = "$1" ]
  doctor "$program"
  expect "status 0" [ "$status" -eq 0 ]
  fits
}

@test "doctor: free memory between surviving blocks" {
  cause pinned
  is_verdict pinned
  says "malloc_trim(0)"
  says "verdicts pinned): RSS"
  doctor_json
  # 1 in 200 of 491,520 blocks of 144 bytes is live.
  holds '.malloc.live_bytes > 250000 and .malloc.live_bytes < 2000000'
  holds '.resident.free_bytes > 30000000 and .resident.pinned_bytes > 3000000'
  holds '.malloc.pinning_blocks > 2400 and .malloc.pinning_blocks < 2600'
}

@test "doctor: a million small freed blocks in a random order" {
  cause small
  is_verdict retained
  says "small freed blocks in caches"
  doctor_json
  holds '.malloc.live_bytes < 10000000 and .malloc.live_blocks < 1000'
  holds '.resident.cached_bytes > 33000000'
}

@test "doctor: free memory in the arenas of threads" {
  cause arenas
  is_verdict arenas
  says "MALLOC_ARENA_MAX=2"
  doctor_json
  holds '.malloc.arenas >= 4 and .malloc.arenas_with_free_memory >= 3'
}

@test "doctor: stacks of threads" {
  cause stacks
  is_verdict stacks
  says "thread stacks"
  doctor_json
  holds '.stacks == 201 and .resident.stacks_bytes > 50000000'
}

@test "doctor: blocks that were never written" {
  cause reserve
  before=$(awk '/^VmRSS/ { print $2 }' "/proc/$program/status")
  is_verdict unwritten
  doctor_json
  holds '.malloc.mapped_blocks == 40 and .malloc.mapped_bytes > 330000000'
  holds '.malloc.mapped_resident_bytes < 4000000'
  # The samples did not make pages resident.
  after=$(awk '/^VmRSS/ { print $2 }' "/proc/$program/status")
  [ $((after - before)) -lt 300 ]
}

@test "doctor: growth is not judged after 3 seconds" {
  cause leak
  heaptape doctor "$program"
  [ "$status" -eq 0 ]
  fits
  says "too short"
  says "RSS grew by "
  says "heaptape doctor --watch 60s $program"
  says_not "grow linearly"
}

@test "doctor: --watch finds a leak" {
  watched leak
  [ "$(json .verdict.kind)" = grows ]
  # On a busy machine, RSS, which grows in steps, may not fit the line.
  holds '(.growth.rss | IN("linear", "irregular")) and .growth.samples > 6'
  has "$(json .next)" "heaptape record --pid $watched --stacks"
  # With --help, the options are checked, but nothing is recorded.
  read -ra words <<<"$(json .next)"
  "$HEAPTAPE" "${words[@]:1}" --help
}

@test "doctor: --watch does not accuse a cache that fills" {
  watched cache
  expect "fills, live or healthy" grep -Eqx 'fills|live|healthy' <<<"$(json .verdict.kind)"
}

@test "doctor: --watch does not accuse a saw-tooth" {
  watched saw
  expect "no accusation" grep -Eqx 'sawtooth|healthy|live' <<<"$(json .verdict.kind)"
}

@test "doctor: --watch finds mappings outside malloc that grow" {
  watched mapping
  says "next heaptape record --pid $watched --maps --stacks"
  says "Anonymous memory outside malloc grows linearly"
  says ", watched for 1"
  says_not "Live bytes grow"
}

# Runs on a stack in a large mapping without a guard, as Go does. The data has the mark of Go's linker.
@test "doctor: the heap of Go, which contains the stacks, does not count as stacks" {
  cat >heap.c <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
volatile char mark[] = "\xff Go buildinf:";
static void wait_there(void)
{
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
int main(void)
{
    static ucontext_t here, there;
    char *heap = mmap(NULL, 48 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(heap, 1, 40 << 20);
    getcontext(&there);
    there.uc_stack = (stack_t){.ss_sp = heap, .ss_size = 1 << 20};
    makecontext(&there, wait_there, 0);
    return swapcontext(&here, &there) + mark[0];
}
C
  gcc -O1 -o heap heap.c
  begin ./heap
  doctor --json "$program"
  [ "$(json .runtime)" = Go ]
  [ "$(json .verdict.kind)" = runtime ]
  holds '.resident.runtime_bytes > 40000000 and .resident.stacks_bytes < 2000000'
}

@test "doctor: a process that has never allocated memory" {
  printf '%s\n' '#include <unistd.h>' 'int main(void) { return write(1, "ready\n", 6) != 6 || pause(); }' >idle.c
  gcc -O1 -o idle idle.c
  begin ./idle
  doctor_json
  holds '.malloc.blocks_read and .malloc.live_blocks == 0 and .resident.unread_bytes == 0'
  says_not "was not found"
}

# A look reads the mappings first. Meanwhile, realloc enlarges or moves the block.
@test "doctor: a block that realloc enlarges all the time" {
  cause enlarged
  for _ in 1 2 3 4 5; do
    doctor_json
    holds '.malloc.mapped_blocks == 1 and .resident.live_bytes > 4000000 and .resident.anonymous_bytes < 1000000'
  done
}

@test "doctor: stacks of threads that were not joined" {
  cause ended
  is_verdict stacks
  says "the other stacks belong to threads that ended and were neither joined nor detached, or to coroutines"
  says "Call pthread_join"
}

@test "doctor: the memory of a language runtime" {
  begin python3 -c 'import time; x = [{"a": i} for i in range(150000)]; print("ready", flush=True); [(bytearray(2000), time.sleep(0.05)) for _ in range(12000)]'
  is_verdict runtime
  says ", Python"
  says "is memory outside malloc, where Python has its own heap"
  says "PYTHONMALLOC=malloc"
  doctor_json
  holds '.runtime == "Python" and .resident.runtime_bytes > 20000000'
  # A recording without the blocks from before the recording says the same.
  "$HEAPTAPE" record -q -o python.ht --pid "$program" --duration 1
  heaptape doctor python.ht
  fits
  says ", Python"
  says "is memory outside malloc, where Python has its own heap"
  says "heap of the runtime, mappings"
}

# The program has the name of an interpreter, and no functions of Python.
@test "doctor: a recording of an interpreter without its functions has a hint" {
  cat >python3.c <<'C'
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 4000; i++) {
        malloc(10000);
        usleep(1000);
    }
    _exit(0);
}
C
  cc -O0 -o python3 python3.c
  heaptape doctor --json -- ./python3
  [ "$status" -eq 0 ]
  holds '.notes | length == 1'
  has "$(json '.notes[0]')" "no call stack has a function of the Python program. To see these functions, record it with Python 3.11 to 3.13"
  has "$(json '.notes[0]')" "Before Python 3.11, find the lines with tracemalloc"
}

@test "doctor: the parts add up to RSS" {
  cause arenas
  doctor_json
  holds '([.resident[]] | add) as $sum | .rss_bytes as $rss | $sum > 0.98 * $rss and $sum < 1.02 * $rss'
  rss=$(($(awk '/^VmRSS/ { print $2 }' "/proc/$program/status") * 1024))
  holds "(.rss_bytes - $rss) / $rss | fabs < 0.05"
}

@test "doctor: a list of arenas in a circle and the first corrupt chunk give a line" {
  begin "$HEAPTAPE_PROGRAMS/corrupts" circle
  run --separate-stderr timeout 300 "$HEAPTAPE" doctor "$program"
  [ "$status" -eq 0 ]
  fits
  says "the list of glibc's arenas is corrupt"
  begin "$HEAPTAPE_PROGRAMS/corrupts" size
  run --separate-stderr timeout 300 "$HEAPTAPE" doctor "$program"
  [ "$status" -eq 0 ]
  says "The heap is corrupt: the chunk at $(head -n 1 out) has the size 0"
  begin "$HEAPTAPE_PROGRAMS/corrupts" flag
  run --separate-stderr timeout 300 "$HEAPTAPE" doctor "$program"
  [ "$status" -eq 0 ]
  says "The heap is corrupt: the chunk at $(head -n 1 out) has the size 1008"
  cause pinned
  heaptape doctor "$program"
  says_not corrupt
}

@test "doctor: the heap of a forked process that has grown is not corrupt" {
  printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' '#include <sys/wait.h>' '#include <unistd.h>' \
    'static void fill(void) { for (int i = 0; i < 5000; i++) { char *p = malloc(400); p[0] = 1; } }' \
    'int main(void) { fill(); if (fork()) { pause(); } fill(); puts("ready"); fflush(stdout); pause(); return 0; }' >forks.c
  cc -o forks forks.c
  begin ./forks
  parent=$program
  program=$(pgrep -P "$parent")
  doctor_json
  holds '.malloc.corrupt_chunk == null and .malloc.lost_bytes == 0'
  holds '.malloc.live_bytes > 4000000 and .malloc.live_blocks >= 10000 and .resident.unread_bytes == 0'
  [ "$(grep -c '\[heap\]' "/proc/$program/maps")" -eq 2 ]
  kill -9 "$parent"
}

@test "doctor: stopped and traced processes are sampled as they are" {
  cause pinned
  kill -STOP "$program"
  doctor "$program"
  [ "$status" -eq 0 ]
  says "The process is stopped."
  says "malloc_trim(0)"
  [ "$(awk '/^State/ { print $2 }' "/proc/$program/status")" = T ]
  kill -CONT "$program"
  heaptape doctor "$program"
  says_not "The process is stopped."
}

# is_in PID STATES: the process is in one of the states, or has ended.
is_in() {
  [ ! -e "/proc/$1" ] || grep -qs "^State:.[$2Z]" "/proc/$1/status"
}

# has_begun PID: the shell has executed heaptape.
has_begun() {
  [ ! -e "/proc/$1" ] || grep -qsx heaptape "/proc/$1/comm"
}

# Runs doctor on $program and stops it between its two looks. Sets $doctor to its PID.
stop_between_looks() {
  local began
  while :; do
    began=${EPOCHREALTIME/[.,]/}
    "$HEAPTAPE" doctor "$program" >answer 2>message 3>&- &
    doctor=$!
    wait_until has_begun "$doctor"
    # It first sleeps after the first look. The second look begins 1.3 s after the start.
    wait_until is_in "$doctor" S
    kill -STOP "$doctor" || true
    wait_until is_in "$doctor" T
    [ $((${EPOCHREALTIME/[.,]/} - began)) -ge 1300000 ] || break
    # This shell had no CPU for too long: start again.
    kill -9 "$doctor" || true
    wait "$doctor" || true
  done
}

# Continues doctor, and sets $status, $output and $stderr.
continue_doctor() {
  kill -CONT "$doctor"
  status=0
  wait "$doctor" || status=$?
  output=$(cat answer) stderr=$(cat message)
  mapfile -t stderr_lines <message
}

@test "doctor: a process that ends or executes another program meanwhile" {
  mkfifo go
  sleep 600 3>&- &
  program=$!
  stop_between_looks
  kill -9 "$program"
  wait "$program" || true
  continue_doctor
  fails_with 1 "process ended"
  sh -c 'read -r line <go; exec sleep 600' 3>&- &
  program=$!
  stop_between_looks
  echo >go
  wait_until grep -qx sleep "/proc/$program/comm"
  continue_doctor
  fails_with 1 "$program: the process executed another program"
}

@test "doctor: no process, a thread, a zombie" {
  heaptape doctor 4194304
  fails_with 1 "no such process"
  cause stacks
  thread=$(ls "/proc/$program/task" | grep -vx "$program" | tail -n 1)
  heaptape doctor "$thread"
  fails_with 1 "$thread: is a thread, not a process"
  heaptape doctor 0
  usage_fails "'0' is not a process ID"
  heaptape doctor "$program" --watch 0s
  usage_fails "--watch"
}

@test "doctor: the main thread has ended" {
  printf '%s\n' '#include <pthread.h>' '#include <stdio.h>' '#include <unistd.h>' \
    'static void *rest(void *a) { puts("ready"); fflush(stdout); pause(); return a; }' \
    'int main(void) { pthread_t t; pthread_create(&t, NULL, rest, NULL); pthread_exit(NULL); }' >leader.c
  cc -pthread -o leader leader.c
  begin ./leader
  wait_until grep -q '^State:.Z' /proc/"$program"/status
  heaptape doctor "$program"
  fails_with 1 "$program: its main thread has ended, so /proc does not show its memory"
}

@test "doctor: the process of another user" {
  for_other_users tests/verdicts
  cause pinned
  run --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups "$HEAPTAPE" doctor "$program"
  fails_with 1 "$program: not permitted: it belongs to user 0"
}

@test "doctor: the name of shared memory is shown with a mark where it is cut" {
  local memory='import mmap, os, sys, time
fd = os.memfd_create(sys.argv[1])
os.truncate(fd, 40 << 20)
m = mmap.mmap(fd, 40 << 20)
m.write(b"1" * (40 << 20))
print("ready", flush=True)
time.sleep(1000)'
  begin python3 -c "$memory" pages
  heaptape doctor "$program"
  says "shared memory: mostly memfd:pages (de..."
  kill -9 "$program"
  begin python3 -c "$memory" ""
  heaptape doctor "$program"
  grep -q "shared memory: mostly memfd: (deleted)$" <<<"$output"
}

@test "doctor: larger child processes are named" {
  begin sh -c "\"$HEAPTAPE_PROGRAMS/verdicts\" pinned & wait"
  child=$(pgrep -P "$program")
  heaptape doctor "$program"
  [ "$status" -eq 0 ]
  says "Its child processes are bigger"
  says "heaptape doctor $child"
  kill -9 "$child"
}

@test "doctor: other allocators are named, with the parts that are not known" {
  local found=
  for library in $others; do
    path=$(library "$library")
    [ -n "$path" ] || continue
    found=1
    name=${library#lib} name=${name%%[._]*}
    under="env LD_PRELOAD=$path" cause pinned
    is_verdict unknown_blocks
    says ", $name "
    says "memory of $name or of the program's own mappings"
    says "The blocks and statistics of $name were not read"
    kill -9 "$program"
    watched "$library"
    grep -Eq 'grows linearly, by|It grew by' <<<"$(json .verdict.text)"
  done
  [ -n "$found" ] || skip "no other allocator is installed"
}

@test "doctor: the statistics of other allocators, read by calls in the process" {
  local found=
  skip_under_sanitizer
  for library in $others; do
    path=$(library "$library")
    [ -n "$path" ] || continue
    found=1
    name=${library#lib} name=${name%%[._]*}
    # Without these variables, the allocators release the free pages within 10 s.
    under="env LD_PRELOAD=$path MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1 TCMALLOC_RELEASE_RATE=0" cause pinned
    heaptape doctor "$program"
    says "heaptape doctor --allocator-stats $program"
    doctor_json --allocator-stats --try --yes
    grep -Eqx 'pinned|retained' <<<"$(json .verdict.kind)"
    says "The statistics of $name were read by calls"
    # 1 in 200 of 491,520 blocks of 128 bytes.
    holds '.malloc.statistics_read and .malloc.live_bytes > 250000 and .malloc.live_bytes < 4000000'
    holds '.resident.pinned_bytes > 5000000'
    holds '.rss_bytes as $rss | ([.resident[]] | add) / $rss - 1 | fabs < 0.05'
    holds '.try.rss_before_bytes - .try.rss_after_bytes > 0.7 * .resident.free_bytes'
    kill -0 "$program"
    kill -9 "$program"
  done
  [ -n "$found" ] || skip "no other allocator is installed"
  heaptape doctor --allocator-stats missing.ht
  usage_fails "--allocator-stats requires a PID"
}

@test "doctor: the segments of mimalloc are read without a call" {
  path=$(library libmimalloc.so.2)
  [[ "$(readlink "${path:-/}")" = *.2.0* ]] || skip "mimalloc 2.0 is not installed"
  under="env LD_PRELOAD=$path" cause pinned
  is_verdict pinned
  says_not "not read"
  says_not "stopped"
  doctor_json
  # 1 in 200 of 491,520 blocks of 128 bytes is live. Nearly all pages of 64 KiB contain such a
  # block.
  holds '.malloc.live_bytes > 300000 and .malloc.live_bytes < 700000'
  holds '.resident.pinned_bytes > 50000000 and .verdict.saves_bytes < 20000000'
  holds '.rss_bytes as $rss | ([.resident[]] | add) / $rss - 1 | fabs < 0.05'
  kill -9 "$program"
  under="env LD_PRELOAD=$path" cause reserve
  is_verdict unwritten
  doctor_json
  holds '.malloc.live_bytes > 330000000 and .malloc.live_bytes < 400000000'
}

@test "doctor: --try while a thread waits for its vfork child" {
  skip_under_sanitizer
  cat >waits.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
enum { BLOCKS = 500000 };
static char *all[BLOCKS];
static void *work(void *none)
{
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        for (puts("ready"), fflush(stdout);;)
            pause();
    }
    return none;
}
int main(void)
{
    pthread_t t;
    for (int i = 0; i < BLOCKS; i++)
        memset(all[i] = malloc(120), 1, 120);
    for (int i = 0; i < BLOCKS; i++)
        if (i % 2000)
            free(all[i]);
    pthread_create(&t, NULL, work, NULL);
    for (;;)
        pause();
}
END
  gcc -O1 -fno-builtin -pthread -o waits waits.c
  begin ./waits
  # The waiting thread cannot be stopped. The main thread makes the call.
  doctor_json --try --yes
  [ "$status" -eq 0 ]
  holds '.try.rss_before_bytes - .try.rss_after_bytes > 30000000'
}

@test "doctor: musl's malloc is not reported as glibc's" {
  skip_under_sanitizer
  command -v musl-gcc >/dev/null || skip "no musl"
  cat >p.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) { *(volatile char *)malloc(1 << 20) = 1; puts("ready"); fflush(stdout); return pause(); }
END
  musl-gcc -fno-builtin -o musl p.c
  begin ./musl
  heaptape doctor "$program"
  says ", musl"
  says_not glibc
  doctor_json
  holds '.malloc.allocator == "musl"'
}

@test "doctor: --try calls malloc_trim once and prints its effect" {
  skip_under_sanitizer
  cause pinned
  heaptape doctor --try "$program" </dev/null
  usage_fails "--try requires --yes without a terminal"
  heaptape doctor --yes "$program"
  usage_fails "--yes requires --try"
  doctor_json --try --yes
  holds '.try.rss_before_bytes - .try.rss_after_bytes > 0.8 * .verdict.saves_bytes'
  holds '.try.call_ns > 0 and .try.paused_ns >= .try.call_ns'
  # The process continues, and the call has left no traces in the process.
  [ "$(awk '/^TracerPid/ { print $2 }' "/proc/$program/status")" = 0 ]
  heaptape doctor --try --yes "$program"
  fails_with 1 "the remedy is not a call of malloc_trim(0): nothing was tried"
  says_not "malloc_trim(0) returned"
  kill -0 "$program"
}

@test "doctor: --try asks, and does nothing without consent" {
  cause pinned
  before=$(awk '/^VmRSS/ { print $2 }' "/proc/$program/status")
  for answer in n ''; do
    run timeout 120 python3 - "$HEAPTAPE" "$program" "$answer" <<'END'
import os, pty, sys
heaptape, pid, answer = sys.argv[1:]
child, fd = pty.fork()
if child == 0:
    os.execv(heaptape, [heaptape, "doctor", "--try", pid])
text = b""
try:
    while chunk := os.read(fd, 65536):
        text += chunk
        if text.endswith(b"[y/N] "):
            os.write(fd, answer.encode() + b"\n")
except OSError:
    pass
os.waitpid(child, 0)
print(text.decode())
END
    expect "status 0" [ "$status" -eq 0 ]
    says "Call malloc_trim(0) in process $program?"
    says_not "The call took"
  done
  after=$(awk '/^VmRSS/ { print $2 }' "/proc/$program/status")
  [ $((before - after)) -lt 1000 ]
}

@test "doctor: a recording has the verdict of stat" {
  skip_under_sanitizer
  heaptape record -q --stacks -o t.ht -- "$HEAPTAPE_PROGRAMS/verdicts" pinned 3
  heaptape stat --json t.ht
  kind=$(json .verdict.kind)
  heaptape doctor --json t.ht
  [ "$status" -eq 0 ]
  [ "$(json .verdict.kind)" = "$kind" ]
  [ "$kind" = pinned ]
  heaptape doctor t.ht
  fits
  says "t.ht, process"
  says "heaptape stat --by site t.ht"
  heaptape doctor --watch 5s t.ht
  usage_fails "--watch requires a PID"
  heaptape doctor missing.ht
  fails_with 1 "missing.ht"
}

@test "doctor: a program is recorded, and explained at its end" {
  skip_under_sanitizer
  mkdir tmp
  TMPDIR=$PWD/tmp heaptape doctor -- "$HEAPTAPE_PROGRAMS/verdicts" pinned 3
  [ "$status" -eq 0 ]
  says "ready"
  says "verdicts pinned 3): RSS"
  says "freed memory that glibc has not returned"
  says "in batch (verdicts.c:"
  says "next heaptape doctor -o verdicts.ht -- $HEAPTAPE_PROGRAMS/verdicts pinned 3"
  [ -z "$(ls tmp)" ]
  # Ctrl-C ends the program, too. The recording is kept.
  set -m
  env --default-signal=INT "$HEAPTAPE" doctor --json -o kept.ht -- "$HEAPTAPE_PROGRAMS/verdicts" leak >answer 3>&- &
  program=$!
  set +m
  wait_until grep -qsx ready answer
  kill -INT -- "-$program"
  wait "$program"
  program=
  sed -i '/^ready$/d' answer
  [ "$(jq -r .file answer)" = kept.ht ]
  [ "$(jq -r .next answer)" = "heaptape stat --by site kept.ht" ]
  heaptape stat --json kept.ht
  [ "$(json .verdict.kind)" = "$(jq -r .verdict.kind answer)" ]
  heaptape doctor -o kept.ht -- true
  fails_with 125 "kept.ht"
  touch plain
  heaptape doctor -- ./plain
  fails_with 126 "./plain: Permission denied"
  heaptape doctor -o x.ht kept.ht
  usage_fails "-o requires -- PROGRAM"
  heaptape doctor kept.ht kept.ht
  usage_fails "unexpected operand 'kept.ht'"
}

@test "doctor: a program inherits ignored signals, and a signal before its start ends it" {
  skip_under_sanitizer
  run --separate-stderr env --ignore-signal=HUP "$HEAPTAPE" doctor -- sh -c 'kill -HUP $$; echo ignored >hup'
  expect "the program continues" grep -qx ignored hup
  # early.so sends SIGTERM to doctor before it starts the recorder.
  cat >early.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
    int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                const posix_spawnattr_t *, char *const[], char *const[]) =
        dlsym(RTLD_NEXT, "posix_spawn");
    raise(SIGTERM);
    return real(pid, path, actions, attributes, argv, env);
}
END
  gcc -w -fPIC -shared -o early.so early.c
  run --separate-stderr timeout -k 1 120 env LD_PRELOAD="$PWD/early.so" "$HEAPTAPE" doctor -- sleep 1000
  expect "ended by the signal" [ "$status" -ne 124 ]
}
