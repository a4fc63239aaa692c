load trace

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  command -v g++ >/dev/null || return 0
  cat >grow.cc <<'END'
#include <cstdlib>
#include <memory>
#include <vector>
struct node { std::unique_ptr<node> left, right; long payload[8]; };
__attribute__((noinline)) std::unique_ptr<node> grow_tree(int depth)
{
    auto n = std::make_unique<node>();
    if (depth) {
        n->left = grow_tree(depth - 1);
        n->right = grow_tree(depth - 1);
    }
    return n;
}
__attribute__((noinline)) void *leak_some(size_t size) { return malloc(size); }
__attribute__((noinline)) size_t passing(int n) { std::vector<char> v(n); return v.size(); }
int main()
{
    size_t sum = 0;
    {
        auto tree = grow_tree(6);
        sum += passing(100000);
    }
    for (int i = 0; i < 7; i++)
        sum += leak_some(1000) != nullptr;
    return sum == 0;
}
END
  g++ -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -o grow grow.cc
}

# Records the program and converts it.
grow() {
  skip_under_sanitizer
  [ -x "$BATS_FILE_TMPDIR/grow" ] || skip "no g++"
  record_options=--stacks=16 record "$BATS_FILE_TMPDIR/grow"
  [ "$status" -eq 0 ]
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
}

@test "call sites: bytes that each one allocates, has at the peak and never frees" {
  grow
  "$HEAPTAPE" stat --by site --format json t.htw >w.json
  "$HEAPTAPE" stat --by site --format json t.ht >t.json
  cmp w.json t.json
  # Prints the sums over all sites whose stack contains the function.
  of() {
    jq -c --arg f "$1" '[.sites[] | select(any(.frames[]; .function | startswith($f)))] |
      [map(.allocs), map(.allocated_bytes), map(.live_at_peak_blocks), map(.live_at_peak_bytes), map(.live_at_end_blocks), map(.live_at_end_bytes)] | map(add)' w.json
  }
  [ "$(of 'leak_some(')" = '[7,7000,0,0,7,7000]' ]
  [ "$(of 'passing(')" = '[1,100000,1,100000,0,0]' ]
  [ "$(of 'grow_tree(')" = '[127,10160,127,10160,0,0]' ]
  [ "$(jq '[.sites[].live_at_peak_bytes] | add == $p' --argjson p "$(jq .peak_live_bytes w.json)" w.json)" = true ]
  # Source lines with their file.
  jq -e '[.sites[].frames[] | select(.function == "main" and (.file | endswith("grow.cc")) and .line > 15)] | length > 0' w.json
}

