load replay_helper

# same_when_streamed MEMORY THREADS: the results of w.htw must not depend on streaming.
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

@test "a workload larger than the memory limit is streamed" {
  make_workload churn 1 300000
  for _ in 1 2; do replay_verified --memory 512K; done
  same_when_streamed 512K
  replay_verified --memory 512K --threads one
  "$HEAPTAPE" replay -q -r 1 --memory 512K --verify w.htw
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

@test "streamed: threads that constantly wait for each other" {
  make_workload kinds 16 50000
  for _ in 1 2; do replay_verified --memory 500K; done
  same_when_streamed 500K
  "$HEAPTAPE" replay -q -r 1 --memory 500K --verify w.htw
  replay_verified --memory 500K --threads one
  make_workload churn 16 5000 80
  for _ in 1 2; do replay_verified --memory 8M; done
  make_workload orphans 4 20000 30
  replay_verified --memory 3M
}

@test "streamed: threads that constantly start and exit" {
  make_workload threads 3000 20
  replay_verified --memory 1M
  same_when_streamed 1M
}

@test "streamed: a file that changes after it was read" {
  make_workload churn 1 300000
  cp w.htw other.htw
  make_workload churn 1 250000
  mv w.htw short.htw
  # When the allocator is loaded, after the scan, it replaces the file.
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
  cp other.htw before.htw
  "$HEAPTAPE" replay -q -r 2 --no-latency --memory 512K --json -a ./swap.so other.htw >out.json
  expect "the file has changed" [ "$(cmp -s other.htw before.htw; echo $?)" -eq 1 ]
  json 'assert d["events"] == 320000, d["events"]'
}
