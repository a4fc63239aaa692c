load ../helper

json() {
  python3 -c "import json,sys; d=json.load(open('out.json')); $1"
}

@test "a table in text" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 100000 >/dev/null
  heaptape compare -q -a glibc -a "glibc,MALLOC_ARENA_MAX=1" -r 2 w.htw
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  has "${lines[0]}" "w.htw: 120 000 calls, 1 thread"
  has "${lines[1]}" "allocator"
  has "${lines[1]}" "p99 malloc"
  has "${lines[2]}" "glibc"
  has "${lines[4]}" "memory cannot be judged, because the allocator of the recording is not known"
  has "${lines[5]}" "2 runs each"
  has "$output" "process      its peak RSS is not predicted: the workload has no samples of the program's memory"
  [[ "$output" =~ "placement    the best one found needs "[0-9.]+" KiB; glibc "[0-9.]+" KiB, glibc,MALLOC_ARENA_MAX=1 "[0-9.]+" KiB; live bytes alone "[0-9.]+" KiB" ]]
  has "$output" "found offline without moving blocks; an optimal placement may need less"
  heaptape compare -q --placement never --no-latency -a glibc -a glibc -r 1 w.htw
  [[ "$output" != *placement* ]]
}

@test "the search of a placement is left out of a workload with over 4 million calls" {
  "$HEAPTAPE_PROGRAMS/make_workload" big.htw churn 1 4000000 >/dev/null
  heaptape compare -q --no-latency --no-cache --touch none -a glibc -a glibc -r 1 big.htw
  has "$output" "placement    not searched: the workload has many calls (--placement always)"
}

@test "--json has each allocator, with ratios" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 200000 >/dev/null
  "$HEAPTAPE" compare -q --json -r 5 -a glibc -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw >out.json
  json 'assert d["workload"] == "w.htw"
a, b = d["allocators"]
assert a["allocator"]["name"] == "glibc" and b["allocator"]["name"] == "libtest-verify.so"
assert a["wall_ratio"] == 1 and a["rss_ratio"] == 1
assert a["wall_ratio_ci95"][0] <= 1 <= a["wall_ratio_ci95"][1]
# An allocator that never reuses memory needs more memory.
assert b["rss_ratio"] > 3 and 3 < b["rss_ratio_ci95"][0] <= b["rss_ratio"] <= b["rss_ratio_ci95"][1]
assert abs(b["wall_ratio"] - b["wall_ns"] / a["wall_ns"]) < 0.001 * b["wall_ratio"]
assert len(a["runs"]) == len(b["runs"]) == 5
assert a["calls"]["malloc"]["count"] == b["calls"]["malloc"]["count"] == 110000
assert a["timeline"] and b["timeline"]
assert a["process_timeline"] == [] and a["process_peak_rss_bytes"] is None and a["process_rss_ratio"] is None
p = a["placement"]
assert p == b["placement"] and a["placement_missing_reason"] is None and p["best_allocator"] is None, p
assert p["live_bytes"] <= p["found_bytes"] == p["best_bytes"] <= a["peak_rss_bytes"] < b["peak_rss_bytes"], p'
}

@test "runs of the allocators alternate" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  cc -shared -fPIC -o one.so -xc - <<'END'
#include <stdlib.h>
#include <unistd.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
__attribute__((destructor)) static void end(void) { const char *name = getenv("WHO"); if (write(2, name, 1) < 0) _exit(1); }
END
  "$HEAPTAPE" compare -q --no-latency -r 3 -a ./one.so,WHO=A -a ./one.so,WHO=B w.htw >/dev/null 2>said
  [ "$(cat said)" = ABABAB ]
}

@test "a sweep of a tunable" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw leave 1 300 >/dev/null
  cc -shared -fPIC -o waste.so -xc - <<'END'
#include <stdlib.h>
#include <string.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
static size_t waste;
__attribute__((constructor)) static void init(void) { if (getenv("WASTE")) waste = strtoul(getenv("WASTE"), 0, 0); }
void *__libc_memalign(size_t, size_t); void *memalign(size_t a, size_t n) { return __libc_memalign(a, n); }
void *malloc(size_t n) { char *p = __libc_malloc(n + waste); memset(p, 1, n + waste); return p; }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
END
  "$HEAPTAPE" compare -q --json --no-latency -r 2 -a ./waste.so --sweep WASTE=0,100000,200000 w.htw >out.json
  json 'a = d["allocators"]
