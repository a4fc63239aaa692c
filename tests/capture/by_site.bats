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

@test "call sites: what each one allocated, holds at the peak and never frees" {
  grow
  "$HEAPTAPE" stat --by site --format json t.htw >w.json
  "$HEAPTAPE" stat --by site --format json t.ht >t.json
  cmp w.json t.json
  # The sums of those sites in whose stack a function stands.
  of() {
    jq -c --arg f "$1" '[.sites[] | select(any(.frames[]; .function | startswith($f)))] |
      [map(.allocs), map(.allocated_bytes), map(.live_at_peak_blocks), map(.live_at_peak_bytes), map(.live_at_end_blocks), map(.live_at_end_bytes)] | map(add)' w.json
  }
  [ "$(of 'leak_some(')" = '[7,7000,0,0,7,7000]' ]
  [ "$(of 'passing(')" = '[1,100000,1,100000,0,0]' ]
  [ "$(of 'grow_tree(')" = '[127,10160,127,10160,0,0]' ]
  [ "$(jq '[.sites[].live_at_peak_bytes] | add == $p' --argjson p "$(jq .peak_live_bytes w.json)" w.json)" = true ]
  # Lines of the source, and the file that they are in.
  jq -e '[.sites[].frames[] | select(.function == "main" and (.file | endswith("grow.cc")) and .line > 15)] | length > 0' w.json
}

@test "call sites: as text, the heaviest first" {
  grow
  run "$HEAPTAPE" stat --by site --top 1 t.htw
  [ "$status" -eq 0 ]
  [[ "$output" == *97.7\ KiB*passing\(* ]]
  run "$HEAPTAPE" stat --by site --top 1 --weight end t.htw
  [[ "$output" == *"(libstdc++"* || "$output" == *leak_some* ]]
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

@test "call sites: a file that is not the one that ran gives addresses, and says so" {
  grow
  cp /bin/true "$BATS_FILE_TMPDIR/other"
  mv "$BATS_FILE_TMPDIR/grow" "$BATS_FILE_TMPDIR/kept"
  mv "$BATS_FILE_TMPDIR/other" "$BATS_FILE_TMPDIR/grow"
  run "$HEAPTAPE" stat --by site --format folded t.htw
  mv "$BATS_FILE_TMPDIR/kept" "$BATS_FILE_TMPDIR/grow"
  [ "$status" -eq 0 ]
  [[ "$output" == *"not the file that was recorded"* ]]
  [[ "$output" != *leak_some* ]]
}

@test "call sites: slices and merged workloads keep them" {
  grow
  "$HEAPTAPE" slice -q --from 100 -f -o part.htw t.htw
  "$HEAPTAPE" merge -q -f -o both.htw t.htw part.htw
  "$HEAPTAPE" stat --by site --format folded --weight end part.htw | grep -q 'main;leak_some([^;]*) 7000'
  "$HEAPTAPE" stat --by site --format folded --weight end both.htw | grep -q 'main;leak_some([^;]*) 14000'
}

@test "call sites: none were recorded" {
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
