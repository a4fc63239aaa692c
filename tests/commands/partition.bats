# export --partition: one file for each process, in directories that engines read as columns.
load tables_helper

reader() {
  python3 "$HEAPTAPE_SOURCE/tests/parquet_reader.py" "$@"
}

# recording TABLE: prints the only directory of a recording below fleet/TABLE.
recording() {
  local found=(fleet/"$1"/host=*/recording=*)
  [ ${#found[@]} -eq 1 ]
  echo "${found[0]}"
}

@test "partition: each file has the rows of its process, for every table" {
  example | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  for table in events blocks sites processes samples; do
    "$HEAPTAPE" export -q -F csv -t $table --partition -o fleet/ a.ht
    "$HEAPTAPE" export -q -F csv -t $table a.ht >all
    head -1 all >header
    # The example has no call sites, and make_trace writes no host.
    if [ $table = sites ]; then
      [ "$(wc -l <all)" -eq 1 ]
      [ ! -e fleet/sites ]
      continue
    fi
    [ "$(recording $table)" = "fleet/$table/host=__HIVE_DEFAULT_PARTITION__/recording=19700101T000000.000000000Z" ]
    for file in $(find fleet/$table -name '*.csv' | sort -t= -k4); do
      head -1 "$file" | diff header -
      sed 1d "$file"
    done >got
    sed 1d all | diff - got
  done
  for table in events blocks; do
    [ "$(cd "$(recording $table)" && echo */*)" = "pid=100/0.csv pid=200/1.csv" ]
    grep -c ^0, "$(recording $table)/pid=100/0.csv"
    grep -vq ^1, "$(recording $table)/pid=100/0.csv"
  done
  [ "$(cd "$(recording processes)" && echo *)" = 0.csv ]
  [ "$(cd "$(recording samples)" && echo */*)" = pid=100/0.csv ]
}

@test "partition: existing files are kept, or replaced with -f" {
  example | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  "$HEAPTAPE" export -q -F csv -t blocks --partition -o fleet a.ht
  heaptape export -F csv -t blocks --partition -o fleet a.ht
  fails_with 1 "/pid=100/0.csv: exists; use -f"
  : >"$(recording blocks)/pid=100/0.csv"
  "$HEAPTAPE" export -qf -F csv -t blocks --partition -o fleet a.ht
  [ -s "$(recording blocks)/pid=100/0.csv" ]
  [ "$(find fleet -type f | wc -l)" -eq 2 ]
}

@test "partition: errors" {
  example | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  heaptape export -F csv -t blocks --partition a.ht
  usage_fails "--partition needs"
  heaptape export -F json --partition -o fleet a.ht
  usage_fails "--partition requires --format csv or --format parquet"
  heaptape export -F csv -t blocks --partition -o fleet a.htw
  fails_with 1 "a.htw: is a workload"
  heaptape export -F csv -t blocks --partition -o fleet missing.ht
  fails_with 1 "missing.ht: No such file"
  : >file
  heaptape export -F csv -t blocks --partition -o file a.ht
  fails_with 1 "file/blocks/"
  [ ! -e fleet ]
  printf '\377\377\377\377' | dd of=a.ht bs=1 seek=$(($(stat -c %s a.ht) / 2)) conv=notrunc status=none
  heaptape export -F csv -t blocks --partition -o fleet a.ht
  fails_with 1 "a.ht: " "at byte"
  [ -z "$(find fleet -type f 2>/dev/null)" ]
}

@test "partition: many processes have smaller row groups, and all rows" {
  skip_under_sanitizer
  command -v zstd >/dev/null || skip "zstd is not installed"
  # shellcheck disable=SC2016
  "$HEAPTAPE" record -q --stacks=4 -o a.ht -- \
    bash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do "$0" 1 45000 & done; wait' "$HEAPTAPE_PROGRAMS/churn_mt" >/dev/null
  "$HEAPTAPE" export -q -F parquet -t events --partition -o fleet a.ht
  "$HEAPTAPE" export -q -F csv -t events a.ht | awk -F, 'NR > 1 { n[$1]++ } END { for (p in n) print p, n[p] }' | sort >want
  for file in "$(recording events)"/pid=*/*.parquet; do
    process=${file##*/}
    reader --stats "$file" event | awk -F, -v process="${process%.parquet}" '{ n += $2 } END { print process, n, NR }'
  done | sort >got
  cut -d' ' -f1,2 got | diff want -
  awk '$2 < 122880 && $3 > 1' got | grep .
  # The tables of call sites and processes are also correct.
  "$HEAPTAPE" export -q -F parquet -t sites --partition -o fleet a.ht
  "$HEAPTAPE" export -q -F csv -t sites a.ht | sed 1d | sort >want
  for file in "$(recording sites)"/pid=*/*.parquet; do
    reader "$file" | sed 1d
  done | sort | diff want -
  [[ $(recording events) == fleet/events/host=$(uname -n)/recording=20* ]]
}

@test "partition: DuckDB reads host, recording and pid as columns" {
  command -v node >/dev/null || skip "node is not installed"
  export NODE_PATH=${NODE_PATH:-$(npm root -g 2>/dev/null)}
  node -e "require('@duckdb/node-api')" 2>/dev/null || skip "@duckdb/node-api is not installed (npm)"
  example | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  for table in events blocks processes; do
    "$HEAPTAPE" export -q -F parquet -t $table --partition -o fleet a.ht
  done
  cat >sql.12 <<'END'
SELECT p.command, b.pid, count(*), sum(b.size)
FROM read_parquet('fleet/blocks/**/*.parquet', hive_partitioning = true) b
JOIN read_parquet('fleet/processes/**/*.parquet', hive_partitioning = true) p USING (recording, process)
WHERE b.host IS NULL
GROUP BY ALL ORDER BY ALL
END
  for table in events blocks sites processes samples; do
    "$HEAPTAPE" export -qf -F parquet -t $table -o app.$table.parquet a.ht
  done
  node "$HEAPTAPE_SOURCE/tests/commands/duckdb_queries.js" 12
  [ "$(cat duck.12)" = '[["prog -x","100","5","368"],["second","200","1","32"]]' ]
}
