# record --pid: functions that are redirected at their entries.
load trace

setup() {
  # Functions begin with an instruction at which indirect jumps may land.
  landing=-fcf-protection=full
  [ "$(uname -m)" = x86_64 ] || landing=-mbranch-protection=standard
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  skip_without_ptrace
}

teardown() {
  show_failure
  [ -z "${started:-}" ] || kill -9 "$started" 2>/dev/null || true
}

until_line() {
  wait_until grep -qsx "$1" out || { cat out; return 1; }
}

# begin_own: starts ./own, and waits until it is ready. end_own lets it end.
begin_own() {
  ./own >out 3>&- &
  started=$!
  until_line ready
}

end_own() {
  touch end
  wait "$started"
  started=
}

# record_while_it_calls OPTION...: attaches to $started, creates the file `go`, waits for the line `done` in
# `out`, and detaches.
record_while_it_calls() {
  "$HEAPTAPE" record -f -o t.ht --pid "$started" "$@" 2>err 3>&- &
  local recorder=$!
  wait_until maps_heaptape "$started"
  wait_until "$HEAPTAPE" ctl "$started" status
  touch go
  until_line done
  "$HEAPTAPE" ctl "$started" detach
  wait "$recorder" || true
  cat err
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  rm -f go
}

# has COUNT KIND SIZE [COUNT_OF_ELEMENTS]: succeeds if the trace has COUNT such events.
has() {
  expect "$*" [ "$(awk -v kind="$2" -v size="$3" '$5 == kind && $7 == size' lines | wc -l)" -eq "$1" ]
}

@test "an allocator in the executable: every call once, and no calls of its functions to each other" {
  local options
  # With the last set of options, the program has no dynamic symbols.
  for options in -no-pie "-pie -fPIE" "$landing" "-O0 -fvisibility=hidden"; do
    # shellcheck disable=SC2086
    gcc -O2 -w -fno-builtin $options -o own "$HEAPTAPE_SOURCE/tests/capture/entries_own.c"
    begin_own
    record_while_it_calls
    ! grep -E "loader's tables|own malloc" err || false
    has 1000 malloc 777
    has 1000 calloc 111
    has 1000 realloc 888
    has 1000 posix_memalign 999
    has 1000 aligned_alloc 640
    expect "nothing else" [ "$(awk '$5 ~ /alloc|memalign/' lines | wc -l)" -le 5010 ]
    expect "frees" [ "$(awk '$5 == "free" && $6 != "0x0"' lines | wc -l)" -ge 3000 ]
    end_own
    rm -f end go out
  done
}

