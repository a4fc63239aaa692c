load ../helper

# make EXTRA: writes a trace of glibc's main heap with a page of each kind, and EXTRA in its map of
# pages. Page 0 contains a block of 24 bytes in a chunk of 32 bytes. Page 2 contains a block of 1001
# bytes in a chunk of 1024 bytes. Page 4 was freed, and page 5 was never used.
make() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<END
allocator ${2:-/lib/x86_64-linux-gnu/libc.so.6}
process 100 prog
0 1000 malloc size=24 result=0x100010
0 1100 malloc size=1001 result=0x102010
0 1200 malloc size=4000 result=0x104010
0 1300 free ptr=0x104010
pages 2000 ${3-files=8192}
mapping 0x100000 10 heap 0+1 2+1 4+2
$1
0 3000 malloc size=100 result=0x106010
0 4000 mark text=later
pages 5000
mapping 0x100000 10 heap 0+1
0 6000 free ptr=0x100010
end
END
}

# rss EXPRESSION [OPTION...]: a value of stat --rss --json, by a Python expression on r.
rss() {
  "$HEAPTAPE" stat --rss --json "${@:2}" a.ht >rss.json
  python3 -c "import json; r=json.load(open('rss.json')); print(($1))"
}

parts="[r[k + '_bytes'] for k in ('live', 'rounding', 'partly_free', 'wholly_free', 'allocator')] + [(r['not_heap'] or {}).get('bytes')]"

# says SENTENCE [OPTION...], says_not SENTENCE [OPTION...]: search the text with lines joined.
text_of() {
  "$HEAPTAPE" stat --rss "$@" a.ht >text
  awk 'length > 80 { print "over 80 columns: " $0; exit 1 }' text
  tr '\n' ' ' <text >joined
}

says() {
  text_of "${@:2}"
  grep -q "$1" joined
}

says_not() {
  text_of "${@:2}"
  ! grep -q "$1" joined || false
}

@test "stat --rss: each byte of resident pages has a category" {
  make
  [ "$(rss "$parts")" = "[1025, 15, 7136, 4096, 4112, 8192]" ]
  [ "$(rss "r['sum_bytes'], r['sampled']['rss_bytes']")" = "(24576, 24576)" ]
  [ "$(rss "r['used_pages'], r['sparse_pages'], r['free_pages'], r['allocator_pages']")" = "(0, 2, 1, 1)" ]
  [ "$(rss "r['blocks'], r['requested_bytes'], r['page_maps'], r['pid'], r['time_ns']")" = "(2, 1025, 2, 100, 2000)" ]
  [ "$(rss "r['pinned']['sparse_pages'], r['pinned']['stranded_bytes']")" = "(2, 7136)" ]
  [ "$(rss "[(g['size_from'], g['stranded_bytes']) for g in r['pinned']['by_size']]")" = "[(16, 4064), (512, 3072)]" ]
  says "^process 100: RSS 24.0 KiB"
  grep -q "^= sum *24.0 KiB  100.0 %$" text
  grep -q "^+ not heap *8.0 KiB   33.3 %$" text
}

@test "stat --rss: memory outside the heap is separate" {
  make "mapping 0x7f0000000000 4 anonymous 0+3
mapping 0x7f0000100000 2 library 1+1" "" "files=8192 stack=4096 shared=12288 recording=16384 other=4096"
  [ "$(rss "r['not_heap']")" = "{'bytes': 61440, 'brk_bytes': 0, 'mappings_bytes': 12288, 'stack_bytes': 4096, 'files_bytes': 12288, 'shared_bytes': 12288, 'recording_bytes': 16384, 'other_bytes': 4096}" ]
  [ "$(rss "r['sum_bytes'] - r['sampled']['rss_bytes']")" = 0 ]
  says "More than half of RSS is outside of the heap[.]"
  make
  says_not "More than half of RSS is not"
}

