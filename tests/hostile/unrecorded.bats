load hostile

# Each reason for a missing process is printed if and only if it applies.

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
  cd "$BATS_FILE_TMPDIR" || return
  # With `examined`, exits after the recorder has examined it.
  printf '#include "recorder.h"\n#include <stdlib.h>\nint main(int n, char **a) { free(malloc(100)); if (n > 1 && a[1][0] == 101) recorder_wait_examined(); else if (n > 1) usleep(atoi(a[1])); return 0; }\n' >run.c
  export C_INCLUDE_PATH=$HEAPTAPE_SOURCE/tests/hostile
  gcc -static -o static run.c
  gcc -o plain run.c
  gcc -fsanitize=address -o asan run.c 2>/dev/null || true
  chmod 755 . static plain
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL
  bats_require_minimum_version 1.5.0
  skip_under_sanitizer
  ln -s "$BATS_FILE_TMPDIR"/{static,plain,asan} .
}

need_root() {
  [ "$(id -u)" -eq 0 ] || skip "only root may do that"
}

# says PROGRAM WHY: record, check and stat name a process of PROGRAM with WHY.
says() {
  expect "a process $1" grep -q "^heaptape: process [0-9]* ($1) was not recorded: $2" <<<"$stderr"
  expect "check" grep -q "^heaptape: t.ht: process [0-9]* ($1) was not recorded: $2" <("$HEAPTAPE" check t.ht 2>&1)
  expect "stat" grep -q "^process [0-9]* ($1) was not recorded: $2" <("$HEAPTAPE" stat -v t.ht)
  "$HEAPTAPE" stat --json t.ht | jq -e --arg name "$1" --arg why "$2" \
    'any(.unrecorded.list[]; .name == $name and (.reason | startswith($why)))'
}

# missed N: the last run missed N processes.
missed() {
  local n
  n=$("$HEAPTAPE" stat --json t.ht | jq .unrecorded.processes)
  echo "$stderr"
  echo "$n of $1 processes are said not to be recorded"
  [ "$n" -eq "$1" ]
}

@test "unrecorded: no process, if all are recorded or make no calls" {
  records sh -c './plain; (./plain); sh -c "exec ./plain"; ./plain & wait; :'
  missed 0
  expect "no such message" [ "${stderr#*not recorded}" = "$stderr" ]
  expect "check" [ -z "$("$HEAPTAPE" check -q t.ht 2>&1)" ]
}

@test "unrecorded: a static program, and its fork children" {
  records sh -c './static examined; ./plain; :'
  says static "is statically linked"
  missed 1
  printf '#include "recorder.h"\n#include <sys/wait.h>\nint main(void) { for (int i = 0; i < 3; i++) if (!fork()) return 0; while (wait(0) > 0); recorder_wait_examined(); return 0; }\n' >forks.c
  gcc -static -o forks forks.c
  records sh -c './forks; ./plain'
  expect "its forks" grep -q "(forks) and 3 processes that it forked were not recorded: is statically" <<<"$stderr"
  missed 4
}

@test "unrecorded: an environment that was cleared partly or completely" {
  records sh -c 'env -i ./plain examined; env -u HEAPTAPE_SPOOL ./plain examined; env -u LD_PRELOAD ./plain examined; env HEAPTAPE_SPOOL=/nowhere ./plain examined; ./plain; :'
  says plain "was started with an environment without LD_PRELOAD and HEAPTAPE_SPOOL"
  says plain "was started without HEAPTAPE_SPOOL in its environment"
  says plain "was started without libheaptape.so in LD_PRELOAD"
  says plain "belongs to another recording, by its HEAPTAPE_SPOOL"
  missed 4
}

@test "unrecorded: setuid" {
  need_root
  for_other_users
  mkdir -m 755 bin
  cp -L plain bin/suid
  cp -L plain bin/nosuid
  chmod u+s bin/suid
  chmod 755 "$BATS_TEST_TMPDIR" bin/nosuid
  records setpriv --reuid 65534 --clear-groups sh -c 'bin/nosuid; bin/suid examined; :'
  says suid "is setuid or setgid, which disables LD_PRELOAD"
  missed 1
  # root keeps its user ID, so the program is recorded.
  records sh -c 'bin/suid examined; :'
  missed 0
  # A program with different real and effective user IDs is not recorded either.
  records sh -c 'setpriv --ruid 65534 --euid 0 ./plain examined; :'
  says plain "was started with user or group IDs that differ, which disables LD_PRELOAD"
  missed 1
}

