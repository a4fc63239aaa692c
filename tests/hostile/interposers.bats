load hostile

# Libraries that replace libc functions in addition to the capture library: programs must not hang
# or end differently.

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  cat >prog.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *a)
{
    for (int i = 0; i < 50; i++) {
        void *volatile p = malloc(4099);
        p = realloc(p, 50021);
        free(p);
    }
    return a;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    work(0);
    pthread_join(t, 0);
    if (!fork()) {
        work(0);
        exit(0);
    }
    wait(0);
    puts("done");
    return 7;
}
END
  gcc -fno-builtin -pthread -o prog prog.c
}

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL
  skip_under_sanitizer
  ln -s "$BATS_FILE_TMPDIR/prog" .
}

# own_calls: the number of recorded calls of malloc and realloc by prog.
own_calls() {
  "$HEAPTAPE" dump t.ht | grep -cE ' (malloc\(4099|realloc\(.*, 50021)\) '
}

# whole: prog finished under record, and each of its calls was recorded.
whole() {
  expect "status 7" [ "$status" -eq 7 ]
  expect "done" [ "$output" = "done" ]
  at_least 300 own_calls
  [ "$(own_calls)" -eq 300 ]
}

@test "interposers: each libc function that the capture library defines itself" {
  local objects=$HEAPTAPE_BUILD/src/capture
  [ "$(uname -m)" = x86_64 ] || skip "the library of this test is for x86-64"
  [ -f "$objects/liblibc_string.a" ] || skip "no objects of the capture library in this build"
  # Without the functions that the library calls only in a sandbox: the recorder's other
  # libraries call them too, and if it forks meanwhile, the interposer's lock stays locked.
  find "$objects/libheaptape.so.p" -name "*libc_libc.c.o" -exec nm --defined-only {} "$objects/liblibc_string.a" \; |
    awk '$2 == "T" && $3 !~ /^(libc_|pthread_self$|pthread_getcpu)/ { sub(/^own_/, "", $3); print "X(" $3 ")" } END { print "X(dlopen)" }' >names.h
  for name in clock_gettime dlsym memcpy pthread_setspecific stat64 syscall __errno_location; do
    grep -qx "X($name)" names.h
  done
  gcc -O1 -w -fno-builtin -fPIC -shared -I. -o interposer.so "$HEAPTAPE_SOURCE/tests/hostile/interposer.c"
  expect "without heaptape" [ "$(LD_PRELOAD=$PWD/interposer.so timeout 600 ./prog)" = "done" ]
  # Preloads the library after and before the capture library. A call first reaches the first
  # library.
  records sh -c "LD_PRELOAD=\$LD_PRELOAD:$PWD/interposer.so exec ./prog"
  whole
  records sh -c "LD_PRELOAD=$PWD/interposer.so:\$LD_PRELOAD exec ./prog"
  whole
  run --separate-stderr timeout -k 1 600 "$HEAPTAPE" record -f --stacks -o t.ht -- sh -c "LD_PRELOAD=\$LD_PRELOAD:$PWD/interposer.so exec ./prog"
  whole
  # Here, the recorder also loads the library.
  LD_PRELOAD=$PWD/interposer.so records ./prog
  whole
}

@test "interposers: a function that allocates in its first call" {
  cat >first.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
int fstat64(int fd, struct stat64 *s)
{
    static int (*real)(int, struct stat64 *);
    if (!real) {
        real = dlsym(RTLD_NEXT, "fstat64");
        free(malloc(100));
    }
    return real(fd, s);
}
END
  gcc -O1 -fPIC -shared -fno-builtin -o first.so first.c
  LD_PRELOAD=$PWD/first.so records ./prog
  whole
}

# wrapped COMMAND...: runs prog under a program that preloads a library, inside record and around
# it.
wrapped() {
  command -v "$1" >/dev/null || skip "no $1"
  records "$@" ./prog
  whole
  run --separate-stderr timeout -k 1 600 "$@" "$HEAPTAPE" record -f -o t.ht -- ./prog
  whole
}

@test "interposers: fakeroot" {
  wrapped fakeroot
}

@test "interposers: eatmydata" {
  wrapped eatmydata
}

@test "interposers: libfaketime" {
  wrapped faketime '2001-01-01 00:00:00'
}

# seconds: the duration of the recording in t.ht.
seconds() {
  "$HEAPTAPE" stat --json --brief t.ht | jq '.duration_ns / 1e9 | floor'
}

@test "interposers: libfaketime does not change the recorder's clock" {
  bats_require_minimum_version 1.5.0
  command -v faketime >/dev/null || skip "no faketime"
  local clock time start
  for clock in monotonic best; do
    # Another day, a stopped clock, and a clock at 100 times the speed.
    for time in '@2001-01-01 00:00:00' '2001-01-01 00:00:00' '+0 x100'; do
      export HEAPTAPE_CLOCK=$clock
      start=$SECONDS
      run --separate-stderr timeout -k 1 600 faketime -f "$time" "$HEAPTAPE" record -f -o t.ht -- ./prog
      whole
      expect "one line, $clock, $time" [ "$(wc -l <<<"$stderr")" -eq 1 ]
      expect "no longer than the command" [ "$(seconds)" -le $((SECONDS - start + 1)) ]
    done
  done
}

@test "interposers: stdbuf" {
  wrapped stdbuf -oL
}

@test "interposers: tsocks" {
  wrapped tsocks
}

@test "interposers: torsocks" {
  wrapped torsocks
}

@test "interposers: uid_wrapper, which replaces syscall" {
  local library
  library=$(find /usr/lib -name 'libuid_wrapper.so*' -print -quit)
  [ -n "$library" ] || skip "no libuid_wrapper"
  records sh -c "UID_WRAPPER=1 UID_WRAPPER_ROOT=1 LD_PRELOAD=\$LD_PRELOAD:$library exec ./prog"
  whole
}

@test "interposers: a C library that is not glibc" {
  command -v musl-gcc >/dev/null || skip "no musl"
  musl-gcc -fno-builtin -pthread -o musl "$BATS_FILE_TMPDIR/prog.c"
  records ./musl
  whole
  records sh -c './musl; exit $?'
  whole
}

@test "interposers: the name of musl's malloc, which its loader has not called" {
  command -v musl-gcc >/dev/null || skip "no musl"
  # The library waits for the plan of je_malloc. Before it sends the plan, the recorder has read the
  # name of malloc's object.
  cat >prefixed.c <<'END'
#include <stdlib.h>
__attribute__((noipa)) void *je_malloc(size_t n) { char *p = malloc(n + 16); return p ? p + 16 : p; }
__attribute__((noipa)) void je_free(void *p) { if (p) free((char *)p - 16); }
int main(void) { for (int i = 0; i < 100; i++) je_free(je_malloc(100)); return 0; }
END
  musl-gcc -O1 -fno-builtin -rdynamic -o musl prefixed.c
  records ./musl
  [ "$("$HEAPTAPE" stat --json t.ht | grep -c '"library": ".*/ld-musl-')" -eq 1 ]
}

@test "interposers: the runtime of AddressSanitizer" {
  gcc -fsanitize=address -fno-builtin -pthread -o asan "$BATS_FILE_TMPDIR/prog.c" || skip "no AddressSanitizer"
  ASAN_OPTIONS=verify_asan_link_order=0 records ./asan
  whole
}
