load ../helper

json() {
  python3 -c "import json,sys; d=json.load(open('out.json')); $1"
}

# A budget that suffices for all repetitions on any machine: 9 of each setting, about 10 s in total.
budget=3600

# Writes burst and burst.htw: a service frees a burst of blocks except for every 25th block and
# continues. glibc keeps the pages of the burst, because live blocks lie above them.
setup_file() {
  [ -z "$HEAPTAPE_SANITIZED" ] || return 0
  cd "$BATS_FILE_TMPDIR" || return
  cat >burst.c <<'END'
#include <stdlib.h>
#include <string.h>
enum { BLOCKS = 8000 };
static char *blocks[BLOCKS];
int main(void) {
  for (int i = 0; i < BLOCKS; i++)
    memset(blocks[i] = malloc(1200), 1, 1200);
  for (int i = 0; i < BLOCKS; i++)
    if (i % 25)
      free(blocks[i]);
  for (volatile int i = 0; i < 40000; i++)
    free(malloc(64));
  return 0;
}
END
  cc -O0 -fno-builtin -o burst burst.c
  "$HEAPTAPE" record -q -o burst.ht ./burst
  "$HEAPTAPE" convert -q -o burst.htw burst.ht
}

# Links burst and burst.htw into the directory of the test.
burst() {
  ln -s "$BATS_FILE_TMPDIR"/burst{,.htw} .
}

@test "a burst: advise suggests malloc_trim and says that the program must call it" {
  skip_under_sanitizer
  burst
  "$HEAPTAPE" advise -q --json --budget $budget burst.htw >out.json
  json 'present, *settings = d["settings"]
assert present["group"] == "present" and present["setting"] == "glibc" and present["environment"] == ""
trims = [s for s in settings if "malloc_trim(0)" in s["setting"]]
assert len(trims) == 3, trims
for t in trims:
    assert t["environment"] is None and t["deploy"].startswith("no variable sets this: the program must call malloc_trim(0) every")
    assert t["returned_share"] >= 0.6, t
    assert t["repetitions"] >= 6 and t["verdicts"]["end_rss_bytes"] == "less", t
assert "malloc_trim" in d["best"]["end_rss_bytes"]
assert d["best"]["rss_after_idle_bytes"] is None
unused = present["end_rss_bytes"] - d["live_at_end_bytes"]
for s in settings:
    assert abs(s["returned_share"] - (present["end_rss_bytes"] - s["end_rss_bytes"]) / unused) < 1e-9
    v = s["verdicts"]["end_rss_bytes"]
    assert v == "unknown" or (v == "less") == (s["end_rss_bytes"] < present["end_rss_bytes"])
means = [s["mean_rss_bytes"] for s in settings]
assert means == sorted(means)'
  # An independent replay with this setting releases as much memory.
  every=$(json 'print([s["deploy"].split("every ")[1].split()[0] for s in d["settings"] if "malloc_trim" in s["setting"]][0])')
  end=$(json "print([s['end_rss_bytes'] for s in d['settings'] if 'every $every calls' in s['setting']][0])")
  "$HEAPTAPE" replay -q --json --no-latency -r 3 --trim-every "$every" burst.htw >replayed.json
  python3 -c "import json; r = json.load(open('replayed.json'))['end_rss_bytes']; assert abs(r - $end) < 0.1 * r, (r, $end)"
}

@test "the text output: what to deploy, and ratios to the first row" {
  skip_under_sanitizer
  burst
  heaptape advise -q --budget $budget --rank end --real burst.htw -- ./burst
  [ "$status" -eq 0 ]
  # Among the best settings, settings with malloc_trim cannot be made from outside.
  has "$output" "  the program: not run, because no variable sets this"
  has "$output" "live at the end: "
  has "$output" "RSS at the end: glibc, malloc_trim(0) every "
  has "$output" "% of the unused memory"
  has "$output" "  deploy: no variable sets this: the program must call malloc_trim(0) every"
  has "$output" "setting, by RSS at the end"
  has "$output" "glibc (current)"
  has "$output" "glibc,MALLOC_ARENA_MAX=1: the workload has one thread"
  ! grep -q "is the current setting" <<<"$output" || false
}

