# Running processes: record --pid, and ctl PID detach.
load trace

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  skip_without_ptrace
}

teardown() {
  show_failure
  [ -z "${service:-}" ] || kill -9 "$service" 2>/dev/null || true
}

# start_service ARGUMENT...: starts the service in the background, with $under as its command
# prefix. Sets $service to its pid and writes its output to the file `out`.
start_service() {
  rm -f out
  LD_BIND_NOW=1 ${under:-} "$HEAPTAPE_PROGRAMS/service" "$@" >out 3>&- &
  service=$!
  until_line ready
}

until_line() {
  wait_until grep -qsx "$1" out || { cat out; return 1; }
}

# The service exits normally, and its relocations have their original values.
end_service() {
  local status=0
  kill -USR1 "$service"
  wait "$service" || status=$?
  service=
  cat out
  [ "$status" -eq 0 ]
  [ "$(tail -n 1 out)" = "the same" ]
}

attach() {
  timeout 120 "$HEAPTAPE" record -f -o t.ht --pid "$service" "$@" 2>err 3>&- || {
    cat err
    return 1
  }
}

# count_events PID: sets $counted to the number of events that were read. Fails if the process is not being
# recorded: after a recorder was killed, its recording ends only when the next one begins.
count_events() {
  counted=$("$HEAPTAPE" ctl "$1" status --json 2>/dev/null | jq .events)
  [ -n "$counted" ]
}

# attach_for EVENTS OPTION...: records until the recorder has read EVENTS events after the attach.
# Unlike with --duration, the number of events does not depend on how often the machine runs the
# threads.
attach_for() {
  local events=$1 recorder
  shift
  "$HEAPTAPE" record -f -o t.ht --pid "$service" "$@" 2>err 3>&- &
  recorder=$!
  wait_until maps_heaptape "$service" || { cat err; return 1; }
  wait_until has_attached "$service" "$recorder" || { cat err; return 1; }
  wait_until count_events "$service"
  wait_until has_events "$service" $((events + counted))
  kill -TERM "$recorder"
  wait "$recorder" || { cat err; return 1; }
}

# Succeeds if no call between the first and the last call of a thread is missing. The threads
# allocate ascending sizes, so a missing call leaves a gap.
all_calls_are_there() {
  "$HEAPTAPE_PROGRAMS/trace_lines" -s "$service" t.ht
}

# all_calls_are_there would also succeed if the recording had ended early, so this function checks
# the duration.
lasted_half_a_second() {
  local ns
  ns=$("$HEAPTAPE" stat --json t.ht | python3 -c 'import json, sys; print(json.load(sys.stdin)["duration_ns"])')
  [ "$ns" -ge 500000000 ]
}

@test "a running process is recorded for a while and continues: every call, no unknown block size" {
  start_service 4
  attach --duration 1
  cat err
  ! grep lost err || false
  all_calls_are_there
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" check -q t.htw
  [ "$("$HEAPTAPE" stat --json t.htw | jq '.unmatched_frees')" -ge 100 ]
  "$HEAPTAPE" dump t.htw | grep -q preexisting
  ! "$HEAPTAPE" dump t.htw | grep -q "preexisting(0)" || false
  end_service
}

