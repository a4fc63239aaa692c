load replay_helper

@test "remaining blocks are freed at the end, by matching calls" {
  make_workload leave 1 8000
  VERIFY_COUNTS=$PWD/counts "$HEAPTAPE" replay -q -r 1 --no-latency -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw >out
  diff <(printf 'call free 4001\ncall delete 1000\ncall delete[] 1000\ncall delete(align) 1000\ncall delete[](align) 1000\nlive 0\n' |
    sort) <(grep -E 'free|delete|live' counts | sort)
  grep -vE 'delete|free|live' counts | sort | diff <(grep -v live expected) -
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'assert d["live_at_end_bytes"] == d["peak_live_bytes"] > 0
assert 0 < d["rss_after_free_bytes"] < d["end_rss_bytes"] and d["rss_after_idle_bytes"] is None
assert d["events"] == 8000 and "free" not in d["calls"]'
}

@test "mean memory and fragmentation" {
  make_workload churn 2 300000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 't = d["timeline"]
# If two threads sample at the same time, the order by time may differ from the order by call.
steps = [(max(0, b[0] - a[0]), a, b) for a, b in zip(t, t[1:])]
mean = lambda i: sum(n * (a[i] + b[i]) / 2 for n, a, b in steps) / sum(n for n, a, b in steps)
assert abs(mean(2) - d["mean_rss_bytes"]) <= 1 and abs(mean(3) - d["mean_live_bytes"]) <= 1
assert abs(d["mean_fragmentation"] - mean(2) / mean(3)) < 0.001
assert abs(d["peak_fragmentation"] - d["peak_rss_bytes"] / d["peak_live_bytes"]) < 0.001
assert 0 < d["mean_rss_bytes"] <= d["peak_rss_bytes"]'
}

@test "memory after the idle time" {
  make_workload churn 1 1000
  date +%s%N >start
  "$HEAPTAPE" replay -q -r 1 --no-latency --idle 1 --json w.htw >out.json
  [ $(($(date +%s%N) - $(cat start))) -gt 1000000000 ]
  json 'assert d["rss_after_idle_bytes"] == d["rss_after_free_bytes"] > 0'
}

@test "usable sizes" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q -r 1 --no-latency --internal-fragmentation --json w.htw >out.json
  json 's = d["internal_fragmentation"]
# The usable size of blocks of libc is at least 24 bytes, and 8 bytes more than a multiple of 16.
assert s["usable_bytes"] > s["requested_bytes"] > 10500 * 8, s
assert s["usable_bytes"] < s["requested_bytes"] + 10500 * 17 and s["usable_ratio"] > 1, s'
  # The text has the same figures.
  percent=$(json 's = d["internal_fragmentation"]; print("%+.1f %%" % (100 * s["usable_ratio"] - 100))')
  heaptape replay -q -r 1 --no-latency --internal-fragmentation w.htw
  has "$output" "rounding     $percent: usable sizes of "
  heaptape compare -q -r 1 --no-latency --internal-fragmentation -a glibc -a glibc,LABEL=b w.htw
  has "$output" "rounding     glibc $percent: usable sizes of "
  [ "$(grep -c "$percent: usable sizes of .* requested, over all blocks" <<<"$output")" -eq 2 ]
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'assert d["internal_fragmentation"] is None'
  heaptape replay -q -r 1 --no-latency w.htw
  [ -z "$(grep rounding <<<"$output")" ]
  cat >m.c <<'END'
static char pool[1 << 26], *at = pool;
void *malloc(unsigned long n) { return (at += n + 15 & ~15ul) - n; }
void *calloc(unsigned long n, unsigned long size) { return malloc(n * size); }
void *realloc(void *p, unsigned long n) { return malloc(n); }
void free(void *p) {}
END
  cc -w -fno-builtin -shared -fPIC -o m.so m.c
  heaptape replay -q -r 1 --no-latency --internal-fragmentation -a ./m.so w.htw
  has "$output" "rounding     unknown: the allocator has no malloc_usable_size"
}

