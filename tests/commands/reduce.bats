load ../helper

buggy() {
  echo "$HEAPTAPE_PROGRAMS/libtest-buggy.so,BUG=$1,BUG_AT=$2"
}

make_workload() {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw "$@" >/dev/null
}

# ops FILE: the number of its events, with preexisting blocks.
ops() {
  "$HEAPTAPE" dump "$1" | wc -l
}

valid() {
  "$HEAPTAPE" check -q "$1"
}

@test "reduce: a violation of the malloc contract, to the call that violates it" {
  make_workload kinds 2 3000
  heaptape reduce --keep "$(buggy zero 0): verify" -o small.htw w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "small.htw: 1 of "
  has "$stderr" "small.htw: the problem occurs in 10 of 10 replays"
  valid small.htw
  [ "$(ops small.htw)" -eq 1 ]
  has "$("$HEAPTAPE" dump small.htw)" "calloc("
  # A workload that cannot become smaller needs fewer replays.
  heaptape reduce --keep "$(buggy zero 0): verify" -o same.htw small.htw
  has "$stderr" "same.htw: 1 of 1 event ("
  [ "${#stderr_lines[@]}" -eq 1 ]
  heaptape replay -q --verify -r 10 -a "$(buggy zero 0)" small.htw
  fails_with 1 "not zeroed: calloc of "
}

# The fifth call with an alignment ignores it.
@test "reduce: keeps the blocks that the violation needs, and no other kind" {
  make_workload kinds 1 3000
  heaptape reduce -q -a "$(buggy unaligned 4)" --keep verify -o small.htw w.htw
  expect "status 0" [ "$status" -eq 0 ]
  valid small.htw
  heaptape replay -q --verify -r 1 -a "$(buggy unaligned 4)" small.htw
  fails_with 1 "misaligned: "
  # The result contains only aligned blocks: five allocations, and the last one fails. If an address
  # is aligned by chance, the result also contains the free of an earlier block.
  "$HEAPTAPE" dump small.htw >dump.txt
  [ "$(grep -c ' = #' dump.txt)" -eq 5 ]
  [ "$(grep -cE 'align|valloc| free\(' dump.txt)" -eq "$(wc -l <dump.txt)" ]
  [ "$(grep -c ' free(' dump.txt)" -le 4 ]
}

@test "reduce: a crash stays a crash by the same signal" {
  cat >crash.c <<'END'
#include <stddef.h>
void *__libc_malloc(size_t); void __libc_free(void *); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *malloc(size_t n) { if (n == 777) __builtin_trap(); if (n == 778) *(volatile int *)8 = 1; return __libc_malloc(n); }
void free(void *p) { __libc_free(p); }
void *calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return __libc_realloc(p, n); }
END
  cc -O1 -fno-builtin -shared -fPIC -o crash.so crash.c
  for i in $(seq 1 300); do echo "0 $((1000 * i)) malloc size=$((i == 200 ? 778 : i == 250 ? 777 : i)) result=$((65536 * i))"; done >calls
  { echo "process 100 prog"; cat calls; echo end; } | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  heaptape reduce --keep "$PWD/crash.so: crash" -o small.htw a.ht
  expect "status 0" [ "$status" -eq 0 ]
  [ "$("$HEAPTAPE" dump small.htw | sed 's/.* malloc/malloc/')" = "malloc(778) = #0" ]
}

@test "reduce: memory, with a minimum for the dividend of a quotient" {
  skip_under_sanitizer
  make_workload holes 1 10000
  # A slow machine needs a larger budget.
  for seconds in 5 20 80; do
    heaptape reduce -f -b $seconds --keep 'glibc: end_rss/live_at_end > 1.5' --keep 'glibc: live_at_end > 64KiB' --floor 512K \
      -o small.htw w.htw
    expect "status 0" [ "$status" -eq 0 ]
    echo "$stderr"
    [ "$(ops small.htw)" -ge $(($(ops w.htw) / 2)) ] || break
  done
  valid small.htw
  [ "$(ops small.htw)" -lt $(($(ops w.htw) / 2)) ]
  for i in 1 2 3 4 5 6 7 8 9 10; do
    "$HEAPTAPE" replay -q --json -r 1 -a glibc small.htw >out.json
    python3 -c 'import json
d = json.load(open("out.json"))
assert d["end_rss_bytes"] / d["live_at_end_bytes"] > 1.5, d["end_rss_bytes"]
assert d["end_rss_bytes"] >= 512 << 10 and d["live_at_end_bytes"] > 64 << 10'
  done
}

@test "reduce: latencies, with enough calls" {
  skip_under_sanitizer
  make_workload dependencies 2 1000 0
  # A slow machine needs a larger budget.
  for seconds in 8 30 100; do
    heaptape reduce -f -b $seconds -r 2 --keep "$HEAPTAPE_PROGRAMS/libtest-slow.so: free.p99 > 90us" -o small.htw w.htw
    expect "status 0" [ "$status" -eq 0 ]
    echo "$stderr"
    frees=$("$HEAPTAPE" dump small.htw | grep -c ' free(#')
    [ "$frees" -ge 600 ] || break
  done
  valid small.htw
  [ "$frees" -ge 100 ]
  [ "$frees" -lt 600 ]
}

@test "reduce: a condition that a command checks" {
  make_workload kinds 2 500
  heaptape reduce --keep-cmd "\"$HEAPTAPE\" check -q %f && \"$HEAPTAPE\" dump %f | grep -q 'pvalloc('" -o small.htw w.htw
  expect "status 0" [ "$status" -eq 0 ]
  valid small.htw
  [ "$(ops small.htw)" -eq 1 ]
}

