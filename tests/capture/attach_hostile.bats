# Processes that are hard to attach to: they are recorded, or refused with one line, and continue
# unchanged.
load trace

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  skip_without_ptrace
  awkward=$HEAPTAPE_PROGRAMS/awkward
  nobody="setpriv --reuid nobody --regid nogroup --clear-groups"
}

teardown() {
  show_failure
  [ -z "${started:-}" ] || kill -9 "$started" 2>/dev/null || true
}

attach() {
  run timeout 120 ${as:-} "$HEAPTAPE" record -f -o "${trace:-t.ht}" --pid "$started" --duration "${duration:-1}" 3>&-
  echo "$output"
}

is_recorded() {
  attach
  [ "$status" -eq 0 ]
  [[ "$output" = *"recorded "*" events of "* ]]
  kill -0 "$started"
}

# is_refused TEXT: heaptape printed one line with TEXT, and no thread is still stopped or traced.
is_refused() {
  attach
  [ "$status" -eq 125 ]
  [ "${#lines[@]}" -eq 1 ]
  [[ "$output" = "heaptape: $started: "*"$1"* ]]
  kill -0 "$started"
  ! maps_heaptape "$started" || false
}

needs_root() {
  for_other_users tests/awkward
  awkward=$HEAPTAPE_PROGRAMS/awkward
}

@test "in a user namespace" {
  unshare -Ur true 2>/dev/null || skip "no user namespaces"
  starts unshare -Ur "$awkward" calls
  is_recorded
}

@test "a busy thread beside a waiting one that has no thread-local memory" {
  starts "$awkward" clones
  duration=1 is_recorded
}

# records_nothing WHY: heaptape printed one line, which ends with WHY.
records_nothing() {
  attach
  [ "$status" -eq 125 ]
  [[ "$output" = "heaptape: "*": nothing was recorded: the program did not call the malloc API$1" ]]
  kill -0 "$started"
}

@test "a process that only waits: its children are named, and no reason of programs that start" {
  printf '#include <unistd.h>\nint main(int n, char **a) { while (n-- > 1) if (!fork()) for (;;) pause(); write(1, "ready\\n", 6); for (;;) pause(); }\n' >waits.c
  gcc -o waits waits.c
  starts ./waits
  records_nothing ""
  kill -9 "$started"
  starts ./waits a b
  records_nothing "; record its 2 child processes separately"
  pkill -9 -P "$started"
  if gcc -fsanitize=address -o asan waits.c 2>/dev/null; then
    kill -9 "$started"
    starts ./asan
    records_nothing ""
  fi
}

@test "the workers that ran before the attach are named" {
  printf '#include <stdlib.h>\n#include <unistd.h>\nint main(void) { if (!fork() || !fork()) for (;;) pause(); write(1, "ready\\n", 6); for (;; usleep(1000)) free(malloc(9)); }\n' >serves.c
  gcc -fno-builtin -o serves serves.c
  starts ./serves
  is_recorded
  for worker in $(pgrep -P "$started"); do
    grep -qF "heaptape: process $worker (serves) was not recorded: was running before --pid attached to the process that forked it" <<<"$output"
  done
  [ "$("$HEAPTAPE" stat --json t.ht | jq .unrecorded.processes)" -eq 2 ]
  pkill -9 -P "$started"
}

@test "a program that the process executes is named with that reason" {
  printf '#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) { for (;; usleep(1000)) { free(malloc(9)); if (!fork()) execl("/bin/sh", "sh", "-c", "sleep 0.01", (char *)0); wait(0); write(1, "ready\\n", 6); } }\n' >executes.c
  gcc -fno-builtin -o executes executes.c
  starts ./executes
  is_recorded
  grep -qE '^heaptape: process [0-9]+ \((sh|sleep)\) was not recorded: was executed by a process that --pid attached to ' <<<"$output"
  run grep -e 'LD_PRELOAD' <<<"$output"
  expect "no reason of programs that heaptape starts" [ "$status" -eq 1 ]
}

@test "in separate user, pid and mount namespaces" {
  unshare -Urpfm --mount-proc true 2>/dev/null || skip "no namespaces"
  starts unshare -Urpfm --mount-proc "$awkward" calls
  local outer=$started
  started=$(pgrep -P "$outer")
  is_recorded
}

@test "a process in another mount namespace ends before the directory of the recording exists" {
  skip_under_sanitizer
  needs_root
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  cat >ends.c <<'END'
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
char *mkdtemp(char *path)
{
    *strrchr(path, '/') = 0;
    kill(atoi(getenv("STARTED")), SIGKILL);
    while (access(path, F_OK) == 0)
        usleep(1000);
    errno = ENOENT;
    return NULL;
}
END
  gcc -w -shared -fPIC -o ends.so ends.c
  starts unshare -m "$awkward" calls
  STARTED=$started LD_PRELOAD=$PWD/ends.so run --separate-stderr timeout 120 "$HEAPTAPE" record -o t.ht --pid "$started"
  [ "$status" -eq 125 ]
  [[ "$stderr" = "heaptape: $started: "*"process"* ]]
}

