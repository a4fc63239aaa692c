load replay_helper

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
spent = sum(k["count"] * k["mean_ns"] for k in c.values())
assert abs(d["fidelity"]["allocator_time"]["replayed_ns"] / spent - 1) < 0.001, (d["fidelity"], spent)
z = d["calls_by_size"]
assert [k["max_bytes"] for k in z] == [8 << n for n in range(8)] and sum(k["count"] for k in z) == 320000, z
for k in z:
  assert 0 <= k["p50_ns"] <= k["p99_ns"] <= k["p999_ns"] <= k["max_ns"] and k["overhead_ns"] > 0, k
# Sizes are geometric: half of them are from 8 to 15 bytes, a quarter from 16 to 31, …
assert all(0.9 < z[n]["count"] * 2 ** n / 320000 < 1.1 for n in range(2, 6)), z
t = d["timeline"]
assert len(t) > 100 and all(len(x) == 5 for x in t)
assert t[0][0] == 0 and t[0][3] == 0 and t[-1][0] == 640000 and t[-1][3] == 0
assert all(a[1] <= b[1] for a, b in zip(t, t[1:]))
assert max(x[3] for x in t) <= d["peak_live_bytes"] * 1.2
assert max(x[2] for x in t) <= max(r["peak_rss_bytes"] for r in d["runs"])'
  [ "$(grep peak_live_bytes facts)" = "peak_live_bytes $(json 'print(d["peak_live_bytes"])')" ]
}

@test "the timeline is from the run with the median peak RSS, the rest from the run with the median wall time" {
  make_workload churn 1 3000 10
  # The last run uses the median of the memory, and sleeps for longer than the others. Repeat all if
  # another run was suspended for longer.
  for _ in 1 2 3 4 5 6; do
    rm -f uneven
    UNEVEN=$PWD/uneven "$HEAPTAPE" replay -q -r 3 --no-latency --json -a "$HEAPTAPE_PROGRAMS/libtest-uneven.so" w.htw >out.json
    ! jq -e '[.runs[].wall_ns] | sort[1] != .[2]' out.json || break
  done
  json 'peaks, walls = ([r[k] for r in d["runs"]] for k in ("peak_rss_bytes", "wall_ns"))
assert peaks[0] < peaks[2] < peaks[1] and sorted(walls)[1] != walls[2], d["runs"]
assert d["peak_rss_bytes"] == peaks[2] and d["wall_ns"] == sorted(walls)[1], d["runs"]
assert 17 << 20 > max(s[2] for s in d["timeline"]) - d["baseline_rss_bytes"] >= 16 << 20, d["timeline"]'
}