assert [x["allocator"]["tunables"] for x in a] == [["WASTE=0"], ["WASTE=100000"], ["WASTE=200000"]], a
assert a[0]["peak_rss_bytes"] + 3e6 < a[1]["peak_rss_bytes"] and a[1]["peak_rss_bytes"] + 3e6 < a[2]["peak_rss_bytes"]
assert a[2]["rss_ratio"] > a[1]["rss_ratio"] > a[0]["rss_ratio"] == 1'
  "$HEAPTAPE" compare -q --json --no-latency -r 1 -a glibc -a ./waste.so,X=y --sweep A=1,2 --sweep B=3,4 w.htw >out.json
  json 'assert [(x["allocator"]["name"], *x["allocator"]["tunables"]) for x in d["allocators"]] == [
  ("glibc", "A=1", "B=3"), ("glibc", "A=1", "B=4"), ("glibc", "A=2", "B=3"), ("glibc", "A=2", "B=4"),
  ("waste.so", "X=y", "A=1", "B=3"), ("waste.so", "X=y", "A=1", "B=4"), ("waste.so", "X=y", "A=2", "B=3"),
  ("waste.so", "X=y", "A=2", "B=4")]'
  # Two equal settings may seem to differ, by chance or because the machine is busy.
  for _ in 1 2 3; do
    heaptape compare -q --no-latency -r 5 --sweep MALLOC_ARENA_MAX=1,2 w.htw
    [ "$status" -eq 0 ]
    echo "$output"
    [[ "${lines[4]}" != *"no difference"* ]] || break
  done
  has "${lines[3]}" "glibc,MALLOC_ARENA_MAX=1 "
  has "${lines[4]}" "glibc,MALLOC_ARENA_MAX=2 "
  has "${lines[4]}" "no difference"
}

@test "a sweep of a tunable of glibc sets GLIBC_TUNABLES" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw leave 1 300 >/dev/null
  heaptape compare -q --json --no-latency -r 1 --sweep glibc.malloc.tcache_count=0,7 \
    --sweep glibc.malloc.top_pad=0 -a glibc w.htw
  echo "$output" >out.json
  json 'assert [x["allocator"]["tunables"] for x in d["allocators"]] == [
  ["GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.top_pad=0"],
  ["GLIBC_TUNABLES=glibc.malloc.tcache_count=7:glibc.malloc.top_pad=0"]]'
  heaptape compare --sweep GLIBC_TUNABLES=glibc.malloc.tcache_count=0,7 w.htw
  fails_with 1 "glibc: the tunable '7' is not glibc.NAME=VALUE"
}

@test "tunables that an allocator does not read are reported once" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw leave 1 300 >/dev/null
  heaptape compare --no-latency -r 1 -a glibc,LABEL=a --sweep MALLOC_ARENA_MAX_=1,2 --sweep glibc.malloc.check=0,1 w.htw
  [ "$status" -eq 0 ]
  [ "$(grep -c "glibc does not read the tunable MALLOC_ARENA_MAX_: correct or remove the tunable" <<<"$stderr")" -eq 1 ]
  heaptape compare --no-latency -r 1 -a glibc -a glibc,GLIBC_TUNABLES=glibc.malloc.arenas=1 w.htw
  has "$stderr" "glibc does not read the tunable glibc.malloc.arenas"
  heaptape record -a glibc,MALLOC_CHECK=3 -o a.ht -- true
  has "$stderr" "glibc does not read the tunable MALLOC_CHECK:"
}

@test "a sweep without values is a usage error" {
  for sweep in NAME NAME= =1 N=, N=1, N=1,,2; do
    heaptape compare --sweep $sweep w.htw
    usage_fails "--sweep $sweep: expected VARIABLE=VALUE,VALUE..."
  done
  heaptape compare --sweep A=1 --sweep B=1 --sweep A=2 w.htw
  usage_fails "--sweep A is given twice; separate its values with commas"
}