@test "only the library remains: no descriptor, no thread, no spool" {
  start_service 4
  local descriptors threads
  descriptors=$(readlink /proc/"$service"/fd/* | sort)
  threads=$(ls /proc/"$service"/task)
  attach_for 10000
  [ "$(readlink /proc/"$service"/fd/* | sort)" = "$descriptors" ]
  [ "$(ls /proc/"$service"/task)" = "$threads" ]
  ! grep -q spool /proc/"$service"/maps || false
  [ "$(grep -c 'memfd:libheaptape.* r-xp\|r-xp.*memfd:libheaptape' /proc/"$service"/maps)" -eq 1 ]
  end_service
}

@test "repeatedly, with threads that fork and load libraries" {
  local rounds=${HEAPTAPE_TEST_ROUNDS:-3} i
  start_service "${HEAPTAPE_TEST_THREADS:-8}" forks "$HEAPTAPE_PROGRAMS/libservice_library.so"
  for ((i = 0; i < rounds; i++)); do
    attach --duration 1
    cat err
    ! grep lost err || false
    all_calls_are_there
    lasted_half_a_second
  done
  # The calls of the children, and of an object loaded during the recording.
  [ "$("$HEAPTAPE_PROGRAMS/trace_lines" -m 7000 t.ht)" -gt 0 ]
  [ "$("$HEAPTAPE_PROGRAMS/trace_lines" -m 8888 t.ht)" -gt 0 ]
  [ "$(grep -c 'r-xp.*memfd:libheaptape' /proc/"$service"/maps)" -eq 1 ]
  end_service
}

@test "a program of musl: every call, in repeated attaches, and nothing remains after a detach" {
  local options
  skip_under_sanitizer
  command -v musl-gcc >/dev/null || skip "no musl"
  musl-gcc -O2 -D_GNU_SOURCE -fno-builtin -o musl "$HEAPTAPE_SOURCE/tests/capture/service.c"
  ./musl 2 forks >out 3>&- &
  service=$!
  until_line ready
  for options in "" --stacks --stacks; do
    # shellcheck disable=SC2086
    attach_for 5000 $options
    cat err
    ! grep lost err || false
    all_calls_are_there
    # The calls of the children.
    [ "$("$HEAPTAPE_PROGRAMS/trace_lines" -m 7000 t.ht)" -gt 0 ]
    # The threads no longer use the memory of the recording, which is therefore unmapped.
    ! grep -q spool /proc/"$service"/maps || false
  done
  [ "$(grep -c 'r-xp.*memfd:libheaptape' /proc/"$service"/maps)" -eq 1 ]
  end_service
}

# Recording starts in all objects at the same time.
@test "blocks that one object allocates and another one frees" {
  tee lib{0..299}.so <"$HEAPTAPE_PROGRAMS/libservice_library.so" >/dev/null
  "$HEAPTAPE_PROGRAMS/spread" 4 100 ./lib*.so >out 3>&- &
  service=$!
  until_line ready
  attach_for 100000
  end_service
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" stat --json t.htw >json
  jq '[.unmatched_frees, .order.ambiguous, .live_at_end_blocks]' json
  # A thread's block may be allocated as the recording starts, and be freed as it ends.
  [ "$(jq '.unmatched_frees <= 4 and .order.ambiguous == 0 and .live_at_end_blocks <= 4' json)" = true ]
}

@test "SIGINT ends the recording, not the process" {
  start_service 2
  # Background jobs of a shell ignore SIGINT.
  env --default-signal=INT "$HEAPTAPE" record -f -o t.ht --pid "$service" 2>err 3>&- &
  recorder=$!
  wait_until has_events "$service" 10000
  kill -INT "$recorder"
  wait "$recorder"
  all_calls_are_there
  end_service
}

@test "the process exits during the recording: its trace is complete" {
  start_service 2
  attach &
  recorder=$!
  wait_until has_events "$service" 10000
  kill -USR1 "$service"
  wait "$service"
  wait "$recorder"
  "$HEAPTAPE" check -q t.ht
  all_calls_are_there
  service=
}

@test "SIGKILL of the recorder: the process continues, and can be recorded again" {
  start_service 4
  "$HEAPTAPE" record -f -o t.ht --pid "$service" 2>err 3>&- &
  recorder=$!
  wait_until has_events "$service" 10000
  kill -9 "$recorder"
  wait "$recorder" || true
  sleep 0.2
  attach_for 10000
  all_calls_are_there
  end_service
}

# sleeps PID: the process is sleep(1) and has reached its only blocking system call.
sleeps() {
  grep -qs '^Name:.sleep$' /proc/"$1"/status && grep -qs '^State:.S' /proc/"$1"/status
}

@test "a process in a blocking system call" {
  sleep 100 3>&- &
  service=$!
  wait_until sleeps "$service"
  run -125 timeout 120 "$HEAPTAPE" record -f -o t.ht --pid "$service" --duration 1 3>&-
  [[ "$output" = *"did not call the malloc API"* ]]
  kill -0 "$service"
  [[ "$(cut -d" " -f3 /proc/"$service"/stat)" == [SR] ]]
}

@test "a process that kept the directory of another recording in its environment" {
  mkdir other
  HEAPTAPE_SPOOL=$PWD/other start_service 2
  attach_for 1000
  all_calls_are_there
  [ -z "$(ls other)" ]
  end_service
}

@test "a process that rarely calls malloc, and sometimes sleeps" {
  command -v python3 >/dev/null || skip "no python3"
  python3 -c 'import time
print("ready", flush=True)
while True:
    for i in range(20000): pass
    time.sleep(0.0005)' >out 3>&- &
  service=$!
  until_line ready
  run timeout 120 "$HEAPTAPE" record -f -o t.ht --pid "$service" --duration 1 3>&-
  [[ "$output" = *"recorded"* ]]
  maps_heaptape "$service"
  kill -0 "$service"
}

# The library of another version expects another session file.
@test "after an attachment by another version of heaptape" {
  local library=$HEAPTAPE_PROGRAMS/../src/capture/libheaptape.so
  mkdir other
  # On aarch64, the last two characters are the operand of an instruction (movk).
  LC_ALL=C sed 's/HTssess[0-9]/HTssess?/g
    s/\([`-\x7f]\)[\x0e.Nn\x8e\xae\xce\xee][\xe6\xe7]\xf2/\1\xee\xe7\xf2/g' "$library" >other/libheaptape.so
  run ! cmp -s "$library" other/libheaptape.so
  start_service 2
  run -125 env HEAPTAPE_LIBEXEC=$PWD/other "$HEAPTAPE" record -f -o t.ht --pid "$service" --duration 1 3>&-
  [[ "$output" = *"the library cannot join the recording"* ]]
  attach_for 10000
  all_calls_are_there
  attach_for 10000
  [ "$(grep -c 'r-xp.*memfd:libheaptape' /proc/"$service"/maps)" -eq 2 ]
  end_service
}

@test "processes that cannot be attached to are refused with one line, and unchanged" {
  run -125 "$HEAPTAPE" record --pid 4194304 -f -o t.ht
  [ "$output" = "heaptape: 4194304: no such process" ]
  start_service 1
  kill -STOP "$service"
  wait_until grep -q '^State:.T' /proc/"$service"/status
  run -125 "$HEAPTAPE" record --pid "$service" -f -o t.ht
  [ "$output" = "heaptape: $service: is stopped; continue it first" ]
  kill -CONT "$service"
  "$HEAPTAPE" record -q -f -o other.ht --pid "$service" 3>&- &
  recorder=$!
  wait_until has_events "$service" 1
  run -125 "$HEAPTAPE" record --pid "$service" -f -o t.ht
  [ "$output" = "heaptape: $service: is already recorded by process $recorder" ]
  "$HEAPTAPE" ctl "$service" detach
  wait "$recorder"
  end_service
}

# needs_filters: skips the test if heaptape cannot read seccomp filters here.
needs_filters() {
  [ "$(id -u)" -eq 0 ] || skip "reading seccomp filters needs root"
  grep -q '^Seccomp:.0' /proc/self/status || skip "system calls are filtered here, so filters cannot be read"
  filtered=$HEAPTAPE_PROGRAMS/filtered
  [ -x "$filtered" ] || skip "heaptape cannot attach on this machine"
}

@test "a seccomp filter that kills at every unexpected system call" {
  needs_filters
  local how
  for how in --stacks=1 --stacks=8 --maps; do
    under="$filtered only kill" start_service 2
    attach_for 100000 "$how"
    all_calls_are_there
    end_service
  done
}

# spool_exceeds PID KIB: the process has more of the spool mapped, or has ended.
spool_exceeds() {
  local kib
  kib=$(awk '/^[0-9a-f]+-/ { spool = /spool/ } spool && $1 == "Size:" { n += $2 } END { print n + 0 }' "/proc/$1/smaps" 2>/dev/null) || return 0
  [ "$kib" -gt "$2" ]
}

# A stopped recorder frees no chunks, so the library maps more of the spool.
@test "a seccomp filter that kills, and a spool that grows" {
  needs_filters
  under="$filtered only kill" start_service 2
  "$HEAPTAPE" record -q -f -o t.ht --pid "$service" 2>err 3>&- &
  recorder=$!
  wait_until has_attached "$service" "$recorder"
  kill -STOP "$recorder"
  wait_until spool_exceeds "$service" 2048
  kill -CONT "$recorder"
  "$HEAPTAPE" ctl "$service" detach
  wait "$recorder"
  all_calls_are_there
  end_service
}

@test "a seccomp filter that forbids memfd_create: the library is loaded from a file" {
  needs_filters
  local action
  for action in errno kill; do
    under="$filtered $action memfd_create" start_service 2
    attach_for 10000
    all_calls_are_there
    grep -q 'r-xp.*/libheaptape-attached.so (deleted)' /proc/"$service"/maps
    end_service
  done
}

@test "a seccomp filter that logs does not prevent attaching" {
  needs_filters
  under="$filtered log mmap" start_service 2
  attach_for 10000
  all_calls_are_there
  end_service
}

@test "a seccomp filter that forbids required calls: refused with one line, and unchanged" {
  needs_filters
  local action
  for action in errno kill notify; do
    under="$filtered $action renameat2" start_service 2
    run -125 "$HEAPTAPE" record --pid "$service" -f -o t.ht
    [ "$output" = "heaptape: $service: its seccomp filter has the action '$action' for renameat2, which the library needs; start it with 'heaptape record' instead" ]
    ! maps_heaptape "$service" || false
    end_service
  done
}

@test "without permission to read the filter, an error says so" {
  needs_filters
  under="$filtered kill 169" start_service 2
  run -125 setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$HEAPTAPE" record --pid "$service" -f -o t.ht
  [[ "$output" = "heaptape: $service: its system calls are filtered (seccomp), and only root outside of containers "* ]]
  end_service
}

# The first process installs the filter, so all processes inherit it, as in a container.
@test "one filter for heaptape and the process: a child tries the required calls" {
  needs_filters
  unshare -pfm --mount-proc true 2>/dev/null || skip "no pid namespaces"
  cat >inside <<'END'
"$HEAPTAPE_PROGRAMS/service" 2 >out & service=$!
until grep -qsx ready out; do sleep 0.01; done
"$HEAPTAPE" record -f -o t.ht --pid $service --duration 1 2>err
echo $? >status
kill -USR1 $service
wait $service
END
  local action
  for action in "kill 169 0" "errno memfd_create 0" "kill renameat2 125"; do
    read -r -a words <<<"$action"
    LD_BIND_NOW=1 unshare -pfm --mount-proc "$filtered" "${words[0]}" "${words[1]}" /bin/bash inside 3>&-
    cat err
    [ "$(cat status)" = "${words[2]}" ]
    [ "$(tail -n 1 out)" = "the same" ]
  done
  grep -q "its seccomp filter kills programs that make a system call the library needs" err
}

# Sleeps are shortened, and the service belongs to the test.
@test "the commands of docs/guide/attach-to-a-service.md work" {
  skip_under_sanitizer
  server_program service
  ./service 1000000 4 1000 >out 3>&- &
  service=$!
  mkdir bin
  ln -s "$HEAPTAPE" bin/heaptape
  sed -n 's/^    //p' "$HEAPTAPE_SOURCE/docs/guide/attach-to-a-service.md" |
    sed "s/(pgrep .*)/(echo $service)/; s/^heaptape record --aggregate.*/timeout 60 & --duration 2/
      s/^heaptape top/timeout 60 heaptape top --batch -n 1/; s/^heaptape record.*/& \&/; s/^heaptape ctl.* detach/sleep 4; &; wait/
      s/^heaptape ctl.* dump/sleep 2; until &; do sleep 0.1; done/
      s/^heaptape ctl.* status/until & | grep recording; do sleep 0.1; done/; s/60s/1s/; s/540s/3s/" >commands
  cat commands
  run env PATH="$PWD/bin:$PATH" timeout 120 bash -ec "$(cat commands)" 3>&-
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$(grep -c ^heaptape commands)" -ge 6 ]
  [[ "$output" = *"recorded "*"steady growth"*"SessionTable::touch"* ]]
  [ -s service.html ]
  [ -s days.html ]
  kill -0 "$service"
  run -1 grep -q spool /proc/"$service"/maps
}

# blocks_from_before: records the program `before`. Each printed block must be in the trace once,
# with its usable size. In addition, the trace may contain one block of 100 bytes, which was
# allocated while heaptape attached. Frees of other blocks are recorded as in a program that
# heaptape started: only the first free at an address has a size.
blocks_from_before() {
  rm -f out
  ${under:-} "$HEAPTAPE_PROGRAMS/before" >out 3>&- &
  service=$!
  until_line ready
  "$HEAPTAPE" record -q -f -o t.ht --pid "$service" 2>err 3>&- &
  recorder=$!
  wait_until has_events "$service" 1
  kill -USR1 "$service"
  until_line done
  "$HEAPTAPE" ctl "$service" detach
  wait "$recorder"
  kill "$service"
  wait "$service" || true
  service=
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" check -q t.htw
  "$HEAPTAPE" dump -F json -k preexisting t.htw | jq .size | sort >found
  sed '/[^0-9]/d' out | sort >told
  comm -13 found told >missing
  comm -23 found told >others
  wc -l found told missing others
  [ ! -s missing ]
  [ "$(wc -l <others)" -le 1 ]
  [ "$("$HEAPTAPE" stat --json t.htw | jq .unmatched_frees)" -eq "$(wc -l <found)" ]
  "$HEAPTAPE_PROGRAMS/trace_lines" -u t.ht |
    awk '$5 == "free" { n++; sized += $NF > 0 } END { print sized " of " n " frees with a size"; exit n < 10000 || sized > n / 5 }'
}

@test "blocks from before, freed and reallocated late: each once, with its size" {
  blocks_from_before
}

# Blocks that are live at a reset, or allocated in a pause, are not in the trace.
@test "a reset or a pause of an attached process: no unknown block size" {
  local how events
  for how in reset "pause resume"; do
    start_service 4
    "$HEAPTAPE" record -q -f -o t.ht --pid "$service" 2>err 3>&- &
    recorder=$!
    wait_until has_events "$service" 400000
    for verb in $how; do
      "$HEAPTAPE" ctl "$service" "$verb"
    done
    events=$("$HEAPTAPE" ctl "$service" status --json | jq .events)
    wait_until has_events "$service" $((events + 200000))
    "$HEAPTAPE" ctl "$service" detach
    wait "$recorder"
    end_service
    "$HEAPTAPE" convert -q -f t.ht -o t.htw
    # Each of the 4 threads has allocated 64 blocks before the recording, and all blocks were
    # replaced since the reset. A virtual CPU may not run one of the threads meanwhile.
    [ "$("$HEAPTAPE" stat --json t.htw | jq '.unmatched_frees')" -ge $((3 * 64)) ]
    "$HEAPTAPE" dump t.htw | grep preexisting >found
    run -1 grep "preexisting(0)" found
  done
}

@test "blocks from before, on other allocators" {
  local name library
  for name in jemalloc tcmalloc_minimal mimalloc; do
    library=$(ldconfig -p | sed -n "s|.*lib$name\\.so\\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    under="env LD_PRELOAD=$library" blocks_from_before
  done
}

# compare_blocks MOST_BYTES: compares the printed blocks with the blocks listed in the trace.
# `others` are blocks of the loader and the C library, and one block of at most 100,000 bytes of
# each busy thread. Few of them may be at addresses that the program has freed.
compare_blocks() {
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht | awk -v most="$1" '
    FNR == NR { if ($1 == "live") live["0x" $2] = $3; if ($1 == "free") freed["0x" $2]; next }
    $5 != "preexisting" { next }
    $10 in live { n++; if ($7 != live[$10]) { print "size of " $10 ": " $7 ", not " live[$10]; bad = 1 }; next }
    { others++; bytes += $7; free_ones += $10 in freed }
    END {
      for (i in live) known++
      print known " live, listed " n ", others " others " of " bytes " bytes, " free_ones + 0 " where a block was freed"
      exit bad || n != known || others > 40 || bytes > most
    }' out -
}

# walks COMMAND...: repeats the recording while heaptape reports that the scheduler did not let it
# stop all threads outside malloc within its 3 s.
walks() {
  local end=$((SECONDS + 60))
  while "$@" && cat err &&
    grep -Eq "^heaptape: preexisting blocks are not recorded: its threads (did not leave malloc|cannot be stopped) in time" err; do
    [ $SECONDS -lt $end ] || return 1
  done
}

@test "--walk lists the live blocks of idle and busy threads" {
  [ "$(getconf GNU_LIBC_VERSION)" = "glibc 2.36" ] || skip "another glibc"
  local how
  local -A most=([rests]=65536 [busy]=565536)
  for how in rests busy; do
    rm -f out
    "$HEAPTAPE_PROGRAMS/walked" $how >out 3>&- &
    service=$!
    until_line ready
    walks attach_for 1000 --walk
    grep -q "preexisting blocks: 1.2 GiB" err
    compare_blocks "${most[$how]}"
    "$HEAPTAPE" convert -q -f t.ht -o t.htw
    "$HEAPTAPE" check -q t.htw
    "$HEAPTAPE" stat --json t.htw >json
    [ "$(jq '.preexisting_blocks > 13000' json)" = true ]
    [ "$(jq '.unmatched_frees <= 5' json)" = true ]
    [ "$(jq '.live_at_end_bytes > 1200000000' json)" = true ]
    end_service >/dev/null
  done
}

# All threads are rarely outside malloc at the same time.
@test "--walk while threads only allocate and free" {
  [ "$(getconf GNU_LIBC_VERSION)" = "glibc 2.36" ] || skip "another glibc"
  local library=$HEAPTAPE_PROGRAMS/libservice_library.so
  "$HEAPTAPE_PROGRAMS/spread" 4 0 "$library" "$library" >out 3>&- &
  service=$!
  until_line ready
  walks attach_for 100000 --walk
  grep -q "^heaptape: .* preexisting blocks: " err
  end_service
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" stat --json t.htw >json
  [ "$(jq '.unmatched_frees <= 5 and .order.ambiguous == 0' json)" = true ]
}

@test "many threads that only allocate and free: heaptape detaches in time" {
  local library=$HEAPTAPE_PROGRAMS/libservice_library.so
  "$HEAPTAPE_PROGRAMS/spread" 32 0 "$library" "$library" >out 3>&- &
  service=$!
  until_line ready
  attach --max-size=1M
  cat err
  ! grep -q "remains in the process" err || false
  # The recorder sees the end of the spool while it detaches.
  ! grep -q "ended the recording" err || false
  end_service
}

# The caches of malloc are thread-local variables of libc, beside those of the program.
@test "--walk of a program with many thread-local variables" {
  [ "$(getconf GNU_LIBC_VERSION)" = "glibc 2.36" ] || skip "another glibc"
  cat >idle.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static _Thread_local char large[50000];
int main(void)
{
    for (int i = 0; i < 1000; i++)
        large[i] = malloc(100) != NULL;
    free(malloc(100));
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
END
  cc -O0 -o idle idle.c
  ./idle >out 3>&- &
  service=$!
  until_line ready
  walks "$HEAPTAPE" record -f -o t.ht --walk --duration 0.1 --pid "$service" 2>err 3>&-
  grep -Eq "^heaptape: 1 00[0-9] preexisting blocks: " err
  kill "$service"
  # Without glibc's blocks and without calls, the message names both reasons.
  local jemalloc
  jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .*=> //p' | head -n 1)
  [ -n "$jemalloc" ] || skip "no jemalloc"
  LD_PRELOAD=$jemalloc ./idle >out 3>&- &
  service=$!
  until_line ready
  run -125 "$HEAPTAPE" record -f -o t.ht --walk --duration 0.1 --pid "$service" 3>&-
  [[ "$output" == *"the program did not call the malloc API; preexisting blocks are not recorded: its malloc is not glibc's" ]]
  kill "$service"
}

@test "--walk of another allocator: a note, and a recording without the walk" {
  local jemalloc
  jemalloc=$(ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .*=> //p' | head -n 1)
  [ -n "$jemalloc" ] || skip "no jemalloc"
  under="env LD_PRELOAD=$jemalloc" start_service 2
  attach_for 10000 --walk
  cat err
  grep -q "^heaptape: preexisting blocks are not recorded: its malloc is not glibc's (to record all blocks, start the program with 'heaptape record')$" err
  all_calls_are_there
  end_service
}

@test "--walk requires a running process" {
  run -2 "$HEAPTAPE" record --walk -o t.ht -- true
  [[ "$output" = *"--walk requires --pid"* ]]
}

pre_names=pre_malloc=malloc,pre_calloc=calloc,pre_realloc=realloc,pre_free=free,pre_usable_size=malloc_usable_size

# Records the calls of named.c's allocator twice, and writes the lines of the second trace to the
# file `lines`.
calls_of_names_are_there() {
  local i
  for i in 1 2; do
    attach_for 10000 --wrap "$pre_names"
    run -1 grep lost err
    all_calls_are_there
  done
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  grep -q ' malloc 0 77 ' lines
  grep -q ' calloc 0 40 3 ' lines
  grep -q ' realloc 0x[0-9a-f]* 50 ' lines
  # A block that pre_malloc requests from malloc, including its header.
  run -1 grep -E ' malloc 0 (184|114) ' lines
}

@test "--wrap: an allocator with other names, without its internal calls" {
  "$HEAPTAPE_PROGRAMS/named" >out 3>&- &
  service=$!
  until_line ready
  calls_of_names_are_there
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" check -q t.htw
  "$HEAPTAPE" dump t.htw >ops
  grep -q preexisting ops
  run -1 grep "preexisting(0)" ops
  [ "$("$HEAPTAPE" stat --json t.htw | jq '.unmatched_frees')" -ge 60 ]
  # Without the names, the internal calls of its functions are recorded.
  attach_for 10000
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  grep -q ' malloc 0 184 ' lines
  run -1 grep -q ' calloc ' lines
  end_service
}

@test "--wrap: static functions, which are called directly, and unknown ones" {
  "$HEAPTAPE_PROGRAMS/named_static" >out 3>&- &
  service=$!
  until_line ready
  run -125 "$HEAPTAPE" record --pid "$service" --wrap pre_mallok=malloc,pre_free=free -f -o t.ht
  [ "$output" = "heaptape: $service: no symbol of the executable or dynamic symbol of a library is pre_mallok; build it with symbols, or link its allocator as a shared library" ]
  run -1 maps_heaptape "$service"
  attach_for 10000 --wrap "$pre_names"
  all_calls_are_there
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  grep -q ' malloc 0 77 ' lines
  grep -q ' calloc 0 40 3 ' lines
  grep -q ' realloc 0x[0-9a-f]* 50 ' lines
  # A block that pre_malloc requests from malloc, including its header.
  run -1 grep -E ' malloc 0 (184|114) ' lines
  end_service
}

@test "--wrap: addresses in an executable without symbols" {
  local pair addresses=
  for pair in ${pre_names//,/ }; do
    addresses+=,0x$(nm "$HEAPTAPE_PROGRAMS/named_static" | awk -v name="${pair%=*}" '$3 == name { print $1 }')=${pair#*=}
  done
  strip -o stripped "$HEAPTAPE_PROGRAMS/named_static"
  ./stripped >out 3>&- &
  service=$!
  until_line ready
  attach_for 10000 --wrap "${addresses#,}"
  all_calls_are_there
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  grep -q ' malloc 0 77 ' lines
  run -1 grep -E ' malloc 0 (184|114) ' lines
  end_service
}

@test "--wrap: a function that is called directly and cannot be redirected" {
  short_function pre_free
  cc -fno-builtin -rdynamic -Dpre_free=other_free -c -o library.o "$HEAPTAPE_SOURCE"/tests/capture/named_library.c
  cc -fno-builtin -rdynamic -o direct "$HEAPTAPE_SOURCE"/tests/capture/named.c library.o short.s
  ./direct >out 3>&- &
  service=$!
  until_line ready
  run -125 "$HEAPTAPE" record --pid "$service" --wrap pre_malloc=malloc,pre_free=free -f -o t.ht
  [ "$output" = "heaptape: $service: a function of --wrap is called directly, not through the loader's tables; link its allocator as a shared library, or libheaptape.so into the program" ]
  end_service
}

@test "--wrap: a function of a library that cannot be redirected, called through the tables" {
  short_function pre_free
  cc -fno-builtin -fPIC -shared -Dpre_free=other_free -o names.so "$HEAPTAPE_SOURCE"/tests/capture/named_library.c short.s
  cc -fno-builtin -o through "$HEAPTAPE_SOURCE"/tests/capture/named.c "$PWD/names.so"
  ./through >out 3>&- &
  service=$!
  until_line ready
  calls_of_names_are_there
  awk '{ n[$5]++ } END { exit n["free"] < 2.9 * n["calloc"] }' lines
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" dump t.htw >ops
  run -1 grep "preexisting(0)" ops
  end_service
}

@test "--wrap: names of a known allocator that cannot be redirected belong to this allocator" {
  short_function je_free
  local names=(-Dpre_malloc=je_malloc -Dpre_calloc=je_calloc -Dpre_realloc=je_realloc)
  cc -fno-builtin -fPIC -shared "${names[@]}" -Dpre_free=other_free -o names.so "$HEAPTAPE_SOURCE"/tests/capture/named_library.c short.s
  cc -fno-builtin "${names[@]}" -Dpre_free=je_free -o through "$HEAPTAPE_SOURCE"/tests/capture/named.c "$PWD/names.so"
  ./through >out 3>&- &
  service=$!
  until_line ready
  attach_for 10000 --wrap je_malloc=malloc,je_calloc=calloc,je_realloc=realloc,je_free=free
  [ "$(heaps t.ht | cut -d' ' -f1 | head -n 2 | paste -sd ' ')" = "malloc jemalloc" ]
  end_service
}
