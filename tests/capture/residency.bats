load trace

setup_file() {
  # meson sets MALLOC_PERTURB_, which makes glibc write to all of each block.
  unset MALLOC_PERTURB_
}

# measured HOW: records the program and compares the measured pages, in total and at the start of a
# block, with its reports.
measured() {
  # shellcheck disable=SC2086
  status=0
  timeout 120 "$HEAPTAPE" record -q -f -o t.ht $record_options -- "$HEAPTAPE_PROGRAMS/residency" "$1" >told 2>err || status=$?
  cat err
  [ "$status" -eq 0 ]
  "$HEAPTAPE" dump -k heaptape.residency t.ht |
    sed -n 's/.*used_bytes=\([0-9]*\).* size=[0-9]\{8,\}, front_bytes=\([0-9]*\)).*/\1 \2/p' |
    awk '{ print $1 / 4096, $2 / 4096 }' >found
  diff told found || true
  # An allocator may have written to the first page of the block.
  paste told found | awk -v by="${2:-0}" 'NF != 4 || $1 - $3 > by || $3 > $1 || $2 - $4 > by || $4 > $2 { wrong = 1 }
    END { exit wrong || NR == 0 }'
}

@test "pages of a block in use at its free: the first ones, the first half, every eighth, none" {
  skip_under_sanitizer
  measured malloc
}

@test "a block of 48 MiB, whose pages need several queries" {
  skip_under_sanitizer
  measured huge
}

@test "in reused memory, only newly resident pages count as used" {
  skip_under_sanitizer
  measured recycled
  [ "$("$HEAPTAPE" dump -k heaptape.residency t.ht | grep -c 'resident_bytes=16777216,')" -eq 3 ]
}

@test "in blocks of calloc, pages that are not zero count" {
  skip_under_sanitizer
  measured calloc
}

@test "a realloc ends a measurement and starts a new one; a failed realloc does not" {
  skip_under_sanitizer
  measured realloc
}

@test "blocks that are live at the end" {
  skip_under_sanitizer
  measured live
  measured _exit
}

@test "pages that the program itself cannot read" {
  skip_under_sanitizer
  measured protected
}

@test "the same on other allocators" {
  skip_under_sanitizer
  for name in jemalloc tcmalloc_minimal mimalloc; do
    library=$(ldconfig -p | sed -n "s|.*lib$name\.so\.[0-9.]* .*=> ||p" | head -n 1)
    [ -n "$library" ] || continue
    record_options="-a $library" measured live 1
  done
}

@test "small blocks are not measured, and no blocks with --no-residency" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/residency" small
  "$HEAPTAPE" dump -k heaptape.residency t.ht >found
  [ "$(grep -c size=16384 found)" -eq 1 ]
  [ "$(grep -c size=16383 found)" -eq 0 ]
  record_options=--no-residency record "$HEAPTAPE_PROGRAMS/residency" malloc
  [ "$status" -eq 0 ]
  "$HEAPTAPE" dump -k heaptape.residency t.ht >found
  [ ! -s found ]
}

# peak FILE: the peak of a replay on glibc, in MiB. As in the program, each block is a separate
# mapping.
peak() {
  GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1048576 "$HEAPTAPE" replay -q --runs 5 --json "$1" >result
  jq '.peak_rss_bytes / 1048576' result
}

# between LOW HIGH NUMBER: the kernel's count of resident pages can be off by 32 pages for each CPU
# on which the process ran, 0.25 MiB on two CPUs.
between() {
  echo "$3: from $1 to $2"
  awk -v n="$3" -v low="$1" -v high="$2" 'BEGIN { exit n < low || n > high }'
}