@test "call sites: as text, the heaviest first" {
  grow
  run "$HEAPTAPE" stat --by site --top 1 t.htw
  [ "$status" -eq 0 ]
  [[ "$output" == *97.7\ KiB*passing\(* ]]
  run "$HEAPTAPE" stat --by site --top 1 --weight end t.htw
  [[ "$output" == *"libstdc++"* || "$output" == *leak_some* ]]
}

@test "call sites: folded stacks" {
  grow
  "$HEAPTAPE" stat --by site --format folded --weight allocs t.htw >folded
  # Every line is "function;function NUMBER".
  [ "$(grep -cvE '^[^;]+(;[^;]+)* [0-9]+$' folded)" -eq 0 ]
  [ "$(awk '/;main;leak_some\(/ { n += $NF } END { print n }' folded)" -eq 7 ]
  [ "$(awk '{ n += $NF } END { print n }' folded)" -eq "$("$HEAPTAPE" stat --by site --format json t.htw | jq '[.sites[].allocs] | add')" ]
}

@test "call sites: Go's pprof reads the profile" {
  grow
  command -v go >/dev/null || skip "no go"
  "$HEAPTAPE" stat --by site --format pprof t.htw >p.pb
  run env HOME="$PWD" go tool pprof -top -sample_index=inuse_space p.pb
  [ "$status" -eq 0 ]
  [[ "$output" == *leak_some* ]]
  run env HOME="$PWD" go tool pprof -top -cum -sample_index=alloc_objects p.pb
  [[ "$output" == *" 127 "*grow_tree* || "$output" == *grow_tree* ]]
}

@test "call sites: another file than the recorded one gives addresses and a note" {
  grow
  cp /bin/true "$BATS_FILE_TMPDIR/other"
  mv "$BATS_FILE_TMPDIR/grow" "$BATS_FILE_TMPDIR/kept"
  mv "$BATS_FILE_TMPDIR/other" "$BATS_FILE_TMPDIR/grow"
  run "$HEAPTAPE" stat --by site --format folded t.htw
  mv "$BATS_FILE_TMPDIR/kept" "$BATS_FILE_TMPDIR/grow"
  [ "$status" -eq 0 ]
  text="heaptape: [0-9]+ addresses could not be resolved: $BATS_FILE_TMPDIR/grow \(and possibly other files\) is missing or differs from the recorded file \(try --debug-dir\)"
  grep -qEx "$text" <<<"$output"
  [[ "$output" != *leak_some* ]]
  mv "$BATS_FILE_TMPDIR/grow" "$BATS_FILE_TMPDIR/kept"
  run "$HEAPTAPE" stat --by site --format folded t.htw
  mv "$BATS_FILE_TMPDIR/kept" "$BATS_FILE_TMPDIR/grow"
  [ "$status" -eq 0 ]
  grep -qEx "$text" <<<"$output"
  run "$HEAPTAPE" stat --by site --format folded t.htw
  [[ "$output" != *"could not be resolved"* ]]
}

@test "call sites: slices and merged workloads keep them" {
  grow
  "$HEAPTAPE" slice -q --from 100 -f -o part.htw t.htw
  "$HEAPTAPE" merge -q -f -o both.htw t.htw part.htw
  "$HEAPTAPE" stat --by site --format folded --weight end part.htw | grep -q 'main;leak_some([^;]*) 7000'
  "$HEAPTAPE" stat --by site --format folded --weight end both.htw | grep -q 'main;leak_some([^;]*) 14000'
}

@test "call sites: a recording without any" {
  skip_under_sanitizer
  record "$HEAPTAPE_PROGRAMS/calls"
  run "$HEAPTAPE" stat --by site t.ht
  [ "$status" -eq 1 ]
  [[ "$output" == *"no call sites were recorded (use 'heaptape record --stacks')" ]]
}

@test "call sites: a trace that defines each by its whole stack" {
  "$HEAPTAPE" convert -o w.htw "$HEAPTAPE_SOURCE/tests/golden/stacks-1.ht"
  heaptape stat --by site --format json w.htw
  [ "$status" -eq 0 ]
  jq -e '.sites | length == 10 and all(.frames | length >= 6)' <<<"$output"
}

@test "call sites: a trace that defines each frame by a separate record" {
  "$HEAPTAPE" convert -o w.htw "$HEAPTAPE_SOURCE/tests/golden/stacks-2.ht"
  heaptape stat --by site --format json w.htw
  [ "$status" -eq 0 ]
  # The last one goes through printf: 13 frames if the debug information of libc (libc6-dbg) names
  # inlined functions.
  jq -e '[.sites[].frames | length] | . == [6, 7, 8, 9, 10, 13] or . == [6, 7, 8, 9, 10, 10]' <<<"$output"
}

@test "call sites: a trace with site 0 for the site that was just defined" {
  "$HEAPTAPE" dump -F json -k calloc "$HEAPTAPE_SOURCE/tests/golden/stacks-3.ht" >lines
  [ "$(jq -c '[.count, .size]' lines | sort | uniq -c | tr -s '\n ' ' ')" = ' 3 [1,24] 3 [2,24] 3 [3,24] 3 [4,24] 3 [5,24] ' ]
  "$HEAPTAPE" convert -o w.htw "$HEAPTAPE_SOURCE/tests/golden/stacks-3.ht"
  heaptape stat --by site --format json w.htw
  [ "$status" -eq 0 ]
  jq -e '[.sites[] | {(.allocated_bytes | tostring): (.frames | length)}] | add == {"72": 6, "144": 7, "216": 8, "288": 8, "360": 8}' <<<"$output"
}

# Two functions that allocate 30 MB and 10 MB in blocks of many sizes, and a third with one block of
# 5 MB.
two_sites() {
  cat >two.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) static void *more(size_t n) { return malloc(n); }
__attribute__((noinline)) static void *less(size_t n) { return calloc(2, n / 2); }
__attribute__((noinline)) static void *once(size_t n) { return malloc(n); }
int main(void)
{
    void *volatile p = once(5000000);
    for (int i = 0; i < 60000; i++) {
        free(more(200 + i % 601));
        p = i % 3 ? p : less(200 + i % 601 / 2 * 2);
    }
    return p == NULL;
}
END
  cc -O1 -g -o two two.c
}