@test "an HTML report on standard output is a usage error" {
  heaptape compare -a glibc -a jemalloc -o - w.htw
  usage_fails "-o -: standard output already has the results"
}

@test "one allocator is a usage error" {
  heaptape compare -a glibc w.htw
  usage_fails "at least two allocators (-a)"
}

@test "an allocator that fails is named, and the others are compared" {
  local bogus=$HEAPTAPE_PROGRAMS/libtest-bogus.so
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  # Crashes in the second run, and in each run with CRASH.
  cat >crash.c <<'END'
#include "replay/libc_allocator.h"
#include <fcntl.h>
#include <stdlib.h>
FORWARD_CALLOC
FORWARD_REALLOC
FORWARD_FREE
static int crashes;
__attribute__((constructor)) static void init(void)
{
    crashes = getenv("CRASH") || open("ran", O_WRONLY | O_CREAT | O_EXCL, 0600) < 0;
}
EXPORT void *malloc(size_t size)
{
    if (crashes && size > 16)
        abort();
    return __libc_malloc(size);
}
END
  gcc -shared -fPIC -fno-builtin -I "$HEAPTAPE_SOURCE/tests" -o crash.so crash.c
  heaptape compare -q --no-latency -r 2 -a ./crash.so,CRASH=1 -a glibc -a ./crash.so -a "$bogus" -a glibc,MALLOC_ARENA_MAX=1 w.htw
  [ "$status" -eq 1 ]
  [[ "${lines[2]}" =~ ^glibc\ .*\ ns\ .*\ 1\  ]]
  has "${lines[3]}" "glibc,MALLOC_ARENA_MAX=1 "
  [[ "$output" != *crash* && "$output" != *bogus* ]]
  [ "${#stderr_lines[@]}" -eq 3 ]
  has "${stderr_lines[0]}" "heaptape: crash.so,CRASH=1: ended by signal 6 (Aborted)"
  has "${stderr_lines[1]}" "heaptape: libtest-bogus.so: malloc is not from"
  has "${stderr_lines[2]}" "heaptape: crash.so: ended by signal 6 (Aborted)"
  rm ran
  heaptape compare -q --no-latency -r 2 --json -a glibc -a ./crash.so -o page.html w.htw
  [ "$status" -eq 1 ]
  echo "$output" >out.json
  json 'assert [a["allocator"]["name"] for a in d["allocators"]] == ["glibc"]
failed, = d["failed_allocators"]
assert failed["name"] == "crash.so" and failed["tunables"] == [] and "signal 6" in failed["error"], failed'
  "$HEAPTAPE" check page.html
  heaptape compare -q --no-latency -r 1 -a ./crash.so,CRASH=1 -a "$bogus" w.htw
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  has "$stderr" "crash.so,CRASH=1: ended by signal 6" "libtest-bogus.so: malloc is not from"
}

@test "fewer than five runs have no interval, so no difference is claimed or denied" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 20000 >/dev/null
  for runs in 1 4; do
    heaptape compare -q --no-latency -r $runs -a glibc -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw
    [ "$status" -eq 0 ]
    [[ "${lines[3]}" =~ ^libtest-verify.so\ .*\ [0-9]+\.[0-9][0-9]\  ]]
    [ "$(grep -cE '[0-9] \[[0-9]|no difference' <<<"$output")" -eq 0 ]
    "$HEAPTAPE" compare -q --json --no-latency -r $runs -a glibc -a glibc w.htw >out.json
    json 'assert all(a[k] is None for a in d["allocators"] for k in ("wall_ratio_ci95", "rss_ratio_ci95")), d["allocators"]'
  done
  heaptape compare -q --no-latency -a glibc -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw
  [[ "${lines[3]}" =~ \[[0-9]+\.[0-9][0-9],\ [0-9]+\.[0-9][0-9]\] ]]
}