@test "the replay uses as many pages as the program; all pages without the measurement" {
  skip_under_sanitizer
  measured malloc
  between 7.6 8.5 "$(peak t.ht)"
  [ "$(jq '.big_block_measured_bytes == .big_block_bytes' result)" = true ]
  measured calloc
  between 3.6 4.5 "$(peak t.ht)"
  measured realloc
  between 0.5 1.7 "$(peak t.ht)"
  "$HEAPTAPE" replay -q --runs 1 t.ht >text
  grep -q 'measured for 100 % of their bytes, estimated for 0 %' text
  record_options=--no-residency record "$HEAPTAPE_PROGRAMS/residency" malloc
  between 15.6 16.5 "$(peak t.ht)"
  "$HEAPTAPE" replay -q --runs 1 t.ht >text
  grep -q 'the use of blocks of 16 KiB and more was not recorded' text
}

@test "completely used blocks stay so on an allocator that aligns blocks differently" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/residency" whole
  [ "$status" -eq 0 ]
  # Each block is in a separate mapping: 400 mappings of 10 pages.
  GLIBC_TUNABLES=glibc.malloc.mmap_threshold=32768 "$HEAPTAPE" replay -q --runs 1 --json t.ht >result
  between 15.3 16.1 "$(jq '(.peak_rss_bytes - .baseline_rss_bytes) / 1048576' result)"
}

@test "buffers of 16 KiB with little use" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/residency" buffers
  [ "$status" -eq 0 ]
  "$HEAPTAPE" replay -q --runs 1 --json t.ht >result
  # The blocks have 400 used pages, one page each.
  between 1.3 2 "$(jq '(.peak_rss_bytes - .baseline_rss_bytes) / 1048576' result)"
}

@test "without a used page of its own, the start of a block counts as used; not with calloc" {
  skip_under_sanitizer
  # The time for measurements is limited, and a preemption while blocks are measured can use it up.
  # Such a recording is made again.
  for i in 1 2 3 4 5 6 7 8; do
    record "$HEAPTAPE_PROGRAMS/residency" starts
    [ "$status" -eq 0 ]
    # This allocator has no block headers. The player writes to 200 pages, and to one page of each
    # unmeasured block of calloc.
    "$HEAPTAPE" replay -q --runs 1 --json -a "$HEAPTAPE_PROGRAMS/libtest-bump.so" t.ht >result
    ! jq -e '.big_block_measured_bytes == .big_block_bytes' result || break
  done
  [ "$(jq '.big_block_measured_bytes == .big_block_bytes' result)" = true ]
  between 0.5 1.3 "$(jq '(.peak_rss_bytes - .baseline_rss_bytes) / 1048576' result)"
}

@test "pages of calloc blocks are read before the first write, other pages are not" {
  skip_under_sanitizer
  [ "$(uname -m)" = x86_64 ] || skip "tells a read from a write on x86-64 only"
  for how in malloc calloc; do
    record "$HEAPTAPE_PROGRAMS/residency" $how
    rm -f first
    FIRST=$PWD/first "$HEAPTAPE" replay -q --runs 1 --no-latency -a "$HEAPTAPE_PROGRAMS/libtest-first.so" t.ht >/dev/null
    sort first | uniq -c
  done >found
  cat found
  # Exceptions are the first page of a block, and the last used page at its start.
  awk '{ n[$2 " " $3] = $1 } END { exit n["malloc read"] || n["calloc read"] < 100 * n["calloc write"] }' found
}

# shares FILE: prints the bytes of large blocks, and the bytes of measured large blocks.
shares() {
  "$HEAPTAPE" stat --json "$1" | jq -c '[.big_block_bytes, .big_block_measured_bytes]'
}

@test "stat reports the unused bytes, without the pages at both ends" {
  skip_under_sanitizer
  measured malloc
  unused=$("$HEAPTAPE" dump -F json -k heaptape.residency t.ht | jq -s '[.[] | [.size - .used_bytes - 8192, 0] | max] | add')
  [ "$unused" -gt 16000000 ]
  [ "$("$HEAPTAPE" stat --json t.ht | jq .big_block_unused_bytes)" -eq "$unused" ]
  "$HEAPTAPE" stat -v t.ht >text
  grep -q '  not used .* % of these' text
}