@test "call sites: sampled, estimates agree with the exact totals" {
  skip_under_sanitizer
  two_sites
  "$HEAPTAPE" record -q --stacks=sample:64K -f -o t.ht -- ./two
  "$HEAPTAPE" stat --json t.ht >all.json
  "$HEAPTAPE" convert -q -f -o w.htw t.ht
  for file in t.ht w.htw; do
    "$HEAPTAPE" stat --by site --format json "$file" >sites.json
    python3 - <<'END'
import json
sites = json.load(open("sites.json"))
assert sites["stack_sample_bytes"] == 65536
of = {}
for s in sites["sites"]:
    name = next((f["function"] for f in s["frames"] if f["function"] in ("more", "less", "once")), "other")
    of[name] = s
    low, high = s["allocated_bytes_range"]
    assert low <= s["allocated_bytes"] <= high, s
# 460 and 150 stacks are expected. By the Poisson distribution, one of the limits is exceeded in less
# than one of 10^6 recordings.
assert abs(of["more"]["allocated_bytes"] / 30e6 - 1) < 0.25, of["more"]
assert abs(of["less"]["allocated_bytes"] / 10e6 - 1) < 0.43, of["less"]
assert of["once"]["allocated_bytes"] == 5000000, of["once"]
assert abs(of["less"]["live_at_end_bytes"] / 10e6 - 1) < 0.43 and of["more"]["live_at_end_bytes"] < 1e6
total = sum(s["allocated_bytes"] for s in sites["sites"])
exact = json.load(open("all.json"))["requested_bytes"]
assert abs(total / exact - 1) < 0.2, (total, exact)
END
  done
  # Every event is recorded, and several hundred of them have a site.
  "$HEAPTAPE" dump -F json -k malloc -k calloc t.ht >events
  [ "$(jq -c 'select(.kind == "malloc" and .size < 1000)' events | wc -l)" -ge 60000 ]
  n=$(grep -c '"site"' events)
  [ "$n" -gt 400 ]
  [ "$n" -lt 1000 ]
  heaptape stat --by site t.ht
  [[ "$output" == *"estimates: the stack of one allocation per 64.0 KiB allocated was recorded"* ]]
  [[ "$output" == *"95 % intervals: live at peak "* ]]
  "$HEAPTAPE" record -q --stacks -f -o full.ht -- ./two
  heaptape stat --by site full.ht
  [[ "$output" != *"estimate"* && "$output" != *"interval"* ]]
}

@test "call sites: std::string has its short name, also within other types" {
  command -v g++ >/dev/null || skip "no g++"
  g++ -O2 -g -o strings "$HEAPTAPE_SOURCE/tests/capture/strings.cc"
  "$HEAPTAPE" record -q --stacks -f -o t.ht -- ./strings
  "$HEAPTAPE" stat --by site --format folded t.ht >folded
  grep -q ';std::vector<std::string, std::allocator<std::string > >::' folded
  ! grep 'basic_string<char, std::char_traits<char>, std::allocator<char> >' folded || false
}

# One stack per 64 KiB gives several hundred samples in this small recording. Each site is a stack,
# and most sites are small. HEAPTAPE_TEST_SAMPLES changes the number of 30 samples, which have about 90
# intervals for the bytes live at the end.
@test "call sites: intervals of samples drawn from a whole recording contain the true sum" {
  skip_under_sanitizer
  server_program server
  "$HEAPTAPE" record -q --stacks -f -o t.ht -- ./server 500
  "$HEAPTAPE" convert -q -f -o t.htw t.ht
  "$HEAPTAPE_PROGRAMS/sample_sites" t.htw "${HEAPTAPE_TEST_SAMPLES:-30}" 65536 >seen
  cat seen
  [ "$(wc -l <seen)" -eq 3 ]
  while read -r figure shown held permille error; do
    expect "$figure: enough intervals" [ "$shown" -gt 20 ]
    # 5 % of the intervals may miss the true sum. The test allows four standard deviations more,
    # from the variance n x 0.05 x 0.95.
    excess=$((100 * (shown - held) - 5 * shown))
    expect "$figure: intervals that contain the true sum" [ $((excess > 0 ? excess * excess : 0)) -le $((16 * 475 * shown)) ]
    # A sum without bias is outside 5.5 standard errors in one of 10^7 recordings.
    expect "$figure: no bias" [ $((2 * permille)) -gt $((2000 - 11 * error)) ]
    expect "$figure: no bias" [ $((2 * permille)) -lt $((2000 + 11 * error)) ]
    expect "$figure: enough samples to detect a bias" [ "$error" -lt 150 ]
  done <seen
}

