load ../helper

# A workload in w.htw; what is to be called of it in expected, without what only a player can know.
make_workload() {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw "$@" >facts
  grep -v peak_live_bytes facts | sort >expected
}

# Replays w.htw on the allocator that checks its caller: whatever it finds fails, and its counts must be those expected.
replay_verified() {
  VERIFY_COUNTS=$PWD/counts run timeout 60 "$HEAPTAPE" replay -q -r 1 --no-latency \
    -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" "$@" w.htw
  [ "$status" -eq 0 ] || { echo "$output"; return 1; }
  sort counts | diff expected -
}

json() {
  python3 -c "import json,os,sys; d=json.load(open('out.json')); $1" "${@:2}"
}

@test "one thread: each call is made" {
  make_workload churn 1 50000
  replay_verified
}

@test "every kind of call, failed ones and blocks from before" {
  make_workload kinds 1 20000
  replay_verified
  replay_verified --touch none
  replay_verified --touch all
}

@test "two threads that free each other's blocks" {
  make_workload churn 2 50000 30
  for _ in 1 2 3; do replay_verified; done
}

@test "16 threads that free each other's blocks" {
  make_workload churn 16 2000 50
  for _ in 1 2 3; do replay_verified; done
}

@test "threads that no other thread started" {
  make_workload orphans 4 20000 20
  for _ in 1 2 3; do replay_verified; done
}

@test "every kind of call, from 8 threads" {
  make_workload kinds 8 20000
  for _ in 1 2 3; do replay_verified; done
}

@test "20,000 threads, one after another" {
  make_workload threads 20000 8
  replay_verified
}

@test "timed calls are the same calls" {
  make_workload kinds 2 5000
  VERIFY_COUNTS=$PWD/counts "$HEAPTAPE" replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw >out
  sort counts | diff expected -
}

@test "--json has the figures" {
  make_workload churn 2 300000 10
  "$HEAPTAPE" replay -q -r 3 --json w.htw >out.json
  json 'assert d["schema_version"] == 2
assert d["allocator"]["name"] == "glibc" and "libc" in d["allocator"]["library"]
assert len(d["runs"]) == 3
for r in d["runs"]:
  assert r["events"] == 640000 and r["wall_ns"] > 0 and r["cpu_ns"] > 0 and r["peak_rss_bytes"] > 900000
assert d["wall_ns"] == sorted(r["wall_ns"] for r in d["runs"])[1]
assert abs(d["ns_per_event"] - d["wall_ns"] / 640000) < 0.001 * d["ns_per_event"]
assert 0 < d["overhead_ns_per_event"]
assert d["peak_rss_bytes"] == sorted(r["peak_rss_bytes"] for r in d["runs"])[1]
c = d["calls"]
assert set(c) == {"malloc", "free"} and c["malloc"]["count"] == c["free"]["count"] == 320000
for k in c.values():
  assert 0 <= k["p50_ns"] <= k["p99_ns"] <= k["p999_ns"] <= k["max_ns"] and k["mean_ns"] <= k["max_ns"]
z = d["calls_by_size"]
assert [k["max_bytes"] for k in z] == [8 << n for n in range(8)] and sum(k["count"] for k in z) == 320000, z
for k in z:
  assert 0 <= k["p50_ns"] <= k["p99_ns"] <= k["p999_ns"] <= k["max_ns"] and k["overhead_ns"] > 0, k
# Sizes are geometric: half of them are from 8 to 15 bytes, a quarter from 16 to 31, …
assert all(0.9 < z[n]["count"] * 2 ** n / 320000 < 1.1 for n in range(2, 6)), z
t = d["timeline"]
assert len(t) > 100 and all(len(x) == 4 for x in t)
assert t[0][0] == 0 and t[0][3] == 0 and t[-1][0] == 640000 and t[-1][3] == 0
assert all(a[1] <= b[1] for a, b in zip(t, t[1:]))
assert max(x[3] for x in t) <= d["peak_live_bytes"] * 1.2
assert max(x[2] for x in t) <= max(r["peak_rss_bytes"] for r in d["runs"])'
  [ "$(grep peak_live_bytes facts)" = "peak_live_bytes $(json 'print(d["peak_live_bytes"])')" ]
}

