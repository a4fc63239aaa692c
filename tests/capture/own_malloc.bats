# heaptape record: programs that define an allocator in their executable.
load trace

setup() {
  # Functions begin with an instruction at which indirect jumps may land.
  landing=-fcf-protection=full
  [ "$(uname -m)" = x86_64 ] || landing=-mbranch-protection=standard
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
}

# build OPTION...: builds entries_own.c as ./own.
build() {
  gcc -w -fno-builtin -o own "$@" "$HEAPTAPE_SOURCE/tests/capture/entries_own.c"
}

# has COUNT KIND SIZE: each of the three processes made COUNT such calls.
has() {
  expect "$*" [ "$(awk -v kind="$2" -v size="$3" '$5 == kind && $7 == size { n[$2]++ }
    END { for (i in n) print n[i] }' lines | paste -sd ' ')" = "$1 $1 $1" ]
}

# when_planned TEST: prints a script for `sh -c SCRIPT PROGRAM ARG...`. It runs the program when the
# recorder has made a plan: starts PROGRAM with the argument `none` until a file of a plan
# passes this test of test(1).
when_planned() {
  cat <<END
while :; do
  for plan in "\$HEAPTAPE_SPOOL"/plan-*; do
    if [ $1 "\$plan" ]; then
      "\$0" "\$@"
      exit
    fi
  done
  "\$0" none
done
END
}

# record_planned PROGRAM ARG...: like `record`, when the recorder has made the plan of the program.
record_planned() {
  record sh -c "$(when_planned -s)" "$@"
}

# unseen: prints the number of processes whose own malloc was not recorded.
unseen() {
  "$HEAPTAPE" stat --json t.ht | jq '[.processes[] | select(.argv[1] != "none").bypassed_by // empty] | length'
}

# records_all: the trace contains all calls of ./own, of its fork child, and of the program that it
# executes. It contains no calls that the functions of the allocator make to each other.
records_all() {
  record_planned ./own tree
  [ "$status" -eq 0 ]
  [ ! -s told ]
  expect "no missing calls" [ "$(unseen)" -eq 0 ]
  expect "its own allocator" [ "$("$HEAPTAPE" stat --json t.ht |
    jq -c '[.processes[] | select(.exe | endswith("/own")) | select(.argv[1] != "none").allocator.library | endswith("/own")] | unique')" = "[true]" ]
  has 1000 malloc 777
  has 1000 calloc 111
  has 1000 realloc 888
  has 1000 posix_memalign 999
  has 1000 aligned_alloc 640
  # These would be the calls of malloc by calloc, realloc and aligned_alloc, and the calls of
  # memalign by malloc.
  expect "nested calls" [ "$(awk 'NR == FNR { if ($7 == 777) own[$2]; next }
    $2 in own && ($5 == "memalign" || ($5 == "malloc" && ($7 == 333 || $7 == 888 || $7 == 704)))' lines lines | wc -l)" -eq 0 ]
  "$HEAPTAPE" convert -q -f --strict t.ht -o t.htw
  "$HEAPTAPE" check -q t.htw
}

@test "an allocator in the executable: all calls of a started program, its fork and its exec" {
  local options
  for options in -O2 "-O2 -no-pie" "-O0 $landing"; do
    # shellcheck disable=SC2086
    build $options
    records_all
  done
  # Sites of the calls: three frames.
  record_options="--stacks=3" record_planned ./own once
  [ "$("$HEAPTAPE" stat --json --by site t.ht | jq '[.sites[].frames | length] | max')" -eq 3 ]
}

@test "an allocator whose functions are not dynamic symbols" {
  build -O2 -fvisibility=hidden
  ! nm -D own | grep -q " T malloc" || false
  records_all
}

@test "an allocator in the executable: calls by constructors of libraries" {
  cat >early.c <<'END'
#include <stdlib.h>
static void *blocks[100];
static void end(void) { for (int i = 0; i < 100; i++) free(blocks[i]); }
__attribute__((constructor)) static void begin(void)
{
  for (int i = 0; i < 100; i++) blocks[i] = malloc(321);
  atexit(end);
}
END
  gcc -O2 -fPIC -shared -o libearly.so early.c
  build -O2 -rdynamic -Wl,--no-as-needed -L. -learly -Wl,-rpath,"$PWD"
  record_planned ./own once
  [ "$status" -eq 0 ]
  expect "all calls in the process" [ "$(awk '$5 == "malloc" { n[$2 " " $7]++; pids[$2] }
    END { for (p in pids) if (n[p " 777"]) print n[p " 777"], n[p " 321"] }' lines)" = "1000 100" ]
  "$HEAPTAPE" convert -q -f --strict t.ht -o t.htw
}

# record_named TEST [OPTION...]: records ./own as record_planned does, with messages.
record_named() {
  timeout 120 "$HEAPTAPE" record -f -o t.ht "${@:2}" -- sh -c "$(when_planned "$1")" ./own once 2>err
  cat err
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
}

@test "allocators with prefixes, other orders of arguments, and names of --wrap" {
  gcc -w -O2 -fno-builtin -o own "$HEAPTAPE_SOURCE/tests/capture/entries_prefixed.c"
  record_named -s --wrap own_malloc=malloc,own_free=free
  expect "one message" [ "$(wc -l <err)" -eq 1 ]
  # Sizes of the program, not of the shell.
  awk '$7 % 100 > 0 && $7 % 100 < 4 && $7 < 600 { n[$5 " " $7 " " $9]++ }
    END { for (i in n) if (n[i] >= 100) print i, n[i] }' lines | sort >counts
  cat counts
  # Kind, size, alignment, count. The calls of _rjem_calloc to _rjem_malloc, and of _rjem_rallocx to
  # _rjem_mallocx, are not events.
  [ "$(cat counts)" = "aligned_alloc 201 64 1000
aligned_alloc 301 64 1000
calloc 101 0 1000
free_sized 202 0 1000
malloc 302 0 1000
malloc 401 0 1000
malloc 501 0 1000
realloc 103 0 1000
realloc 202 0 1000
realloc 203 0 1000
realloc 303 0 1000" ]
  # Fields 6, 7 and 10 are the block, the size and the result.
  expect "blocks that stay" [ "$(awk '$5 == "realloc" && ($7 == 103 || $7 == 203) && $6 != $10' lines | wc -l)" -eq 0 ]
  expect "blocks that cannot grow" [ "$(awk '$5 == "realloc" && ($7 == 1103 || $7 == 1203)' lines | awk '$10 == "0x0" || $10 == 0' | wc -l)" -eq 2000 ]
  [ "$(awk '$5 == "free"' lines | wc -l)" -ge 5000 ]

  record_named -s --wrap "own_malloc=malloc,own_free=free,second_malloc=malloc,second_free=free,own_new_aligned=new(align),own_delete_sized=_ZdlPvm"
  expect "one message" [ "$(wc -l <err)" -eq 1 ]
  awk '$7 > 500 && $7 < 504 { n[$5 " " $7 " " $8]++ } END { for (i in n) if (n[i] >= 100) print i, n[i] }' lines | sort >counts
  cat counts
  [ "$(cut -d' ' -f1,2,4 counts)" = "delete(size) 503 1000
malloc 501 1000
malloc 502 1000
new(align) 503 1000" ]
  [ "$(awk '$5 == "free"' lines | wc -l)" -ge 6000 ]

  record_named -s --wrap own_mallok=malloc,own_free=free
  expect "a missing name" [ "$(grep -c -- "--wrap" err)" -eq 1 ]
  grep -qx "heaptape: --wrap: no symbol of a recorded executable and no dynamic symbol of its libraries is own_mallok (build it with symbols, or link its allocator as a shared library)" err
  [ "$(awk '$5 == "malloc" && $7 == 501' lines | wc -l)" -eq 0 ]
  [ "$(awk '$5 == "free"' lines | wc -l)" -ge 5000 ]

  short_function own_free
  gcc -w -O2 -fno-builtin -Down_free=other_free -o own "$HEAPTAPE_SOURCE/tests/capture/entries_prefixed.c" short.s
  record_named -s --wrap own_malloc=malloc,own_free=free
  grep -qx "heaptape: an allocator is not recorded: a function cannot be redirected: own_free in $PWD/own: the function is shorter than a jump" err
  run -1 grep -- --wrap: err
  [ "$(awk '$5 == "malloc" && $7 == 501' lines | wc -l)" -eq 0 ]
  [ "$(awk '$5 == "malloc" && $7 == 401' lines | wc -l)" -eq 1000 ]
}

@test "allocators beside libc's malloc: figures and a workload for each" {
  local child
  gcc -w -O2 -fno-builtin -o own "$HEAPTAPE_SOURCE/tests/capture/entries_heaps.c"
  record_named -s
  expect "figures" [ "$(heaps t.ht)" = "malloc 99 50 750000 0
mimalloc 111 100 1000000 900000
1" ]
  run -0 "$HEAPTAPE" stat -v t.ht
  grep -qE '^mimalloc +111 +976.6 KiB +57.1 % +878.9 KiB$' <<<"$output"
  grep -qx '1 call freed or resized a block of another allocator' <<<"$output"

  "$HEAPTAPE" convert -f t.ht
  expect "the workload" [ "$(heaps t.htw)" = "$(heaps t.ht)" ]
  "$HEAPTAPE" slice --from 160 -o part.htw t.htw
  expect "a part" [ "$(heaps part.htw)" = "malloc 49 0 0 0
mimalloc 1 90 900000 900000
1" ]
  "$HEAPTAPE" export -F json -o t.json t.htw
  "$HEAPTAPE" import -F json -o again.htw t.json
  expect "through JSON" [ "$(heaps again.htw)" = "$(heaps t.ht)" ]

  "$HEAPTAPE" convert --heap mimalloc -o mi.htw t.ht
  "$HEAPTAPE" convert --heap malloc -o libc.htw t.ht
  [ "$("$HEAPTAPE" stat --json mi.htw | jq -c '.by_kind')" = '{"malloc":100,"free":11}' ]
  [ "$("$HEAPTAPE" stat --json libc.htw | jq -c '.by_kind')" = '{"malloc":50,"free":49}' ]
  [ "$("$HEAPTAPE" replay --json libc.htw | jq .events)" -eq 99 ]

  child=$("$HEAPTAPE" stat --json t.ht | jq '.processes[] | select(.forked_from and .events == 4).pid')
  "$HEAPTAPE" convert --pid "$child" -o child.htw t.ht
  expect "the child" [ "$(heaps child.htw)" = "malloc 2 0 0 0
mimalloc 2 91 900402 890402
0" ]
}

@test "a program with one allocator: no allocator is noted" {
  gcc -w -O2 -fno-builtin -o own "$HEAPTAPE_SOURCE/tests/capture/entries_own.c"
  record_planned ./own once
  [ "$status" -eq 0 ]
  [ -z "$(heaps t.ht)" ]
  run -1 grep -c allocator= <("$HEAPTAPE" dump t.ht)
  run -0 "$HEAPTAPE" stat -v t.ht
  run -1 grep '^allocator ' <<<"$output"
}

# A library with allocators on a pool, or with a malloc (-DLIBC_NAMES) that calls mi_malloc.
library_source() {
  cat <<'END'
#include "library_pool.h"
#ifdef LIBC_NAMES
void *mi_malloc(size_t size);
void mi_free(void *p);
CALLED void *malloc(size_t size) { return mi_malloc(size); }
CALLED void free(void *p) { mi_free(p); }
CALLED void *calloc(size_t n, size_t size) { return mi_malloc(n * size); }
CALLED void *realloc(void *old, size_t size)
{
  size_t had = 0;
  void *p = mi_malloc(size);
  if (old) memcpy(&had, (char *)old - 16, sizeof had);
  return p && old ? memcpy(p, old, had < size ? had : size) : p;
}
#else
CALLED void *je_malloc(size_t size) { return allocate(size); }
CALLED void *je_calloc(size_t n, size_t size) { return je_malloc(n * size); }
CALLED void je_free(void *p) { RELEASE(p); }
CALLED void *mi_malloc(size_t size) { return allocate(size); }
CALLED void mi_free(void *p) { RELEASE(p); }
CALLED void *pool_malloc(size_t size) { return allocate(size); }
CALLED void pool_free(void *p) { RELEASE(p); }
#endif
END
}

@test "libraries: functions with prefixes and names of --wrap, and no calls of malloc to them" {
  library_source >library.c
  local shared=(gcc -w -O2 -fno-builtin -fPIC -shared -I "$HEAPTAPE_SOURCE/tests/capture")
  "${shared[@]}" -o libpools.so library.c
  "${shared[@]}" -DLIBC_NAMES -o libother.so library.c -L. -lpools -Wl,-rpath,"$PWD"
  cat >main.c <<'END'
#include <stdlib.h>
#include <string.h>
void *je_malloc(size_t), *je_calloc(size_t, size_t), *pool_malloc(size_t);
void je_free(void *), pool_free(void *);
int main(int n, char **argv)
{
  for (int i = 0; i < 1000 && strcmp(argv[n - 1], "none") != 0; i++) {
    je_free(je_malloc(601));
    je_free(je_calloc(3, 602));
    pool_free(pool_malloc(603));
    free(malloc(604));
  }
  return 0;
}
END
  gcc -w -O1 -fno-builtin -o own main.c -L. -lpools -Wl,-rpath,"$PWD"
  record_named -s --wrap pool_malloc=malloc,pool_free=free
  run -1 grep -- --wrap: err
  awk '$7 > 600 && $7 < 700 { n[$5 " " $7]++ } END { for (i in n) print i, n[i] }' lines | sort >counts
  cat counts
  [ "$(cat counts)" = "calloc 602 1000
malloc 601 1000
malloc 603 1000
malloc 604 1000" ]
  [ "$(awk '$5 == "free" && $6 != "0x0"' lines | wc -l)" -ge 4000 ]
  "$HEAPTAPE" convert -q -f --strict t.ht -o t.htw
  "$HEAPTAPE" check -q t.htw

  # The malloc in use calls mi_malloc.
  record_options="--allocator ./libother.so" record ./own
  [ "$status" -eq 0 ]
  [ "$(awk '$5 == "malloc" && $7 == 604' lines | wc -l)" -eq 1000 ]

  # The malloc in use is not libc's, and calls no functions with prefixes of other libraries.
  cat >self.c <<'END'
#include "library.c"
CALLED void *mi_malloc(size_t size) { return allocate(size); }
CALLED void mi_free(void *p) { RELEASE(p); }
END
  "${shared[@]}" -DLIBC_NAMES -o libself.so self.c
  record_options="--allocator ./libself.so" record_planned ./own
  [ "$status" -eq 0 ]
  awk '$7 > 600 && $7 < 700 { n[$5 " " $7]++ } END { for (i in n) print i, n[i] }' lines | sort >counts
  cat counts
  [ "$(cat counts)" = "calloc 602 1000
malloc 601 1000
malloc 604 1000" ]

  # jemalloc's additional functions have no prefix. Here, jemalloc is not the malloc in use.
  cat >extended.c <<'END'
#include "library.c"
CALLED void *mallocx(size_t size, int flags) { return allocate(size + (flags < 0)); }
CALLED void dallocx(void *p, int flags) { if (flags == 0) RELEASE(p); }
END
  echo "void *mallocx(unsigned long, int);
void dallocx(void *, int);
int main(int n, char **argv) { for (int i = 0; i < 1000 && n == 1; i++) dallocx(mallocx(606, 0), 0); }" >extra.c
  "${shared[@]}" -DLIBC_NAMES -o libextended.so extended.c
  gcc -w -O1 -fno-builtin -o extra extra.c -L. -lextended -lself -Wl,-rpath,"$PWD"
  record_options="--allocator ./libself.so" record_planned ./extra
  [ "$status" -eq 0 ]
  [ "$(awk '$5 == "malloc" && $7 == 606' lines | wc -l)" -eq 1000 ]

  # A program that calls mi_malloc of the malloc in use.
  echo 'void *mi_malloc(unsigned long);
void mi_free(void *);
int main(void) { for (int i = 0; i < 1000; i++) mi_free(mi_malloc(605)); }' >other.c
  gcc -w -O1 -fno-builtin -o other other.c -L. -lself -Wl,-rpath,"$PWD"
  timeout 120 "$HEAPTAPE" record -f -o t.ht -- ./other 2>err || true
  cat err
  grep -q "calls its own malloc (in $PWD/libself.so)" err
}

@test "C++ operators in the executable that throw" {
  cat >own.cc <<'END'
#include <cstdlib>
#include <new>
#define CALLED __attribute__((noipa))
static char pool[1 << 20];
static size_t used;
extern "C" CALLED void *malloc(size_t n)
{
  n = (n + 15) & ~15ul;
  if (n > sizeof pool - used) return 0;
  used += n;
  return pool + used - n;
}
extern "C" CALLED void free(void *p) { if (p) *(volatile char *)p = 1; }
extern "C" CALLED void *calloc(size_t a, size_t b) { return malloc(a * b); }
extern "C" CALLED void *realloc(void *, size_t n) { return malloc(n); }
CALLED void *operator new(size_t n)
{
  void *p = malloc(n);
  if (!p) throw std::bad_alloc();
  return p;
}
CALLED void operator delete(void *p) noexcept { free(p); }
CALLED void operator delete(void *p, size_t) noexcept { free(p); }
CALLED int last(int x) { return x * 3 + 7; }
int main(int n, char **)
{
  int caught = 0;
  if (n > 1) return 0;
  for (int i = 0; i < 10; i++) {
    try { operator new(1 << 22); } catch (std::bad_alloc &) { caught++; }
  }
  for (int i = 0; i < 100; i++) operator delete(operator new(77));
  return caught != 10;
}
END
  g++ -w -O2 -fno-builtin -o own own.cc
  record_planned ./own
  [ "$status" -eq 0 ]
  [ "$(awk '$5 == "new" && $7 == 77' lines | wc -l)" -eq 100 ]
  [ "$(awk '$5 == "delete"' lines | wc -l)" -eq 100 ]
  [ "$(awk '$5 == "malloc" && $7 == 77' lines | wc -l)" -eq 0 ]
}

@test "an allocator that cannot be redirected: the program runs, and the trace names it" {
  short_function free
  gcc -w -fno-builtin -Os -Dfree=own_free -o own "$HEAPTAPE_SOURCE/tests/capture/entries_own.c" short.s
  record sh -c './own once; exec ls own'
  [ "$status" -eq 0 ]
  [ "$(cat told)" = own ]
  expect "one process with missing calls" [ "$(unseen)" -eq 1 ]

  # Without dynamic symbols.
  short_function free '.hidden free'
  gcc -w -fno-builtin -Os -fvisibility=hidden -Dfree=own_free -o own "$HEAPTAPE_SOURCE/tests/capture/entries_own.c" short.s
  record_named -e
  grep -qx "heaptape: an allocator is not recorded: a function cannot be redirected: free in $PWD/own: the function is shorter than a jump" err
}

@test "a recorder that does not answer in time: the program runs, and the trace names it" {
  build -O2 -fvisibility=hidden
  # The parent of the shell is the recorder.
  # shellcheck disable=SC2016
  record sh -c 'kill -STOP $PPID; ./own once; status=$?; kill -CONT $PPID; exit $status'
  [ "$status" -eq 0 ]
  expect "no calls" [ "$(awk '$5 == "malloc" && $7 == 777' lines | wc -l)" -eq 0 ]
  expect "one process with missing calls" [ "$(unseen)" -eq 1 ]
}

@test "a program without an allocator does not wait, and asks for no plan" {
  printf 'int main(void) { return 0; }\n' >none.c
  gcc -g -o none none.c
  # This program has 1,000 symbols, and their names end with malloc.
  printf 'void *malloc_%d(void) { return 0; }\n' $(seq 1000) >>none.c
  printf 'void *xmalloc(void) { return 0; }\n' >>none.c
  gcc -g -o none none.c
  command -v strace >/dev/null || skip "no strace"
  record strace -f -o calls -e trace=openat,clock_nanosleep,nanosleep ./none
  [ "$status" -eq 0 ]
  grep -q /proc/self/exe calls
  ! grep -E "plan-|nanosleep" calls || false
}

@test "a large executable: its plan is made before it asks" {
  # Shells do not ask, because they do not define malloc. Only the recorder can create the file.
  cp -L /bin/sh small
  cp -L /bin/sh large
  truncate -s 16M large
  # shellcheck disable=SC2016
  plans='for plan in "$HEAPTAPE_SPOOL"/plan-*; do [ ! -e "$plan" ] || echo plan; done'
  record ./small -c "$plans"
  [ "$status" -eq 0 ] && [ ! -s told ]
  record ./large -c "$plans"
  [ "$status" -eq 0 ] && [ "$(cat told)" = plan ]

  # A program that the program executes, if the kernel reports it.
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r .unrecorded.found_by)" = kernel ] || return 0
  # shellcheck disable=SC2016
  record ./small -c "./large -c 'until [ -e \"\$HEAPTAPE_SPOOL\"/plan-* ]; do sleep 0.05; done'; $plans"
  [ "$status" -eq 0 ] && [ "$(cat told)" = plan ]
}

# addresses FILE NAME=FUNCTION...: prints the argument of --wrap with the addresses of the names.
addresses() {
  local file=$1 pair all=
  shift
  for pair; do
    all+=,0x$(nm "$file" | awk -v name="${pair%=*}" '$3 == name { print $1 }')=${pair#*=}
  done
  echo "${all#,}"
}

@test "--wrap ADDRESS: functions of an executable without symbols" {
  local options names
  for options in -pie -no-pie; do
    gcc -w -O2 -fno-builtin "$options" -o own "$HEAPTAPE_SOURCE/tests/capture/entries_prefixed.c"
    names=$(addresses own own_malloc=malloc own_free=free)
    strip own
    record_options="--wrap $names" record ./own once
    [ ! -s err ]
    [ "$(awk '$5 == "malloc" && $7 == 501' lines | wc -l)" -eq 1000 ]
    [ "$(awk '$5 == "free"' lines | wc -l)" -ge 1000 ]
  done
  # Programs that the program executes have other code at the addresses.
  printf '#!/bin/sh\nexec ./own once\n' >script
  chmod +x script
  timeout 120 "$HEAPTAPE" record -f -o t.ht --wrap "$names" -- ./script 2>err
  grep -q "^heaptape: --wrap: the program has no function at 0x[0-9a-f]*, or it is a script (start the executable itself)$" err
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  [ "$(awk '$5 == "malloc" && $7 == 501' lines | wc -l)" -eq 0 ]
  timeout 120 "$HEAPTAPE" record -f -o t.ht --wrap 0x10=malloc,0x20=free -- ./own once 2>err
  grep -qx "heaptape: an allocator is not recorded: a function cannot be redirected: 0x[12]0 in .*own: the address is not in an executable segment" err
  run -2 "$HEAPTAPE" record --wrap 0x=malloc -o t.ht -- true
  run -2 "$HEAPTAPE" record --wrap 0x1g=malloc -o t.ht -- true
}