# With one worker, the program makes the same calls in each run. heaptrack loses the last request,
# which is less than 1 % of the requests, because the program ends by _Exit.
@test "call sites: the ten with most bytes at the end equal heaptrack's" {
  skip_under_sanitizer
  command -v heaptrack_print >/dev/null || skip "heaptrack is not installed"
  server_program server
  heaptrack -o track ./server 5000 1 >out 2>&1
  heaptrack_print -f track.* -p 0 -a 0 -T 0 -F theirs --flamegraph-cost-type leaked --disable-builtin-suppressions >out 2>&1
  "$HEAPTAPE" record -q --stacks -f -o t.ht -- ./server 5000 1
  "$HEAPTAPE" stat -q --by site --format folded --weight end t.ht >ours
  python3 "$HEAPTAPE_SOURCE/tests/heaptrack_sites.py" ours theirs
}

@test "call sites: HEAPTAPE_STACKS without a recorder" {
  skip_under_sanitizer
  two_sites
  for stacks in 4 sample:64K nonsense; do
    rm -rf spool
    mkdir -m 700 spool
    HEAPTAPE_STACKS=$stacks HEAPTAPE_SPOOL=$PWD/spool LD_PRELOAD=$HEAPTAPE_BUILD/src/capture/libheaptape.so ./two
    "$HEAPTAPE" record -q --collect "$PWD/spool" -f -o t.ht
    "$HEAPTAPE" dump -F json -k malloc t.ht | grep -c '"site"' >"n.$stacks" || true
  done
  [ "$(cat n.4)" -ge 60000 ]
  [ "$(cat n.sample:64K)" -gt 300 ]
  [ "$(cat n.sample:64K)" -lt 1000 ]
  [ "$(cat n.nonsense)" -eq 0 ]
}

# growing [OPTION...]: a program with marks, a leak, a burst that stays, and a cache that is
# emptied. With -DFILLS it also has a larger cache that is not full at the end and replaces one
# block in a hundred.
growing() {
  skip_under_sanitizer
  command -v gcc >/dev/null || skip "no gcc"
  cat >growing.c <<'END'
#include <heaptape/heaptape.h>
#include <stdlib.h>
__attribute__((noinline)) static void *leak(void) { return malloc(100); }
__attribute__((noinline)) static void *burst(void) { return malloc(1000); }
__attribute__((noinline)) static void *pass(void) { return malloc(500); }
__attribute__((noinline)) static void *fill(void) { return malloc(300); }
int main(void)
{
    void *volatile kept;
    for (int i = 0; i < 4000; i++) {
        kept = leak();
        free(pass());
#ifdef FILLS
        kept = fill();
        if (i % 100 == 99)
            free(kept);
#endif
        if (i == 1000)
            heaptape_mark("before");
        for (int k = 0; i == 2000 && k < 2000; k++)
            kept = burst();
        if (i == 3000)
            heaptape_mark("after");
    }
    return kept == NULL;
}
END
  gcc -g -O1 -Wno-unused-function "$@" -fno-omit-frame-pointer -fno-optimize-sibling-calls -I"$HEAPTAPE_SOURCE/include" -o growing growing.c
  "$HEAPTAPE" record -q -f --stacks=8 -o g.ht -- ./growing
}

# of_site FILE FUNCTION KEY: the sum of KEY over sites with this innermost function.
of_site() {
  jq --arg f "$2" "[.sites[] | select(.frames[0].function == \$f) | .$3] | add" "$1"
}