@test "stat reports the measured share, for trace and workload, and JSON keeps it" {
  skip_under_sanitizer
  for how in malloc calloc recycled; do
    measured $how
    "$HEAPTAPE" convert -q -f -o t.htw t.ht
    "$HEAPTAPE" export -q -f -F json -o t.json t.ht
    "$HEAPTAPE" import -q -f -F json -o u.htw t.json
    [ "$(shares t.htw)" = "$(shares t.ht)" ]
    [ "$(shares u.htw)" = "$(shares t.ht)" ]
    "$HEAPTAPE" replay -q --runs 1 --json t.htw >result
    [ "$(shares t.ht)" = "$(jq -c '[.. | objects | select(has("big_block_bytes"))][0] | [.big_block_bytes, .big_block_measured_bytes]' result)" ]
    [ "$(shares t.ht | jq '.[1] > 0')" = true ]
    between -0.5 0.5 "$(jq -n "$(peak t.htw) - $(peak u.htw)")"
  done
  "$HEAPTAPE" stat -v t.ht >text
  grep -q 'blocks from 16 KiB .* % with their use measured' text
  record_options=--no-residency record "$HEAPTAPE_PROGRAMS/residency" malloc
  [ "$(shares t.ht | jq '.[0] > 0 and .[1] == 0')" = true ]
}

@test "a block that is used late gets its pages in the replay when the program touched them" {
  skip_under_sanitizer
  # The recorder may have no CPU while half of the block is used, for a quarter of a second. Such a
  # recording is made again.
  local i
  for i in 1 2 3 4 5 6 7 8; do
    measured late
    "$HEAPTAPE" sql --csv t.ht "select count(*) from samples where anon_bytes between 7 * 1048576 and 12 * 1048576" | tail -n 1 >half
    [ "$(cat half)" -lt 3 ] || break
  done
  between 15.6 16.7 "$(peak t.ht)"
  jq -c '[.fidelity.rss.samples, .fidelity.rss.mean_error, .timeline]' result
  [ "$(jq '.fidelity.rss.samples' result)" -ge 12 ] || skip "the recorder took no samples in time"
  [ "$(jq '.fidelity.rss.mean_error < 0.1' result)" = true ]
  # The block is unused in the first third of the time. In the second third, half of it is used. In
  # the last third, all of it is used.
  jq '.timeline | map(select(.[3] > 16000000) | .[2] / 1048576 | round)' result >mib
  [ "$(jq 'min <= 1' mib)" = true ]
  [ "$(jq 'any(. >= 7 and . <= 9)' mib)" = true ]
  [ "$(jq '. == sort' mib)" = true ]
}

@test "records show the use of a late block over time, and slice keeps them" {
  skip_under_sanitizer
  measured calls
  "$HEAPTAPE" dump -k heaptape.residency_step t.ht >steps
  cat steps
  # The first measurement shows an unused block, and a later one shows half of the block. There may
  # be other measurements.
  sed -n 's/.*used_bytes=\([0-9]*\).*/\1/p' steps | sort -n | uniq >bytes
  [ "$(head -n 1 bytes)" -le 4096 ]
  half=$((8 << 20))
  awk -v half="$half" '$1 >= half - 8192 && $1 <= half + 8192 { n++ } END { exit !n }' bytes
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  "$HEAPTAPE" slice -q -f --from 0 -o part.htw t.htw
  for file in t.htw part.htw; do
    "$HEAPTAPE" check "$file"
    [ "$("$HEAPTAPE" replay -q --runs 1 --json "$file" |
      jq '[.timeline[][2] / 1048576 | round] | any(. <= 1) and any(. >= 7 and . <= 9) and any(. >= 15)')" = true ]
  done
}