@test "--color: headings are bold, worse is red and better is green" {
  local bold=$'\033[1m' red=$'\033[31m' green=$'\033[32m'
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 1 1000 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" b.htw churn 1 2000 >/dev/null
  heaptape report --diff --color=always a.htw b.htw
  [ "$(grep -cF "$bold" <<<"$output")" -eq 1 ]
  has "$(grep '^requested' <<<"$output")" "$red"
  [ "$(grep -cF "$green" <<<"$output")" -eq 0 ]
  heaptape report --diff --color=always b.htw a.htw
  has "$(grep '^requested' <<<"$output")" "$green"
  [ "$(grep -cF "$red" <<<"$output")" -eq 0 ]
  heaptape report --diff --color=always a.htw a.htw
  [ "$(grep -cF -e "$red" -e "$green" <<<"$output")" -eq 0 ]
  # Without escape sequences, the text is the same.
  "$HEAPTAPE" report --diff a.htw b.htw >plain
  "$HEAPTAPE" report --diff --color=always a.htw b.htw | sed 's/\x1b\[[0-9]*m//g' >stripped
  cmp plain stripped
  [ "$(grep -c $'\033' plain)" -eq 0 ]
  # An allocator that never reuses memory.
  heaptape compare -q --no-latency --color=always -a glibc -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" b.htw
  has "${lines[1]}" "${bold}allocator"
  has "${lines[3]}" "$red"
  heaptape stat -v --color=always a.htw
  has "$output" "${bold}       pid"
}

@test "--color=auto: on a terminal, unless NO_COLOR is set" {
  "$HEAPTAPE_PROGRAMS/make_workload" a.htw churn 1 1000 >/dev/null
  "$HEAPTAPE_PROGRAMS/make_workload" b.htw churn 1 2000 >/dev/null
  on_terminal 80 env TERM=xterm "$HEAPTAPE" report -q --diff a.htw b.htw >out
  grep -qF $'\033[31m' out
  on_terminal 80 env TERM=xterm NO_COLOR=1 "$HEAPTAPE" report -q --diff a.htw b.htw >out
  grep -qF requested out
  [ "$(grep -cF $'\033' out)" -eq 0 ]
}

@test "a page that cannot be written is reported before the replays" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  heaptape compare -q -r 1 -a glibc -a glibc,MALLOC_ARENA_MAX=1 -o missing/page.html w.htw
  fails_with 1 "missing/page.html" ": cannot create: No such file or directory"
  [[ "$output$stderr" != *.tmp-* ]]
  [[ "$output" != *"peak live"* ]]
  echo kept >page.html
  heaptape compare -q -r 1 -a glibc -a glibc,MALLOC_ARENA_MAX=1 -o page.html w.htw
  fails_with 1 "page.html: exists; use -f to replace it"
  [ "$(cat page.html)" = kept ]
  heaptape compare -q -r 1 -a glibc -a glibc,MALLOC_ARENA_MAX=1 -f -o page.html w.htw
  [ "$status" -eq 0 ]
  grep -q "<html" page.html
}

@test "--real also runs the program itself on each allocator" {
  skip_under_sanitizer
  cat >uses.c <<'END'
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// Returns how often the parent has slept.
static long sleeps(void)
{
    static char text[8192];
    snprintf(text, sizeof text, "/proc/%d/status", getppid());
    int fd = open(text, O_RDONLY);
    text[read(fd, text, sizeof text - 1)] = 0;
    close(fd);
    return atol(strstr(text, "\nvoluntary_ctxt_switches:") + 25);
}
int main(int argc, char **argv)
{
    size_t size = 1 << 20;
    for (int i = 0; i < 24; i++)
        memset(malloc(size), 1, size);
    // heaptape reads the memory every 2 ms, and sleeps in between.
    if (!getenv("RECORDING"))
        for (long before = sleeps(); sleeps() < before + 3;)
            usleep(500);
    if (argc > 1 && strcmp(argv[1], "killed") == 0 && strstr(getenv("LD_PRELOAD"), "loaded"))
        kill(getpid(), SIGKILL);
    int status = argc > 1 && getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), argv[1]) ? 3 : 0;
    return write(1, argv[0], 1) != 1 ? 4 : status;
}
END
  cc -shared -fPIC -o loaded.so "$HEAPTAPE_SOURCE/tests/commands/loaded.c"
  cc -O0 -o uses uses.c
  RECORDING=1 "$HEAPTAPE" record -q -o uses.ht -- ./uses >/dev/null
  "$HEAPTAPE" convert -q -o uses.htw uses.ht
  "$HEAPTAPE" compare -q --no-latency --json --real -r 2 -a glibc -a ./loaded.so uses.htw >out.json
  json 'a, b = d["allocators"]