@test "stat --rss --at: the peak, the end, and the first map at or after a point" {
  make
  [ "$(rss "r['time_ns'], r['is_after_point']")" = "(2000, True)" ]
  [ "$(rss "r['time_ns']" --at end)" = 5000 ]
  [ "$(rss "r['time_ns'], r['blocks']" --at mark:later)" = "(5000, 3)" ]
  [ "$(rss "r['time_ns']" --at 3)" = 2000 ]
  [ "$(rss "r['time_ns']" --at 0.000003s)" = 5000 ]
  says_not "this is the last one" --at 0.000003s
  [ "$(rss "r['time_ns'], r['is_after_point']" --at 0.0000055s)" = "(5000, False)" ]
  says "There is no map of pages at or after this point: this is the last one[.]" --at 0.0000055s
  heaptape stat --rss --at mark:never a.ht
  fails_with 1 "ends before this point"
}

@test "stat --rss: glibc's heaps by their addresses, and blocks that it mapped" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
allocator /lib/libc.so.6
process 100 prog
0 1000 malloc size=100 result=0x100010
1 1100 malloc size=100 result=0x7f0004000b20
1 1200 malloc size=200 result=0x7f0008000030
0 1300 malloc size=200000 result=0x7f0010100010
0 1400 malloc size=300000 result=0x7f0010200010
0 1500 free ptr=0x7f0010200010
pages 2000
mapping 0x100000 10 heap 0+2
mapping 0x7f0004000000 33 anonymous 0+1 3+1
mapping 0x7f0008000000 33 anonymous 0+1
mapping 0x7f0010100000 49 anonymous 0+49
mapping 0x7f0010200000 1 anonymous 0+1
end
END
  [ "$(rss "[(a['kind'], a['address'], a['blocks']) for a in r['arenas']]")" = \
    "[('main', '0x100000', 1), ('thread_heap', '0x7f0004000000', 1), ('thread_heap', '0x7f0008000000', 1), ('mapped_blocks', None, 1)]" ]
  # The block's chunk ends with its page. The program has another mapping at the address of an
  # unmapped chunk.
  [ "$(rss "[r['arenas'][3][k + '_bytes'] for k in ('live', 'rounding', 'partly_free', 'wholly_free', 'allocator')]")" = "[200000, 688, 0, 0, 16]" ]
  [ "$(rss "r['not_heap']['mappings_bytes']")" = 4096 ]
  [ "$(rss "r['sum_bytes'] - r['sampled']['rss_bytes']")" = 0 ]
  says " heap 0x7f0004000000"
  grep -q "blocks mapped one by one" text
}

@test "stat --rss: other allocators' mappings are arenas, and rounding is as recorded" {
  make "" /usr/lib/libjemalloc.so.2
  [ "$(rss "r['rounding_known'], r['rounding_bytes'], r['allocator_bytes'], r['live_bytes']")" = "(False, 0, 4096, 1025)" ]
  says "The rounding of this allocator is unknown without 'record --usable'"
  make
  says_not "Rounding of this allocator"
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
allocator /usr/lib/libjemalloc.so.2
process 100 prog
0 1000 malloc size=1000 usable=1024 result=0x7f0000002000
pages 2000
mapping 0x7f0000000000 10 anonymous 0+3
end
END
  [ "$(rss "$parts, r['rounding_known'], r['arenas'][0]['kind']")" = "([1000, 24, 3072, 0, 8192, 0], True, 'mapping')" ]
  says_not "Rounding of this allocator"
}

@test "stat --rss: sentences appear when they apply" {
  # 1 of 6 pages has no live block. 7136 of 24576 bytes are stranded.
  make
  says_not "The allocator keeps"
  says "Live blocks pin 2 sparse pages, in which 7.0 KiB is free[.]"
  says_not "is not resident"
  # half of the heap
  make "" "" ""
  says "The allocator keeps 4.0 KiB in pages without any live block[.]"
  # a small part of the heap
  make "" "" "files=819200"
  says_not "Live blocks pin"
  # The later block of 100 bytes and the block of 1001 are in pages that are not resident.
  says "1.1 KiB of 1.1 KiB live is not resident: never written, or swapped out[.]" --at end
}

@test "stat --rss: reports parts that do not add up" {
  # RSS counts pages that are in no mapping.
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
allocator /lib/libc.so.6
process 100 prog
0 1000 malloc size=24 result=0x100010
pages 2000 more=40960
mapping 0x100000 10 heap 0+9
end
END
  says "The sum differs from RSS by 52.6 %: the program kept running while its pages were read[.]"
  make
  says_not "The sum differs"
}

