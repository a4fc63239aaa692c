load tables_helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL
  "$HEAPTAPE" sql --help >/dev/null
  example | sed -e '/ 6100 /d' -e '/^sample/d' | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  heaptape sql a.ht 'SELECT 1'
  [[ $stderr != *"without SQLite"* ]] || skip "heaptape was built without SQLite"
}

# csv FILE... QUERY
csv() {
  "$HEAPTAPE" sql --csv "$@"
}

@test "sql: a table, aligned, numbers to the right" {
  heaptape sql a.ht 'SELECT kind, size, text FROM events WHERE event BETWEEN 5 AND 8 AND process = 0'
  expect "status 0" [ "$status" -eq 0 ]
  diff - <(printf '%s\n' "$output") <<'END'
kind                   size  text
realloc                  96  
posix_memalign           96  
malloc          99999999999  
mark                         h"e,re
END
}

@test "sql: --json and --csv" {
  heaptape sql --json a.ht 'SELECT event, text, NULL, 0.5 AS x FROM events WHERE text IS NOT NULL'
  expect "status 0" [ "$status" -eq 0 ]
  expect "the document" [ "$output" = '{"schema_version":2,"columns":["event","text","NULL","x"],"rows":[[2,"worker",null,0.5],[8,"h\"e,re",null,0.5]]}' ]
  csv a.ht 'SELECT event, text, NULL, 0.5 AS x FROM events WHERE text IS NOT NULL' >got
  printf 'event,text,NULL,x\n2,worker,,0.5\n8,"h""e,re",,0.5\n' | diff - got
}

@test "sql: every table equals its export" {
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  for file in a.ht a.htw "$HEAPTAPE_SOURCE/tests/golden/stacks-2.ht" "$HEAPTAPE_SOURCE/tests/golden/pages-1.ht"; do
    for table in events blocks sites processes samples; do
      "$HEAPTAPE" export -q -F csv -t "$table" "$file" >want
      csv "$file" "SELECT * FROM $table" | diff want -
    done
  done
}

@test "sql: one column at a time equals all columns at once" {
  for table in events blocks processes; do
    for column in $("$HEAPTAPE" export -q -F csv -t $table a.ht | head -1 | tr , ' '); do
      csv a.ht "SELECT $column FROM $table" >one
      csv a.ht "SELECT $column FROM (SELECT *, random() FROM $table LIMIT 1000)" >all
      diff one all
    done
  done
}

@test "sql: conditions checked early agree with SQLite" {
  local table column op value early late
  for table in events blocks; do
    for column in time_ns size event thread address failed process usable_size alloc_time_ns free_time_ns block preexisting; do
      csv a.ht "SELECT $column FROM $table LIMIT 1" >/dev/null 2>&1 || continue
      early='' late=''
      for op in = '<' '<=' '>' '>=' '<>' 'IN'; do
        for value in 1 96 5100.5 "'96'"; do
          [ "$op" != IN ] || value="(1, $value)"
          early+=" UNION ALL SELECT \"$op $value\", * FROM $table WHERE $column $op $value"
          late+=" UNION ALL SELECT \"$op $value\", * FROM (SELECT * FROM $table LIMIT 1000) WHERE $column $op $value"
        done
      done
      csv a.ht "${early# UNION ALL}" >early
      csv a.ht "${late# UNION ALL}" >late
      [ "$(wc -l <early)" -gt 1 ]
      cmp early late
    done
  done
  [ "$(csv a.ht 'SELECT count(*) FROM events WHERE size = 96' | tail -1)" -eq 2 ]
}

@test "sql: several files have a column for the file" {
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  csv a.ht a.htw "SELECT file, count(*) FROM blocks GROUP BY file" >got
  printf 'file,count(*)\na.ht,5\na.htw,4\n' | diff - got
  csv a.ht a.htw "SELECT * FROM blocks WHERE file = 'a.htw'" | cut -d, -f2- >got
  csv a.htw "SELECT * FROM blocks" | diff - got
  csv a.ht a.htw "SELECT b.file, size, pid FROM blocks b JOIN processes USING (file, process) WHERE size = 32" >got
  printf 'file,size,pid\na.ht,32,100\na.ht,32,200\na.htw,32,100\n' | diff - got
}