@test "--json names the sources of the figures" {
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
models = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
assert m["cpu_model"] == (models[0] if models else None), m
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

@test "counters, if the machine has them" {
  make_workload churn 2 100000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'c = d["counters"]
assert c["page_faults"] >= d["peak_rss_bytes"] // os.sysconf("SC_PAGESIZE") > 0, c
assert c["context_switches"] >= 0 and c["page_faults"] == sum(d["runs"][0][k] for k in ("minor_faults", "major_faults"))
hardware = [c[k] for k in ("cycles", "instructions", "cache_misses", "dtlb_misses")]
assert (None in hardware) == (c["missing_reason"] is not None), c
# A call needs more than one instruction.
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
# On a busy machine, the recorder may run late, but must sample the peak.
for i in range(40):
  bytearray(300)
  time.sleep(0.01)
END
  PYTHONMALLOC=malloc record_with_samples 21 a.ht python3 grow.py
  "$HEAPTAPE" convert -q -o a.htw a.ht
  "$HEAPTAPE" replay -q -r 1 --no-latency --json a.htw >out.json
  json 'f = d["fidelity"]
assert f["same_allocator"] and f["rss_missing_reason"] is None and f["recorded_allocator"] == d["allocator"]["library"], f
r = f["rss"]
assert r["samples"] > 20 and r["recorded_peak_bytes"] > 28e6 and r["replayed_peak_bytes"] == d["peak_rss_bytes"] - d["baseline_rss_bytes"], r
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
  has "$(cat out)" "the RSS of the whole process is not predicted: the recorded allocator, without tunables and trims, is not among"
  [[ "$(cat out)" != *"process RSS"* ]]
}

@test "memory is rated if the program's samples allow it" {
  skip_under_sanitizer
  # glibc would write to all blocks in malloc, before the event of the call.
  unset MALLOC_PERTURB_
  cat >uses.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static void work(void) // 0.2 s of CPU time
{
    for (clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;)
        continue;
}
int main(int argc, char **argv)
{
    size_t half = 16 << 20;
    char *block = malloc(2 * half), *map = MAP_FAILED;
    memset(block, 1, half);
    work();
    memset(block, 1, 2 * half);
    if (argc > 1)
        map = mmap(NULL, half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc > 2)
        memset(map, 1, half);
    work();
    free(block);
    return map == block;
}
END
  cc -O0 -o uses uses.c -Wl,--no-as-needed -lstdc++
  record_and_compare() {
    # On a busy machine, there may be few samples, or no map of pages, which shows the memory of the
    # recording.
    for _ in 1 2 3 4; do
      "$HEAPTAPE" record -q -f -o t.ht "$@"
      [ "$("$HEAPTAPE" export -q -F csv -t samples t.ht | wc -l)" -lt 12 ] ||
        [ "$("$HEAPTAPE" stat --rss --json t.ht | jq .page_maps)" -eq 0 ] || break
    done
    "$HEAPTAPE" convert -q -f -o t.htw t.ht
    "$HEAPTAPE" compare -q -r 1 --no-latency -a glibc -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" t.htw >out
    "$HEAPTAPE" replay -q -r 1 --no-latency --json t.htw >out.json
  }
  record_and_compare -- ./uses
  mv t.htw cxx.htw
  json 'r = d["fidelity"]["rss"]
assert r["samples"] >= 8 and 0.98 < r["peak_ratio"] < 1.02, r
assert d["process_rss_missing_reason"] is None and d["outside_rss_bytes"] < 4 << 20, d["outside_rss_bytes"]
assert d["process_peak_rss_bytes"] == d["peak_rss_bytes"] + d["outside_rss_bytes"], d'
  has "$(cat out)" "process      its peak RSS is predicted"
  # Without a map of pages, the memory of the recording is unknown.
  maps=$("$HEAPTAPE" stat --rss --json t.ht | jq .page_maps)
  [ "$(jq .process_rss_has_recording out.json)" = "$([ "$maps" -eq 0 ] && echo true || echo false)" ]
  [ "$(grep -c 'too high by the memory of heaptape in the recorded process' out)" -eq "$((maps == 0))" ]
  "$HEAPTAPE" replay -q -r 1 --no-latency cxx.htw >text
  [ "$(grep -c 'too high by the memory of heaptape in the recorded process' text)" -eq "$((maps == 0))" ]
  grep -q "^\(! \)\?recorded on glibc: peak RSS [01].[09]" out
  grep -q "time/event process RSS .*outside heap   peak RSS" out
  record_and_compare -- ./uses map touched
  json 'r = d["fidelity"]["rss"]
assert r["far_off"] and 0.6 < r["peak_ratio"] < 0.7, r
process, outside = d["process_peak_rss_bytes"], d["outside_rss_bytes"] # 16 MiB of them are mapped
assert 48 << 20 < process < 52 << 20 and 16 << 20 < outside < 20 << 20, (process, outside)
t = d["process_timeline"]
assert len(t) == len(d["timeline"]) and all(r[2] - r[3] == s[2] for r, s in zip(t, d["timeline"])), t
assert process - (1 << 20) < max(r[2] for r in t) <= process, t'
  grep -q "^! recorded on glibc: peak RSS 0.6.*memory in the other rows may be off by as much" out
  grep -q "time/event ! process RSS .* ! peak RSS" out
  record_and_compare --maps -- ./uses map touched
  json 'r = d["fidelity"]["rss"]
assert 0.98 < r["peak_ratio"] < 1.02 and r["recorded_mappings_bytes"] == 16 << 20, r'
  # A busy machine takes five samples of `ls`, but none between two calls of a program that calls
  # malloc once.
  echo 'int main(void) { return !__builtin_malloc(100); }' | cc -O0 -x c -o brief -
  record_and_compare -- ./brief
  json 'f = d["fidelity"]
assert f["rss"] is None and "too few samples" in f["rss_missing_reason"], f'
  has "$(cat out)" "memory cannot be judged, because the recording has too few samples of the program's memory"
  # jemalloc loads the C++ library, which `uses` had loaded, but `brief` had not.
  if jemalloc=$("$HEAPTAPE" allocators | grep -o '/[^ ]*libjemalloc[^ ]*') && ldd "$jemalloc" | grep -q libstdc++; then
    for of in cxx t; do
      "$HEAPTAPE" replay -q -r 1 --no-latency --json -a jemalloc $of.htw | jq .library_bytes >$of.bytes
    done
    expect "$(cat cxx.bytes) and $(cat t.bytes)" [ $(($(cat t.bytes) - $(cat cxx.bytes))) -gt 300000 ]
  fi
}

@test "the C++ library of a program is known without a map of the program's pages" {
  jemalloc=$("$HEAPTAPE" allocators | grep -o '/[^ ]*libjemalloc[^ ]*') || skip "no jemalloc"
  ldd "$jemalloc" | grep -q libstdc++ || skip "jemalloc without C++"
  for library in libc.so.6 libstdc++.so.6; do
    # shellcheck disable=SC2016 # perl's
    "$HEAPTAPE" record -q --no-pages -o t.ht -- perl -MDynaLoader -e 'DynaLoader::dl_load_file($ARGV[0]) or die; select undef, undef, undef, 1' "$library"
    "$HEAPTAPE" convert -q -f -o t.htw t.ht
    "$HEAPTAPE" replay -q -r 1 --no-latency --json -a jemalloc t.htw | jq .library_bytes >$library.bytes
    rm t.ht
  done
  bytes=($(cat libc.so.6.bytes libstdc++.so.6.bytes))
  expect "${bytes[*]}" [ $((bytes[0] - bytes[1])) -gt 300000 ]
}

@test "the reserve of the C++ library, which the program has allocated, is allocated once" {
  skip_under_sanitizer
  # This allocator prints the number of big blocks that are live at exit.
  echo '#include <malloc.h>
#include <stdio.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static int live;
void *calloc(size_t n, size_t size) { return __libc_calloc(n, size); }
void *realloc(void *at, size_t n) { return __libc_realloc(at, n); }
void *malloc(size_t n) { return live += n > 70000, __libc_malloc(n); }
void free(void *at) { live -= at && malloc_usable_size(at) > 70000, __libc_free(at); }
__attribute__((destructor)) static void end(void) { dprintf(2, "live %d\n", live); }' >counts.c
  cc -shared -fPIC -o counts.so counts.c -Wl,--no-as-needed -lstdc++
  echo '#include <stdlib.h>
#include <unistd.h>
int main(void) { free(malloc(100)); return usleep(300000); }' >main.c
  cc -O0 -o c main.c
  cc -O0 -o cxx main.c -Wl,--no-as-needed -lstdc++
  for program in c cxx; do
    "$HEAPTAPE" record -q -o $program.ht -- ./$program
    "$HEAPTAPE" replay -q -r 1 --no-latency -a ./counts.so $program.ht >$program.out 2>&1
  done
  expect "$(cat c.out cxx.out)" [ "$(grep -c '^live 0$' c.out) $(grep -c '^live 0$' cxx.out)" = '0 1' ]
}

@test "an allocator that the program is linked with is in the process on every allocator" {
  skip_under_sanitizer
  tcmalloc=$("$HEAPTAPE" allocators | grep -o '/[^ ]*libtcmalloc[^ ]*') || skip "no tcmalloc"
  echo '#include <stdlib.h>
#include <unistd.h>
int main(void) { free(malloc(100)); return usleep(300000); }' | tee alone.c >linked.c
  cc -o alone alone.c
  cc -o linked linked.c -Wl,--no-as-needed "$tcmalloc" -lm
  for program in alone linked; do
    LD_PRELOAD=libc.so.6 "$HEAPTAPE" record -q -o $program.ht -- ./$program
    "$HEAPTAPE" convert -q -o $program.htw $program.ht
    "$HEAPTAPE" replay -q -r 1 --no-latency --json -a tcmalloc $program.htw >out.json
    jq '.baseline_rss_bytes, .library_bytes' out.json >$program.bytes
  done
  alone=($(cat alone.bytes)) linked=($(cat linked.bytes))
  expect "${alone[*]} and ${linked[*]}" [ "${linked[0]}" -eq 0 ]
  expect "${alone[*]} and ${linked[*]}" [ "${alone[0]}" -gt 1000000 ]
  expect "${alone[*]} and ${linked[*]}" [ $((alone[1] - linked[1])) -gt 300000 ]
  # An allocator that was only preloaded is not in the process on other allocators.
  "$HEAPTAPE" record -q -f -a tcmalloc -o alone.ht -- ./alone
  "$HEAPTAPE" convert -q -f -o alone.htw alone.ht
  "$HEAPTAPE" replay -q -r 1 --no-latency --json -a tcmalloc alone.htw | jq .baseline_rss_bytes >alone.bytes
  expect "$(cat alone.bytes)" [ "$(cat alone.bytes)" -gt 1000000 ]
}

@test "recorded pace, and N times that" {
  make_workload paced 3 50
  # A busy machine may delay a call, and all calls after it. Repeat the replay if the machine delayed
  # the end of a thread or the measurement of the overhead, which does not keep the pace.
  paced() {
    local speed=$1 min_s=$2 max_s=$3
    for _ in 1 2 3 4 5 6; do
      "$HEAPTAPE" replay -q -r 1 --no-latency --json --speed "$speed" --idle 1 w.htw >out.json
      jq -c '[.wall_ns, .max_lag_ns, .overhead_ns_per_event * .events]' out.json
      jq -e "(.wall_ns >= $max_s * 1e9 + 2 * .max_lag_ns) or (.overhead_ns_per_event * .events >= .2e9)" out.json || break
    done
    json 'assert float(sys.argv[1]) * 1e9 <= d["wall_ns"] < float(sys.argv[2]) * 1e9 + 2 * d["max_lag_ns"]
assert d["overhead_ns_per_event"] * d["events"] < 0.2e9' "$min_s" "$max_s"
  }
  paced recorded 0.49 0.9
  json 'assert d["speed"] == 1 and d["rss_after_idle_bytes"] is not None and d["max_lag_ns"] >= 0'
  paced x5 0.098 0.4
  json 'assert d["speed"] == 5'
  # No replay can keep a pace at which all calls are due at once.
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --speed x1000000 w.htw >out.json
  json 'assert d["max_lag_ns"] > 0'
  # Without a pace, the replay does not wait. The fastest of several runs has few interruptions.
  "$HEAPTAPE" replay -q -r 20 --no-latency --json w.htw >out.json
  json 'least = min(r["wall_ns"] for r in d["runs"])
assert least < 0.09e9 and d["speed"] is None, least'
  VERIFY_COUNTS=$PWD/counts "$HEAPTAPE" replay -q -r 1 --no-latency --speed x20 --idle 1 \
    -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw >out
  sort counts | diff expected -
}

@test "without the timed run, only counts are printed" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json w.htw >out.json
  json 'assert d["calls"]["malloc"] == {"count": 10500}, d["calls"]'
}