@test "an unprivileged user's own process" {
  needs_root
  starts $nobody "$awkward" calls
  mkdir -m 777 own
  chmod o+x . ..
  as=$nobody trace=own/t.ht is_recorded
}

@test "another user's process, and one that is setuid: refused" {
  needs_root
  mkdir -m 777 own
  starts "$awkward" calls
  as=$nobody trace=own/t.ht is_refused "not permitted"
  kill -9 "$started"
  cp "$awkward" own/setuid
  chmod 4755 own/setuid
  # If the directory is mounted nosuid, this is an ordinary program of user nobody.
  starts $nobody own/setuid calls
  [ "$(awk '/^Uid/ { print $3 }' /proc/"$started"/status)" -eq 0 ] || skip "setuid programs get no rights here"
  as=$nobody trace=own/t.ht is_refused "not permitted"
}

# Simulates another container of the pod: heaptape runs as root with few capabilities, and has a
# separate /dev/shm.
@test "another user's process, from another mount namespace, by capabilities" {
  needs_root
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  case $(realpath "$HEAPTAPE") in
    /dev/shm/*) skip "the test would hide heaptape, which is in /dev/shm" ;;
  esac
  starts $nobody "$awkward" calls
  local few="unshare -m sh -c 'mount -t tmpfs none /dev/shm && exec setpriv --inh-caps=-all --bounding-set=-all"
  printf '%s\n' '#!/bin/sh' "exec $few,+sys_ptrace \"\$@\"' few \"\$@\"" >alone
  printf '%s\n' '#!/bin/sh' "exec $few,+sys_ptrace,+dac_override \"\$@\"' few \"\$@\"" >both
  chmod +x alone both
  as=./alone is_refused "run heaptape as that user, or with CAP_DAC_OVERRIDE in addition to CAP_SYS_PTRACE"
  for _ in 1 2 3; do
    as=./both is_recorded
    [ "$("$HEAPTAPE" stat --json t.ht | python3 -c 'import json, sys; print(json.load(sys.stdin)["duration_ns"] > 5e8)')" = True ]
  done
}

@test "traced by a debugger: refused" {
  command -v strace >/dev/null || skip "no strace"
  starts "$awkward" calls
  strace -qq -o strace.out -p "$started" 3>&- &
  local tracer=$!
  wait_until grep -q '^TracerPid:.[1-9]' /proc/"$started"/status
  is_refused "is traced by process $tracer"
  kill "$tracer"
}

@test "static, or with another C library: refused" {
  local how
  printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' '#include <unistd.h>' \
    'int main(int n, char **v) { puts("ready"); fflush(stdout); while (n == 1) { free(malloc(10)); usleep(1000); } }' >loop.c
  for how in "cc -static" "cc -static-pie" "musl-gcc -static"; do
    # shellcheck disable=SC2086
    $how -o static loop.c || continue
    starts ./static
    is_refused "is statically linked"
    kill -9 "$started"
    run -125 "$HEAPTAPE" record -f -o t.ht -- ./static once
    [ "$output" = "ready
heaptape: ./static: nothing was recorded: the program is statically linked; its calls cannot be intercepted" ]
  done
  [ -n "${output:-}" ] || skip "no static C library"
  printf '%s\n' 'void _start(void) { for (;;) ; }' >none.c
  cc -nostdlib -fno-builtin -o none none.c
  ./none 3>&- &
  started=$!
  is_refused "its C library is neither glibc nor musl (start the program with 'heaptape record')"
}

@test "main thread has exited: refused" {
  printf '%s\n' '#include <pthread.h>' '#include <stdio.h>' '#include <stdlib.h>' '#include <unistd.h>' \
    'static void *own(void *a) { for (;;) { free(malloc(10)); usleep(1000); } return a; }' \
    'int main(void) { pthread_t t; pthread_create(&t, NULL, own, NULL); puts("ready"); fflush(stdout); pthread_exit(NULL); }' \
    >leader.c
  cc -pthread -o leader leader.c
  starts ./leader
  wait_until grep -q '^State:.Z' /proc/"$started"/status
  attach
  [ "$status" -eq 125 ]
  [ "$output" = "heaptape: $started: its main thread has ended, so /proc does not show its memory" ]
  kill -0 "$started"
}

@test "ignores SIGTRAP: refused" {
  starts env --ignore-signal=TRAP "$awkward" calls
  is_refused "ignores SIGTRAP"
}

@test "in vfork, where it cannot be stopped: refused" {
  starts "$awkward" vforks 300
  duration=3 is_recorded
  kill -9 "$started"
  # The program stays in vfork for longer than heaptape's timeout.
  starts "$awkward" vforks 30000
  wait_until grep -q '^State:.D' /proc/"$started"/status
  is_refused "a thread cannot be stopped"
}

@test "two recorders of a process that cannot be stopped: none is said to record it" {
  starts "$awkward" vforks 30000
  wait_until grep -q '^State:.D' /proc/"$started"/status
  "$HEAPTAPE" record -f -o other.ht --pid "$started" --duration 1 2>err 3>&- &
  local other=$! tracer status_of=0
  wait_until grep -q '^TracerPid:.[1-9]' /proc/"$started"/status
  # While it is stopped, the first recorder stays attached longer than the second recorder waits.
  tracer=$(awk '/^TracerPid/ { print $2 }' /proc/"$started"/status)
  kill -STOP "$tracer"
  is_refused "process $other, another heaptape, is attaching to it or detaching; try again"
  kill -CONT "$tracer"
  wait "$other" || status_of=$?
  cat err
  [ "$status_of" -eq 125 ]
  grep -q "a thread cannot be stopped" err
}

@test "executes another program while heaptape attaches" {
  local i
  starts "$awkward" execs
  for ((i = 0; i < 5; i++)); do
    attach
    # The recorder may or may not notice within the second that the recorded program is gone.
    case $status in
      0) has "$output" "recorded " ;;
      1) has "$output" "the recording ended early; the program continued" ;;
      125) has "$output" ": the process ended, or executed another program" ;;
      *) false ;;
    esac
    # The executed program has no library that could stay.
    [[ "$output" != *"remains in the process"* ]]
    kill -0 "$started"
  done
  [ "$(cut -d' ' -f3 /proc/"$started"/stat)" != T ]
  grep -q '^TracerPid:.0' /proc/"$started"/status
}

@test "preexisting blocks have their usable size when they are freed or reallocated" {
  starts "$awkward" keeps
  "$HEAPTAPE" record -q -f -o t.ht --pid "$started" 3>&- &
  local recorder=$!
  wait_until has_events "$started" 1
  touch go
  wait_until grep -qsx released out
  kill -TERM "$recorder"
  wait "$recorder"
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" dump t.htw | grep preexisting >found
  # The trace must contain the blocks of these two sizes. In addition, it may contain one block of
  # 1000 bytes, which was allocated while heaptape attached.
  local free resize
  { read -r free && read -r resize; } <out
  [ "$(grep -cF "preexisting($free)" found)" -eq 200 ]
  [ "$(grep -cF "preexisting($resize)" found)" -eq 200 ]
  grep -vF -e "preexisting($free)" -e "preexisting($resize)" found >others || true
  [ "$(wc -l <others)" -le 1 ]
  run ! grep -vF "preexisting(1000)" others
}

# The kernel refuses processes that cannot be dumped with the same error as Yama.
@test "ptrace_scope forbids it: named, with a remedy" {
  needs_root
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  mkdir -m 777 own
  printf '%s\n' '#include <stdio.h>' '#include <sys/prctl.h>' '#include <unistd.h>' \
    'int main(void) { prctl(PR_SET_DUMPABLE, 0); puts("ready"); fflush(stdout); for (;;) pause(); }' >closed.c
  cc -o own/closed closed.c
  starts $nobody own/closed
  local scope text
  for scope in 0 1 2 3; do
    run -125 unshare -m sh -c "mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama &&
      echo $scope >/proc/sys/kernel/yama/ptrace_scope && exec $nobody '$HEAPTAPE' record --pid $started -f -o own/t.ht" 3>&-
    case $scope in
      0) text="it has rights that heaptape lacks; run heaptape as root" ;;
      1) text="kernel.yama.ptrace_scope is 1; run heaptape as root, or set it to 0 (sysctl kernel.yama.ptrace_scope=0)" ;;
      2) text="kernel.yama.ptrace_scope is 2; run heaptape as root" ;;
      3) text="kernel.yama.ptrace_scope is 3, which forbids it until the next boot" ;;
    esac
    [ "$output" = "heaptape: $started: not permitted: $text" ]
  done
  kill -0 "$started"
}

@test "no static TLS is left for the library: refused" {
  printf '%s\n' '__attribute__((tls_model("initial-exec"))) __thread long word;' \
    'long *use(void) { return &word; }' >tls.c
  cc -shared -fPIC -o tls.so tls.c
  tee tls{0..399}.so <tls.so >/dev/null
  printf '%s\n' '#include <dlfcn.h>' '#include <stdio.h>' '#include <stdlib.h>' '#include <unistd.h>' \
    'int main(void) { char name[32]; int i = 0;' \
    '  for (void *h = (void *)1; h && i < 400; i++) { sprintf(name, "./tls%d.so", i); h = dlopen(name, RTLD_NOW); }' \
    '  puts(i < 400 ? "ready" : "enough"); fflush(stdout);' \
    '  for (;;) { free(malloc(10)); usleep(1000); } }' >full.c
  cc -fno-builtin -o full full.c
  starts ./full
  is_refused "static TLS"
  # The process continues: it sleeps, or is between two sleeps.
  [[ "$(awk '/^State/ { print $2 }' /proc/"$started"/status)" == [SRD] ]]
  # Its state is unchanged.
  is_refused "static TLS"
}