@test "the allocator's own statistics" {
  make_workload kinds 1 20000
  "$HEAPTAPE" allocators --json >out.json
  json 'print("\n".join(a["name"] for a in d["allocators"] if a["available"]))' >names
  while read -r name; do
    "$HEAPTAPE" replay -q -r 1 --no-latency --stats-every 1000 --json -a "$name" w.htw >out.json
    json 's, who = d["stats"], sys.argv[1]
# The statistics are read at 20 marks, and every 1,000 calls.
assert len(s) == 20 + (d["events"] - 1) // 1000, len(s)
for x in s:
  mapped, allocated = x["mapped_bytes"], x["allocated_bytes"]
  if who in ("glibc", "jemalloc", "tcmalloc"):
    assert mapped >= allocated > 0 and x["unused_bytes"] == mapped - allocated, x
    assert allocated >= x["live_bytes"] * 0.9, x
  elif who == "mimalloc":
    assert mapped > 0 and allocated is None and x["unused_bytes"] is None, x
  else:
    assert mapped is None and x["unused_bytes"] is None, x
  assert (x["active_bytes"] is not None) == (x["metadata_bytes"] is not None) == (who == "jemalloc"), x
  for key in "resident_bytes", "retained_bytes", "dirty_bytes", "bin_unused_bytes":
    assert (x[key] is not None) == (who in ("jemalloc", "tcmalloc")), (key, x)
events = [x["event"] for x in s]
assert 0 < events[-1] <= d["events"] and len(set(events)) > 5' "$name"
  done <names
}

@test "the allocator is asked to release memory" {
  make_workload churn 1 100000
  "$HEAPTAPE" allocators --json >out.json
  json 'print("\n".join(a["name"] for a in d["allocators"] if a["available"]))' >names
  while read -r name; do
    "$HEAPTAPE" replay -q -r 1 --no-latency --trim-every 1000 --json -a "$name" w.htw >out.json
    json 'assert d["trim_function"] or sys.argv[1] == "scudo"' "$name"
  done <names
  # An allocator whose trim does nothing is called at every interval.
  cc -shared -fPIC -o trim.so -xc - <<'END'
#include <stdio.h>
#include <stddef.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
static int trims;
void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
int malloc_trim(size_t n) { trims++; return n == 0; }
__attribute__((destructor)) static void end(void) { dprintf(2, "trims %d\n", trims); }
END
  "$HEAPTAPE" replay -q -r 1 --no-latency --trim-every 1000 --json -a ./trim.so w.htw >out.json 2>said
  # The last trim is before the end of the thread. The null allocator has no malloc_trim.
  [ "$(cat said)" = "trims 120" ]
  json 'assert d["trim_function"] == "malloc_trim" and d["events"] == 120000'
}

@test "the player's own memory is excluded from the figure" {
  null=$HEAPTAPE_BUILD/src/replay/player/libheaptape-null.so
  for how in "churn 1 100000" "churn 4 50000 20" "threads 1000 10" "kinds 4 10000"; do
    # shellcheck disable=SC2086
    make_workload $how
    "$HEAPTAPE" replay -q -r 2 --json -a "$null" w.htw >out.json
    json '
for r in d["runs"]:
  assert r["peak_rss_bytes"] == r["end_rss_bytes"] == r["baseline_rss_bytes"] < 1 << 17, r'
  done
}

@test "the allocator's memory after loading is included in the figure" {
  cc -shared -fPIC -o loaded.so "$HEAPTAPE_SOURCE/tests/commands/loaded.c"
  make_workload churn 1 1000
  "$HEAPTAPE" compare -q -r 1 --no-latency --json -a glibc -a ./loaded.so w.htw >out.json
  json '
for a, own in zip(d["allocators"], (0, 8 << 20)):
  for key in "baseline_rss_bytes", "mean_rss_bytes", "end_rss_bytes", "rss_after_free_bytes", "peak_rss_bytes":
    assert own <= a[key] < own + (1 << 20), (key, a[key])
  assert a["baseline_rss_bytes"] < a["peak_rss_bytes"]
  assert all(a["baseline_rss_bytes"] <= s[2] <= a["peak_rss_bytes"] for s in a["timeline"])'
}

@test "--touch selects which memory is used" {
  make_workload big-malloc 1 10
  unset MALLOC_PERTURB_ # set by meson: libc would write to all blocks
  for touch in none page all; do
    "$HEAPTAPE" replay -q -r 1 --no-latency --touch $touch --json w.htw >out.json
    json 'print(d["peak_rss_bytes"])' >$touch
  done
  echo "none $(cat none), page $(cat page), all $(cat all)"
  [ "$(cat none)" -lt 1048576 ]
  [ "$(cat page)" -gt 83000000 ]
  [ "$(cat page)" -le "$(($(cat all) + 524288))" ]
}