@test "a pace waits before the last measurement of memory, unless --idle is 0" {
  make_workload paced 2 20
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --speed x100 --idle 0 w.htw >out.json
  json 'assert d["rss_after_idle_bytes"] is None, d["rss_after_idle_bytes"]'
  "$HEAPTAPE" replay -q -r 1 --no-latency --json --speed x100 --idle 0.2 w.htw >out.json
  json 'assert d["rss_after_idle_bytes"] is not None'
  heaptape replay --idle 1x w.htw
  usage_fails "--idle: '1x' is not a number of seconds or a time such as 10m"
  heaptape replay --idle 100000 w.htw
  usage_fails "--idle: '100000' is not at most 86400 seconds"
  # The time limit is below the interval of the checks. The replay ends in any case.
  run timeout 60 "$HEAPTAPE" replay -q -r 1 --timeout 1ns w.htw
  [ "$status" -ne 124 ]
}

@test "one suspended call is counted, but not part of the mean" {
  make_workload churn 1 20000
  cc -shared -fPIC -o slow.so -xc - <<'END'
#include <stdlib.h>
#include <unistd.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { static int calls; if (++calls == 5000) usleep(500000); return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
END
  "$HEAPTAPE" replay -q -r 1 --json -a ./slow.so w.htw >out.json
  json 'm = d["calls"]["malloc"]
# With that call, the mean would be at least its time divided by the number of calls.
assert m["outliers"] >= 1 and m["max_ns"] > 4.9e8 and m["mean_ns"] < m["max_ns"] / m["count"], m
assert sum(c["outliers"] for c in d["calls_by_size"]) >= 1'
  "$HEAPTAPE" replay -q -r 1 -a ./slow.so w.htw >out
  grep -E '^means without [0-9 ]+ outliers?: calls of over 10 µs and ten times the p99$' out
}

@test "differing live bytes are reported with the number of points" {
  make_workload churn 4 20000
  # Threads interleave at random: twenty runs in the recorded order do not happen.
  for _ in {1..20}; do
    "$HEAPTAPE" replay -q -r 1 --no-latency w.htw >out
    ! grep -q "max difference" out || break
  done
  grep -E "live bytes equal the recorded ones at [0-9 ]+ of [0-9 ]+ points, max difference [0-9.]+ ([KM]i)?B: " out
}
