load ../helper

# caught BUG AT TEXT...: replay --verify of w.htw fails with one line that contains each TEXT.
caught() {
  local bug=$1 at=$2
  shift 2
  heaptape replay -q --verify -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-buggy.so,BUG=$bug,BUG_AT=$at" w.htw
  [ -z "$output" ]
  fails_with 1 "libtest-buggy.so: " "$@"
}

make_workload() {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw "$@" >/dev/null
}

@test "an allocator without a bug passes" {
  make_workload kinds 4 20000
  heaptape replay -q --verify -r 2 -a "$HEAPTAPE_PROGRAMS/libtest-buggy.so" w.htw
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  has "${lines[2]}" "libtest-buggy.so: no violation: "
  has "${lines[2]}" " blocks checked in 2 runs"
}

@test "all installed allocators pass" {
  make_workload kinds 4 20000
  mv w.htw kinds.htw
  make_workload churn 4 20000 30
  "$HEAPTAPE" allocators --json >out.json
  python3 -c 'import json
for a in json.load(open("out.json"))["allocators"]:
  if a["available"]: print(a["name"])' >names
  while read -r name; do
    for file in kinds.htw w.htw; do
      # mimalloc 2.0.9 misaligns blocks of 256 and 512 bytes (its issue 700).
      if [ "$name $file" = "mimalloc kinds.htw" ]; then
        heaptape replay -q --verify -r 1 -a "$name" "$file"
        [ "$status" -eq 0 ] || fails_with 1 "mimalloc: misaligned: "
        continue
      fi
      "$HEAPTAPE" replay -q --verify -r 1 --json -a "$name" "$file" >out.json
      python3 -c 'import json,sys
d = json.load(open("out.json"))
assert d["schema_version"] == 2 and d["allocator"]["name"] == sys.argv[1]
assert d["verify"]["runs"] == 1 and d["verify"]["violations"] == 0 and d["verify"]["blocks"] > 10000, d["verify"]' "$name"
    done
  done <names
}

@test "options that --verify would ignore are refused" {
  for option in --touch=none --internal-fragmentation --stats-every=10; do
    heaptape replay --verify "$option" w.htw
    usage_fails "--verify cannot be combined with ${option%%=*}"
  done
}

@test "each block is checked" {
  make_workload churn 1 1000
  "$HEAPTAPE" replay -q --verify -r 1 --json w.htw >out.json
  python3 -c 'import json
assert json.load(open("out.json"))["verify"] == {"runs": 1, "blocks": 10500, "violations": 0, "refused_calls": 0, "first_refused": None}'
}

@test "memory handed out twice" {
  make_workload churn 1 1000
  caught overlap 5000 ": overlap: malloc of " " at op 50" " of thread 0 returned memory of a live block, allocated at op 50"
  caught small 100 ": overlap: malloc of " " of thread 0 returned memory of a live block, allocated at op "
}

@test "a block that contains another block" {
  "$HEAPTAPE_PROGRAMS/make_trace" w.ht <<END
process 1 a
0 1 malloc size=64 result=0x1000
0 2 malloc size=4096 result=0x2000
end
END
  "$HEAPTAPE" convert -q -o w.htw w.ht
  caught around 0 ": overlap: malloc of 4096 bytes at op 1 of thread 0 returned memory of a live block"
}

@test "a block of another thread" {
  make_workload churn 4 20000 30
  # The owner of the block depends on the order of the threads.
  local others=0
  for ((i = 0; i < 20 && !others; i++)); do
    caught handout 1 ": overlap: malloc of " " returned memory of a live block, allocated at op " " of thread "
    [[ $stderr =~ at\ op\ [0-9]+\ of\ thread\ ([0-9]+)\ returned.*allocated\ at\ op\ [0-9]+\ of\ thread\ ([0-9]+) ]]
    [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] || others=1
  done
  [ "$others" -eq 1 ]
}

@test "a block that is too small by its usable size" {
  make_workload churn 1 1000
  caught usable 500 ": too small: malloc of " " of thread 0 returned a block of only 1"
}

