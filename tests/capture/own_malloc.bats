# heaptape record: programs that define an allocator in their executable.
load trace

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  [ "$(uname -m)" = x86_64 ] || skip "heaptape redirects functions on x86-64 only"
}

# build OPTION...: builds entries_own.c as ./own.
build() {
  gcc -w -fno-builtin -o own "$@" "$HEAPTAPE_SOURCE/tests/capture/entries_own.c"
}

# has COUNT KIND SIZE: each of three processes made so many calls.
has() {
  expect "$*" [ "$(awk -v kind="$2" -v size="$3" '$5 == kind && $7 == size { n[$2]++ }
    END { for (i in n) print n[i] }' lines | paste -sd ' ')" = "$1 $1 $1" ]
}

# unseen: prints the number of processes whose own malloc was not recorded.
unseen() {
  "$HEAPTAPE" stat --json t.ht | jq '[.processes[].bypassed_by // empty] | length'
}

# records_all: ./own, its fork child and the program that it executes have all calls in the trace,
# and no calls of its functions to each other.
records_all() {
  record ./own tree
  [ "$status" -eq 0 ]
  [ ! -s told ]
  expect "no missing calls" [ "$(unseen)" -eq 0 ]
  has 1000 malloc 777
  has 1000 calloc 111
  has 1000 realloc 888
  has 1000 posix_memalign 999
  has 1000 aligned_alloc 640
  # The calls of calloc, realloc and aligned_alloc to malloc, and of malloc to memalign.
  expect "nested calls" [ "$(awk '$5 == "memalign" || ($5 == "malloc" && ($7 == 333 || $7 == 888 || $7 == 704))' lines | wc -l)" -eq 0 ]
  "$HEAPTAPE" convert -q -f --strict t.ht -o t.htw
  "$HEAPTAPE" check -q t.htw
}

@test "an allocator in the executable: all calls of a started program, its fork and its exec" {
  local options
  for options in -O2 "-O2 -no-pie" "-O0 -fcf-protection=full"; do
    # shellcheck disable=SC2086
    build $options
    records_all
  done
  # Sites of the calls: three frames.
  record_options="--stacks=3" record ./own once
  [ "$("$HEAPTAPE" stat --json --by site t.ht | jq '[.sites[].frames | length] | max')" -eq 3 ]
}

@test "an allocator whose functions are not dynamic symbols" {
  build -O2 -fvisibility=hidden
  ! nm -D own | grep -q " T malloc" || false
  records_all
}

@test "allocators with prefixes and other orders of arguments" {
  gcc -w -O2 -fno-builtin -o own "$HEAPTAPE_SOURCE/tests/capture/entries_prefixed.c"
  record ./own once
  [ "$status" -eq 0 ]
  awk '{ n[$5 " " $7 " " $9]++ } END { for (i in n) if (n[i] >= 100) print i, n[i] }' lines | sort >counts
  cat counts
  # Kind, size, alignment, count. The calls of _rjem_calloc to _rjem_malloc, and of _rjem_rallocx to
  # _rjem_mallocx, are not events.
  [ "$(cat counts)" = "aligned_alloc 201 64 1000
aligned_alloc 301 64 1000
calloc 101 0 1000
free 0 0 4000
free_sized 202 0 1000
malloc 302 0 1000
malloc 401 0 1000
realloc 202 0 1000
realloc 303 0 1000" ]
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
int main()
{
  int caught = 0;
  for (int i = 0; i < 10; i++) {
    try { operator new(1 << 22); } catch (std::bad_alloc &) { caught++; }
  }
  for (int i = 0; i < 100; i++) operator delete(operator new(77));
  return caught != 10;
}
END
  g++ -w -O2 -fno-builtin -o own own.cc
  record ./own
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
}

@test "a program without an allocator does not wait, and asks for no plan" {
  printf 'int main(void) { return 0; }\n' >none.c
  gcc -g -o none none.c
  # 1,000 symbols, and names that end with malloc.
  printf 'void *malloc_%d(void) { return 0; }\n' $(seq 1000) >>none.c
  printf 'void *xmalloc(void) { return 0; }\n' >>none.c
  gcc -g -o none none.c
  command -v strace >/dev/null || skip "no strace"
  record strace -f -o calls -e trace=openat,clock_nanosleep,nanosleep ./none
  [ "$status" -eq 0 ]
  grep -q /proc/self/exe calls
  ! grep -E "plan-|nanosleep" calls || false
}