@test "--json says where the figures come from" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'import os, platform
m, a = d["machine"], d["allocator"]
assert m["architecture"] == platform.machine() and m["kernel"] == platform.release(), m
assert m["cores"] == len(os.sched_getaffinity(0)) and m["page_bytes"] == os.sysconf("SC_PAGESIZE"), m
assert m["memory_bytes"] == os.sysconf("SC_PHYS_PAGES") * m["page_bytes"], m
assert m["load_at_start"] >= 0, m
governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
assert m["cpu_governor"] == (open(governor).read().strip() if os.path.exists(governor) else None), m
thp = "/sys/kernel/mm/transparent_hugepage/enabled"
assert m["transparent_hugepages"] == (open(thp).read().split("[")[1].split("]")[0] if os.path.exists(thp) else None), m
assert m["cpu_model"] is None or m["cpu_model"] in open("/proc/cpuinfo").read(), m
assert a["version"] == platform.libc_ver()[1], a'
  build_id=$(readelf -n "$(json 'print(d["allocator"]["library"])')" | sed -n 's/.*Build ID: //p')
  [ "$(json 'print(d["allocator"]["build_id"])')" = "$build_id" ]
  cc -shared -fPIC -Wl,--build-id=none -o none.so -xc - <<'END'
#include <stddef.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
END
  "$HEAPTAPE" replay -q -r 1 --no-latency --json -a ./none.so w.htw >out.json
  json 'assert d["allocator"]["version"] is None and d["allocator"]["build_id"] is None, d["allocator"]'
}