@test "a record shows until when a late block was unused" {
  skip_under_sanitizer
  measured calls
  "$HEAPTAPE" dump -F json -k heaptape.residency_step -k heaptape.residency_unchanged t.ht |
    jq -c '[.kind, .used_bytes, .time_ns, .age]' >steps
  cat steps
  # The program uses the block after one third and after two thirds of its lifetime. A third is a
  # quarter of a second. The block is measured in between.
  jq -s '[.[] | select(.[0] == "heaptape.residency_unchanged")] |
    length >= 2 and .[0][1] <= 4096 and .[0][3] > 0 and (.[1][1] - 8388608 | fabs) <= 8192' steps >right
  [ "$(cat right)" = true ]
}

@test "a short program has enough samples to rate its memory" {
  skip_under_sanitizer
  cat >short.c <<'END'
#include <stdlib.h>
#include <time.h>
int main(void)
{
    struct timespec began, now;
    clock_gettime(CLOCK_MONOTONIC, &began);
    do {
        free(malloc(100));
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - began.tv_sec) * 1000000000L + now.tv_nsec - began.tv_nsec < 50000000);
    return 0;
}
END
  cc -o short short.c
  # The recorder may have to wait for a CPU, least at real-time priority; with 10 ms between
  # samples, there would be at most 6.
  local first=()
  ! chrt -r 1 true 2>/dev/null || first=(chrt -r 1)
  for i in 1 2 3 4 5 6 7 8 9 10; do
    "${first[@]}" "$HEAPTAPE" record -q -f -o t.ht -- ./short
    "$HEAPTAPE" sql --csv t.ht "select count(*) from samples where time_ns < 50000000" | tail -n 1 >count
    [ "$(cat count)" -lt 8 ] || break
  done
  [ "$(cat count)" -ge 8 ]
}

@test "page faults of the program in its large blocks do not count as time of its calls" {
  skip_under_sanitizer
  cat >fill.c <<'END'
#include <stdlib.h>
#include <string.h>
int main(void)
{
    char *block = NULL;
    for (int i = 0; i < 8; i++) {
        block = malloc(25 << 20);
        memset(block, 1, 25 << 20);
    }
    return block[100];
}
END
  cc -o fill fill.c
  "$HEAPTAPE" record -q -f -o t.ht -- ./fill || [ $? -eq 1 ]
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  "$HEAPTAPE" replay -q --runs 3 --no-latency -a glibc --json t.htw >result
  jq -c '[.touch_ns, .cpu_ns, .fidelity.program]' result
  # The process reports its memory at exit, after the last sample.
  "$HEAPTAPE" sql --csv t.ht "select max(anon_bytes) from samples" | tail -n 1 >most
  between 209715200 212000000 "$(cat most)"
  [ "$(jq '.fidelity.rss.mean_error < 0.1' result)" = true ]
  # The player mostly writes to the blocks, which is also a large part of the program's time.
  [ "$(jq '.touch_ns > 0.5 * .cpu_ns' result)" = true ]
  [ "$(jq '.touch_ns > 0.15 * .fidelity.program.cpu_ns' result)" = true ]
  [ "$(jq '.fidelity.program.calls_share < 0.1' result)" = true ]
}

@test "convert, slice and merge keep the measurements" {
  skip_under_sanitizer
  measured malloc
  "$HEAPTAPE" convert -q -o t.htw t.ht
  between 7.6 8.5 "$(peak t.htw)"
  "$HEAPTAPE" slice -q --from 1 -o part.htw t.htw
  between 7.6 8.5 "$(peak part.htw)"
  "$HEAPTAPE" slice -q --from 1 -o - - <t.htw >piped.htw
  between 7.6 8.5 "$(peak piped.htw)"
  "$HEAPTAPE" merge -q -o both.htw t.htw t.htw
  between 7.6 16.6 "$(peak both.htw)"
  [ "$(jq '.big_block_measured_bytes == .big_block_bytes' result)" = true ]
  "$HEAPTAPE" check both.htw
}