@test "a block whose usable size overlaps another block" {
  make_workload churn 1 1000
  caught beyond 500 ": overlap: malloc of " " of thread 0 returned a block of " \
    " usable bytes (malloc_usable_size) that overlaps the " " usable bytes of a live block, allocated at op "
  # Only the usable sizes overlap: the second block begins after the 100 bytes of the first.
  "$HEAPTAPE_PROGRAMS/make_trace" w.ht <<END
process 1 a
0 1 malloc size=100 result=0x1000
0 2 malloc size=100 result=0x2000
end
END
  "$HEAPTAPE" convert -q -f -o w.htw w.ht
  caught beyond 0 ": overlap: malloc of 100 bytes at op 1 of thread 0 returned a block of 168 usable bytes"
  # The usable size reaches unmapped memory.
  caught huge 0 ": unusable: malloc of 100 bytes at op 0 of thread 0 returned 0x" "although malloc_usable_size is bigger"
}

@test "wrong alignment" {
  make_workload churn 1 1000
  caught misaligned 5000 ": misaligned: malloc of " " at op " " of thread 0 returned 0x" ", which is not a multiple of 16"
  make_workload kinds 1 20000
  caught unaligned 100 ": misaligned: " "lign" " of thread 0 returned 0x" ", which is not a multiple of "
}

@test "calloc without zeroes" {
  make_workload kinds 1 20000
  caught zero 100 ": not zeroed: calloc of " " at op " " of thread 0 returned a block whose byte " " is not 0"
}

@test "realloc that loses contents" {
  make_workload kinds 1 20000
  caught content 50 ": lost content: realloc" " at op " " of thread 0 changed byte "
}

@test "a block that the allocator overwrites" {
  make_workload churn 1 1000
  caught scribble 5000 ": overwritten: byte " " allocated at op " " had changed before free at op " " of thread 0"
}

@test "a block that is overwritten and never freed" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o a.ht -- sort -o sorted "$HEAPTAPE_SOURCE/README.md"
  "$HEAPTAPE" replay -q --verify -r 1 a.ht
  heaptape replay -q --verify -r 1 -a "$HEAPTAPE_PROGRAMS/libtest-buggy.so,BUG=scribble,BUG_AT=1" a.ht
  fails_with 1 "overwritten: byte "
}

@test "valloc and pvalloc use the page size of the machine" {
  skip_under_sanitizer
  # An allocator that lacks valloc and pvalloc, with a getauxval that reports pages of 16 KiB. With
  # SHIFT, valloc exists and returns blocks at multiples of 4 KiB.
  cat >pages.c <<'END'
#include "replay/libc_allocator.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>
#define PAGE (16 << 10)
FORWARD_MALLOC
FORWARD_CALLOC
FORWARD_REALLOC
FORWARD_FREE
unsigned long __getauxval(unsigned long);
EXPORT unsigned long getauxval(unsigned long type)
{
    return type == AT_PAGESZ ? PAGE : __getauxval(type);
}
EXPORT void *memalign(size_t align, size_t size)
{
    char line[64];
    int file = open("aligned", O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(file, line, (size_t)snprintf(line, sizeof line, "%zu %zu\n", align, size)) < 0)
        _exit(1);
    close(file);
    return __libc_memalign(align, size);
}
EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
    *block = memalign(align, size);
    return 0;
}
#ifdef SHIFT
EXPORT void *valloc(size_t size)
{
    return (char *)__libc_memalign(PAGE, size + PAGE) + 4096;
}
#endif
END
  for kind in "" -DSHIFT; do
    gcc -shared -fPIC -fno-builtin $kind -I "$HEAPTAPE_SOURCE/tests" -o "pages$kind.so" pages.c
  done
  printf '{"kind":"%s","pid":1,"tid":1,"time_ns":%d,"size":5000,"result":"0x%d0000"}\n' valloc 1000 1 pvalloc 2000 2 |
    "$HEAPTAPE" import -q --format json -o w.htw -
  heaptape replay -q --verify -r 1 -a ./pages.so w.htw
  [ "$status" -eq 0 ]
  [ "$(sort -u aligned)" = "16384 16384
16384 5000" ]
  heaptape replay -q --verify -r 1 -a ./pages-DSHIFT.so w.htw
  fails_with 1 "misaligned"
}