@test "what is left is freed in the end, by calls that fit" {
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

@test "counters, where the machine has them" {
  make_workload churn 2 100000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'c = d["counters"]
assert c["page_faults"] >= d["peak_rss_bytes"] // os.sysconf("SC_PAGESIZE") > 0, c
assert c["context_switches"] >= 0 and c["page_faults"] == sum(d["runs"][0][k] for k in ("minor_faults", "major_faults"))
hardware = [c[k] for k in ("cycles", "instructions", "cache_misses", "dtlb_misses")]
assert (None in hardware) == (c["missing_reason"] is not None), c
# A call takes more than an instruction.
assert c["instructions"] is None or c["instructions"] > d["events"], c'
  "$HEAPTAPE" replay -q -r 1 --no-latency w.htw >out
  has "$(grep ^counters out)" " context switches"
}

@test "fidelity: live bytes and overlap" {
  make_workload churn 1 100000
  "$HEAPTAPE" replay -q -r 1 --json w.htw >out.json
  json 'f = d["fidelity"]
assert f["live"]["points"] == len(d["timeline"]) > 20 and f["live"]["equal_points"] == f["live"]["points"], f
assert f["live"]["max_difference_bytes"] == 0 and f["overlap"] is None, f
assert f["rss"] is None and "allocator of the recording is not known" in f["rss_missing_reason"], f
t = f["allocator_time"]
assert t["recorded_ns"] is None and t["recorded_duration_ns"] == 120000 and t["replayed_ns"] > 0, t'
  make_workload churn 4 50000 10
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'f = d["fidelity"]
assert f["live"]["points"] > 20 and f["allocator_time"]["replayed_ns"] is None, f
o = f["overlap"]
assert all(0 <= x <= 1 for x in o.values()) and o["recorded_event_share"] > 0.9 and o["recorded_time_share"] > 0.9, o'
  "$HEAPTAPE" replay -q -r 1 --no-latency w.htw >out
  has "$(cat out)" "fidelity     live bytes equal the recorded ones at "
  has "$(cat out)" "two or more threads active for "
}

@test "fidelity: memory against that of the recorded program" {
  skip_under_sanitizer
  unset MALLOC_PERTURB_
  cat >grow.py <<'END'
import time
held = []
for i in range(40):
  held.extend(bytearray(700) for _ in range(1000))
  for _ in range(10000): bytearray(300)
  time.sleep(0.01)
END
  PYTHONMALLOC=malloc "$HEAPTAPE" record -q -o a.ht -- python3 grow.py
  "$HEAPTAPE" convert -q -o a.htw a.ht
  "$HEAPTAPE" replay -q -r 1 --no-latency --json a.htw >out.json
  json 'f = d["fidelity"]
assert f["same_allocator"] and f["rss_missing_reason"] is None and f["recorded_allocator"] == d["allocator"]["library"], f
r = f["rss"]
assert r["samples"] > 20 and r["recorded_peak_bytes"] > 28e6 and r["replayed_peak_bytes"] == d["peak_rss_bytes"], r
assert 0.9 < r["peak_ratio"] < 1.1 and r["mean_error"] < 0.1 and abs(r["mean_bias"]) <= r["mean_error"], r'
  "$HEAPTAPE" replay -q -r 1 --no-latency a.htw >out
  has "$(cat out)" " × recorded ("
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --memory 4M a.htw >out.json
  json 'r = d["fidelity"]["rss"]
assert d["decoder"] is not None and 0.9 < r["peak_ratio"] < 1.1, r'
  "$HEAPTAPE" compare -q -r 1 --no-latency -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" -a glibc a.htw >out
  has "$(cat out)" "recorded on glibc: peak RSS "
  "$HEAPTAPE" replay -q -r 1 --no-latency -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" a.htw >out
  has "$(cat out)" "the workload was recorded on another allocator"
}

@test "mean memory and fragmentation" {
  make_workload churn 2 300000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 't = d["timeline"]
# Two threads that look at the same time may come in another order by time than by call.
steps = [(max(0, b[0] - a[0]), a, b) for a, b in zip(t, t[1:])]
mean = lambda i: sum(n * (a[i] + b[i]) / 2 for n, a, b in steps) / sum(n for n, a, b in steps)
assert abs(mean(2) - d["mean_rss_bytes"]) <= 1 and abs(mean(3) - d["mean_live_bytes"]) <= 1
assert abs(d["mean_fragmentation"] - mean(2) / mean(3)) < 0.001
assert abs(d["peak_fragmentation"] - d["peak_rss_bytes"] / d["peak_live_bytes"]) < 0.001
assert 0 < d["mean_rss_bytes"] <= d["peak_rss_bytes"]'
}

@test "recorded pace, and N times that" {
  make_workload paced 3 50
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --speed recorded --idle 1 w.htw >out.json
  json 'assert 0.49e9 <= d["wall_ns"] < 0.9e9 and d["speed"] == 1, d["wall_ns"]
assert d["rss_after_idle_bytes"] is not None and d["max_lag_ns"] >= 0
assert d["overhead_ns_per_event"] * d["events"] < 0.2e9'
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --speed x5 --idle 1 w.htw >out.json
  json 'assert 0.098e9 <= d["wall_ns"] < 0.4e9 and d["speed"] == 5, d["wall_ns"]'
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'assert d["wall_ns"] < 0.09e9 and d["speed"] is None, d["wall_ns"]'
  VERIFY_COUNTS=$PWD/counts "$HEAPTAPE" replay -q -r 1 --no-latency --speed x20 --idle 1 \
    -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw >out
  sort counts | diff expected -
}

@test "memory after the idle time" {
  make_workload churn 1 1000
  date +%s%N >start
  "$HEAPTAPE" replay -q -r 1 --no-latency --idle 1 --json w.htw >out.json
  [ $(($(date +%s%N) - $(cat start))) -gt 1000000000 ]
  json 'assert d["rss_after_idle_bytes"] == d["rss_after_free_bytes"] > 0'
}

@test "all threads in one" {
  make_workload churn 4 20000 30
  replay_verified --threads one
  make_workload kinds 4 20000
  replay_verified --threads one
  replay_verified --threads one --speed x1000 --idle 1
  "$HEAPTAPE" replay -q -r 1 --threads one --json w.htw >out.json
  json 'assert d["threads"] == 1 and d["dependencies"] == 0 and d["runs"][0]["blocked_waits"] == 0
assert d["thread_switches"] > 10000 and d["cache_switches"] == 0
assert d["timeline"][-1][3] == 0'
  make_workload churn 4 2000
  heaptape replay --threads one -a "$HEAPTAPE_PROGRAMS/libtest-faulty.so,FAULTY=null,FAULTY_AT=4999" w.htw
  fails_with 1 "libtest-faulty.so: out of memory: " " bytes failed at op " " of all"
}

@test "all threads in one: thread caches are swapped" {
  cached=$HEAPTAPE_PROGRAMS/libtest-cached.so
  make_workload churn 4 2000 30
  CACHES=$PWD/caches "$HEAPTAPE" replay -q -r 1 --no-latency --threads one --json -a "$cached" w.htw >out.json
  json 'assert d["cache_switches"] == d["thread_switches"] > 4000'
  # libc may have called malloc before the start, through the main thread's cache.
  mapfile -t lines <caches
  [ "${lines[0]}" = "made 4" ]
  [ "${lines[2]}" -ge 11000 ]
  [ "${lines[2]}" -lt 11020 ]
  [ "${lines[*]:3}" = "11000 11000 11000" ]
  NO_THREAD_CACHE_SWITCH=1 CACHES=$PWD/caches \
    "$HEAPTAPE" replay -q -r 1 --no-latency --threads one --json -a "$cached" w.htw >out.json
  json 'assert d["cache_switches"] == 0 and d["thread_switches"] > 4000'
  [ "$(head -n 2 caches)" = $'made 1\nfreed 0' ]
}

@test "all threads in one: the caches of threads that have exited are freed" {
  make_workload threads 40 8
  CACHES=$PWD/caches "$HEAPTAPE" replay -q -r 1 --no-latency --threads one -a "$HEAPTAPE_PROGRAMS/libtest-cached.so" w.htw
  # The last four may be over when all else is.
  [ "$(head -n 1 caches)" = "made 41" ]
  n=$(sed -n 's/^freed //p' caches)
  [ "$n" -ge 36 ]
  [ "$n" -le 40 ]
}

@test "usable sizes" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q -r 1 --no-latency --internal-fragmentation --json w.htw >out.json
  json 's = d["internal_fragmentation"]
# libc gives at least 24 bytes, and else 8 more than a multiple of 16.
assert s["usable_bytes"] > s["requested_bytes"] > 10500 * 8, s
assert s["usable_bytes"] < s["requested_bytes"] + 10500 * 17 and s["usable_ratio"] > 1, s'
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'assert d["internal_fragmentation"] is None'
}

