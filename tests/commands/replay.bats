load replay_helper

# glibc fills each block of heaptape and of the player.
export MALLOC_PERTURB_=$((RANDOM % 255 + 1))

@test "one thread: each call is made" {
  make_workload churn 1 50000
  replay_verified
}

@test "every kind of call, failed calls and preexisting blocks" {
  make_workload kinds 1 20000
  replay_verified
  replay_verified --touch none
  replay_verified --touch all
}

@test "two threads that free each other's blocks" {
  make_workload churn 2 50000 30
  for _ in 1 2; do replay_verified; done
}

@test "16 threads that free each other's blocks" {
  make_workload churn 16 2000 50
  for _ in 1 2; do replay_verified; done
}

@test "threads without a thread that starts them" {
  make_workload orphans 4 20000 20
  for _ in 1 2; do replay_verified; done
}

@test "every kind of call, from 8 threads" {
  make_workload kinds 8 20000
  for _ in 1 2; do replay_verified; done
}

@test "5,000 threads, a few at a time" {
  make_workload threads 5000 8
  replay_verified
}

@test "timed replay makes the same calls" {
  make_workload kinds 2 5000
  VERIFY_COUNTS=$PWD/counts "$HEAPTAPE" replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw >out
  sort counts | diff expected -
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
  # The last four caches may be freed too late to be counted.
  [ "$(head -n 1 caches)" = "made 41" ]
  n=$(sed -n 's/^freed //p' caches)
  [ "$n" -ge 36 ]
  [ "$n" -le 40 ]
}

@test "each installed allocator" {
  make_workload kinds 2 5000
  "$HEAPTAPE" allocators --json >out.json
  json 'print("\n".join(a["name"] for a in d["allocators"] if a["available"]))' >names
  [ "$(head -n 1 names)" = glibc ]
  while read -r name; do
    "$HEAPTAPE" replay -q -r 1 --json -a "$name" w.htw >out.json
    json 'assert d["allocator"]["name"] == sys.argv[1] and d["wall_ns"] > 0' "$name"
  done <names
}

@test "tunables reach the allocator" {
  make_workload churn 1 100
  "$HEAPTAPE" replay -r 1 --no-latency -a glibc,GLIBC_TUNABLES=glibc.malloc.check=3,LD_SHOW_AUXV=1 w.htw 2>said
  has "$(cat said)" AT_SYSINFO
}

@test "stdin" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q -r 1 --no-latency --json - <w.htw >out.json
  json 'assert d["events"] == 21000'
}

@test "a library without an allocator" {
  make_workload churn 1 100
  heaptape replay -a "$HEAPTAPE_PROGRAMS/libtest-bogus.so" w.htw
  fails_with 1 "libtest-bogus.so: malloc is not from $(realpath "$HEAPTAPE_PROGRAMS")/libtest-bogus.so, but from /" libc
}

@test "a file that cannot be preloaded" {
  make_workload churn 1 100
  echo nonsense >bad.so
  heaptape replay -a ./bad.so w.htw
  fails_with 1 "bad.so: malloc is not from $PWD/bad.so, but from" "cannot be preloaded (file too short)"
  # An object file is not a library.
  echo 'int x;' | cc -c -x c -o x.o -
  heaptape replay -a ./x.o w.htw
  fails_with 1 "x.o: malloc is not from $PWD/x.o, but from" "cannot be preloaded (only ET_DYN"
}

@test "a missing allocator" {
  make_workload churn 1 100
  heaptape replay -a ./none.so w.htw
  fails_with 1 "./none.so: No such file or directory"
  heaptape replay -a jemalooc w.htw
  fails_with 1 "jemalooc: unknown allocator"
}

@test "an allocator that crashes, exits or has no memory" {
  make_workload churn 1 1000
  faulty=$HEAPTAPE_PROGRAMS/libtest-faulty.so
  heaptape replay -a "$faulty,FAULTY=crash,FAULTY_AT=5000" w.htw
  fails_with 1 "libtest-faulty.so: ended by signal 11 (Segmentation fault) during the replay"
  heaptape replay -a "$faulty,FAULTY=exit,FAULTY_AT=5000" w.htw
  fails_with 1 "libtest-faulty.so: ended by exit status 0 during the replay"
  heaptape replay -a "$faulty,FAULTY=crash,FAULTY_AT=0" w.htw
  fails_with 1 "libtest-faulty.so: ended by signal 11"
  heaptape replay -a "$faulty,FAULTY=null,FAULTY_AT=4999" w.htw
  # libc has made some calls before.
  fails_with 1 "libtest-faulty.so: out of memory: malloc of " " bytes failed at op 49" " of thread 0"
}

@test "a replay that makes fewer calls than planned fails" {
  make_workload churn 1 1000
  faulty=$HEAPTAPE_PROGRAMS/libtest-faulty.so,FAULTY=plan
  for mode in "" --verify --latency "--memory 1M" "--threads one"; do
    # shellcheck disable=SC2086
    heaptape replay -q -r 1 --no-cache $mode -a "$faulty" w.htw
    expect "undamaged with $mode" [ "$status" -eq 0 ]
  done
  for mode in "" --verify --latency "--threads one"; do
    # shellcheck disable=SC2086
    heaptape replay -q -r 1 --no-cache $mode -a "$faulty,FAULTY_AT=99" w.htw
    fails_with 1 "libtest-faulty.so: made " " of the " " calls of the plan: the plan is damaged"
  done
}

