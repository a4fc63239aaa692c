load ../helper

golden=$HEAPTAPE_SOURCE/tests/golden

# same_totals TRACE: `stat` prints the same for the aggregate a.hta and the trace.
same_totals() {
  local of='del(.kind, .file_bytes, .bytes_per_event, .other_processes, .growth, .partial)'
  "$HEAPTAPE" stat --brief --json "$1" | jq -S "$of" >trace.json
  "$HEAPTAPE" stat --brief --json a.hta | jq -S "$of | del(.call_sites, .stack_coverage)" >aggregate.json
  diff trace.json aggregate.json
}

# sites FILE: the exact figures of call sites.
sites() {
  "$HEAPTAPE" stat --by site --top 0 --json "$1" |
    jq -c '.peak_live_bytes, (.sites | sort_by(.site)[] | del(.steady_growth_bytes, .live_bytes_by_period))'
}

# Three threads free each other's blocks; realloc moves one block; one block stays.
busy() {
  "$HEAPTAPE_PROGRAMS/make_trace" "$1" <<'END'
process 100 /bin/prog -x
0 1000 malloc size=100 result=0x1000
1 1100 malloc size=5000 result=0x3000
2 1200 calloc count=3 size=50 result=0x5000
round
1 500000000 free ptr=0x1000
0 500000100 malloc size=300 result=0x1000
2 500001000 free ptr=0x3000
round
0 1500000000 malloc size=70000 result=0x20000
1 1600000000 malloc size=12 result=0x7000
round
1 2600000000 free ptr=0x20000
2 3700000000 free ptr=0x9990000
round
end
END
}

@test "aggregate: totals equal the totals of the trace" {
  busy t.ht
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <t.ht
  same_totals t.ht
  heaptape stat -v a.hta
  has "$output" "a.hta: aggregate"
  has "$(tr -s ' ' <<<"$output")" "live at end 462 B"
  # The unfinished period of an hour does not count as an observed hour.
  heaptape stat a.hta
  has "$(xargs <<<"$output")" "Growth cannot be judged: 3.70 s were observed"
}

@test "aggregate: totals and call sites of recordings equal those in the trace" {
  local trace
  for trace in trace-1 stacks-1 stacks-2 stacks-3 pages-1; do
    "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <"$golden/$trace.ht"
    same_totals "$golden/$trace.ht"
  done
  for trace in stacks-1 stacks-2 stacks-3; do
    "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <"$golden/$trace.ht"
    sites "$golden/$trace.ht" >trace.sites
    sites a.hta >aggregate.sites
    [ "$(wc -l <trace.sites)" -gt 1 ]
    diff trace.sites aggregate.sites
  done
}

@test "aggregate: a file of version 1" {
  heaptape stat --json "$golden/aggregate-1.hta"
  [ "$(jq -c '[.kind, .events, .peak_live_bytes, .live_at_end_bytes, .growth.period_ns, .growth.live_bytes]' <<<"$output")" = \
    '["aggregate",11,7000,4096,50000000,[0,4096,4096]]' ]
  [ "$(jq -c '.call_sites.at_end[0] | [.allocs, .live_at_end_bytes, .live_bytes_by_period]' <<<"$output")" = '[1,4096,[0,4096,4096]]' ]
}

@test "aggregate: live bytes at the ends of periods" {
  busy t.ht
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 1 <t.ht
  heaptape stat --json a.hta
  [ "$(jq -c .growth.live_bytes <<<"$output")" = '[0,450,70462,462]' ]
  [ "$(jq -c .growth.period_ns <<<"$output")" = 1000000000 ]
  heaptape stat -v a.hta
  has "$(tr -s ' ' <<<"$output")" "2.00 s 68.8 KiB +68.4 KiB"
  has "$(tr -s ' ' <<<"$output")" "3.00 s 462 B -68.4 KiB"
}