for r, own in (a, 0), (b, 8 << 20):
  assert (24 << 20) + own < r["real"]["peak_rss_bytes"] < (26 << 20) + own, r["real"]
  assert len(r["real"]["runs"]) == 2 and r["real"]["wall_ns"] > 0 and r["real"]["cpu_ns"] > 0
  assert r["real"]["process_peak_rss_bytes"] > r["real"]["peak_rss_bytes"] + (1 << 20), r["real"]
  assert abs(r["real"]["process_peak_rss_bytes"] - r["process_peak_rss_bytes"]) < 1 << 20, r["process_peak_rss_bytes"]
  assert r["real"]["cpu_ratio_is_within"] is None # two runs have no interval
assert abs((b["real"]["peak_rss_bytes"] - a["real"]["peak_rss_bytes"]) - (b["peak_rss_bytes"] - a["peak_rss_bytes"])) < 1 << 20
assert 1.3 < b["real"]["rss_ratio"] < 1.35 and a["real"]["rss_ratio"] == 1 and a["real"]["rss_ratio_ci95"] is None'
  "$HEAPTAPE" compare -q --no-latency --json -r 1 -a glibc -a ./loaded.so uses.htw >out.json
  json 'assert all(a["real"] is None for a in d["allocators"])'
  heaptape compare -q --no-latency --real -r 2 -a glibc -a ./loaded.so uses.htw -- ./uses nothing
  [ "$status" -eq 0 ]
  has "$output" "the program"
  has "$output" "2 runs each. Differences from glibc:"
  [[ "$output" == *"loaded.so "*"peak RSS +8."*" MiB, replayed +"*" MiB: predicted; process RSS +8."*" MiB, predicted +"*" MiB: predicted"* ]]
  heaptape compare -q --no-latency --real -r 1 -a glibc -a ./loaded.so uses.htw -- ./uses loaded
  [ "$status" -eq 1 ]
  [ "$stderr" = "heaptape: loaded.so: ./uses ended with exit status 3 on loaded.so, with exit status 0 on glibc" ]
  has "$output" $'\nglibc ' "1 run each. Differences from glibc:"
  [[ "$output" != *loaded.so* ]]
  # Only the program that a signal killed has failed, although it ran first.
  heaptape compare -q --no-latency --real -r 2 -a ./loaded.so -a glibc -a glibc,LABEL=b uses.htw -- ./uses killed
  [ "$status" -eq 1 ]
  [ "$stderr" = "heaptape: loaded.so: ./uses ended with signal 9 on loaded.so, with exit status 0 on glibc" ]
  has "$output" $'\nglibc,LABEL=b ' "2 runs each. Differences from glibc:"
  # The results of the replays are printed before the error.
  heaptape compare -q --no-latency --real -r 1 -a glibc -a ./loaded.so uses.htw -- ./missing
  [ "$status" -eq 1 ]
  [ "$stderr" = "heaptape: ./missing: No such file or directory" ]
  has "$output" $'\nglibc ' $'\nloaded.so '
  [[ "$output" != *"Differences from"* ]]
  heaptape compare -q -r 1 -a glibc -a ./loaded.so uses.htw -- ./uses
  usage_fails "unexpected operand './uses'; PROGRAM requires --real"
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  heaptape compare -q --no-latency --real -r 1 -a glibc -a ./loaded.so w.htw
  fails_with 1 "w.htw: the command line was not recorded; pass it after --"
}

@test "--real times the calls of the program" {
  skip_under_sanitizer
  cat >calls.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
    for (int i = 0; i < 3000; i++)
        free(kept = malloc(100));
    if (argc > 1 && strcmp(argv[1], "fork") == 0 && fork() == 0) {
        for (int i = 0; i < 5000; i++)
            free(kept = calloc(2, 50));
        exit(0);
    }
    wait(NULL);
    if (argc > 1 && strcmp(argv[1], "plugin") == 0)
        ((void (*)(void))dlsym(dlopen("./plugin.so", RTLD_NOW), "allocate"))();
    if (argc > 1 && strcmp(argv[1], "_exit") == 0)
        _exit(0);
    return 0;
}
END
  cc -shared -fPIC -o loaded.so "$HEAPTAPE_SOURCE/tests/commands/loaded.c"
  cc -O0 -o calls calls.c
  echo 'int *volatile kept; extern "C" void allocate() { for (int i = 0; i < 2000; i++) { kept = new int; delete kept; } }' >plugin.cc
  c++ -O0 -shared -fPIC -o plugin.so plugin.cc
  "$HEAPTAPE" record -q -o calls.ht -- ./calls
  "$HEAPTAPE" compare -q --json --real -r 1 -a glibc -a ./loaded.so calls.ht >out.json
  json 'c, other = (a["real"]["calls"] for a in d["allocators"])