@test "a setting that is an environment variable is printed as one" {
  skip_under_sanitizer
  burst
  LD_LIBRARY_PATH=$PWD
  export LD_LIBRARY_PATH
  # A library in place of jemalloc. It uses 3,000 bytes too many per block, except with the setting
  # tcache:false.
  cc -shared -fPIC -o libjemalloc.so.2 -xc - <<'END'
#include <stdlib.h>
#include <string.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t); void *memalign(size_t a, size_t n) { return __libc_memalign(a, n); }
static size_t waste = 3000;
__attribute__((constructor)) static void init(void) { if (getenv("MALLOC_CONF") && strstr(getenv("MALLOC_CONF"), "tcache:false")) waste = 0; }
static void *fill(char *p, size_t n) { for (size_t i = 0; i < n; i += 1024) ((volatile char *)p)[i] = 1; return p; }
void *malloc(size_t n) { return n == 1200 ? fill(__libc_malloc(n + waste), n + waste) : __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
END
  "$HEAPTAPE" advise -q --json --budget $budget -a jemalloc --real burst.htw -- ./burst >out.json
  json 'present, named = d["settings"][0], set(filter(None, [*d["best"].values(), *d["best_without_more_cpu"].values()]))
for s in d["settings"]: # the program runs with the best settings that have an environment
    runs = s is present or (s["setting"] in named and s["environment"] is not None)
    assert (s["real"] is not None) == runs and bool(s["real_verdicts"]) == runs, s
    assert not runs or (len(s["real"]["runs"]) == 6 and s["real"]["wall_ns"] > 0), s
one = [s for s in d["settings"] if s["setting"] == "jemalloc,MALLOC_CONF=tcache:false"][0]
assert one["environment"] == one["deploy"] == "LD_PRELOAD=" + one["allocator"]["library"] + " MALLOC_CONF=tcache:false", one
assert one["verdicts"]["peak_rss_bytes"] == "less", one
other = [s for s in d["settings"] if s["setting"] == "jemalloc,MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0"][0]
assert other["verdicts"]["peak_rss_bytes"] == "unknown", other
g = [s for s in d["settings"] if s["setting"] == "glibc"][0]
assert g["environment"] == "" and g["deploy"].startswith("run the program on glibc"), g
g = [s for s in d["settings"] if s["setting"] == "glibc,MALLOC_TRIM_THRESHOLD_=131072"][0]
assert g["environment"] == "MALLOC_TRIM_THRESHOLD_=131072" and g["deploy"].endswith("on glibc\u0027s malloc, without another one preloaded or linked"), g'
}

@test "without time for repetitions, no difference is claimed" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 10000 >/dev/null
  cc -shared -fPIC -o late.so -xc - <<'END'
#include <stdlib.h>
#include <unistd.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
__attribute__((destructor)) static void end(void) { sleep(2); }
END
  heaptape advise -q --budget 1 -a ./late.so w.htw
  [ "$status" -eq 0 ]
  has "$output" "the budget is too small to repeat runs: differences are not judged"
  has "$output" "glibc: no time is left (--budget)"
  has "$output" "late.so (current)"
  ! grep -q "least" <<<"$output" || false
  ! grep -q "deploy" <<<"$output" || false
}

@test "a setting whose replay fails is a line, and advise continues" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 10000 >/dev/null
  export LD_LIBRARY_PATH=$PWD
  cc -shared -fPIC -o libmimalloc.so.3 -xc - <<'END'
#include <stdlib.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
static int n;
void *malloc(size_t bytes) { if (++n > 5000) abort(); return __libc_malloc(bytes); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t k, size_t m) { return __libc_calloc(k, m); }
void *realloc(void *p, size_t bytes) { return __libc_realloc(p, bytes); }
END
  heaptape advise -q --budget $budget w.htw
  [ "$status" -eq 0 ]
  has "$output" "not tried:"
  grep -q "^  mimalloc: .*malloc.*" <<<"$output"
  has "$output" "glibc (current)"
}

@test "a current setting that fails is an error" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 1000 >/dev/null
  heaptape advise -q -a "$HEAPTAPE_PROGRAMS/libtest-null.so" w.htw
  fails_with 1 "libtest-null.so"
}

@test "usage" {
  heaptape advise w.htw -- ./program
  [ "$status" -eq 2 ]
  has "$stderr" "unexpected operand './program'; PROGRAM requires --real"
  heaptape advise w.htw --rank idle
  [ "$status" -eq 2 ]
  has "$stderr" "--rank idle requires --idle SECONDS"
  heaptape advise --budget 0 w.htw
  [ "$status" -eq 2 ]
  heaptape advise none.htw
  fails_with 1 "none.htw"
}