@test "the allocator's own statistics" {
  make_workload kinds 1 20000
  "$HEAPTAPE" allocators --json >out.json
  json 'print("\n".join(a["name"] for a in d["allocators"] if a["available"]))' >names
  while read -r name; do
    "$HEAPTAPE" replay -q -r 1 --no-latency --stats-every 1000 --json -a "$name" w.htw >out.json
    json 's, who = d["stats"], sys.argv[1]
# 20 marks, and one each 1,000 calls.
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
  assert (x["active_bytes"] is not None) == (x["resident_bytes"] is not None) == (who == "jemalloc"), x
events = [x["event"] for x in s]
assert 0 < events[-1] <= d["events"] and len(set(events)) > 5' "$name"
  done <names
}

@test "the allocator is told to give memory back" {
  make_workload churn 1 100000
  "$HEAPTAPE" allocators --json >out.json
  json 'print("\n".join(a["name"] for a in d["allocators"] if a["available"]))' >names
  while read -r name; do
    "$HEAPTAPE" replay -q -r 1 --no-latency --trim-every 1000 --json -a "$name" w.htw >out.json
    json 'assert d["trim_function"] or sys.argv[1] == "scudo"' "$name"
  done <names
  # One that does nothing for it is asked as often as it should be.
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
  # The last time is before the end of the thread. The null allocator has no malloc_trim.
  [ "$(cat said)" = "trims 120" ]
  json 'assert d["trim_function"] == "malloc_trim" and d["events"] == 120000'
}