@test "zeroed and grown blocks are touched only in part" {
  unset MALLOC_PERTURB_
  for kind in calloc malloc realloc; do
    "$HEAPTAPE_PROGRAMS/make_workload" w.htw "big-$kind" 1 10 >/dev/null
    "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
    json 'print(d["peak_rss_bytes"], d["peak_live_bytes"])' >$kind
    "$HEAPTAPE" replay -q -r 1 --no-latency --touch all --json w.htw >out.json
    json 'print(d["peak_rss_bytes"], d["peak_live_bytes"])' >$kind.all
  done
  python3 - <<'END'
mib = 1 << 20
def rss(name):
  rss, live = map(int, open(name).read().split())
  assert live == 80 * mib, live
  return rss / mib
names = "calloc", "malloc", "realloc", "calloc.all", "malloc.all", "realloc.all"
print({name: rss(name) for name in names})
# The workload has ten blocks of 8 MiB, which realloc has grown from 4 MiB. The kernel counts
# resident pages by CPU and may miss some pages.
assert all(rss(name) > 79.5 for name in names if name[-3:] == "all" or name == "malloc")
assert rss("calloc") < 1 and 59.5 < rss("realloc") < 61
END
}

@test "zeroed blocks of a program that uses them are touched" {
  skip_under_sanitizer
  unset MALLOC_PERTURB_
  cat >zeroed.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <time.h>
int main(int argc, char **argv)
{
    char *blocks[40];
    for (int i = 0; i < 40; i++) {
        blocks[i] = calloc(1, 1 << 20);
        if (argc > 1)
            memset(blocks[i], 1, 1 << 20);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    return blocks[argc] == 0;
}
END
  cc -O0 -o zeroed zeroed.c
  record_with_samples 4 used.ht ./zeroed used
  "$HEAPTAPE" record -q -o unused.ht -- ./zeroed
  "$HEAPTAPE" replay -q -r 1 --no-latency --json used.ht >out.json
  json 'assert d["touch_zeroed"] and d["peak_rss_bytes"] > 39e6, d["peak_rss_bytes"]'
  "$HEAPTAPE" replay -q -r 1 --no-latency --json unused.ht >out.json
  json 'assert not d["touch_zeroed"] and d["peak_rss_bytes"] < 1e6, d["peak_rss_bytes"]'
}

@test "calloc: with measured large blocks, memory that is not heap does not count as theirs" {
  cat >zeroed.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <time.h>
static char variables[128 << 20];
int main(void)
{
    memset(variables, 1, sizeof variables);
    char *last = NULL;
    for (int i = 0; i < 40; i++) {
        last = calloc(1, 1 << 20);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    return last == 0;
}
END
  cc -O0 -o zeroed zeroed.c
  "$HEAPTAPE" record -q -o zeroed.ht -- ./zeroed
  "$HEAPTAPE" replay -q -r 1 --no-latency --json zeroed.ht >out.json
  json 'assert not d["touch_zeroed"] and d["big_block_measured_bytes"] > 0, d'
  record_with_samples 4 guessed.ht --no-residency ./zeroed
  "$HEAPTAPE" replay -q -r 1 --no-latency --json guessed.ht >out.json
  json 'assert d["touch_zeroed"] and d["big_block_measured_bytes"] == 0, d'
}

@test "a thread that a bounded queue held back does not run ahead" {
  make_workload queue 2 2000 64
  "$HEAPTAPE" replay -q -r 1 --no-latency --json -a "$HEAPTAPE_PROGRAMS/libtest-slow.so" w.htw >out.json
  json 'assert d["memory_threads"] == "coupled" and d["coupled_waits"] > 0
assert d["peak_rss_bytes"] < 1.3 * d["peak_live_bytes"], d["peak_rss_bytes"]
assert d["fidelity"]["live"]["peak_ratio"] < 1.5, d["fidelity"]["live"]'
  for how in "--threads coupled" "--speed x1000000"; do
    # shellcheck disable=SC2086
    "$HEAPTAPE" replay -q -r 1 --no-latency --idle 1 --json $how -a "$HEAPTAPE_PROGRAMS/libtest-slow.so" w.htw >out.json
    json 'assert d["memory_threads"] == "coupled" and d["coupled_waits"] > 0
assert d["peak_rss_bytes"] < 1.3 * d["peak_live_bytes"], d["peak_rss_bytes"]'
  done
}

@test "at full speed the allocator's clock shows the recorded time" {
  # Each thread allocates a block every 10 ms, which the allocator keeps for 45 ms.
  kept() {
    make_workload paced "$1" 60
    CLOCK_COUNTS=$PWD/kept "$HEAPTAPE" replay -q -r 1 --no-latency --idle 0 -a "$HEAPTAPE_PROGRAMS/libtest-clock.so" \
      "${@:2}" w.htw >out
  }
  kept 1
  [ "$(cat kept)" = 4 ] || { cat kept; return 1; }
  kept 3 --threads one
  [ "$(cat kept)" = 12 ] || { cat kept; return 1; }
  # With --speed, the allocator sees the real clock. In 45 ms, it keeps 45 blocks, one per ms,
  # unless the machine lags by as much.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kept 1 --speed x10
    [ "$(cat kept)" -le 14 ] || break
  done
  [ "$(cat kept)" -gt 14 ] || { cat kept; return 1; }
}

@test "a thread that runs ahead shows in live bytes" {
  make_workload queue 2 2000 64
  slow=$HEAPTAPE_PROGRAMS/libtest-slow.so
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --threads real -a "$slow" w.htw >out.json
  json 'assert d["memory_threads"] == "real" and d["coupled_waits"] == 0
assert d["peak_rss_bytes"] > 5 * d["peak_live_bytes"], d["peak_rss_bytes"]
assert d["replayed_peak_live_bytes"] > 5 * d["peak_live_bytes"] and d["fidelity"]["live"]["peak_ratio"] > 5'
  heaptape replay -q -r 1 --no-latency --threads real -a "$slow" w.htw
  [[ "$output" == *"peak live "*" × recorded: threads ran ahead of those that free their blocks"* ]]
  heaptape replay -q -r 1 --no-latency -a "$slow" w.htw
  [[ "$output" != *"ran ahead"* ]]
  [[ "$output" == *"; time is measured with threads at full speed, memory with threads as close as recorded"* ]]
  make_workload churn 1 1000
  heaptape replay -q -r 1 --no-latency w.htw
  [[ "$output" != *"threads as fast as they can"* ]]
}

# peak FILE: the peak of its replay on glibc, in MiB; each large block is a separate mapping.
# MALLOC_PERTURB_ of meson would make libc write to all blocks.
peak() {
  MALLOC_PERTURB_=0 GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1048576 "$HEAPTAPE" replay -q -a glibc --runs 1 --json "$1" >result
  jq '.peak_rss_bytes / 1048576' result
}

# between LOW HIGH NUMBER
between() {
  echo "$3: from $1 to $2"
  awk -v n="$3" -v low="$1" -v high="$2" 'BEGIN { exit n < low || n > high }'
}

@test "large blocks: use after a failed realloc counts, too" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 p
0 1000 malloc size=67108864 result=0x10000000
0 1100 heaptape.residency ptr=0x10000000 size=67108864 count=1048576 align=1048576 value=1048576
0 1200 realloc.begin ptr=0x10000000
0 1300 realloc size=9000000000000 error=12
0 1400 heaptape.residency ptr=0x10000000 size=67108864 count=2097152 align=2097152 value=2097152
0 1500 realloc.begin ptr=0x10000000
0 1600 realloc size=9000000000000 error=12
0 1700 heaptape.residency ptr=0x10000000 size=67108864 count=41943040 align=41943040 value=41943040
0 1800 free ptr=0x10000000
end
END
  between 39 42 "$(peak a.ht)"
  [ "$(jq .big_block_measured_bytes result)" -eq 67108864 ]
}

@test "large blocks: unmeasured blocks are used like those of their call site" {
  # All blocks have 4 MiB. The blocks of site 1 are used, and the blocks of site 2 are unused. The
  # use of the blocks of site 3 is unknown.
  awk 'BEGIN {
    print "process 100 p"
    for (site = 1; site <= 3; site++)
      print 0, 900, "heaptape.frame ptr=" site * 4096, "size=0 value=" site
    for (i = 0; i < 8; i++)
      for (site = 1; site <= 2; site++) {
        at = 268435456 + i * 16777216 + site * 8388608
        used = site == 1 ? 4194304 : 0
        print 0, 1000 + i, "malloc size=4194304 site=" site, "result=" at
        print 0, 1000 + i, "heaptape.residency ptr=" at, "size=4194304 count=" used, "align=" used, "value=" used
        print 0, 1000 + i, "free ptr=" at
      }
    for (i = 0; i < 10; i++)
      print 0, 2000 + i, "malloc size=4194304 site=" SITE, "result=" 268435456 + i * 8388608
    print "end"
  }' >lines
  for site in 1 2 3; do
    sed "s/site= result/site=$site result/" lines | "$HEAPTAPE_PROGRAMS/make_trace" $site.ht
    peak $site.ht >peak.$site
    [ "$(jq .big_block_estimated_bytes result)" -eq 41943040 ]
  done
  between 39 42 "$(cat peak.1)"
  # One block of site 1. The kernel adds up resident pages of each CPU in steps of 32, so a short
  # peak may seem lower.
  between 3.5 6 "$(cat peak.2)"
  between 19 22 "$(cat peak.3)"
  # Most of the other blocks of this size are used completely; site 2 has one block less.
  sed 's/site= result/site=3 result/' lines | awk '!/ 1007 .*=402653184/' | "$HEAPTAPE_PROGRAMS/make_trace" 4.ht
  between 39 42 "$(peak 4.ht)"
}