# A library for the recorder that reads the file ./NAME instead of /proc/PID/…NAME.
make_instead() {
  printf '#define _GNU_SOURCE\n#include <linux/fcntl.h>\n#include <string.h>\n#include <sys/syscall.h>\n#include <unistd.h>\nint open(const char *path, int flags, int mode) { const char *name = strrchr(path, 47); if (!strncmp(path, "/proc/", 6) && name && !access(name + 1, R_OK)) path = name + 1; return syscall(SYS_openat, AT_FDCWD, path, flags, mode); }\nint open64(const char *path, int flags, int mode) { return open(path, flags, mode); }\n' >instead.c
  gcc -w -shared -fPIC -o instead.so instead.c
}

@test "unrecorded: secure mode by a security module" {
  need_root
  make_instead
  # The dynamic linker is in secure mode because the IDs differ, which the recorder cannot see.
  printf 'Name:\tplain\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n' >status
  # Lines of attr/current, and the expected reason.
  while IFS='|' read -r current why; do
    printf '%s\n' "$current" >current
    LD_PRELOAD=$PWD/instead.so records sh -c 'setpriv --ruid 65534 --euid 0 ./plain examined; :'
    says plain "$why, which disables LD_PRELOAD"
  done <<'END'
/usr/bin/man (enforce)|was started in secure mode by its AppArmor profile
system_u:system_r:initrc_t:s0|was started in secure mode by the SELinux policy
unconfined|was started in secure mode
END
}

@test "unrecorded: file capabilities" {
  need_root
  command -v setcap >/dev/null || skip "setcap is not installed"
  mkdir -m 755 bin
  cp -L plain bin/capable
  for_other_users
  setcap cap_net_raw+ep bin/capable 2>/dev/null || skip "the file system has no capabilities"
  chmod 755 "$BATS_TEST_TMPDIR"
  records setpriv --reuid 65534 --clear-groups sh -c 'bin/capable examined; :'
  says capable "has file capabilities, which disables LD_PRELOAD"
  missed 1
}

@test "unrecorded: another root directory without the library, and one with it" {
  need_root
  mkdir -p root/bin
  cp -L plain root/bin/plain
  ldd plain | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "root$(dirname "$library")"
    cp -L "$library" "root$library"
  done
  # /proc is not below the new root directory, so the program inherits it.
  records sh -c 'exec 9</proc; exec chroot root /bin/plain examined'
  says plain "is in another root directory or mount namespace, where libheaptape.so was not found"
  missed 1
  records chroot / "$PWD/plain" examined
  missed 0
}

@test "unrecorded: another mount namespace, without the directory of the recording" {
  need_root
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  records unshare -m sh -c 'mount -t tmpfs none "${HEAPTAPE_SPOOL%/*}" && exec ./plain examined'
  says plain "is in another root directory or mount namespace, where the directory of the recording was not found"
  missed 1
}

@test "unrecorded: another mount namespace, with a read-only directory of the recording" {
  need_root
  unshare -m true 2>/dev/null || skip "no mount namespaces"
  records unshare -m sh -c 'd=${HEAPTAPE_SPOOL%/*} && mount --bind -o ro "$d" "$d" && exec ./plain examined'
  says plain "is in another root directory or mount namespace, where the directory of the recording is read-only"
  missed 1
}

@test "unrecorded: too little address space for the library, or for its spool" {
  # The minimum limit with which the program itself can run.
  local least=2000
  until (ulimit -v $least && ./plain) 2>/dev/null || [ $least -gt 9000 ]; do least=$((least + 50)); done
  # The program ends when libc.so does not fit, 0.5 ms after exec, perhaps before the recorder
  # examines it. The dynamic linker waits until the FIFO is closed, which comes after the library
  # and before libc.so.
  mkfifo slow
  records bash -c "./plain examined >slow & ulimit -v $least; LD_PRELOAD=\$LD_PRELOAD:$PWD/slow exec ./plain"
  says plain "libheaptape.so never started in it; its address space was limited to $least KiB"
  missed 1
  records bash -c 'ulimit -v 4000; exec ./plain'
  says plain "its spool could not be created: Cannot allocate memory"
  missed 1
  records bash -c 'ulimit -v 400000; exec ./plain'
  missed 0
}

