load tables_helper

# a.ht
make_example() {
  example | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
}

# table NAME FILE: as CSV.
table() {
  "$HEAPTAPE" export -q -F csv -t "$1" "$2"
}

@test "csv: the events of a trace, with addresses" {
  make_example
  table events a.ht >got
  cat >want <<'END'
process,event,time_ns,thread,kind,size,count,align,usable_size,address,freed_address,freed_block,site,failed,error,text
0,0,1000,0,malloc,32,,,40,4096,,,,0,,
0,1,2000,0,thread.create,,,,,,,,,0,,
0,2,2500,1,thread.start,,,,,,,,,0,,worker
0,3,3000,1,calloc,144,3,,,8192,,,,0,,
0,4,4000,1,free,,,,,,4096,0,,0,,
0,5,5100,0,realloc,96,,,,12288,8192,3,,0,,
0,6,5200,0,posix_memalign,96,,64,,16384,,,,0,,
0,7,5300,0,malloc,99999999999,,,,,,,,1,12,
0,8,5400,0,mark,,,,,,,,,0,,"h""e,re"
0,9,6000,0,free,,,,,,12288,5,,0,,
0,10,7000,1,thread.end,,,,,,,,,0,,
0,11,6100,0,preexisting,,,,,36864,,,,0,,
0,12,6100,0,free,,,,,,36864,11,,0,,
1,0,8000,0,new[](nothrow),32,,,,4096,,,,0,,
1,1,9000,0,delete[](size),32,,,,,4096,0,,0,,
END
  diff want got
}

@test "csv: --csv-safe marks cells that a spreadsheet would evaluate" {
  local text
  for text in '=cmd|x!A0' '+1' '-1' '@SUM(1,"2")' $'\xef\xbc\x9d1' plain 'a=1' "'"; do
    printf '0 5400 mark text=%s\n' "$text"
  done >marks
  { echo 'process 100 =prog'; cat marks; echo end; } | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  table events a.ht | sed 1d | cut -d, -f16- >got
  printf '%s\n' '=cmd|x!A0' '+1' '-1' '"@SUM(1,""2"")"' $'\xef\xbc\x9d1' plain 'a=1' "'" | diff - got
  "$HEAPTAPE" export -q -F csv --csv-safe -t events a.ht >all
  sed 1d all | cut -d, -f16- >got
  printf '%s\n' "\"'=cmd|x!A0\"" "\"'+1\"" "\"'-1\"" "\"'@SUM(1,\"\"2\"\")\"" $'"\'\xef\xbc\x9d1"' plain 'a=1' "'" | diff - got
  "$HEAPTAPE" export -q -F csv --csv-safe -t events --partition -o fleet a.ht
  diff all fleet/events/*/*/*/0.csv
  "$HEAPTAPE" export -q -F csv --csv-safe -t processes a.ht | grep -q "\"'=prog\""
  for text in events processes; do
    "$HEAPTAPE" export -q -F csv --csv-safe -t $text a.ht >want
    "$HEAPTAPE" sql --csv --csv-safe a.ht "SELECT * FROM $text" | diff want -
  done
  # Numbers are not texts.
  [ "$("$HEAPTAPE" sql --csv --csv-safe a.ht "SELECT -1, -0.5, '-1', NULL, ''" | tail -1)" = "-1,-0.5,\"'-1\",,\"\"" ]
  heaptape export -F parquet --csv-safe -t events -o a.parquet a.ht
  usage_fails "--format parquet cannot be combined with --csv-safe"
  heaptape export -F json --csv-safe -o a.json a.ht
  usage_fails "--csv-safe requires --format csv"
  heaptape sql --csv-safe a.ht 'SELECT 1'
  usage_fails "--csv-safe requires --csv"
}

@test "csv: the blocks of a trace, and of the workload made of it, without addresses" {
  make_example
  table blocks a.ht >got
  cat >want <<'END'
process,block,alloc_time_ns,free_event,free_time_ns,alloc_thread,free_thread,alloc_kind,free_kind,size,align,usable_size,address,site,preexisting
0,0,1000,4,4000,0,1,malloc,free,32,,40,4096,,0
0,3,3000,5,5100,1,0,calloc,realloc,144,,,8192,,0
0,5,5100,9,6000,0,0,realloc,free,96,,,12288,,0
0,11,,12,6100,0,0,,free,,,,36864,,1
0,6,5200,,,0,,posix_memalign,,96,64,,16384,,0
1,0,8000,1,9000,0,0,new[](nothrow),delete[](size),32,,,4096,,0
END
  diff want got
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  # Events of a workload are numbered in the workload's order.
  python3 - got >want <<'END'
import csv, sys
rows = list(csv.reader(open(sys.argv[1])))
for row in rows:
    if row[0] != "1":
        print(",".join(row[2:3] + row[4:11] + (["", ""] if row[0] == "0" else row[11:13]) + row[13:]))
END
  table blocks a.htw | cut -d, -f3,5-15 >got
  diff want got
}