@test "aggregate: the JSON, all tables, one screen and the page have the same findings" {
  {
    echo 'process 100 /bin/prog'
    for at in 1 2 3 4 5 6 7 8 9; do
      echo "0 ${at}000000000 malloc size=1000000 result=0x${at}000000"
    done
    echo end
  } | "$HEAPTAPE_PROGRAMS/make_trace" t.ht
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 1 <t.ht
  "$HEAPTAPE" stat --json a.hta >a.json
  [ "$(jq -r '.findings[0].name, .verdict.kind, .verdict.live_growth.shape' a.json | xargs)" = "verdict grows linear" ]
  for how in -q '-q --verbose'; do
    # shellcheck disable=SC2086
    heaptape stat $how a.hta
    has "$(xargs <<<"$output")" "* $(jq -r .verdict.text a.json)"
  done
  "$HEAPTAPE" report -q -f -o a.html a.hta
  python3 -c "import json, re
d = json.loads(re.search(r'id=\"data\">(.*?)</script>', open('a.html').read(), re.S).group(1))
a = json.load(open('a.json'))
assert a['findings'] == d['findings'] == d['workloads'][0]['stat']['findings']"
  # The short form has no findings, as for a trace.
  [ "$("$HEAPTAPE" stat --json --brief a.hta | jq 'has("findings")')" = false ]
}

@test "aggregate: periods are joined when there are many" {
  busy t.ht
  # At most 64 periods are kept: 370 periods become 46 of eight times the length.
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 0.01 <t.ht
  heaptape stat --json a.hta
  [ "$(jq .growth.period_ns <<<"$output")" = 80000000 ]
  [ "$(jq '.growth.live_bytes | length' <<<"$output")" -eq 47 ]
  [ "$(jq '.growth.live_bytes[7]' <<<"$output")" -eq 450 ]
  [ "$(jq '.growth.live_bytes[-1]' <<<"$output")" -eq 462 ]
}

@test "aggregate: a truncated recording" {
  busy t.ht
  head -c $(($(stat -c %s t.ht) - 1)) t.ht >cut.ht
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <cut.ht
  heaptape stat -v a.hta
  [ "$status" -eq 0 ]
  has "$(tr -s ' ' <<<"$output")" "live at end 462 B"
  has "$stderr" "a.hta: the recorder was killed before the recording ended"
}

@test "aggregate: totals of several processes equal those in the trace" {
  local i
  for i in $(seq 8); do
    echo "process $((100 + i)) /bin/p$i"
    echo "0 $((i * 1000)) malloc size=$((i * 10)) result=0x1000"
  done >in
  { cat in && echo round && echo end; } | "$HEAPTAPE_PROGRAMS/make_trace" t.ht
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <t.ht
  same_totals t.ht
}

@test "aggregate: report shows it" {
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <"$golden/stacks-2.ht"
  heaptape report -o r.html a.hta
  [ "$status" -eq 0 ]
  grep -q '"kind":"aggregate"' r.html
  heaptape report --diff a.hta a.hta
  fails_with 1 "a.hta: is an aggregate; --diff compares"
}

@test "aggregate: top shows it" {
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <"$golden/stacks-2.ht"
  heaptape top a.hta
  [ "$status" -eq 0 ]
  has "$output" "(process 28837): ended after 176.2 ms"
  has "$output" "live 4.0 KiB in 1 block, peak 6.8 KiB"
  # Six call sites with 6 allocations each. The blocks of one site are live.
  grep -Eq '^ +4\.0 KiB +1 .* 6 +22\.7 KiB ' <<<"$output"
  [ "$(grep -Ec '^ +0 B +0 .* 6 +38\.8 KiB ' <<<"$output")" -eq 5 ]
}

@test "aggregate: commands that need events reject it with one line" {
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <"$golden/stacks-2.ht"
  local command
  for command in convert dump replay symbolize; do
    heaptape $command a.hta
    [ "$status" -ne 0 ]
    has "$stderr" "a.hta: is an aggregate, which has no events"
    [ "${#stderr_lines[@]}" -eq 1 ]
  done
  heaptape stat --by site --from 1 a.hta
  fails_with 1 "a.hta: is an aggregate, which has no events"
  heaptape stat --rss a.hta
  fails_with 1 "a.hta: is an aggregate"
}

@test "aggregate: truncated or modified files are rejected with one line" {
  local n size
  "$HEAPTAPE_PROGRAMS/make_aggregate" a.hta 3600 <"$golden/stacks-2.ht"
  size=$(stat -c %s a.hta)
  for n in 1 20 40 41 100 $((size / 2)) $((size - 41)) $((size - 40)) $((size - 1)); do
    head -c $n a.hta >b.hta
    heaptape stat -v b.hta
    fails_with 1 "b.hta: "
  done
  for n in 0 5 30 60 $((size / 2)) $((size - 1)); do
    cp a.hta b.hta
    printf '\377' | dd of=b.hta bs=1 seek=$n conv=notrunc status=none
    heaptape stat -v b.hta
    fails_with 1 "b.hta: "
  done
}