# Without a stored table, each query would read the file 40,000 times.
@test "sql: a join of events and blocks reads the file a few times" {
  skip_under_sanitizer
  local condition='b.process = e.process AND b.free_event = e.event'
  "$HEAPTAPE" record -q -o many.ht -- "$HEAPTAPE_PROGRAMS/churn_mt" 1 40000
  csv --timeout 100 many.ht "SELECT e.kind, count(*), sum(b.size) FROM events e JOIN blocks b ON $condition GROUP BY e.kind" >got
  csv many.ht "WITH b AS MATERIALIZED (SELECT process, free_event, size FROM blocks)
    SELECT e.kind, count(*), sum(b.size) FROM events e JOIN b ON $condition GROUP BY e.kind" | diff - got
  expect "many frees" [ "$(awk -F , '$1 == "free" { print $2 }' got)" -ge 40000 ]
  csv --timeout 100 many.ht "SELECT count(*) FROM blocks b WHERE EXISTS (SELECT 1 FROM events e WHERE $condition)" >got
  csv many.ht "SELECT count(*) FROM blocks WHERE free_event IS NOT NULL" | diff <(tail -n 1 got) <(tail -n 1)
  cp many.ht more.ht
  csv --timeout 100 many.ht more.ht "SELECT count(*) FROM events e LEFT JOIN blocks b ON e.file = b.file AND $condition" >got
  [ "$(tail -n 1 got)" -ge 160000 ]
  csv many.ht 'EXPLAIN QUERY PLAN SELECT count(*) FROM events, blocks' | grep -q VIRTUAL
}

@test "sql: LIMIT ends the scan early" {
  csv a.ht 'SELECT event FROM events LIMIT 2' >got
  printf 'event\n0\n1\n' | diff - got
}

@test "sql: errors" {
  heaptape sql
  usage_fails "FILE is missing"
  heaptape sql a.ht
  usage_fails "the query is missing"
  touch last.ht
  heaptape sql 'SELECT 1' last.ht
  usage_fails "'last.ht' is a file, but the query must be the last operand"
  heaptape sql --json --csv a.ht 'SELECT 1'
  usage_fails "--json cannot be combined with --csv"
  heaptape sql - 'SELECT 1'
  usage_fails "standard input"
  heaptape sql a.ht 'SELECT nope FROM events'
  fails_with 2 "query: no such column: nope"
  heaptape sql a.ht 'SELECT 1; SELECT 2'
  fails_with 2 'expected one statement' '"SELECT 2"'
  heaptape sql a.ht "ATTACH 'new.db' AS new"
  fails_with 2 "only SELECT"
  heaptape sql a.ht "DELETE FROM sites"
  fails_with 2 "only SELECT"
  heaptape sql a.ht "PRAGMA page_size"
  fails_with 2 "only SELECT"
  heaptape sql a.ht ' '
  fails_with 2 "empty"
  heaptape sql missing.ht 'SELECT 1'
  fails_with 1 "missing.ht: No such file"
  printf 'no trace' >bad.ht
  heaptape sql a.ht bad.ht 'SELECT * FROM events'
  fails_with 1 "bad.ht: "
}