assert other["malloc"]["count"] == 3000, other
assert c["malloc"]["count"] == 3000 and 3000 <= c["free"]["count"] < 3010, c
assert 0 <= c["malloc"]["p50_ns"] <= c["malloc"]["p99_ns"] <= c["malloc"]["p999_ns"] < 1e9, c'
  heaptape compare -q --real -r 1 -a glibc -a ./loaded.so calls.ht
  [[ "$output" =~ malloc\ +count\ +p99\ +replayed\ +p99.9\ +replayed$'\n'glibc\ +3\ 000\ +[0-9] ]]
  # The process with the most calls counts, which here also has the calls before the fork.
  "$HEAPTAPE" compare -q --json --real -r 1 -a glibc -a ./loaded.so calls.ht -- ./calls fork >out.json
  json 'c = d["allocators"][0]["real"]["calls"]
assert c["malloc"]["count"] == 3000 and c["calloc"]["count"] == 5000, c'
  # A C++ library that is opened with dlopen.
  "$HEAPTAPE" compare -q --json --real -r 1 -a glibc -a ./loaded.so calls.ht -- ./calls plugin >out.json
  json 'found = [a["real"]["calls"] for a in d["allocators"]]
assert all(c["new"]["count"] == c["delete(size)"]["count"] == 2000 for c in found), found'
  # libstdc++'s array operators call the others; these calls are not counted twice.
  cat >arrays.cc <<'END'
#include <cstdlib>
#include <new>
void *volatile kept;
int main()
{
    for (int i = 0; i < 1500; i++) {
        kept = new int[3];
        operator delete[](kept, sizeof(int[3]));
        kept = new (std::nothrow) int;
        operator delete(kept);
        void *aligned;
        free(kept = posix_memalign(&aligned, 64, 64) ? nullptr : aligned);
    }
}
END
  c++ -O0 -o arrays arrays.cc
  "$HEAPTAPE" compare -q --json --real -r 1 -a glibc -a ./loaded.so calls.ht -- ./arrays >out.json
  json 'found = [a["real"]["calls"] for a in d["allocators"]]
kinds = ["new[]", "new(nothrow)", "delete[](size)", "delete", "posix_memalign"]
assert all(c[k]["count"] == 1500 for c in found for k in kinds) and not any("new" in c for c in found), found'
  heaptape compare -q --real -r 1 -a glibc -a ./loaded.so calls.ht -- ./calls _exit
  has "$output" "the program reported no calls"
  "$HEAPTAPE" compare -q --json --no-latency --real -r 1 -a glibc -a ./loaded.so calls.ht >out.json
  json 'assert d["allocators"][0]["real"]["calls"] is None'
  # The path of heaptape's own libraries contains a space.
  mkdir "with space"
  for name in heaptape-replay libheaptape-null.so libheaptape-times.so; do
    cp "$HEAPTAPE_BUILD/src/replay/player/$name" "with space/"
  done
  HEAPTAPE_LIBEXEC="$PWD/with space" "$HEAPTAPE" compare -q --json --real -r 1 -a glibc -a ./loaded.so calls.ht >out.json
  json 'assert all(a["real"]["calls"]["malloc"]["count"] == 3000 for a in d["allocators"])'
  heaptape compare -q --no-latency --real -r 1 -a glibc -a ./loaded.so calls.ht
  [[ "$output" != *replayed\ *p99.9* && "$output" != *"reported no calls"* ]]
}