@test "unrecorded: an executable with its own malloc, and one without" {
  printf '#include <stddef.h>\n#include <stdlib.h>\n#include <string.h>\nstatic char a[1 << 20];\nstatic size_t n;\nvoid *malloc(size_t s) { n += (s + 15) & ~15ul; return a + n - ((s + 15) & ~15ul); }\nvoid *calloc(size_t s, size_t m) { return malloc(s * m); }\nvoid *realloc(void *p, size_t s) { void *q = malloc(s); return p ? memcpy(q, p, s) : q; }\nint main(void) { free(malloc(10)); return 0; }\n' >own.c
  short_function free
  gcc -fno-builtin -o own own.c short.s
  heaptape record -f -o t.ht -- ./own
  fails_with 125 "own: nothing was recorded: the program calls its own malloc (in "
  records sh -c './own; ./plain; :'
  grep -qE '^heaptape: process [0-9]+ \(own\) calls its own malloc \(in the executable\): those calls were not' <<<"$stderr"
  missed 0
  records sh -c './own; ./own; ./own; :'
  grep -qE '^heaptape: process [0-9]+ \(own\) calls its own malloc \(in the executable\), and 2 other processes: those' <<<"$stderr"
  printf 'int main(void) { return 0; }\n' >none.c
  gcc -o none none.c
  heaptape record -f -o t.ht -- ./none
  fails_with 125 "none: nothing was recorded: the program did not call the malloc API"
}

@test "unrecorded: an own malloc is one defined by an object before the library" {
  # An executable that is not position-independent has an address for malloc, its stub, without
  # defining it.
  printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { void *(*volatile f)(size_t) = malloc; free(f(100)); return 0; }\n' >stub.c
  gcc -fno-builtin -no-pie -fno-pic -o stub stub.c
  readelf -W --dyn-syms stub | grep -q '[1-9a-f][0-9a-f]*  *0 FUNC .* UND malloc@'
  printf 'struct big { char x[4000]; };\nint main() { delete new big; auto f = new char[5000]; delete[] f; return 0; }\n' >stub.cc
  g++ -no-pie -fno-pic -O0 -o stubxx stub.cc
  printf '#include <stdlib.h>\nvoid *__libc_malloc(size_t n);\nvoid *malloc(size_t n) { return __libc_malloc(n); }\n' >first.c
  gcc -fno-builtin -shared -fPIC -o first.so first.c
  local program
  for program in ./plain ./stub ./stubxx /usr/bin/python3 node perl bash gawk git gdb sqlite3; do
    command -v $program >/dev/null || continue
    records $program --version
    expect "no own malloc: $program" [ "${stderr#*own malloc}" = "$stderr" ]
  done
  # A library counts if it comes first.
  records sh -c "LD_PRELOAD=\$LD_PRELOAD:$PWD/first.so exec ./plain"
  expect "no own malloc" [ "${stderr#*own malloc}" = "$stderr" ]
  records sh -c "LD_PRELOAD=$PWD/first.so:\$LD_PRELOAD ./plain; :"
  grep -qE "^heaptape: process [0-9]+ \(plain\) calls its own malloc \(in $PWD/first.so\): those calls" <<<"$stderr"
}

# opens HOW N: deepbind.c opens work.so; "its calls were not recorded" is printed N times.
opens() {
  records deepbind "$PWD/work.so" "$1"
  local n
  n=$(grep -c "work.so was opened with RTLD_DEEPBIND: its calls of malloc, realloc and free were not recorded" <<<"$stderr" || true)
  echo "deepbind $1: said $n times, expected $2"
  [ "$n" -eq "$2" ]
  [ "$("$HEAPTAPE" stat --json t.ht | jq '[.processes[].deepbound // [] | .[] | select(endswith("/work.so"))] | length')" -ge "$2" ]
}