@test "without the timed run there are counts only" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'assert d["calls"]["malloc"] == {"count": 10500}, d["calls"]'
}

@test "the player's own memory is not in the figure" {
  null=$(find "$HEAPTAPE_BUILD" -name libheaptape-null.so)
  for how in "churn 1 500000" "churn 4 100000 20" "threads 3000 10" "kinds 4 10000"; do
    # shellcheck disable=SC2086
    make_workload $how
    "$HEAPTAPE" replay -q -r 2 --json -a "$null" w.htw >out.json
    json 'assert all(r["peak_rss_bytes"] == 0 and r["end_rss_bytes"] == 0 for r in d["runs"]), d["runs"]'
  done
}

@test "touch decides what memory is used" {
  make_workload kinds 1 3000
  unset MALLOC_PERTURB_ # which meson sets: libc would write to all blocks
  for touch in none page all; do
    "$HEAPTAPE" replay -q -r 1 --no-latency --touch $touch --json w.htw >out.json
    json 'print(d["peak_rss_bytes"])' >$touch
  done
  [ "$(cat none)" -lt "$(cat page)" ]
  [ "$(cat page)" -le "$(($(cat all) + 65536))" ]
}

@test "of zeroed blocks and of growth not all pages are touched" {
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
# Ten blocks of 8 MiB; realloc grew them from 4 MiB.
assert rss("malloc") > 79.9 and all(rss(k + ".all") > 79.9 for k in ("calloc", "malloc", "realloc"))
assert rss("calloc") < 1 and 59.9 < rss("realloc") < 61
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
  "$HEAPTAPE" record -q -o used.ht -- ./zeroed used
  "$HEAPTAPE" record -q -o unused.ht -- ./zeroed
  "$HEAPTAPE" replay -q -r 1 --no-latency --json used.ht >out.json
  json 'assert d["touch_zeroed"] and d["peak_rss_bytes"] > 39e6, d["peak_rss_bytes"]'
  "$HEAPTAPE" replay -q -r 1 --no-latency --json unused.ht >out.json
  json 'assert not d["touch_zeroed"] and d["peak_rss_bytes"] < 1e6, d["peak_rss_bytes"]'
}

@test "each allocator that is installed" {
  make_workload kinds 2 5000
  "$HEAPTAPE" allocators --json >out.json
  json 'print("\n".join(a["name"] for a in d["allocators"] if a["available"]))' >names
  [ "$(head -n 1 names)" = glibc ]
  while read -r name; do
    "$HEAPTAPE" replay -q -r 1 --json -a "$name" w.htw >out.json
    json 'assert d["allocator"]["name"] == sys.argv[1] and d["wall_ns"] > 0' "$name"
  done <names
}

@test "tunables come to the allocator" {
  make_workload churn 1 100
  "$HEAPTAPE" replay -r 1 --no-latency -a glibc,GLIBC_TUNABLES=glibc.malloc.check=3,LD_SHOW_AUXV=1 w.htw 2>said
  has "$(cat said)" AT_SYSINFO
}

@test "stdin" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json - <w.htw >out.json
  json 'assert d["events"] == 21000'
}

@test "a library that is no allocator" {
  make_workload churn 1 100
  heaptape replay -a "$HEAPTAPE_PROGRAMS/libtest-bogus.so" w.htw
  fails_with 1 "libtest-bogus.so: asked for $(realpath "$HEAPTAPE_PROGRAMS")/libtest-bogus.so, but malloc is /" libc
}

@test "a file that cannot be preloaded" {
  make_workload churn 1 100
  echo nonsense >bad.so
  heaptape replay -a ./bad.so w.htw
  fails_with 1 "bad.so: asked for $PWD/bad.so, but malloc is"
}

@test "an allocator that is not there" {
  make_workload churn 1 100
  heaptape replay -a ./none.so w.htw
  fails_with 1 "./none.so: No such file or directory"
  heaptape replay -a jemalooc w.htw
  fails_with 1 "jemalooc: no such allocator"
}