@test "an executable with free memory only above it, far away" {
  # Occupies 64 MiB around the executable, and each multiple of 2 MiB in the 2.1 GiB before it.
  cat >fill.c <<'END'
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
extern char __executable_start[], end[];
enum { PAGE = 4096, STEP = 1 << 21, NEAR = 64 << 20, BELOW = 1100 };
static void occupy(uintptr_t at)
{
  mmap((void *)at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}
__attribute__((constructor)) static void fill(void)
{
  uintptr_t start = (uintptr_t)__executable_start & -(uintptr_t)STEP;
  for (uintptr_t at = (uintptr_t)__executable_start - NEAR; at < (uintptr_t)end + NEAR; at += PAGE) occupy(at);
  for (unsigned i = 0; i < BELOW; i++) occupy(start - (uintptr_t)i * STEP);
}
END
  gcc -O2 -w -fno-builtin -pie -fPIE -o own fill.c "$HEAPTAPE_SOURCE/tests/capture/entries_own.c"
  begin_own
  record_while_it_calls
  ! grep -E "loader's tables|own malloc" err || false
  has 1000 malloc 777
  end_own
}

@test "an allocator whose exported functions only jump to its code" {
  local name defines=() jump=jmp
  [ "$(uname -m)" = x86_64 ] || jump=b
  for name in malloc free calloc realloc memalign aligned_alloc posix_memalign; do
    printf '.globl %s\n.type %s, @function\n%s: %s own_%s\n.size %s, . - %s\n' "$name" "$name" "$name" "$jump" "$name" "$name" "$name"
    defines+=("-D$name=own_$name")
  done >jumps.s
  gcc -O2 -w -fno-builtin -rdynamic "${defines[@]}" -o own "$HEAPTAPE_SOURCE/tests/capture/entries_own.c" jumps.s
  begin_own
  record_while_it_calls
  ! grep -E "loader's tables|own malloc" err || false
  has 1000 malloc 777
  has 1000 realloc 888
  end_own
  expect "its own allocator" [ "$("$HEAPTAPE" stat --json t.ht | jq -r '.processes[0].allocator.library')" = "$PWD/own" ]
}

@test "allocators with prefixes and other orders of arguments, and more functions in a second attach" {
  gcc -w -O2 -fno-builtin -o own "$HEAPTAPE_SOURCE/tests/capture/entries_prefixed.c"
  begin_own
  run -125 "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 1
  [ "$output" = "heaptape: ./own: nothing was recorded: the program did not call the malloc API" ]
  record_while_it_calls --wrap own_malloc=malloc,own_free=free
  ! grep -E "loader's tables|own malloc" err || false
  has 1000 aligned_alloc 201
  has 1000 realloc 202
  has 1000 free_sized 202
  has 1000 aligned_alloc 301
  has 1000 realloc 303
  has 1000 realloc 103
  has 1000 realloc 203
  has 1000 malloc 401
  has 1000 malloc 501
  has 0 malloc 502
  expect "frees" [ "$(awk '$5 == "free"' lines | wc -l)" -ge 5000 ]
  end_own
  rm -f end go out

  begin_own
  record_while_it_calls --wrap "own_malloc=malloc,second_malloc=malloc,second_free=free,own_free=free,own_new_aligned=new(align),own_delete_sized=_ZdlPvm"
  ! grep -E "loader's tables|own malloc" err || false
  has 1000 malloc 501
  has 1000 malloc 502
  has 1000 "new(align)" 503
  has 1000 "delete(size)" 503
  expect "frees" [ "$(awk '$5 == "free"' lines | wc -l)" -ge 6000 ]
  end_own
}

@test "an allocator beside libc's malloc: figures for each" {
  gcc -w -O2 -fno-builtin -o own "$HEAPTAPE_SOURCE/tests/capture/entries_heaps.c"
  begin_own
  record_while_it_calls
  expect "figures" [ "$(heaps t.ht)" = "malloc 99 50 750000 0
mimalloc 111 100 1000000 900000
1" ]
  end_own
}

@test "an allocator without dynamic symbols that cannot be redirected: a line with the reason" {
  short_function free '.hidden free'
  gcc -w -fno-builtin -Os -fvisibility=hidden -Dfree=own_free -o own "$HEAPTAPE_SOURCE/tests/capture/entries_own.c" short.s
  begin_own
  run -125 "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 1
  echo "$output"
  [ "$output" = "heaptape: ./own: nothing was recorded: the functions of its own malloc cannot be redirected: free: the function is shorter than a jump" ]
  # libc's malloc is recorded, for fopen.
  record_while_it_calls
  expect "a note" grep -qx "heaptape: the program's own malloc is not recorded: its functions cannot be redirected: free: the function is shorter than a jump" err
  has 0 malloc 777
  end_own
}

@test "an object that is loaded after the attach, and pointers stored before" {
  cat >plug.c <<'END'
#include <stdlib.h>
void *plug(size_t n) { char *p = malloc(n); if (p) *p = 1; return p; }
void unplug(void *p) { free(p); }
END
  cat >main.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
struct table { void *(*allocate)(size_t); void (*release)(void *); };
int main(void)
{
    struct table *t = malloc(sizeof *t);
    t->allocate = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
    t->release = (void (*)(void *))dlsym(RTLD_DEFAULT, "free");
    write(1, "ready\n", 6);
    while (access("go", F_OK) != 0)
        usleep(1000);
    void *h = dlopen("./plug.so", RTLD_NOW);
    void *(*plug)(size_t) = (void *(*)(size_t))dlsym(h, "plug");
    void (*unplug)(void *) = (void (*)(void *))dlsym(h, "unplug");
    for (int i = 0; i < 1000; i++) {
        unplug(plug(777));
        t->release(t->allocate(888));
    }
    write(1, "done\n", 5);
    while (access("end", F_OK) != 0)
        usleep(1000);
    return 0;
}
END
  gcc -w -O1 -fPIC -shared -fno-builtin -o plug.so plug.c
  gcc -w -O1 -fno-builtin -o main main.c -ldl
  ./main >out 3>&- &
  started=$!
  until_line ready
  record_while_it_calls
  has 1000 malloc 777
  has 1000 malloc 888
  "$HEAPTAPE" convert -q -f t.ht -o t.htw
  "$HEAPTAPE" check -q t.htw
  end_own
}

@test "Lua, zlib and libcurl, which call pointers that the program stored before" {
  gcc -w -O1 -fno-builtin -I/usr/include/lua5.4 -o own "$HEAPTAPE_SOURCE/tests/capture/given_pointers.c" \
    -llua5.4 -lz -lcurl || skip "libcurl, Lua 5.4 or zlib is not installed"
  begin_own
  record_while_it_calls
  expect "no tables" [ "$(grep -c "loader's tables" err)" -eq 0 ]
  # The program has printed the counts of a round before the attach, too.
  tail -n 5 out | head -n 4 | sort >want
  awk '$5 != "free" || $6 != "0" { n[$5]++ } END { for (kind in n) print kind, n[kind] }' lines | sort >recorded
  diff want recorded
  end_own
}

# A program that has changed the first byte of a function of libc, like a debugger or another tool.
hooked() {
  cat >hooked.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    volatile unsigned char *at = (unsigned char *)pvalloc;
    unsigned long page = (unsigned long)at & ~4095ul;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 1;
    at[0] = 0xcc;
    mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
    write(1, "ready\n", 6);
    while (access("go", F_OK) != 0)
        usleep(1000);
    for (int i = 0; i < 1000; i++)
        free(malloc(777));
    write(1, "done\n", 5);
    while (access("end", F_OK) != 0)
        usleep(1000);
    return at[0] == 0xcc ? 0 : 2;
}
END
  gcc -w -O1 -fno-builtin -fno-plt -Wl,-z,now -o hooked hooked.c
}

@test "a function that another tool has changed: recorded through the tables, with a note" {
  hooked
  ./hooked >out 3>&- &
  started=$!
  until_line ready
  record_while_it_calls
  expect "one note" [ "$(grep -Ec "^heaptape: some functions are recorded through the loader's tables, so calls through stored pointers are not recorded: .+ \(to record all calls, start the program with 'heaptape record'\)$" err)" -eq 1 ]
  has 1000 malloc 777
  end_own
}

@test "repeatedly, with threads that allocate, fork and load objects all the time" {
  local rounds=${HEAPTAPE_TEST_ROUNDS:-3} i status=0
  "$HEAPTAPE_PROGRAMS/service" 16 forks "$HEAPTAPE_PROGRAMS/libservice_library.so" >out 3>&- &
  started=$!
  until_line ready
  for ((i = 0; i < rounds; i++)); do
    timeout 120 "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 1 2>err 3>&-
    cat err
    ! grep -q "loader's tables" err || false
    "$HEAPTAPE_PROGRAMS/trace_lines" -s "$started" t.ht
  done
  kill -USR1 "$started"
  wait "$started" || status=$?
  started=
  cat out
  [ "$status" -eq 0 ]
}

@test "the attaching process is killed at any moment of the first attach: the program continues" {
  [ -e "/proc/$$/task/$$/children" ] || skip "the kernel does not list the children of a thread"
  local kills=${HEAPTAPE_TEST_KILLS:-15} i status recorder child children
  for ((i = 0; i < kills; i++)); do
    rm -f out
    "$HEAPTAPE_PROGRAMS/service" 4 >out 3>&- &
    started=$!
    until_line ready
    "$HEAPTAPE" record -q -f -o t.ht --pid "$started" 2>err 3>&- &
    recorder=$!
    children=/proc/$recorder/task/$recorder/children child=
    while [ -z "$child" ] && [ -e "$children" ] && ! maps_heaptape "$started"; do
      read -r child _ <"$children" || true
    done
    sleep "0.0$((RANDOM % 2))$((RANDOM % 10))"
    [ -z "$child" ] || kill -9 "$child" || true
    sleep 0.05
    kill "$recorder" || true
    wait "$recorder" || true
    status=0
    kill -USR1 "$started"
    wait "$started" || status=$?
    started=
    [ "$status" -eq 0 ]
  done
}

@test "the recorder is killed at any moment of the first attach: the program continues" {
  local kills=${HEAPTAPE_TEST_KILLS:-10} i status recorder
  for ((i = 0; i < kills; i++)); do
    rm -f out
    "$HEAPTAPE_PROGRAMS/service" 4 >out 3>&- &
    started=$!
    until_line ready
    "$HEAPTAPE" record -q -f -o t.ht --pid "$started" 3>&- &
    recorder=$!
    sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
    kill -9 "$recorder"
    wait "$recorder" || true
    sleep 0.1
    status=0
    kill -USR1 "$started"
    wait "$started" || status=$?
    started=
    [ "$status" -eq 0 ]
  done
}

@test "the recorder is killed during the second attach: the library is not loaded again" {
  [ -e "/proc/$$/task/$$/children" ] || skip "the kernel does not list the children of a thread"
  local recorder child=
  "$HEAPTAPE_PROGRAMS/service" 4 >out 3>&- &
  started=$!
  until_line ready
  "$HEAPTAPE" record -q -f -o t.ht --pid "$started" --duration 0.1
  "$HEAPTAPE" record -q -f -o t.ht --pid "$started" 3>&- &
  recorder=$!
  while [ -z "$child" ] && kill -0 "$recorder"; do
    read -r child _ <"/proc/$recorder/task/$recorder/children" || true
  done
  # The attaching process notices that it has no recorder only when the library cannot join.
  kill -STOP "$child"
  kill -9 "$recorder"
  wait "$recorder" || true
  kill -CONT "$child"
  has_ended() { [ -z "$(grep -s '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$child/status")" ]; }
  wait_until has_ended
  [ "$(grep -c ' r-xp .*[/:]libheaptape[^/]*$' "/proc/$started/maps")" -eq 1 ]
  # A second copy would find the jumps of the first one, and could use only the loader's tables.
  "$HEAPTAPE" record -f -o t.ht --pid "$started" --duration 0.1 2>err
  cat err
  [ -z "$(grep "loader's tables" err)" ]
  kill -USR1 "$started"
  wait "$started"
  started=
}

# code_of PID: prints the first bytes of malloc, free and _dl_debug_state in the memory of the process.
code_of() {
  python3 - "$1" <<'END'
import re, subprocess, sys
with open(f"/proc/{sys.argv[1]}/mem", "rb") as memory:
    for name, file in ("malloc", "libc.so"), ("free", "libc.so"), ("_dl_debug_state", "ld-linux"):
        line = next(l for l in open(f"/proc/{sys.argv[1]}/maps") if file in l)
        symbols = subprocess.run(["nm", "-D", line.split()[5]], stdout=subprocess.PIPE, text=True).stdout
        offset = re.search(rf"^(\w+) \w {name}@", symbols, re.M)[1]
        memory.seek(int(line.split("-")[0], 16) + int(offset, 16))
        print(name, memory.read(16).hex())
END
}

@test "a detach restores the code of the functions, and the next attach records all calls" {
  "$HEAPTAPE_PROGRAMS/service" 3 >out 3>&- &
  started=$!
  until_line ready
  code_of "$started" >before
  local round
  for round in 1 2 3; do
    "$HEAPTAPE" record -q -f -o t.ht --pid "$started" --duration 1 2>err 3>&-
    code_of "$started" >after
    expect "restored code after round $round" diff before after
    "$HEAPTAPE_PROGRAMS/trace_lines" -s "$started" t.ht
    expect "no unknown functions" [ ! -s err ]
  done
  kill -USR1 "$started"
  wait "$started"
  started=
}