@test "sql: a query cannot write, attach, load or exceed its limits" {
  local query endless='WITH RECURSIVE t(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM t) SELECT'
  cp a.ht only.ht
  mkdir empty
  for query in "VACUUM INTO '$PWD/empty/a.db'" "VACUUM INTO 'file:$PWD/empty/a.db?mode=rwc'" VACUUM \
    "EXPLAIN VACUUM INTO '$PWD/empty/a.db'" "ATTACH '$PWD/empty/a.db' AS a" 'DETACH main' ANALYZE REINDEX BEGIN \
    'SAVEPOINT a' 'CREATE TEMP TABLE a(b)' "CREATE VIRTUAL TABLE a USING csv(filename='/etc/passwd')" \
    'DROP TABLE sites' "INSERT INTO sites(site) VALUES(1)" 'PRAGMA journal_mode = wal'; do
    heaptape sql only.ht "$query"
    fails_with 2 "query: only SELECT statements can be run"
  done
  for query in "load_extension('x')" "fts3_tokenizer('simple')" "readfile('a.ht')" "writefile('empty/a', 'b')"; do
    heaptape sql only.ht "SELECT $query"
    fails_with 2 "query: "
  done
  heaptape sql only.ht "SELECT * FROM pragma_database_list"
  fails_with 2 "query: not authorized"
  [ -z "$(ls empty)" ]
  cmp a.ht only.ht
  heaptape sql a.ht "SELECT length(zeroblob(100000000))"
  fails_with 1 "too big"
  heaptape sql --timeout 0.5 a.ht "$endless count(*) FROM t"
  fails_with 1 "the query did not end within 0.5 s (--timeout)"
  heaptape sql --max-memory 4M --timeout 600 a.ht "SELECT hex(zeroblob(30000000))"
  fails_with 1 "the query needs more memory than --max-memory"
  heaptape sql --max-memory 1K a.ht 'SELECT 1'
  usage_fails "--max-memory"
  [ "$(csv --max-memory 64M --timeout 600 a.ht "WITH n AS MATERIALIZED (SELECT * FROM events) SELECT count(*) FROM n" | tail -1)" = \
    "$(csv a.ht 'SELECT count(*) FROM events' | tail -1)" ]
}

@test "sql: a damaged file is an error, and a truncated one a note" {
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  head -c $(($(stat -c %s a.ht) - 20)) a.ht >cut.ht
  heaptape sql cut.ht 'SELECT count(*) FROM events e, processes'
  expect "status 0" [ "$status" -eq 0 ]
  expect "one note" [ "${#stderr_lines[@]}" -eq 1 ]
  has "$stderr" "cut.ht: "
  cp a.ht bad.ht
  printf '\377\377\377\377' | dd of=bad.ht bs=1 seek=$(($(stat -c %s a.ht) / 2)) conv=notrunc status=none
  heaptape sql bad.ht 'SELECT count(*) FROM events'
  fails_with 1 "bad.ht: " "at byte"
}

@test "sql: size_class of the largest sizes, and JSON is one line" {
  heaptape sql a.ht 'SELECT size_class(9223372036854775807) a, size_class(0) b, size_class(-1) c FROM processes LIMIT 1' --csv
  [ "${lines[1]}" = "9223372036854775807,8," ]
  "$HEAPTAPE" sql --json a.ht 'SELECT 1' >out.json
  [ "$(wc -l <out.json)" -eq 1 ]
}

@test "sql: --tables lists the columns" {
  heaptape sql --tables
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "events: one row per event"
  expect "each column of a SELECT" [ "$(grep -c '^  ' <<<"$output")" -eq "$(for t in events blocks sites processes samples; do
    csv a.ht "SELECT * FROM $t LIMIT 0" | tr , '\n'
  done | wc -l)" ]
}

# Runs npm's @duckdb/node-api, if it is in NODE_PATH or among the global packages.
ask_duckdb() {
  export NODE_PATH=${NODE_PATH:-$(npm root -g 2>/dev/null)}
  command -v node >/dev/null && node -e "require('@duckdb/node-api')" 2>/dev/null || return 0
  local name table
  for name in old new app; do
    for table in events blocks sites processes samples; do
      "$HEAPTAPE" export -q -F parquet -t $table -o $name.$table.parquet $name.ht
    done
  done
  node "$HEAPTAPE_SOURCE/tests/commands/duckdb_queries.js"
  [ "$(ls duck.* | wc -l)" -eq 11 ]
}

@test "sql: the queries of the guide run, and agree with stat" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q --stacks --usable -o old.ht -- "$HEAPTAPE_PROGRAMS/threads" 1000 3 >/dev/null
  "$HEAPTAPE" record -q --stacks --usable -o new.ht -- "$HEAPTAPE_PROGRAMS/threads" 3000 4 >/dev/null
  "$HEAPTAPE" record -q --stacks --usable -o app.ht -- "$HEAPTAPE_PROGRAMS/queue" 6000 >/dev/null
  [ "$(python3 "$HEAPTAPE_SOURCE/tests/commands/guide_queries.py" "$HEAPTAPE_SOURCE/docs/guide/sql.md")" -eq 11 ]
  "$HEAPTAPE" export -q -F csv -t blocks app.ht >blocks
  "$HEAPTAPE" export -q -F csv -t samples app.ht >samples
  # A time within this run.
  at=$(sed -n 3000p blocks | cut -d, -f3)
  grep -q 2000000 query.8
  sed -i "s/2000000/$at/g" query.8
  grep -q '^## 10\.' "$HEAPTAPE_SOURCE/docs/guide/sql.md"
  for i in {1..11}; do
    echo "query $i"
    bash "query.$i" >"got.$i"
    [ "$(wc -l <"got.$i")" -ge 2 ]
  done
  for name in old new app; do
    "$HEAPTAPE" stat --json $name.ht >$name.json
    "$HEAPTAPE" stat --by site --format json $name.ht >$name.sites.json 2>/dev/null
  done
  sed -i "s/2000000/$at/g" sql.8
  ask_duckdb
  python3 - "$at" <<'END'