@test "aligned allocations that an allocator refuses are skipped, counted and named" {
  local strict=$HEAPTAPE_PROGRAMS/libtest-faulty.so,FAULTY=strict how
  cat >log <<'LOG'
5 malloc(100)=0x1000
5 aligned_alloc(24,240)=0x2000
5 realloc(0x2000,500)=0x2000
5 free(0x2000)
5 memalign(40,70000)=0x3000
5 memalign(64,70000)=0x20000
5 free(0x3000)
5 malloc(70000)=0x3000
5 free(0x3000)
5 free(0x20000)
LOG
  "$HEAPTAPE" import -q -F logalloc -o w.htw log
  for how in "--touch page" "--touch all" "--touch none" "--threads one" --latency; do
    # shellcheck disable=SC2086
    heaptape replay $how -r 1 -a "$strict" w.htw
    expect "status 0 with $how" [ "$status" -eq 0 ]
    has "$output" "refused      2 calls, which are skipped: first aligned_alloc of 240 bytes aligned to 24, which is not a power of two"
  done
  heaptape replay --json -r 1 -a "$strict" w.htw
  [ "$(jq -c '[.refused_calls, .first_refused, .runs[0].refused_calls]' <<<"$output")" = '[2,{"call":"aligned_alloc","bytes":240,"alignment":24},2]' ]
  heaptape compare -r 1 -a glibc -a "$strict" w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "FAULTY=strict refused 2 calls, which are skipped: first aligned_alloc of 240 bytes"
  [ "$(grep -c refused <<<"$output")" -eq 1 ]
  heaptape replay --verify -r 1 -a "$strict" w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "refused 2 calls, which are skipped"
  heaptape replay --verify --json -r 1 -a "$strict" w.htw
  [ "$(jq -c '[.verify.refused_calls, .verify.first_refused.alignment]' <<<"$output")" = '[2,24]' ]
}

@test "a valid alignment that an allocator refuses, and no memory for an aligned block" {
  cat >log <<'LOG'
5 memalign(4096,100)=0x1000
5 memalign(64,100)=0x2000
5 free(0x1000)
LOG
  "$HEAPTAPE" import -q -F logalloc -o w.htw log
  heaptape replay -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-faulty.so,FAULTY=large" w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "refused      1 call, which is skipped: first memalign of 100 bytes aligned to 4096"
  heaptape replay -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-faulty.so,FAULTY=full" w.htw
  fails_with 1 "libtest-faulty.so: out of memory: memalign of 100 bytes failed at op 0 of thread 0"
  heaptape replay --json -r 1 -a glibc w.htw
  [ "$(jq -c '[.refused_calls, .first_refused]' <<<"$output")" = '[0,null]' ]
}

@test "errors found by the checking allocator are reported" {
  make_workload churn 1 1000
  # The workload frees blocks of malloc with delete. The checking allocator must report this.
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw misfit 1 10
  heaptape replay -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" w.htw
  fails_with 1 "ended by signal 6 (Aborted) during the replay: in " ": verify: block freed by a function of another family"
}

@test "too little memory for the tables" {
  make_workload churn 1 1000000
  heaptape replay --memory 64K w.htw
  fails_with 1 "w.htw: op " "the table of slots does not fit into the memory allowed (try a larger --memory)"
  make_workload threads 2000 8
  heaptape replay --memory 64K w.htw
  fails_with 1 "the plan does not fit into 32 KiB of memory (try a larger --memory)"
}

@test "a trace is converted before the replay" {
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

@test "files that are not workloads" {
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

@test "a truncated workload is refused" {
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
  usage_fails "only one allocator is allowed"
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

@test "the player started by hand explains itself" {
  player=$HEAPTAPE_BUILD/src/replay/player/heaptape-replay
  run "$player"
  [ "$status" -eq 2 ]
  has "$output" "heaptape replay"
}

@test "a thread that had not exited by the end of the recording lives until the last call" {
  cat >lives.c <<'END'
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>
static sem_t called;
static void *end(void *unused) { free(malloc(10)); return unused; }
static void *stay(void *unused) { free(malloc(11)); sem_post(&called); pause(); return unused; }
int main(void) {
  pthread_t ends, stays;
  pthread_create(&ends, NULL, end, NULL);
  pthread_join(ends, NULL);
  pthread_create(&stays, NULL, stay, NULL);
  sem_wait(&called);
  for (int i = 0; i < 50000; i++) free(malloc(100));
  return 0;
}
END
  gcc -w -pthread -o lives lives.c
  "$HEAPTAPE" record -q -f -o t.ht ./lives
  for memory in 8G 512K; do
    rm -f ends
    ENDS=$PWD/ends "$HEAPTAPE" replay -q -r 1 --no-latency --memory $memory \
      -a "$HEAPTAPE_PROGRAMS/libtest-ends.so" t.ht
    cat ends
    [ "$(grep -c '^10 ' ends)" -gt 0 ]
    [ "$(grep -c '^10 ' ends)" -eq "$(awk '$1 == 11 && $2 > 50000' ends | wc -l)" ]
  done
}

@test "a thread starts after the exits that preceded its start in the recording" {
  cat >relay.c <<'END'
#include <pthread.h>
#include <stdlib.h>
static void *call(void *unused) { free(malloc(10)); return unused; }
int main(void) {
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, call, NULL);
    pthread_join(thread, NULL);
  }
  return 0;
}
END
  gcc -w -pthread -o relay relay.c
  "$HEAPTAPE" record -q -f -o t.ht ./relay
  for memory in 8G 512K; do
    rm -f ends
    ENDS=$PWD/ends ENDS_US=20000 "$HEAPTAPE" replay -q -r 1 --no-latency --memory $memory \
      -a "$HEAPTAPE_PROGRAMS/libtest-ends.so" t.ht
    cat ends
    [ "$(awk '{ print $2 }' ends | sort -u | wc -l)" -eq 20 ]
  done
}