@test "unrecorded: a library opened with RTLD_DEEPBIND" {
  printf '#include <stdlib.h>\nvoid work(int n) { while (n--) { void *volatile p = malloc(100); p = realloc(p, 200); free(p); } }\n' >work.c
  gcc -fno-builtin -shared -fPIC -o work.so work.c
  gcc -fno-builtin -shared -fPIC -fno-plt -o noplt.so work.c
  for how in d ld dc dx dt dv dvx df; do opens $how 1; done
  # The message is also correct if several processes opened the library.
  records sh -c "deepbind '$PWD/work.so' d; deepbind '$PWD/noplt.so' d; deepbind '$PWD/work.so' d"
  has "$stderr" "noplt.so was opened with RTLD_DEEPBIND"
  [ "$(grep -c "was opened with RTLD_DEEPBIND" <<<"$stderr")" -eq 2 ]
  # Of many objects, three are named.
  for i in 1 2 3 4 5; do cp work.so "work$i.so"; done
  records sh -c "for i in 1 2 3 4 5; do deepbind '$PWD'/work\$i.so d; done"
  [ "$(grep -c "was opened with RTLD_DEEPBIND: " <<<"$stderr")" -eq 3 ]
  has "$stderr" "heaptape: 2 other objects were also opened with RTLD_DEEPBIND ('heaptape stat --json' lists all)"
  # There is no message without the flag, or if the library binds no calls of malloc.
  opens ldn 0
  for how in "" l lc x tf v; do
    opens "$how" 0
    at_least 3000 events
  done
  records sh -c "./plain; :"
  expect "no RTLD_DEEPBIND" [ "${stderr#*DEEPBIND}" = "$stderr" ]
}

# not_seen: the share printed by the last run, in permille.
not_seen() {
  sed -n 's/.*: at most \([0-9]*\)\.\([0-9]\) % was not recorded.*$/\1\2/p' <<<"$stderr"
}

@test "unrecorded: memory allocated by a library opened with RTLD_DEEPBIND" {
  printf '#include <stdlib.h>\nvoid work(int n) { while (n--) malloc(1000); }\n' >work.c
  printf '#include <stdlib.h>\nvoid work(int n) { while (n--) { void *p = malloc(1000); free(p); } }\n' >idle.c
  gcc -fno-builtin -shared -fPIC -o work.so work.c
  gcc -fno-builtin -shared -fPIC -o idle.so idle.c
  # With exit, with _exit, and with a vfork child that calls _exit first.
  for how in d dx dv dt; do
    records deepbind "$PWD/work.so" $how
    grep -qE "^heaptape: process [0-9]+ \(.*\): malloc had 9[0-9.]+ KiB in use at the end, [0-9.]+ K?i?B of it in recorded blocks: at most 9[0-9.]+ % was not recorded \(open its libraries without RTLD_DEEPBIND\)$" <<<"$stderr"
    [ "$(not_seen)" -ge 980 ]
    local in_use
    in_use=$("$HEAPTAPE" stat --json t.ht | jq '[.processes[].malloc_in_use_bytes // empty] | max')
    echo "$how: $in_use of 1,008,000 bytes, which libc and the program add to"
    [ "$in_use" -ge 1008000 ]
    [ "$in_use" -le 1040000 ]
  done
  # Freed memory does not count as missing. The process has only a few KiB of other memory, so the
  # share is a share of a few KiB.
  records deepbind "$PWD/idle.so" d
  has "$stderr" "% was not recorded"
  [ "$("$HEAPTAPE" stat --json t.ht | jq '[.processes[].malloc_in_use_bytes // empty] | max')" -lt 40000 ]
  # The blocks of a fork child are blocks of its parent, which explains them.
  records deepbind "$PWD/work.so" dF
  expect "no line about the child" [ "$(grep -c "% was not recorded" <<<"$stderr")" -eq 1 ]
  # Without such a library, mallinfo2 is not called.
  records deepbind "$PWD/work.so" ""
  [ -z "$(not_seen)" ]
  [ "$("$HEAPTAPE" stat --json t.ht | jq '[.processes[].malloc_in_use_bytes // empty] | length')" -eq 0 ]
}

@test "unrecorded: a damaged heap does not prevent a program from exiting" {
  # A chunk of the unsorted list points to itself, so mallinfo2 would loop or crash. The thread
  # cache serves the next malloc(10) of deepbind.
  printf '#include <stdlib.h>\n#include <unistd.h>\nvoid work(int n) { void **p = malloc(5000); free(malloc(10)); malloc(100); free(p); %s write(1, "worked\\n", 7); }\n' \
    'p[1] = (void **)p - 2;' >loops.c
  sed 's/p\[1\] = .*2;/p[1] = (void *)8;/' loops.c >crashes.c
  for how in loops crashes; do
    gcc -w -fno-builtin -shared -fPIC -o $how.so $how.c
    deepbind "$PWD/$how.so" d >want
    records deepbind "$PWD/$how.so" d
    [ "$status" -eq 0 ]
    [ "$output" = "$(cat want)" ]
    has "$stderr" "$how.so was opened with RTLD_DEEPBIND"
    [ -z "$(not_seen)" ]
    [ -z "$(find . -name 'core*')" ]
  done
}