@test "stat --rss: without maps of pages, it names the unknown figures" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
allocator /lib/libc.so.6
process 100 prog
0 1000 malloc size=24 result=0x100010
0 1100 malloc size=5000 result=0x101010
sample 2000 40960
0 3000 free ptr=0x101010
sample 4000 4096
end
END
  [ "$(rss "$parts, r['unknown_bytes'], r['page_maps'], r['sampled']['pss_bytes']")" = "([5024, 0, 7248, None, 16, None], 28672, 0, None)" ]
  [ "$(rss "r['requested_bytes']" --at end)" = 24 ]
  text_of
  [ "$(sed -n '/^live /,/^= sum /s/   .*//p' text | tr '\n' ';')" = "live;+ internal rounding;+ partly free pages;+ allocator's own;+ not known;= sum;" ]
  says "There are no maps of pages .* free pages cannot be distinguished from memory outside of the heap, which here includes the memory of heaptape in the process[.]"
  heaptape stat a.ht
  has "$output" "peak RSS                      40.0 KiB  with heaptape's own, of unknown size"
  [ "$("$HEAPTAPE" stat --json a.ht | jq .peak.recording_rss_bytes)" = null ]
  make
  says_not "There are no maps of pages"
  make "sample 2500 40960" "" "recording=16384"
  heaptape stat a.ht
  has "$output" "peak RSS                      40.0 KiB  with 16.0 KiB of heaptape's own"
  [ "$("$HEAPTAPE" stat --json a.ht | jq .peak.recording_rss_bytes)" = 16384 ]
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000 malloc size=24 result=0x100010
end
END
  heaptape stat --rss a.ht
  fails_with 1 "contains no samples of resident memory"
}

@test "stat --rss: selects the process with the highest RSS" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
allocator /lib/libc.so.6
process 100 small
0 1000 malloc size=24 result=0x100010
0 1001 malloc size=24 result=0x100030
pages 1500
mapping 0x100000 10 heap 0+1
process 200 large
0 2000 malloc size=24 result=0x100010
pages 2500
mapping 0x100000 10 heap 0+3
end
END
  heaptape stat --rss a.ht
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"resident memory of process 200"*"one of 2 processes"* ]]
  [ "$(rss "r['pid'], r['processes'], r['blocks']")" = "(200, 2, 1)" ]
  make
  heaptape stat --rss a.ht
  [ -z "$stderr" ]
}

@test "stat --rss: other sampled figures" {
  make "" "" "pss=3000 swap=4096 huge=2097152 minor=7 major=8 cpu=9000 cgroup=123456 limit=234567 files=8192"
  [ "$(rss "[r['sampled'][k] for k in ('pss_bytes', 'swap_bytes', 'huge_bytes', 'minor_faults', 'major_faults', 'cpu_ns', 'cgroup_bytes', 'cgroup_limit_bytes')]")" = \
    "[3000, 4096, 2097152, 7, 8, 9000, 123456, 234567]" ]
  says "memory of its cgroup .* limit "
  make
  [ "$(rss "r['sampled']['cgroup_bytes']")" = None ]
  says_not "cgroup"
}

@test "stat --rss: usage errors, and a workload, which has no addresses" {
  make
  heaptape stat --rss --by site a.ht
  usage_fails "--rss cannot be combined with --by"
  heaptape stat --at end a.ht
  usage_fails "--at requires --rss"
  heaptape stat --rss a.ht a.ht
  usage_fails "--rss accepts only one FILE"
  heaptape stat --rss --at soon a.ht
  usage_fails "--at: 'soon' is not peak, end, an event number, a time such as 1.5s, or mark:TEXT"
  "$HEAPTAPE" convert -q -o a.htw a.ht
  heaptape stat --rss a.htw
  fails_with 1 "a workload has no addresses; --rss requires the trace"
}

@test "stat --rss: the golden trace" {
  cp "$HEAPTAPE_SOURCE/tests/golden/pages-1.ht" a.ht
  [ "$(rss "$parts, r['sum_bytes'], [r['sampled'][k] for k in ('rss_bytes', 'pss_bytes', 'swap_bytes', 'huge_bytes', 'minor_faults', 'major_faults', 'cpu_ns', 'cgroup_bytes', 'cgroup_limit_bytes')]")" = \
    "([1025, 15, 7136, 4096, 4112, 20480], 36864, [36864, 20000, 4096, 8192, 7, 8, 9000, 123456, 234567])" ]
}

