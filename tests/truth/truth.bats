# Programs that know their own order, under real capture: the workload must have it.
load ../helper

# ALLOCATOR THREADS: records the truth program, converts it strictly and compares.
truth_holds() {
  local how=() name=$1
  [ "$1" = glibc ] && how=(env GLIBC_TUNABLES=glibc.malloc.tcache_count=0) || how=(env)
  [ "$1" = glibc ] && name= || name="-a $1"
  "${how[@]}" "$HEAPTAPE" record -q -f $name -o a.ht -- "$HEAPTAPE_PROGRAMS/truth" $2 ${3:-20000} log
  "$HEAPTAPE" convert -q -f --strict -o a.htw a.ht
  "$HEAPTAPE_PROGRAMS/check_truth" a.htw log
  "$HEAPTAPE" stat --json a.htw >stat.json
  python3 -c 'import json
o = json.load(open("stat.json"))["order"]
print("repaired", o["repaired"])
assert o["ambiguous"] == 0'
  heaptape replay -q -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-verify.so" a.htw
  expect "a replay that the verifying allocator passes" [ "$status" -eq 0 ]
}

is_installed() {
  "$HEAPTAPE" allocators --json | python3 -c 'import json, sys
for a in json.load(sys.stdin)["allocators"]:
  if a["name"] == sys.argv[1] and a["available"]: sys.exit(0)
sys.exit(1)' "$1" || skip "$1 is not installed"
}

@test "truth: 2, 4 and 16 threads on glibc without thread caches" {
  skip_under_sanitizer
  for threads in 2 4 16; do truth_holds glibc $threads; done
}

@test "truth: 2, 4 and 16 threads on jemalloc" {
  skip_under_sanitizer
  is_installed jemalloc
  for threads in 2 4 16; do truth_holds jemalloc $threads; done
}

@test "truth: 2, 4 and 16 threads on mimalloc" {
  skip_under_sanitizer
  is_installed mimalloc
  for threads in 2 4 16; do truth_holds mimalloc $threads; done
}

@test "truth: an edge that is missing, and a call that was not made, are seen" {
  skip_under_sanitizer
  truth_holds glibc 4 2000
  local waits=$("$HEAPTAPE_PROGRAMS/check_truth" a.htw log | sed 's/.* ops, \([0-9]*\) waits.*/\1/')
  for n in 1 $((waits / 3)) $((waits / 2)) $waits; do
    run "$HEAPTAPE_PROGRAMS/check_truth" --drop $n a.htw log
    expect "wait $n is needed" [ "$status" -eq 1 ]
    has "$output" "does not come after op"
  done
  head -c -24 log >short
  run "$HEAPTAPE_PROGRAMS/check_truth" a.htw short
  has "$output" "does more than it says"
  tail -c 24 log | cat log - >long
  run "$HEAPTAPE_PROGRAMS/check_truth" a.htw long
  [ "$status" -eq 1 ]
}
