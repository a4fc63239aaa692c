load tables_helper

# make_example BYTES: writes a.ht with a mark whose text contains BYTES.
make_example() {
  example | sed -e "/ 5400 /a 0 5500 mark text=b$1d" -e '/^sample/d' | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
}

reader() {
  python3 "$HEAPTAPE_SOURCE/tests/parquet_reader.py" "$@"
}

# duckdb QUERY...: runs npm's @duckdb/node-api, from NODE_PATH or the global packages.
duckdb() {
  node - "$@" <<'END'
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
  const c = await (await DuckDBInstance.create(':memory:')).connect();
  for (const query of process.argv.slice(2)) {
    for (const row of (await c.runAndReadAll(query)).getRowsJson())
      console.log(row.map(v => v === null ? '' : v).join(','));
  }
})().catch(e => { console.error(e.message); process.exit(1); });
END
}

@test "parquet: a second reader finds the rows of csv in every table" {
  command -v zstd >/dev/null || skip "zstd is not installed"
  make_example a
  "$HEAPTAPE_PROGRAMS/make_workload" churn.htw churn 2 2000 30 >/dev/null
  for file in a.ht churn.htw "$HEAPTAPE_SOURCE"/tests/golden/{trace-1,stacks-2,pages-1}.ht; do
    for table in events blocks sites processes samples; do
      "$HEAPTAPE" export -q -F csv -t $table "$file" >want
      "$HEAPTAPE" export -qf -F parquet -t $table -o got.parquet "$file"
      reader got.parquet >got
      cmp want got
    done
  done
}

@test "parquet: several row groups, each with its minimum and maximum" {
  command -v zstd >/dev/null || skip "zstd is not installed"
  "$HEAPTAPE_PROGRAMS/make_workload" churn.htw churn 2 55000 30 >/dev/null
  "$HEAPTAPE" export -q -F parquet -t events churn.htw >got.parquet
  "$HEAPTAPE" export -q -F csv -t events churn.htw | cut -d, -f2,6 >want
  reader got.parquet event size >got
  cmp want got
  reader --stats got.parquet event >stats
  expect "the first group" [ "$(head -1 stats)" = "event,122880,0,0,122879" ]
  expect "all rows" [ "$(awk -F, '{ n += $2 } END { print n }' stats)" -eq "$(($(wc -l <want) - 1))" ]
  expect "more than one group" [ "$(wc -l <stats)" -ge 2 ]
}

@test "parquet: DuckDB reads the same counts, sums and types" {
  command -v node >/dev/null || skip "node is not installed"
  export NODE_PATH=${NODE_PATH:-$(npm root -g 2>/dev/null)}
  duckdb 'SELECT 1' >/dev/null 2>&1 || skip "@duckdb/node-api is not installed (npm)"
  # Invalid UTF-8 is replaced, because engines refuse it.
  make_example $'\xff\xc3'
  "$HEAPTAPE_PROGRAMS/make_workload" churn.htw churn 2 55000 30 >/dev/null
  "$HEAPTAPE" sql --tables >tables
  for table in events blocks sites processes samples; do
    "$HEAPTAPE" export -q -F parquet -t $table -o $table.parquet a.ht
    duckdb "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '$table.parquet')" >got
    awk -v table="$table:" '/^[a-z]/ { on = $1 == table } /^ / && on { print $1 "," ($2 == "integer" ? "BIGINT" : $2 == "boolean" ? "BOOLEAN" : "VARCHAR") }' tables >want
    diff want got
    "$HEAPTAPE" export -q -F csv -t $table a.ht | tail -n +2 | LC_ALL=C sed $'s/\xff\xc3/\xef\xbf\xbd\xef\xbf\xbd/' >want
    duckdb "SELECT * FROM '$table.parquet'" | sed 's/false/0/g; s/true/1/g; s/h"e,re/"h""e,re"/' >got
    diff want got
  done
  for table in events blocks; do
    "$HEAPTAPE" export -qf -F parquet -t $table -o $table.parquet churn.htw
    for query in "count(*), sum(size), count(DISTINCT process)" "min(size), max(size), count(size)"; do
      duckdb "SELECT $query FROM '$table.parquet'" >>got.duck
      "$HEAPTAPE" sql --csv churn.htw "SELECT $query FROM $table" | tail -1 >>got.sqlite
    done
  done
  diff got.sqlite got.duck
  "$HEAPTAPE" stat --json churn.htw | jq -r '"\(.events),\(.live_at_end_bytes)"' >want
  duckdb "SELECT (SELECT count(*) FROM 'events.parquet' WHERE kind <> 'preexisting'), (SELECT coalesce(sum(size), 0) FROM 'blocks.parquet' WHERE free_event IS NULL)" | diff want -
}

@test "parquet: errors" {
  make_example a
  heaptape export -F parquet a.ht
  usage_fails "--format parquet writes a table"
  heaptape export -F parquet -t blocks -o new.parquet missing.ht
  fails_with 1 "missing.ht: No such file"
  expect "no output" [ ! -e new.parquet ]
  cp a.ht bad.ht
  printf '\377\377\377\377' | dd of=bad.ht bs=1 seek=$(($(stat -c %s a.ht) / 2)) conv=notrunc status=none
  heaptape export -q -F parquet -t blocks -o new.parquet bad.ht
  fails_with 1 "bad.ht: " "at byte"
  expect "no partial output" [ ! -e new.parquet ]
}
