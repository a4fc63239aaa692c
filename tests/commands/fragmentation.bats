load ../helper

json() {
  python3 -c "import json,os,sys; d=json.load(open('out.json')); h=d['fragmentation']; $1" "${@:2}"
}

# fragmentation OPTION...: replays w.htw and writes out.json.
fragmentation() {
  "$HEAPTAPE" replay -q -r 1 --no-latency --fragmentation --json "$@" w.htw >out.json
}

# The figures of groups add up to the totals, and every figure is plausible.
adds_up() {
  json '
assert h["at_peak"]["live_bytes"] == d["peak_live_bytes"] and h["at_end"]["live_bytes"] == d["live_at_end_bytes"], h
assert h["at_end"]["event"] == d["events"] and h["at_peak"]["event"] <= d["events"]
for at in h.values():
  assert at["page_bytes"] == os.sysconf("SC_PAGESIZE")
  assert at["stranded_bytes"] <= at["sparse_pages"] * at["page_bytes"] and at["sparse_pages"] <= at["pages"]
  assert at["stranded_bytes"] >= at["sparse_pages"] * at["page_bytes"] / 2
  for by in ["by_size", "by_age", "by_thread", "by_site"]:
    if by == "by_site" and not at[by]:
      continue
    for key in ["blocks", "live_bytes", "stranded_bytes"]:
      assert sum(g[key] for g in at[by]) == at[key], (by, key)
    assert sum(g["sparse_pages"] for g in at[by]) >= at["sparse_pages"]
    assert all(g["sparse_pages"] <= min(at["sparse_pages"], 2 * g["blocks"]) for g in at[by])
'
}

# 1024 blocks of 256 bytes occupy 64 pages, and 1024 blocks of 512 bytes occupy 128 other pages.
# Every fourth block is live.
known_holes() {
  json '
p, e = h["at_peak"], h["at_end"]
idle = int(sys.argv[1])
assert (p["event"], e["event"]) == (idle + 3585, idle + 4099), (p["event"], e["event"])
assert (p["pages"], p["sparse_pages"], p["stranded_bytes"]) == (64 + 128 + 256, 192, 192 * 3072), p
assert (e["pages"], e["sparse_pages"], e["stranded_bytes"]) == (64 + 32, 64, 64 * 3072), e
def rows(groups, *keys):
  return sorted(tuple(g[k] for k in keys + ("blocks", "live_bytes", "sparse_pages", "stranded_bytes")) for g in groups)
small, other, big = (256, 65536, 64, 64 * 3072), (256, 131072, 128, 128 * 3072), (1, 1 << 20, 0, 0)
full = (256, 131072, 0, 0)
both = tuple(a + b for a, b in zip(small, big))
assert rows(p["by_size"], "size_from", "size_to") == [(256, 511) + small, (512, 1023) + other, (1 << 20, (2 << 20) - 1) + big], p
assert rows(e["by_size"], "size_from", "size_to") == [(256, 511) + small, (512, 1023) + full], e
assert rows(p["by_thread"], "thread") == [(0,) + both, (1,) + other], p
assert rows(e["by_thread"], "thread") == [(0,) + small, (1,) + full], e
assert rows(p["by_site"], "site") == [(0,) + big, (1,) + small, (2,) + other], p
assert rows(e["by_site"], "site") == [(1,) + small, (2,) + full], e
# Block n of 256 bytes is call 2n; the block of 512 bytes is the next call.
ages = [3585 - 1 - 2 * n - k for n in range(0, 1024, 4) for k in (0, 1)] + [0]
for g in p["by_age"]:
  assert sum(g["age_from"] <= a <= g["age_to"] for a in ages) == g["blocks"], (g, p["by_age"])
assert [g["age_from"] for g in p["by_age"]] == [0, 1000], p["by_age"]
' "$1"
}

@test "fragmentation: an allocator with known addresses" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw holes 3 1024 >facts
  [ "$(getconf PAGESIZE)" = 4096 ] || skip "counted for pages of 4096 bytes"
  for options in "" "--threads one" "--touch none"; do
    echo "options: $options"
    # shellcheck disable=SC2086
    fragmentation -a "$HEAPTAPE_PROGRAMS/libtest-bump.so" $options
    adds_up
    known_holes 0
  done
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw holes 3 1024 200000 >facts
  for memory in 1G 80K; do
    fragmentation -a "$HEAPTAPE_PROGRAMS/libtest-bump.so" --memory $memory
    adds_up
    known_holes 200000
    json 'assert (d["decoder"] is None) == (sys.argv[1] == "1G")' $memory
  done
}

@test "fragmentation: threads stop at the peak in any order" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 8 20000 30 >facts
  for options in "" "--memory 3M"; do
    # shellcheck disable=SC2086
    fragmentation $options
    adds_up
    json 'assert (d["decoder"] is None) == (sys.argv[1] == ""), d["decoder"]' "$options"
  done
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw threads 2000 8 >facts
  fragmentation
  adds_up
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw orphans 4 20000 20 >facts
  fragmentation
  adds_up
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw kinds 8 20000 >facts
  fragmentation
  adds_up
}

@test "fragmentation: preexisting blocks, and a peak at the end" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw leave 1 1000 >facts
  fragmentation
  adds_up
  json '
assert h["at_peak"] == h["at_end"] and h["at_end"]["blocks"] == 1001, h
assert [g["blocks"] for g in h["at_end"]["by_thread"] if g["thread"] is None] == [1]
assert h["at_end"]["by_site"] == []'
}

@test "fragmentation: not with --verify" {
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw leave 1 10 >facts
  heaptape replay --fragmentation --verify w.htw
  usage_fails "--verify" "--fragmentation"
}

@test "fragmentation: a real recording, as text" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q --stacks -o t.ht -- env PYTHONMALLOC=malloc python3 -c 'import json; x = [json.dumps({"a": i}) for i in range(100000)]; del x[::3]'
  "$HEAPTAPE" convert -q t.ht -o w.htw
  fragmentation
  adds_up
  json 'assert len(h["at_peak"]["by_site"]) > 1 and h["at_peak"]["sparse_pages"] > 0
assert all(bool(s["function"]) == (s["site"] != 0) for s in h["at_peak"]["by_site"]), h["at_peak"]["by_site"]'
  heaptape replay -q -r 1 --no-latency --fragmentation w.htw
  [ "$status" -eq 0 ]
  has "$output" "at the peak of live bytes, after"
  has "$output" "pinning blocks"
  heaptape replay -q -r 1 --no-latency --json w.htw
  has "$output" '"fragmentation":null'
}