@test "timed calls evict the caches if the program's CPU time is known" {
  skip_under_sanitizer
  # An allocator that reports the player's 2 MiB of data that evict the caches.
  cat >seen.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
__attribute__((destructor)) static void end(void)
{
    char line[512];
    char *from, *to;
    FILE *maps = fopen("/proc/self/maps", "r"), *found = fopen("found", "a");
    while (fgets(line, sizeof line, maps)) {
        if (strstr(line, " rw-s ") && sscanf(line, "%p-%p", (void **)&from, (void **)&to) == 2 &&
            to - from == 2 << 20)
            fputs("data\n", found);
    }
    fclose(found);
}
END
  cc -shared -fPIC -o seen.so seen.c
  cat >busy.c <<'END'
#include <stdlib.h>
#include <time.h>
int main(void)
{
    while (clock() < CLOCKS_PER_SEC / 10)
        free(malloc(100));
}
END
  cc -O0 -o busy busy.c
  evicting_runs() {
    rm -f found
    "$HEAPTAPE" compare -q -r 1 -a ./seen.so -a glibc "$@" >out || return
    wc -l <found
  }
  "$HEAPTAPE" record -q -o busy.ht -- ./busy
  "$HEAPTAPE" convert -q -o busy.htw busy.ht
  [ "$(evicting_runs busy.htw)" -eq 1 ]
  [ "$(evicting_runs --no-latency busy.htw)" -eq 0 ]
  # Text without CPU time.
  "$HEAPTAPE" export -q --format android -o busy.txt busy.htw
  "$HEAPTAPE" import -q --format android -o text.htw busy.txt
  [ "$(evicting_runs text.htw)" -eq 0 ]
}

@test "--real checks the predicted interval of the program's CPU time" {
  skip_under_sanitizer
  cat >busy.c <<'END'
#include <stdlib.h>
#include <time.h>
int main(void)
{
    for (struct timespec t = {0}; !t.tv_sec && t.tv_nsec < 50000000;) {
        free(malloc(100));
        for (int i = 0; i < 10; i++)
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    }
}
END
  cc -O0 -o busy busy.c
  "$HEAPTAPE" record -q -o busy.ht -- ./busy
  "$HEAPTAPE" convert -q -o busy.htw busy.ht
  "$HEAPTAPE" compare -q --no-latency --real -r 5 -a glibc -a jemalloc busy.htw >out
  cat out
  grep -Eq '^jemalloc +CPU time [0-9.]+ ×, predicted [0-9.]+ \[[0-9.]+, [0-9.]+\]: (NOT )?within the interval; peak RSS' out
  "$HEAPTAPE" compare -q --no-latency --real -r 1 -a glibc -a jemalloc busy.htw >out
  cat out
  grep -Eq '^jemalloc +CPU time [0-9.]+ ×, predicted [0-9.]+: (no difference|(NOT )?predicted); peak RSS' out
}