@test "an allocator that crashes, stops or has no memory" {
  make_workload churn 1 1000
  faulty=$HEAPTAPE_PROGRAMS/libtest-faulty.so
  heaptape replay -a "$faulty,FAULTY=crash,FAULTY_AT=5000" w.htw
  fails_with 1 "libtest-faulty.so: ended by signal 11 (Segmentation fault) during the replay"
  heaptape replay -a "$faulty,FAULTY=exit,FAULTY_AT=5000" w.htw
  fails_with 1 "libtest-faulty.so: ended by an exit with 0 during the replay"
  heaptape replay -a "$faulty,FAULTY=crash,FAULTY_AT=0" w.htw
  fails_with 1 "libtest-faulty.so: ended by signal 11"
  heaptape replay -a "$faulty,FAULTY=null,FAULTY_AT=4999" w.htw
  # libc has made some calls of its own before.
  fails_with 1 "libtest-faulty.so: out of memory: malloc of " " bytes failed at op 49" " of thread 0"
}

@test "what the checking allocator finds is reported" {
  make_workload churn 1 1000
  # Without the block's own functions, deleting a block of malloc is an error of another family.
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw misfit 1 10
  heaptape replay -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw
  fails_with 1 "ended by signal 6 (Aborted) during the replay: verify: block freed by a function of another family"
}

@test "too little memory for the tables" {
  make_workload churn 1 1000000
  heaptape replay --memory 64K w.htw
  fails_with 1 "w.htw: op " "the table of slots does not fit into the memory allowed (try a larger --memory)"
  make_workload threads 2000 8
  heaptape replay --memory 64K w.htw
  fails_with 1 "the plan does not fit into 32 KiB of memory (try a larger --memory)"
}

# streamed MEMORY THREADS: what it says of w.htw must be the same whether it is streamed or not.
same_when_streamed() {
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >whole.json
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --memory "$1" w.htw >out.json
  json 'whole = json.load(open("whole.json"))
for key in ("events", "skipped", "preexisting", "threads", "dependencies", "peak_live_bytes", "live_at_end_bytes", "calls"):
  assert d[key] == whole[key], (key, d[key], whole[key])
assert [x[0] for x in d["timeline"]][-1] == d["events"] and len(d["timeline"]) == len(whole["timeline"])
r = d["decoder"]
assert whole["decoder"] is None and r["windows"] > 8 and r["window_bytes"] >= 16384, r
assert 0 <= r["stall_share"] <= 1 and r["stalls"] >= (r["stall_ns"] + r["free_space_wait_ns"] > 0), r'
}

@test "a workload bigger than the memory allowed is streamed" {
  make_workload churn 1 300000
  for _ in 1 2 3; do replay_verified --memory 512K; done
  same_when_streamed 512K
  replay_verified --memory 512K --threads one
  "$HEAPTAPE" replay -q --memory 512K --verify w.htw
  "$HEAPTAPE" replay -q --no-latency -r 3 --memory 512K - <w.htw >out
  has "$(cat out)" " stalls, stalled for "
  # shellcheck disable=SC2002
  cat w.htw | "$HEAPTAPE" compare -q -r 2 --memory 512K -a glibc -a glibc - >out
  has "$(cat out)" "streamed: threads stalled for the decoder"
  heaptape replay --memory 512K -a "$HEAPTAPE_PROGRAMS/libtest-faulty.so,FAULTY=null,FAULTY_AT=140000" w.htw
  fails_with 1 "libtest-faulty.so: out of memory: malloc of " " bytes failed at op " " of thread 0"
  heaptape replay --memory 512K -a "$HEAPTAPE_PROGRAMS/libtest-faulty.so,FAULTY=crash,FAULTY_AT=140000" w.htw
  fails_with 1 "ended by signal 11 (Segmentation fault) during the replay"
}

