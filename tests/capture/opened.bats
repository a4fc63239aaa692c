# heaptape record: allocators in libraries that the program opens, and C libraries of other
# namespaces.
load trace

# Plug-ins "exports" and "hides" with prefixed allocators on a pool, and "space" for dlmopen. Their
# function plug(N) makes N calls of each kind. "host N PLUG-IN..." opens, calls and closes them; a
# plug-in "@NAME" is opened in a namespace, and a plug-in "=NAME" in a namespace at the start. After
# "+", objects are loaded at least 3 GiB below the earlier ones. If the
# file "host.waits" exists, host opens them with N = 0 until the file "go" exists, and waits for
# "end" at the end.
setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  cat >pool.c <<'END'
#include "library_pool.h"
#pragma GCC visibility push(VISIBILITY)
CALLED void *MALLOC(size_t size) { return allocate(size); }
CALLED void *CALLOC(size_t n, size_t size) { return MALLOC(n * size); }
CALLED void FREE(void *p) { RELEASE(p); }
#pragma GCC visibility pop
static void *at_start;
__attribute__((constructor)) static void begin(void) { at_start = MALLOC(701); }
__attribute__((destructor)) static void end(void) { FREE(at_start); }
void plug(int n)
{
  for (int i = 0; i < n; i++) {
    FREE(MALLOC(702));
    FREE(CALLOC(3, 703));
  }
}
END
  cat >space.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_key_t key;
static void check(void)
{
  if (!pthread_getspecific(key)) return;
  fputs("the key has a value of another C library\n", stderr);
  abort();
}
static void *work(void *n)
{
  check();
  pthread_setspecific(key, malloc(801));
  for (int i = 0; i < *(int *)n; i++) free(realloc(calloc(3, 802), 803));
  return NULL;
}
void plug(int n)
{
  pthread_key_create(&key, free);
  check();
  if (!n) return;
  for (int i = 0; i < 20; i++) {
    pthread_t t;
    pthread_create(&t, NULL, work, &n);
    pthread_join(t, NULL);
  }
}
END
  cat >host.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int stop;
static void *busy(void *p) { while (!stop) { free(malloc(99)); usleep(100); } return p; }
static int waits(const char *name) { usleep(1000); return !access("host.waits", F_OK) && access(name, F_OK); }
static void *early;
static void *reserve(size_t bytes)
{
  return mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static void move_away(void)
{
  char *far = reserve(3ul << 30);
  while ((char *)reserve(65536) > far);
}
static void use(const char *path, int n)
{
  if (*path == '+') { move_away(); return; }
  void *h = *path == '=' ? early : *path == '@' ? dlmopen(LM_ID_NEWLM, path + 1, RTLD_NOW) : dlopen(path, RTLD_NOW);
  if (!h) { fprintf(stderr, "%s\n", dlerror()); exit(1); }
  ((void (*)(int))dlsym(h, "plug"))(n);
  if (h != early) dlclose(h);
}
int main(int n, char **argv)
{
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, busy, NULL);
  for (int i = 2; i < n; i++)
    if (argv[i][0] == '=') early = dlmopen(LM_ID_NEWLM, argv[i] + 1, RTLD_NOW);
  puts("ready");
  fflush(stdout);
  while (waits("go"))
    for (int i = 2; i < n && !access("open", F_OK); i++) use(argv[i], 0);
  for (int i = 2; i < n; i++) use(argv[i], atoi(argv[1]));
  puts("done");
  fflush(stdout);
  while (waits("end"));
  stop = 1;
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  return 0;
}
END
  local shared=(gcc -w -O2 -fno-builtin -fPIC -shared -I "$HEAPTAPE_SOURCE/tests/capture")
  "${shared[@]}" -DVISIBILITY=default -DMALLOC=mi_malloc -DCALLOC=mi_calloc -DFREE=mi_free pool.c -o exports.so
  "${shared[@]}" -DVISIBILITY=hidden -DMALLOC=_rjem_malloc -DCALLOC=_rjem_calloc -DFREE=_rjem_free pool.c -o hides.so
  "${shared[@]}" -pthread space.c -o space.so
  gcc -w -O2 -fno-builtin host.c -o host -pthread -ldl
}

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_FILE_TMPDIR" || return
  rm -f host.waits open go end out t.ht
}

teardown() {
  show_failure
  [ -z "${started:-}" ] || kill -9 "$started" 2>/dev/null || true
}

# record_host PLANS PLUG-IN...: first starts host with these plug-ins until there are PLANS plans,
# at most 100 times. A plan may be late only in these runs. Then records host, with $calls or 1000
# calls of each kind.
record_host() {
  export calls=${calls:-1000}
  # shellcheck disable=SC2016
  record sh -c 'wanted=$1; shift
    for attempt in $(seq 100); do
      [ "$(find "$HEAPTAPE_SPOOL" -name "plan-*" | wc -l)" -lt "$wanted" ] || break
      ./host 0 "$@"
    done
    ./host "$calls" "$@"' sh "$@"
}