@test "reduce: dependencies between threads stay valid in every candidate" {
  make_workload churn 4 300 40
  heaptape reduce -b 8 --keep-cmd "\"$HEAPTAPE\" check -q %f || echo bad >>bad; [ \$(\"$HEAPTAPE\" dump %f | grep -c after) -ge 3 ]" -o small.htw w.htw
  expect "status 0" [ "$status" -eq 0 ]
  valid small.htw
  [ "$("$HEAPTAPE" dump small.htw | grep -c after)" -ge 3 ]
  [ ! -e bad ]
}

@test "reduce: a condition that does not hold is refused with the measured value" {
  make_workload churn 1 1000
  heaptape reduce --keep 'glibc: peak_live < 1B' -o small.htw w.htw
  fails_with 1 "w.htw: --keep 'glibc: peak_live < 1B' holds in 0 of 1 replays: the left side is " "the right side 1"
  [ ! -e small.htw ]
  heaptape reduce --keep 'glibc: verify' -o small.htw w.htw
  fails_with 1 "the replay ends without an error"
  heaptape reduce --keep-cmd 'exit 3' -o small.htw w.htw
  fails_with 1 "--keep-cmd 'exit 3' holds in 0 of 1 replays: its exit status is 3"
  heaptape reduce --keep 'valloc.p999 > 1ns' -o small.htw <(cat w.htw)
  fails_with 1 "too few calls"
}

@test "reduce: invalid conditions" {
  make_workload churn 1 10
  heaptape reduce -o small.htw w.htw
  usage_fails "--keep CONDITION or --keep-cmd COMMAND is required"
  heaptape reduce --keep-cmd " " w.htw
  usage_fails "--keep-cmd: the command is empty"
  for bad in 'peak_rss' 'peak_rss >' '> 2' 'peak_rsss > 2' 'peak_rss > 2 3' '(peak_rss > 2' 'peak_rss > 2QiB' '1 > 2' 'malloc.p98 > 1' \
    'mallocc.p99 > 1' 'malloc. > 1' '. > 1' 'verified' '' 'peak_rss/(((((((((((((((((((((1))))))))))))))))))))) > 1'; do
    heaptape reduce --keep "$bad" -o small.htw w.htw
    usage_fails "--keep '$bad': expected verify, crash, hang or a comparison"
  done
  heaptape reduce --keep 'no-such-allocator: crash' -o small.htw w.htw
  fails_with 1 "no-such-allocator"
  [ ! -e small.htw ]
}

@test "reduce: a damaged workload, an empty one, an output that exists" {
  make_workload churn 1 1000
  head -c 5000 w.htw >cut.htw
  heaptape reduce --keep 'peak_rss > 0' -o small.htw cut.htw
  fails_with 1 "cut.htw: "
  python3 -c 'b = bytearray(open("w.htw", "rb").read()); b[3000] ^= 255; open("bad.htw", "wb").write(b)'
  heaptape reduce --keep 'peak_rss > 0' -o small.htw bad.htw
  fails_with 1 "bad.htw: "
  heaptape reduce --keep 'peak_rss > 0' -o small.htw none.htw
  fails_with 1 "none.htw: "
  [ ! -e small.htw ]
  echo mine >small.htw
  heaptape reduce -b 1 --keep 'peak_live > 0' -o small.htw w.htw
  fails_with 1 "small.htw: exists"
  [ "$(cat small.htw)" = mine ]
}

# has_ended PID: the process does not exist, or is a zombie of a parent that does not wait for it.
has_ended() {
  [ -z "$(grep -s '^State:' "/proc/$1/status" | grep -v Z)" ]
}

@test "reduce: an interrupt writes the best result so far, and leaves no processes or files" {
  make_workload churn 2 20000 10
  mkdir tmp
  # The condition is checked 12 times before the search stops for the signal, however fast it is.
  cat >condition <<'END'
echo >>count
[ "$(wc -l <count)" -le 12 ] || { echo $$ >>waiting; exec sleep 3600; }
[ "$("$HEAPTAPE" dump "$1" | wc -l)" -gt 1000 ]
END
  TMPDIR=$PWD/tmp "$HEAPTAPE" reduce --keep-cmd "exec bash condition %f" -o small.htw w.htw 2>err &
  pid=$!
  wait_until test -s waiting
  kill -INT $pid
  status=0
  wait $pid || status=$?
  expect "status 0" [ "$status" -eq 0 ]
  has "$(cat err)" "stopped before the smallest was found"
  valid small.htw
  [ "$(ops small.htw)" -gt 1000 ]
  [ -z "$(ls -A tmp)" ]
  for pid in $(cat waiting); do
    wait_until has_ended "$pid"
  done
}

@test "reduce: a budget limits the time" {
  make_workload churn 1 3000
  # Any machine checks the condition within the budget, but never finishes the search.
  heaptape reduce -b 5 --keep-cmd 'echo >>count; [ "$(wc -l <count)" -lt 12 ] || sleep 2' -o small.htw w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "stopped before the smallest was found"
  valid small.htw
}

@test "reduce: a command that hangs is stopped" {
  make_workload churn 1 10
  heaptape reduce --timeout 1 --keep-cmd 'sleep 60' -o small.htw w.htw
  fails_with 1 "took longer than 1 s"
}