@test "streamed: threads that wait for each other all the time" {
  make_workload kinds 16 100000
  for _ in 1 2 3; do replay_verified --memory 500K; done
  same_when_streamed 500K
  "$HEAPTAPE" replay -q --memory 500K --verify w.htw
  replay_verified --memory 500K --threads one
  make_workload churn 16 5000 80
  for _ in 1 2 3; do replay_verified --memory 8M; done
  make_workload orphans 4 20000 30
  replay_verified --memory 3M
}

@test "streamed: threads that are born and end all the time" {
  make_workload threads 3000 20
  replay_verified --memory 1M
  same_when_streamed 1M
}

@test "streamed: a file that changes meanwhile" {
  make_workload churn 1 300000
  cp w.htw other.htw
  make_workload churn 1 250000
  mv w.htw short.htw
  # The allocator puts the other file in place of the first one when it is loaded, after the scan.
  cc -shared -fPIC -o swap.so -xc - <<'END'
#include <stddef.h>
#include <fcntl.h>
#include <unistd.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
__attribute__((constructor)) static void swap(void)
{
    static char bytes[65536];
    int from = open("short.htw", O_RDONLY), to = open("other.htw", O_WRONLY);
    for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;)
        if (write(to, bytes, n) != n)
            _exit(1);
}
END
  heaptape replay -r 2 --no-latency --memory 512K -a ./swap.so other.htw
  expect "status 1" [ "$status" -eq 1 ]
  expect "one line" [ "${#stderr_lines[@]}" -eq 1 ]
  has "$stderr" "heaptape: "
}

@test "a trace is converted on the way" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o a.ht -- sort -o sorted "$HEAPTAPE_SOURCE/README.md"
  "$HEAPTAPE" convert -q -o a.htw a.ht
  "$HEAPTAPE" replay -q -r 1 --no-latency --json a.htw >out.json
  json 'print(d["events"], d["peak_live_bytes"], d["calls"])' >expected
  "$HEAPTAPE" replay -q -r 1 --no-latency --json a.ht >out.json
  json 'print(d["events"], d["peak_live_bytes"], d["calls"])' | diff expected -
  "$HEAPTAPE" replay -q -r 1 --no-latency --json - <a.ht >out.json
  json 'print(d["events"], d["peak_live_bytes"], d["calls"])' | diff expected -
  # shellcheck disable=SC2002
  cat a.ht | "$HEAPTAPE" replay -q -r 1 --no-latency --json - >out.json
  json 'print(d["events"], d["peak_live_bytes"], d["calls"])' | diff expected -
}

@test "what is no workload" {
  heaptape replay nothere.htw
  fails_with 1 nothere.htw "No such file"
  heaptape replay .
  fails_with 1 "directory"
  : >empty.htw
  heaptape replay empty.htw
  fails_with 1 empty.htw empty
  head -c 100000 /dev/urandom >random.htw
  heaptape replay random.htw
  fails_with 1 "random.htw: is not a heaptape trace or workload"
}

@test "a workload that was cut off is refused" {
  make_workload churn 1 100000
  size=$(stat -c %s w.htw)
  for cut in 100 $((size / 2)) $((size - 1)); do
    head -c "$cut" w.htw >cut.htw
    heaptape replay -r 1 --no-latency cut.htw
    fails_with 1 cut.htw
  done
}

@test "usage" {
  heaptape replay
  usage_fails
  heaptape replay -a glibc -a jemalloc x.htw
  usage_fails "one allocator at a time"
  heaptape replay -r 0 x.htw
  usage_fails " is out of range: 1 to 1000"
  heaptape replay --threads two x.htw
  usage_fails "--threads"
  for speed in fast x x0 -1 x1y "x 1"; do
    heaptape replay "--speed=$speed" x.htw
    usage_fails "is not one of max|recorded|xN"
  done
  heaptape replay --touch some x.htw
  usage_fails "--touch"
}

@test "the player started by hand says what it is" {
  player=$(find "$HEAPTAPE_BUILD" -name heaptape-replay -type f)
  run "$player"
  [ "$status" -eq 2 ]
  has "$output" "heaptape replay"
}