# plans PID: prints the number of plans in the session directory of the process.
plans() {
  local spool
  spool=$(sed -n 's|.* \(/.*/[^/]*\)/session$|\1|p' "/proc/$1/maps" | head -n 1)
  find "$spool" -name "plan-*" | wc -l
}

has_plans() { [ "$(plans "$1")" -ge "$2" ]; }

# has COUNT KIND SIZE: succeeds if the trace has COUNT such calls.
has() {
  expect "$*" [ "$(awk -v kind="$2" -v size="$3" '$5 == kind && $7 == size' lines | wc -l)" -eq "$1" ]
}

# has_no_unknown_frees: each free of the last process belongs to a recorded allocation.
has_no_unknown_frees() {
  expect "no unknown frees" [ "$("$HEAPTAPE" stat --json t.ht | jq '[.processes[].unmatched_frees] | add')" -eq 0 ]
}

@test "libraries with prefixed allocators that the program opens, closes and opens again" {
  record_host 3 ./exports.so ./hides.so ./exports.so ./hides.so
  [ "$status" -eq 0 ]
  ! grep -v "calls its own malloc" err || false
  has 4000 malloc 702
  has 4000 calloc 703
  # Calls of the constructors, including those in the earlier runs.
  expect "calls of constructors" [ "$(awk '$5 == "malloc" && $7 == 701' lines | wc -l)" -ge 4 ]
  has_no_unknown_frees
}

@test "a library that the program opens more often than functions can be redirected" {
  local plugins
  # Each library has 3 functions, and at most 192 are redirected.
  read -ra plugins <<<"$(printf './exports.so %.0s' {1..40}) $(printf './exports.so ./hides.so %.0s' {1..30})"
  calls=5 record_host 3 "${plugins[@]}"
  [ "$status" -eq 0 ]
  ! grep -v "calls its own malloc" err || false
  has 500 malloc 702
  has 500 calloc 703
  has_no_unknown_frees
}

# A jump from an object does not reach the code that was added for an object far away.
@test "a library that the program closes and opens again far from its first address" {
  record_host 2 ./exports.so + ./exports.so
  [ "$status" -eq 0 ]
  ! grep -v "calls its own malloc" err || false
  has 2000 malloc 702
  has 2000 calloc 703
  has_no_unknown_frees
}

@test "a C library of another namespace: its calls in all threads, and its keys" {
  record_host 2 @./space.so
  cat told
  [ "$status" -eq 0 ]
  ! grep -v "calls its own malloc" err || false
  has 20000 calloc 802
  has 20000 realloc 803
  has_no_unknown_frees
  expect "ends of threads" [ "$(awk '$5 == "thread.end"' lines | wc -l)" -ge 20 ]
}

@test "a library that is opened while the recorder does not answer: a line with its name" {
  # The parent of the shell is the recorder.
  # shellcheck disable=SC2016
  record sh -c 'kill -STOP $PPID; ./host 10 ./exports.so; status=$?; kill -CONT $PPID; exit $status'
  [ "$status" -eq 0 ]
  has 0 malloc 702
  [ "$("$HEAPTAPE" stat --json t.ht | jq -r '[.processes[].bypassed_by // empty] | join(" ")')" = ./exports.so ]
}

# record_attached PLANS PLUG-IN...: records host from before the calls. Waits for this number of plans
# first.
record_attached() {
  skip_without_ptrace
  touch host.waits
  ./host 1000 "${@:2}" >out 3>&- &
  started=$!
  wait_until grep -qsx ready out
  "$HEAPTAPE" record -f -o t.ht --pid "$started" 2>err 3>&- &
  local recorder=$!
  wait_until maps_heaptape "$started"
  wait_until "$HEAPTAPE" ctl "$started" status
  touch open
  wait_until has_plans "$started" "$1"
  touch go
  wait_until grep -qsx "done" out
  "$HEAPTAPE" ctl "$started" detach
  wait "$recorder" || true
  cat err
  "$HEAPTAPE_PROGRAMS/trace_lines" t.ht >lines
  touch end
  wait "$started"
  started=
}

@test "record --pid: libraries and namespaces that are opened after the attach" {
  record_attached 3 ./exports.so ./hides.so @./space.so
  expect "calls of constructors" [ "$(awk '$5 == "malloc" && $7 == 701' lines | wc -l)" -ge 2 ]
  has 2000 malloc 702
  has 2000 calloc 703
  has 20000 calloc 802
  has 20000 realloc 803
}

@test "record --pid: a namespace that exists before the attach" {
  record_attached 0 =./space.so
  has 20000 calloc 802
  has 20000 realloc 803
}