@test "unrecorded: memory of a process with its own malloc" {
  # The recorder samples a program that has used 15 ms of CPU time in its next pass.
  printf '#include "recorder.h"\n#include <time.h>\nstatic char a[64 << 20];\nvoid *malloc(unsigned long n) { return a; }\nvoid *calloc(unsigned long n, unsigned long m) { return a; }\nvoid *realloc(void *p, unsigned long n) { return a; }\nint main(void) { recorder_wait_passes(5); memset(malloc(1), 1, 20 << 20); for (clock_t end = clock() + 50000; clock() < end;); recorder_wait_passes(5); return 0; }\n' >own.c
  short_function free
  gcc -w -fno-builtin -o own own.c short.s
  records sh -c './own; ./plain; :'
  has "$stderr" "(own) calls its own malloc (in the executable)"
  has "$stderr" "(./own): private memory grew by 20.0 MiB, recorded blocks explain at most 0 B: 100.0 % was not recorded"
}

@test "unrecorded: a file-size limit is not an own malloc" {
  run --separate-stderr timeout -k 1 120 bash -c 'ulimit -f 100; exec "$0" record -o - -- ./plain >/dev/null' "$HEAPTAPE"
  fails_with 125 "nothing was recorded: its spool could not be created: File too large"
}

@test "unrecorded: AddressSanitizer, and with its check of the library order turned off" {
  [ -x asan ] || skip "no AddressSanitizer"
  # The process would run for only a millisecond, so its dynamic linker waits until the FIFO is
  # closed.
  mkfifo slow
  records sh -c './plain examined >slow & LD_PRELOAD=$LD_PRELOAD:$PWD/slow ./asan; ./plain; wait; :'
  says asan "uses AddressSanitizer, which aborts if another library is preloaded"
  missed 1
  records sh -c 'ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 ./asan; :'
  missed 0
}

@test "unrecorded: a process that exits before the library starts" {
  printf '#include "recorder.h"\n#include <signal.h>\n__attribute__((constructor)) static void end(void) { recorder_wait_examined(); if (HOW) kill(getpid(), HOW); _exit(3); }\n' >end.c
  gcc -shared -fPIC -Wl,-z,initfirst -DHOW=0 -o exits.so end.c
  gcc -shared -fPIC -Wl,-z,initfirst -DHOW=9 -o dies.so end.c
  # glibc first runs the constructor of the last library that has the flag initfirst.
  records sh -c 'LD_PRELOAD="$LD_PRELOAD:$PWD/exits.so" ./plain; LD_PRELOAD="$LD_PRELOAD:$PWD/dies.so" ./plain; ./plain; :'
  says plain "libheaptape.so never started in it; it exited with status 3"
  says plain "libheaptape.so never started in it; signal 9 ended it"
  missed 2
}

@test "unrecorded: a library that the user may not read" {
  need_root
  mkdir -m 700 private
  cp "$HEAPTAPE_BUILD/src/capture/libheaptape.so" private
  chmod 755 "$BATS_TEST_TMPDIR"
  HEAPTAPE_LIBEXEC=$PWD/private records setpriv --reuid 65534 --clear-groups "$BATS_FILE_TMPDIR/plain" examined
  says plain "libheaptape.so never started in it; it exited with status 0"
  missed 1
}

@test "unrecorded: processes excluded by --follow are not losses" {
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht --follow none -- sh -c './static; ./plain; :'
  missed 0
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht --follow 'pl*' -- sh -c './static examined; ./plain; :'
  missed 0
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" record -f -o t.ht --follow 'st*' -- sh -c './static examined; ./plain; :'
  says static "is statically linked"
  missed 1
}

# make_late NAME: makes late.so, which delays the recorder by 0.3 s when it opens /proc/PID/NAME.
make_late() {
  printf '#define _GNU_SOURCE\n#include <linux/fcntl.h>\n#include <string.h>\n#include <sys/syscall.h>\n#include <unistd.h>\nint open(const char *path, int flags, int mode) { if (strstr(path, "/%s")) usleep(300000); return syscall(SYS_openat, AT_FDCWD, path, flags, mode); }\nint open64(const char *path, int flags, int mode) { return open(path, flags, mode); }\n' "$1" >late.c
  gcc -w -shared -fPIC -o late.so late.c
}

