load ../helper

@test "files of other programs" {
  heaptape check nothing-here
  fails_with 1 "nothing-here: No such file"
  heaptape check .
  fails_with 1 ".: is a directory"
  : >empty
  heaptape check empty
  fails_with 1 "empty: is empty"
  # The first byte is fixed: a file that begins with '{' is read as JSON.
  { printf '\377'; head -c 1000 /dev/urandom; } >random
  heaptape check random
  fails_with 1 "random: is not a heaptape trace or workload"
}

@test "damaged and truncated traces" {
  skip_under_sanitizer
  [ -f "$HEAPTAPE_BUILD/src/capture/libheaptape.so" ] || skip "no capture library in this build"
  heaptape record -q -o a.ht -- ls -l /
  heaptape check a.ht
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "a.ht: intact trace: "
  size=$(stat -c %s a.ht)
  for n in 10 39 41 $((size / 2)) $((size - 1)); do
    head -c "$n" a.ht >cut
    heaptape check cut
    fails_with 1 "cut: " "cut off"
  done
  for at in 1 20 50 $((size / 2)) $((size - 2)); do
    { head -c "$at" a.ht; printf '\xa5'; tail -c +$((at + 2)) a.ht; } >bad
    cmp -s a.ht bad && continue
    heaptape check bad
    fails_with 1 "bad: " "byte"
  done
}

# damage FILE AT: copies FILE to `bad` with one byte changed.
damage() {
  { head -c "$2" "$1"; head -c 1 <(tail -c +$(($2 + 1)) "$1") | tr '\0-\377' '\1-\377\0'; tail -c +$(($2 + 2)) "$1"; } >bad
}

# frames FILE, events FILE: print their number.
frames() {
  "$HEAPTAPE" check "$1" | sed 's/.* in \([0-9]*\) frames.*/\1/'
}
events() {
  "$HEAPTAPE" stat --json "$1" | grep -o '"events": *[0-9]*' | head -1 | grep -o '[0-9]*$'
}

@test "salvage keeps all but the damaged frame" {
  printf '%s\n' 'process 7 prog' >text
  for ((i = 1; i <= 60; i++)); do
    printf '%s\n' "0 $((i * 100)) malloc size=16 result=$((65536 + i * 64))" "0 $((i * 100 + 50)) free ptr=$((65536 + i * 64))" round
  done >>text
  echo end >>text
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <text
  expect "the number of events" [ "$(events a.ht)" -eq 120 ]
  size=$(stat -c %s a.ht)
  whole=$(frames a.ht)
  for at in $((size / 4)) $((size / 2)) $((size * 2 / 3)); do
    damage a.ht "$at"
    heaptape check bad
    expect "status 1" [ "$status" -eq 1 ]
    heaptape check --salvage -f -o good.ht bad
    expect "status 0" [ "$status" -eq 0 ]
    has "$stderr" "lost 1 frame ("
    expect "all frames but one" [ "$(frames good.ht)" -eq $((whole - 1)) ]
    expect "all events but two" [ "$(events good.ht)" -eq 118 ]
    heaptape convert -f -o good.htw good.ht
    expect "status 0" [ "$status" -eq 0 ]
  done
}

@test "salvage of a file without its beginning or its end" {
  printf '%s\n' 'process 7 prog' '0 100 malloc size=16 result=65536' round '0 200 free ptr=65536' end >text
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <text
  size=$(stat -c %s a.ht)
  damage a.ht 45
  heaptape check --salvage -o first.ht bad
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "the session frame is lost"
  expect "events" [ "$(events first.ht)" -eq 2 ]
  damage a.ht "$(grep -abo prog a.ht | head -n 1 | cut -d: -f1)"
  heaptape check --salvage -o process.ht bad
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "bad: the descriptions of 1 process are lost; their events are kept"
  expect "events" [ "$(events process.ht)" -eq 2 ]
  head -c $((size - 10)) a.ht >bad
  heaptape check --salvage -o last.ht bad
  has "$stderr" "the end is missing"
  expect "events" [ "$(events last.ht)" -eq 2 ]
  heaptape check last.ht
  expect "status 0" [ "$status" -eq 0 ]
  head -c 5000 /dev/urandom >bad
  heaptape check --salvage -o none.ht bad
  fails_with 1 "no intact frame found"
  expect "no file" [ ! -e none.ht ]
  heaptape check --salvage a.ht
  usage_fails "--salvage and -o FILE require each other"
}

# damaged_are_refused FILE STEP: flips a bit at every STEPth byte, and truncates FILE there.
damaged_are_refused() {
  python3 - "$HEAPTAPE" "$1" "$2" <<'END'
import subprocess, sys
data, step = open(sys.argv[2], "rb").read(), int(sys.argv[3])
for at in range(0, len(data), step):
    for bad in (data[:at] + bytes([data[at] ^ 1]) + data[at + 1:], data[:at]):
        open("bad", "wb").write(bad)
        r = subprocess.run([sys.argv[1], "check", "bad"], capture_output=True, text=True, timeout=60)
        assert (r.returncode, r.stdout, r.stderr.count("\n")) == (1, "", 1), (at, len(bad), r)
        assert r.stderr.startswith("heaptape: bad: "), r.stderr
END
}

@test "aggregates" {
  cp "$HEAPTAPE_SOURCE/tests/golden/aggregate-1.hta" a.hta
  heaptape check a.hta
  expect "status 0" [ "$status" -eq 0 ]
  [[ $output == "a.hta: intact aggregate: "*" events of "*" process"*", "* ]]
  [ "$(cat a.hta | "$HEAPTAPE" check -)" = "(stdin)${output#a.hta}" ]
  damaged_are_refused a.hta $(($(stat -c %s a.hta) / 40 + 1))
  { cat a.hta; echo x; } >long
  heaptape check long
  fails_with 1 "long: data after the last frame, at byte $(stat -c %s a.hta)"
}