@test "csv: limits of early times, as in stat" {
  skip_under_sanitizer
  local f
  "$HEAPTAPE" record -q -o a.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" 2 2000 2>said
  "$HEAPTAPE" convert -q -o a.htw a.ht
  "$HEAPTAPE" stat --json a.ht | jq -r '.processes[0] | [.early_events // 0, .early_max_ns, .early_usual_ns] | join(",")' >want
  [[ "$(cat want)" =~ ^[0-9]+,[1-9] ]]
  # The rate of the clock is known exactly only at the end of a trace.
  for f in a.ht a.htw; do
    "$HEAPTAPE" sql --csv $f 'select early_events, early_max_ns, early_usual_ns from processes' | tail -n 1 >got
    paste -d, want got | awk -F, '{ exit !($1 == $4 && ($2 - $5) ^ 2 < 1e6 && ($3 - $6) ^ 2 < 1e6) }'
  done
}

@test "csv: processes, samples and sites" {
  make_example
  table processes a.ht >got
  cat >want <<'END'
process,pid,parent_pid,forked_from,exe,command,allocator,start_time_ns,end_time_ns,exit_status,threads,events,lost_records,early_events,early_max_ns,early_usual_ns
0,100,1,,/bin/x,prog -x,,0,9000,,2,12,0,0,0,0
1,200,1,,/bin/x,second,,0,9000,,1,2,0,0,0,0
END
  diff want got
  table samples a.ht >got
  printf 'process,time_ns,rss_bytes,anon_bytes\n0,7500,4096,0\n' >want
  diff want <(sed 's/,[0-9]*$/,0/; 1s/.*/process,time_ns,rss_bytes,anon_bytes/' got)
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  table samples a.htw | cut -d, -f1-3 | diff <(cut -d, -f1-3 want) -
  table sites "$HEAPTAPE_SOURCE/tests/golden/stacks-2.ht" >got
  expect "a line of names and 6 sites" [ "$(wc -l <got)" -eq 7 ]
  has "$(sed -n 2p got)" "0,1,"
  has "$(sed -n 2p got)" ";stacks+0x12aa;stacks+0x1275"
}

@test "csv: sums equal stat's" {
  make_example
  for file in a.ht "$HEAPTAPE_SOURCE"/tests/golden/{stacks-2.ht,pages-1.ht}; do
    "$HEAPTAPE" stat --json "$file" | jq -r '.events, .requested_bytes, .live_at_end_blocks, .live_at_end_bytes, .remote_frees' >want
    table blocks "$file" >blocks
    table events "$file" >events
    python3 - >got <<'END'
import csv
blocks, events = (list(csv.DictReader(open(name))) for name in ("blocks", "events"))
size = lambda b: int(b["size"] or 0)
live = [b for b in blocks if not b["free_event"]]
print(sum(e["kind"] != "preexisting" for e in events))
print(sum(size(b) for b in blocks if b["preexisting"] == "0"))
print(len(live))
print(sum(map(size, live)))
print(sum(b["free_thread"] not in ("", b["alloc_thread"]) for b in blocks))
END
    diff want got
  done
}

@test "csv: times use the clock rate of the whole recording, as in the workload" {
  printf '%s\n' 'process 100 prog' '0 1000 malloc size=32 result=0x1000' '0 3000 free ptr=0x1000' 'end 500000000' |
    "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  "$HEAPTAPE" convert -q -o a.htw a.ht
  for file in a.ht a.htw; do
    expect "$file" [ "$(table events $file | cut -d, -f3 | tr '\n' ' ')" = "time_ns 2000 6000 " ]
  done
}

@test "csv: from a pipe, into a file, and truncated" {
  make_example
  table events a.ht >want
  "$HEAPTAPE" export -q -F csv -t events - <a.ht | diff want -
  "$HEAPTAPE" export -q -F csv -t events -o a.csv a.ht
  diff want a.csv
  heaptape export -q -F csv -t events -o a.csv a.ht
  fails_with 1 "a.csv" "exists"
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  table sites - <a.htw | grep -q '^process,site'
  head -c $(($(stat -c %s a.ht) - 20)) a.ht >cut.ht
  heaptape export -F csv -t events cut.ht
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "cut.ht: "
  expect "the rows before the end" [ "${#lines[@]}" -ge 10 ]
}

@test "csv: errors" {
  make_example
  heaptape export -F csv a.ht
  usage_fails "name it with --table"
  heaptape export -F json -t events a.ht
  usage_fails "--table requires --format csv or --format parquet"
  heaptape export -F csv -t nothing a.ht
  usage_fails "nothing"
  heaptape export -F csv -t events -p 3 a.ht
  usage_fails "--format csv cannot be combined with --pid"
  heaptape export -F csv -t events --no-timestamps a.ht
  usage_fails "--format csv cannot be combined with --no-timestamps"
  heaptape export -F csv -t events -o new.csv missing.ht
  fails_with 1 "missing.ht: No such file"
  expect "no output" [ ! -e new.csv ]
  printf 'no trace' >bad.ht
  heaptape export -F csv -t events bad.ht
  fails_with 1 "bad.ht: "
}