@test "the time to load an allocator is part of the program's CPU time" {
  cat >slow.c <<'END'
#include <stddef.h>
#include <time.h>
#define FORWARD(type, name, parameters, ...) \
    type __libc_##name parameters;           \
    type name parameters { return __libc_##name(__VA_ARGS__); }
FORWARD(void *, malloc, (size_t size), size)
FORWARD(void *, calloc, (size_t n, size_t size), n, size)
FORWARD(void *, realloc, (void *at, size_t size), at, size)
FORWARD(void, free, (void *at), at)
__attribute__((constructor)) static void load(void)
{
    while (clock() < CLOCKS_PER_SEC / 5)
        ;
}
END
  cc -shared -fPIC -o slow.so slow.c
  command -v python3 >where || skip "no python3"
  "$HEAPTAPE" record -q -o t.ht -- python3 -c 'x = [str(i) * 9 for i in range(200000)]'
  "$HEAPTAPE" convert -q -o t.htw t.ht
  "$HEAPTAPE" compare -q -r 3 --no-latency --json -a glibc -a ./slow.so t.htw >out.json
  json 'a, b = d["allocators"]
more = b["load_cpu_ns"] - a["load_cpu_ns"]
assert a["load_cpu_ns"] > 0 and more > 0.1e9, (a["load_cpu_ns"], b["load_cpu_ns"])
p = a["fidelity"]["program"]
assert p is None or b["fidelity"]["program"]["cpu_ratio"] > 1 + more / p["cpu_ns"] / 2, b["fidelity"]'
}

@test "the recorded allocator is also replayed, to predict the program" {
  command -v python3 >where || skip "no python3"
  "$HEAPTAPE" record -q -o t.ht -- python3 -c 'x = [str(i) * 9 for i in range(200000)]'
  "$HEAPTAPE" convert -q -o t.htw t.ht
  "$HEAPTAPE" compare -q -r 2 --no-latency --json -a jemalloc -a mimalloc t.htw >out.json
  json 'import os
assert os.path.basename(d["added_allocator"]).startswith("libc.so"), d["added_allocator"]
assert [a["allocator"]["name"] for a in d["allocators"]] == ["jemalloc", "mimalloc"]
for a in d["allocators"]:
  assert a["process_rss_missing_reason"] is None and a["fidelity"]["program"]["cpu_ratio"] > 0
  assert 0 < a["outside_rss_bytes"] < a["process_peak_rss_bytes"] and len(a["runs"]) == 2
samples = [len(a["outside_samples"]) for a in d["allocators"]]
assert samples[0] and not samples[1], samples'
  cp out.json added.json
  # The predictions are those of a comparison with the recorded allocator.
  "$HEAPTAPE" compare -q -r 2 --no-latency --json -a jemalloc -a mimalloc -a glibc t.htw >out.json
  json 'assert d["added_allocator"] is None
for a, b in zip(d["allocators"], json.load(open("added.json"))["allocators"]):
  assert abs(a["process_peak_rss_bytes"] - b["process_peak_rss_bytes"]) < 1 << 20, (a["process_peak_rss_bytes"], b["process_peak_rss_bytes"])'
  # Settings of the recorded allocator are not its defaults.
  "$HEAPTAPE" compare -r 1 --no-latency --sweep MALLOC_ARENA_MAX=1,2 t.htw >out
  cat out
  grep -qx 'glibc, the recorded allocator, was also replayed, to predict the program' out
  grep -q '^process .*its peak RSS is predicted' out
  # The program did not make the added calls of malloc_trim.
  "$HEAPTAPE" compare -r 1 --no-latency --trim-every 1000 -a glibc -a jemalloc t.htw >out
  grep -qx 'glibc, the recorded allocator, was also replayed without trims, to predict the program' out
}

@test "an allocator whose CPU time cannot be predicted is named with the reason" {
  skip_under_sanitizer # LD_PRELOAD
  command -v python3 >where || skip "no python3"
  cc -shared -fPIC -o gone.so "$HEAPTAPE_SOURCE/tests/commands/loaded.c"
  LD_PRELOAD=$PWD/gone.so "$HEAPTAPE" record -q -o t.ht -- python3 -c 'x = [str(i) * 9 for i in range(200000)]'
  "$HEAPTAPE" convert -q -o gone.htw t.ht
  rm gone.so
  "$HEAPTAPE" compare -r 1 --no-latency -a jemalloc -a mimalloc gone.htw >out
  cat out
  grep -q 'mimalloc: the CPU time of the program is unknown: the recorded allocator is not among those replayed' out
  [ "$(grep -c 'not predicted: the other' out)" -eq 0 ]
  [ "$(grep -c 'was also replayed' out)" -eq 0 ]
  "$HEAPTAPE" record -q -f -o t.ht -- python3 -c 'x = [str(i) * 9 for i in range(200000)]'
  "$HEAPTAPE" convert -q -o t.htw t.ht
  "$HEAPTAPE" compare -r 1 --no-latency -a glibc -a mimalloc t.htw >out
  [ "$(grep -c 'mimalloc: the CPU time of the program is unknown' out)" -eq 0 ]
  grep -q 'mimalloc: .* × the CPU time of the program' out
  [ "$(grep -c '95 % interval' out)" -eq 0 ] # a single run
  grep -q 'not predicted: the other' out
}

@test "a workload without CPU time allows no prediction for the program" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >facts
  "$HEAPTAPE" compare -q -r 3 --no-latency -a glibc -a jemalloc w.htw >out
  grep -q "the calls' share of the program's CPU time is unknown: the workload lacks" out
  [ "$(grep -c 'CPU time of the program (calls' out)" -eq 0 ]
}