@test "tables" {
  local table rows
  cp "$HEAPTAPE_SOURCE/tests/golden/stacks-3.ht" a.ht
  for table in events blocks sites processes samples; do
    "$HEAPTAPE" export -q -F csv -t $table -o $table.csv a.ht
    "$HEAPTAPE" export -q -F parquet -t $table -o $table.parquet a.ht
    rows=$(($(wc -l <$table.csv) - 1))
    heaptape check $table.csv
    [[ $output == "$table.csv: intact table in CSV: $rows row"* ]]
    heaptape check $table.parquet
    [[ $output == "$table.parquet: intact table in Parquet: $rows row"* ]]
    # A pipe cannot be read from its end, so check reads it twice.
    [ "$(cat $table.parquet | "$HEAPTAPE" check -)" = "(stdin)${output#"$table.parquet"}" ]
  done
  # The pages have checksums, the footer does not.
  size=$(stat -c %s events.parquet)
  footer=$(($(od -An -tu4 -j $((size - 8)) -N 4 events.parquet) + 8))
  python3 - "$HEAPTAPE" events.parquet $((size - footer)) <<'END'
import subprocess, sys
data, pages = open(sys.argv[2], "rb").read(), int(sys.argv[3])
missed = 0
for at in range(4, len(data), 61):
    for bad in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]):
        open("bad", "wb").write(bad)
        r = subprocess.run([sys.argv[1], "check", "bad"], capture_output=True, text=True, timeout=60)
        assert r.stderr.count("\n") == r.returncode <= 1, r
        missed += r.returncode == 0 and at < pages
        assert r.returncode == 1 or len(bad) == len(data), "cut off"
assert missed <= 3, missed
END
  sed '3s/^[^,]*,//' events.csv >bad
  heaptape check bad
  fails_with 1 "bad: a row of 15 fields, expected 16, at byte "
  head -c -5 events.csv >bad
  heaptape check bad
  fails_with 1 "bad: cut off in the row at byte "
  sed '4s/,/,a"/' events.csv >bad
  heaptape check bad
  fails_with 1 "bad: unexpected quote, at byte "
}

@test "documents" {
  local name
  "$HEAPTAPE" convert -q -o a.htw "$HEAPTAPE_SOURCE/tests/golden/stacks-3.ht"
  "$HEAPTAPE" stat --json a.htw >stat.json
  "$HEAPTAPE" stat --brief --json a.htw >brief.json
  "$HEAPTAPE" stat --by site --format json a.htw >sites.json
  "$HEAPTAPE" allocators --json >allocators.json
  "$HEAPTAPE" diff --json a.htw a.htw >diff.json
  "$HEAPTAPE" dump --format json a.htw >dump.json
  "$HEAPTAPE" report -o report.html a.htw
  cp "$HEAPTAPE_SOURCE/corpus/index.json" index.json
  check_is() {
    heaptape check "$1"
    expect "intact" [ "$status" -eq 0 ]
    [[ $output == "$1: intact $2"* ]] || { echo "$output"; return 1; }
    head -c $(($(stat -c %s "$1") / 2)) "$1" >bad
    heaptape check bad
    fails_with 1 "bad: " "byte"
  }
  check_is stat.json "statistics, "
  check_is brief.json "brief statistics, "
  check_is sites.json "statistics of call sites, "
  check_is allocators.json "list of allocators, "
  check_is diff.json "difference, "
  check_is dump.json "events: $(wc -l <dump.json) lines, "
  check_is report.html "report: in HTML, "
  check_is index.json "index of a corpus, "
  # Tests JSON of another version, JSON of another program, and JSON that `report` does not read.
  sed 's/"schema_version": *2/"schema_version":3/' brief.json >bad
  heaptape check bad
  fails_with 1 "bad: schema_version is 3, expected 2: written by a newer heaptape?"
  sed 's/"schema_version": *2,//' diff.json >bad
  heaptape check bad
  fails_with 1 "bad: is JSON, but not a document of heaptape"
  echo '{"a": 1}' >bad
  heaptape check bad
  fails_with 1 "bad: is JSON, but not a document of heaptape"
  sed '3s/"kind"/"Kind"/' dump.json >bad
  heaptape check bad
  fails_with 1 "bad: line 3 is not an event in JSON, at byte $(head -2 dump.json | wc -c)"
  printf '{"schema_version": 2, "columns": ["a", "b"], "rows": [[1, 2], [3]]}\n' >bad
  heaptape check bad
  fails_with 1 "bad: row 1 has 1 values, expected 2"
  sed 's/id="data">{/id="data">{,/' report.html >bad
  heaptape check bad
  fails_with 1 "bad: invalid JSON at byte"
  head -c -3 dump.json >bad
  heaptape check bad
  fails_with 1 "bad: cut off in the line at byte $(head -n -1 dump.json | wc -c)"
  head -c -1 report.html >bad
  heaptape check bad
  fails_with 1 "bad: cut off at byte $(wc -c <bad)"
  sed 's/id="data"/id="other"/' report.html >bad
  heaptape check bad
  fails_with 1 "bad: is HTML, but not a report of heaptape"
  python3 -c 'import re, sys
print(re.sub(r"(id=\"data\">).*?(</script>)", lambda m: m[1] + open("brief.json").read() + m[2], open("report.html").read(), flags=re.S), end="")' >bad
  heaptape check bad
  fails_with 1 "bad: contains a brief statistics instead of a report"
}