@test "unrecorded: no process, if the recorder examines processes late" {
  make_late limits
  LD_PRELOAD=$PWD/late.so records sh -c './plain 500000; ./plain; ./static; :'
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = kernel ] || skip "the kernel does not report processes"
  missed 1
}

@test "unrecorded: many short processes" {
  records sh -c 'i=0; while [ $i -lt 100 ]; do ./static; i=$((i + 1)); done; ./plain'
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = kernel ] || skip "the kernel does not report processes"
  missed 100
  expect "ten lines" [ "$(grep -c 'process [0-9]* (.*) was not recorded' <<<"$stderr")" -eq 10 ]
  has "$stderr" "90 other processes were not recorded"
}

@test "unrecorded: without reports by the kernel, /proc is searched, with a note" {
  need_unshare -rpf --mount-proc
  run --separate-stderr timeout -k 1 120 unshare -rpf --mount-proc "$HEAPTAPE" record -f -o t.ht -- \
    sh -c './static examined; env -i ./plain examined; ./plain; :'
  says static "is statically linked"
  says plain "was started with an environment without"
  missed 2
  has "$stderr" "the kernel did not report processes: others that lived for less than 0.1 s may not have been recorded"
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = proc ]
  records sh -c './static; ./plain'
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = kernel ] || skip "the kernel does not report processes"
  expect "no such note" [ "${stderr#*kernel did not}" = "$stderr" ]
}

@test "unrecorded: in a pid namespace that /proc does not show, no other process is named" {
  need_unshare -pf
  run --separate-stderr timeout -k 1 120 unshare -pf "$HEAPTAPE" record -f -o t.ht -- sh -c './plain examined; ./plain; :'
  missed 0
  # Processes started by the recorder are named.
  run --separate-stderr timeout -k 1 120 unshare -pf "$HEAPTAPE" record -f -o t.ht -- sh -c './static examined; ./plain; :'
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = proc ] || skip "the kernel reports processes"
  says static "is statically linked"
  missed 1
}

@test "unrecorded: in a pid namespace without /proc, a recorded program is not named" {
  need_unshare -mpf
  records unshare -mpf sh -c 'exec 9</proc; umount -l /proc; exec ./plain examined'
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" != proc ] || skip "the kernel reports no processes"
  missed 0
}

@test "unrecorded: in a pid namespace without /proc, no recorded program that ends before it is examined" {
  need_unshare -mpf
  make_late exe
  LD_PRELOAD=$PWD/late.so records unshare -mpf sh -c 'exec 9</proc; umount -l /proc; exec ./plain'
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" != proc ] || skip "the kernel reports no processes"
  missed 0
}

@test "unrecorded: in a pid namespace, neither of two processes that ended early" {
  need_unshare -rpf --mount-proc
  make_late maps
  mkfifo slow
  # The dynamic linker waits for a writer of the FIFO, so the library starts in both processes after
  # both have executed the program. Both end before the recorder reads the maps of a process.
  LD_PRELOAD=$PWD/late.so records unshare -rpf --mount-proc bash -c "
    LD_PRELOAD=$PWD/slow:\$LD_PRELOAD ./plain & a=\$!
    LD_PRELOAD=$PWD/slow:\$LD_PRELOAD ./plain & b=\$!
    until [ /proc/\$a/exe -ef plain ] && [ /proc/\$b/exe -ef plain ]; do :; done
    while :; do : >slow; done & wait \$a \$b; :"
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = kernel ] || skip "the kernel does not report processes"
  missed 0
}

@test "unrecorded: in a pid namespace, a slowly loading program is not reported as missing the library" {
  need_unshare -pf
  mkfifo slow
  # The dynamic linker waits for a writer of the FIFO, which comes before the library. Each fork
  # makes heaptape examine the processes.
  run --separate-stderr timeout -k 1 120 unshare -pf "$HEAPTAPE" record -f -o t.ht -- \
    bash -c "for i in 1 2 3 4 5; do sleep 0.1; done >slow & LD_PRELOAD=$PWD/slow:\$LD_PRELOAD ./plain; :"
  missed 0
}

@test "unrecorded: a salvaged trace keeps the list" {
  records sh -c './static examined; ./plain; :'
  "$HEAPTAPE" check -q --salvage -f -o u.ht t.ht 2>/dev/null
  [ "$("$HEAPTAPE" stat --json u.ht | jq -c .unrecorded)" = "$("$HEAPTAPE" stat --json t.ht | jq -c .unrecorded)" ]
}