import csv, json, os, sys
got = {i: list(csv.DictReader(open(f"got.{i}"))) for i in range(1, 12)}
old, new, app = (json.load(open(f"{n}.json")) for n in ("old", "new", "app"))
sites = json.load(open("app.sites.json"))["sites"]
blocks = list(csv.DictReader(open("blocks")))
total = lambda rows, key: sum(int(r[key]) for r in rows)

assert [(int(r["pid"]), int(r["threads"]), int(r["events"])) for r in got[1]] == [
    (p["pid"], p["threads"], p["events"]) for p in app["processes"]]
assert total(got[2], "old_bytes") == old["live_at_end_bytes"]
assert total(got[2], "new_bytes") == new["live_at_end_bytes"] != old["live_at_end_bytes"]
classes = {c["max_bytes"]: c for c in app["size_classes"]["four_per_doubling"]["classes"]}
for r in got[3]:
    c = classes[int(r["class"])]
    assert (int(r["blocks"]), int(r["bytes"]), int(r["lost_bytes"])) == (
        c["count"], c["bytes"], c["internal_fragmentation_bytes"])
assert len(got[3]) == min(20, len(classes))
assert total(got[4], "bytes") == app["requested_bytes"]
assert total(got[4], "added_bytes") == sum(int(b["usable_size"]) - int(b["size"]) for b in blocks)
pairs = sorted([int(r[k]) for k in ("alloc_thread", "free_thread", "blocks", "bytes")] for r in got[5])
assert pairs == sorted(app["thread_pairs"]["from_to_count_bytes"]) and pairs
assert total(got[5], "blocks") == app["remote_frees"]
lives = sorted((int(b["free_time_ns"]) - int(b["alloc_time_ns"]) for b in blocks if b["free_event"]), reverse=True)
assert [float(r["ms"]) for r in got[6]] == [n / 1e6 for n in lives[:10]]
assert total(got[7], "blocks") == len(lives) == app["requests"]["sized"] - app["live_at_end_blocks"]
assert total(got[7], "short_lived") == sum(n < 1000 for n in lives)
at = int(sys.argv[1])
live = [b for b in blocks if int(b["alloc_time_ns"]) <= at and (not b["free_event"] or int(b["free_time_ns"]) > at)]
assert total(got[8], "bytes") == total(live, "size") and total(got[8], "blocks") == len(live)
assert [int(r["peak_bytes"]) for r in got[9]] == [app["peak_live_bytes"]]
rows = list(csv.DictReader(open("samples")))
assert [int(r["rss_bytes"]) for r in got[10]] == [int(r["rss_bytes"]) for r in rows]
for r in got[10]:
    t = int(r["time_ns"])
    want = sum(int(b["size"]) for b in blocks if int(b["alloc_time_ns"]) <= t
               and (not b["free_event"] or int(b["free_time_ns"]) > t))
    assert int(r["live_bytes"]) == want
assert {r["kind"]: int(r["count(*)"]) for r in got[11]} == {"free": len(lives)}
# By call site.
assert {s["site"]: s["live_at_end_bytes"] for s in sites if s["live_at_end_bytes"]} == {
    s: sum(int(b["size"]) for b in blocks if int(b["site"]) == s and not b["free_event"])
    for s in {int(b["site"]) for b in blocks if not b["free_event"]}}
END
  python3 "$HEAPTAPE_SOURCE/tests/commands/same_answers.py"
}