@test "stat --by site --weight growth: the leak is first, the larger burst has no growth" {
  growing
  "$HEAPTAPE" stat --by site --weight growth --format json g.ht >g.json
  [ "$(jq -r '.sites[0].frames[0].function' g.json)" = leak ]
  [ "$(of_site g.json burst live_at_end_bytes)" -eq 2000000 ]
  [ "$(of_site g.json burst steady_growth_bytes)" -eq 0 ]
  [ "$(of_site g.json pass steady_growth_bytes)" -eq 0 ]
  growth=$(of_site g.json leak steady_growth_bytes)
  [ "$growth" -gt 200000 ]
  [ "$growth" -le 400000 ]
  "$HEAPTAPE" stat --by site --weight growth g.ht >text
  has "$(sed -n 1p text)" "steady growth blocks freed live at peak"
  has "$(sed -n 2p text)" "leak (growing.c:3)"
  # Other orders list the burst first.
  "$HEAPTAPE" stat --by site --weight end g.ht >text
  has "$(sed -n 2p text)" "burst (growing.c:4)"
}

@test "stat --by site --weight growth: the leak is before a larger cache that still fills" {
  growing -DFILLS
  "$HEAPTAPE" stat --by site --weight growth --format json g.ht >g.json
  [ "$(of_site g.json fill steady_growth_bytes)" -gt "$((2 * $(of_site g.json leak steady_growth_bytes)))" ]
  [ "$(jq -r '[.sites[:2][].frames[0].function] | join(" ")' g.json)" = "leak fill" ]
  [ "$(of_site g.json burst steady_growth_bytes)" -eq 0 ]
  "$HEAPTAPE" stat --by site --weight growth g.ht >text
  has "$(sed -n 2p text)" "leak (growing.c:3)"
  [[ "$(tr -s ' ' <text)" = *" KiB 0 "*"leak (growing.c:3)"*" 40 "*"fill (growing.c:6)"* ]]
  # The verdict and the report have the order of stat.
  [ "$("$HEAPTAPE" stat --json g.ht | jq -r '[.call_sites.by_growth[:2][].frames[0].function] | join(" ")')" = "leak fill" ]
}

@test "stat --by site --from --to: blocks allocated between two points and still live, by site, thread and size" {
  growing
  "$HEAPTAPE" convert -q -o g.htw g.ht
  "$HEAPTAPE" stat --by site --from mark:before --to mark:after --format json g.ht >g.json
  "$HEAPTAPE" stat --by site --from mark:before --to mark:after --format json g.htw >w.json
  cmp g.json w.json
  [ "$(jq -r '.sites[0].frames[0].function' g.json)" = burst ]
  [ "$(of_site g.json burst span_blocks)" -eq 2000 ]
  [ "$(of_site g.json leak span_blocks)" -eq 2000 ]
  [ "$(of_site g.json leak span_bytes)" -eq 200000 ]
  [ "$(of_site g.json pass span_blocks)" -eq 0 ]
  [ "$(jq -c '[.span.blocks, .span.bytes, (.span.by_thread | length), ([.span.by_size[].blocks] | add)]' g.json)" = '[4000,2200000,1,4000]' ]
  # By event numbers and times: the whole run, and its end.
  events=$("$HEAPTAPE" stat --brief --json g.htw | jq .events)
  "$HEAPTAPE" stat --by site --from 0 --to "$events" --format json g.htw >w.json
  [ "$(of_site w.json leak span_blocks)" -eq 4000 ]
  "$HEAPTAPE" stat --by site --from 0s --format json g.htw >w.json
  [ "$(of_site w.json leak span_blocks)" -eq 4000 ]
  "$HEAPTAPE" stat --by site --from mark:after g.ht >text
  has "$(sed -n 1p text)" "bytes in span       blocks live at peak"
  grep -E '^<= +128 B +97\.6 KiB +999$' text
  heaptape stat --by site --from 3600s g.htw
  fails_with 1 "--from 3600s: the recording ends before this point"
  heaptape stat --by site --to mark:never g.htw
  fails_with 1 "--to mark:never: no such mark"
  heaptape stat --by site --from x g.htw
  usage_fails "--from: 'x' is not an event number, a time such as 1.5s, or mark:TEXT"
  heaptape stat --from 1s g.htw
  usage_fails "--from and --to require --by site"
  heaptape stat --by site --weight span g.htw
  usage_fails "--weight span requires --from or --to"
}