@test "the memory of the recording includes the spool at the peak RSS" {
  skip_under_sanitizer
  # The spool grows after the first page map, and the process reaches its peak after that.
  "$HEAPTAPE" record -q -o a.ht -- perl -e '
    select undef, undef, undef, 0.5;
    my @blocks = map { "$_" x 50 } 1 .. 60000;
    open my $status, "<", "/proc/self/status";
    print map { /^RssShmem:\s*(\d+) kB/ ? $1 * 1024 : () } <$status>;
    my $big = "x" x 3e7;' >printed
  expect "the shared memory that the program printed, or no map" \
    jq -e --argjson printed "$(cat printed)" '.peak.recording_rss_bytes | . == null or . >= $printed' \
    <("$HEAPTAPE" stat --json a.ht)
}

@test "the memory of the recording includes its private tables" {
  skip_under_sanitizer
  # The table of big blocks needs about 600 KiB. It always contains blocks of calloc.
  cat >big.c <<'END'
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 6000; i++)
    *(volatile char *)calloc(1, 20000) = 1;
  usleep(500000);
  return 0;
}
END
  gcc -w -o big big.c
  "$HEAPTAPE" record -q -o a.ht -- ./big
  expect "the private tables, or no map" \
    jq -e '.peak.recording_rss_bytes | . == null or . >= 700 * 1024' <("$HEAPTAPE" stat --json a.ht)
}

@test "the peak RSS is the kernel's, and includes peaks between two samples" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -o a.ht -- perl -e '
    { my $big = "x" x 2e7; undef $big; }
    open my $status, "<", "/proc/self/status";
    print map { /^VmHWM:\s*(\d+) kB/ ? $1 * 1024 : () } <$status>' >printed
  "$HEAPTAPE" convert -q -o a.htw a.ht
  "$HEAPTAPE" stat --json a.ht >a.json
  expect "the peak that the program printed" \
    jq -e --argjson printed "$(cat printed)" '.peak.rss_bytes - $printed | . >= 0 and . < 4194304' a.json
  [ "$("$HEAPTAPE" stat --json a.htw | jq .peak.rss_bytes)" = "$(jq .peak.rss_bytes a.json)" ]
  # The other parts of a recording have no separate peak.
  "$HEAPTAPE" slice -q --from 10 -o b.htw a.htw
  [ "$("$HEAPTAPE" stat --json b.htw | jq .peak.rss_bytes)" = null ]
  # The prediction for the recorded allocator is this peak without heaptape's own memory.
  "$HEAPTAPE" replay -q --json a.htw >replay.json
  jq -e --slurpfile stat a.json '.process_peak_rss_bytes + ($stat[0].peak.recording_rss_bytes // 0) ==
    $stat[0].peak.rss_bytes' replay.json
}

@test "the peak RSS includes destructors of libraries, and excludes child processes" {
  skip_under_sanitizer
  cat >late.c <<'END'
#include <string.h>
#include <sys/mman.h>
__attribute__((destructor)) static void use(void) {
  const int size = 60 << 20;
  memset(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, size);
}
void load(void) {}
END
  echo 'void load(void); int main(void) { load(); free(malloc(10)); return 0; }' >program.c
  gcc -w -shared -fPIC -o liblate.so late.c
  gcc -w -o program program.c -L. -llate -Wl,-rpath,.
  "$HEAPTAPE" record -q -o a.ht -- ./program
  expect "60 MiB" jq -e '.peak.rss_bytes | . >= 62914560 and . < 104857600' \
    <("$HEAPTAPE" stat --json a.ht)
  # The last sample of memory was taken after the destructors, also of a process that forked.
  "$HEAPTAPE" record -q -o c.ht -- perl -e 'exit system("./program") >> 8'
  for trace in a.ht c.ht; do
    expect "60 MiB at the end" awk -F, 'NR > 1 && $3 > most { most = $3 } END { exit most < 62914560 }' \
      <("$HEAPTAPE" export -q -F csv -t samples $trace)
  done
  gcc -w -static -o alone program.c late.c # a program that is not recorded
  "$HEAPTAPE" record -q -o b.ht -- perl -e 'exit system("./alone") >> 8'
  expect "less than 60 MiB" jq -e '.peak.rss_bytes < 62914560' <("$HEAPTAPE" stat --json b.ht)
}
