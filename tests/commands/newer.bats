load ../helper

bats_require_minimum_version 1.5.0

# Files by a later version of heaptape (newer.c): each reader names the version and the unknown
# part.

golden=$HEAPTAPE_SOURCE/tests/golden

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  "$HEAPTAPE_PROGRAMS/make_trace" words.ht <<'END'
process 100 prog
0 100 malloc size=24 result=0x10000
0 200 mark text=here
0 300 free ptr=0x10000
round
end
END
}

# newer_than_this PART IN OUT TEXT COMMAND...: the command refuses OUT with one line that contains
# TEXT.
newer_than_this() {
  local part=$1 in=$2 out=$3 text=$4
  shift 4
  "$HEAPTAPE_PROGRAMS/newer" "$part" "$in" "$out"
  heaptape "$@"
  fails_with 1 "$out: frame at byte " ": $text: written by a newer heaptape"
}

# refused_trace PART IN TEXT: checks each reader of traces.
refused_trace() {
  local text="$3: written by a newer heaptape (99.0.0)?" command
  for command in check stat 'stat --by site' 'convert -f -o n.htw' 'report -f -o n.html' 'export -F json -f -o n.json' \
    'export -F csv -t events -f -o n.csv' replay 'anonymize -f -o n2.ht'; do
    # shellcheck disable=SC2086
    newer_than_this "$1" "$2" n.ht "$3" $command n.ht
    has "$stderr" "$text"
  done
  heaptape dump n.ht
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "$text"
  heaptape check --salvage -f -o n3.ht n.ht
  fails_with 1 "$text"
  run "$HEAPTAPE_PROGRAMS/read_library" events n.ht
  expect "the library refuses it" [ "$status" -ne 0 ]
  has "$output" "$text"
}

@test "newer: an event kind, in words and in columns" {
  "$HEAPTAPE_PROGRAMS/newer" none words.ht none.ht || true
  heaptape check none.ht
  expect "status 0" [ "$status" -eq 0 ]
  refused_trace kind "$golden/trace-1.ht" "event kind 25 is not known"
  refused_trace kind "$golden/stacks-3.ht" "event kind 25 is not known"
  refused_trace kind "$golden/trace-2.ht" "event kind 25 is not known"
  refused_trace long words.ht "event kind 200 is not known"
  refused_trace long "$golden/stacks-3.ht" "event kind 200 is not known"
}

@test "newer: unknown transforms, clocks and records" {
  refused_trace transform words.ht "event transform 5 is not known"
  newer_than_this clock words.ht n.ht "clock kind 3 is not known" check n.ht
  newer_than_this nonsense "$golden/trace-1.ht" n.ht "the records are invalid" check n.ht
  newer_than_this nonsense "$golden/stacks-3.ht" n.ht "the records are invalid" check n.ht
}

@test "newer: fields and frames that can be skipped" {
  for part in field frame; do
    "$HEAPTAPE_PROGRAMS/newer" $part words.ht n.ht || true
    heaptape stat --brief n.ht
    expect "$part: status 0" [ "$status" -eq 0 ]
  done
}

@test "newer: workloads" {
  "$HEAPTAPE" convert -q -o a.htw words.ht
  "$HEAPTAPE_PROGRAMS/newer" none a.htw none.htw || true
  heaptape check none.htw
  expect "status 0" [ "$status" -eq 0 ]
  for command in check stat 'report -f -o n.html' 'export -F json -f -o n.json' replay dump \
    'slice --from 0 -f -o n2.htw' 'anonymize -f -o n2.htw'; do
    # shellcheck disable=SC2086
    newer_than_this kind a.htw n.htw "event kind 25 is not known" $command n.htw
    has "$stderr" "newer heaptape (99.0.0)?"
  done
  "$HEAPTAPE" convert -q -o s.htw "$golden/stacks-3.ht"
  # symbolize copies the ops without decoding them. The copy is still a file by the newer version.
  "$HEAPTAPE_PROGRAMS/newer" kind s.htw n.htw
  heaptape symbolize -f -o n2.htw n.htw
  expect "status 0" [ "$status" -eq 0 ]
  heaptape check n2.htw
  fails_with 1 "n2.htw: frame at byte " "event kind 25 is not known: written by a newer heaptape (99.0.0)?"
  newer_than_this flag a.htw n.htw "a flag of the ops is not known" check n.htw
  has "$stderr" "newer heaptape (99.0.0)?"
  "$HEAPTAPE_PROGRAMS/newer" nonsense a.htw n.htw
  heaptape check n.htw
  fails_with 1 "n.htw: invalid frame: invalid slot limit, at byte "
}

@test "newer: aggregates" {
  for part in 'count:event kind 25 is not known' 'clock:the clock of the session is not known' \
    'nonsense:is not understood'; do
    newer_than_this "${part%%:*}" "$golden/aggregate-1.hta" n.hta "${part#*:}" stat n.hta
    has "$stderr" "(99.0.0)?"
  done
}

@test "newer: JSON documents" {
  local text version command
  "$HEAPTAPE" stat --json words.ht >a.json
  "$HEAPTAPE" convert -q -o a.htw words.ht
  "$HEAPTAPE" replay -r 1 --json a.htw >r.json
  "$HEAPTAPE" report -f -o page.html words.ht
  mkdir c m
  printf '{"schema_version": 2, "entries": []}\n' >c/index.json
  "$HEAPTAPE" matrix -q -r 1 -w a.htw m
  for version in '3:a newer' '1:an older'; do
    text="schema_version is ${version%%:*}, expected 2: written by ${version#*:} heaptape?"
    cp a.json n.json
    sed -i "s/\"schema_version\": *[0-9]/\"schema_version\":${version%%:*}/" n.json r.json page.html c/index.json m/1.json
    for command in 'check n.json' 'check page.html' 'check r.json' 'report -f -o n.html n.json' \
      'report -f -o n.html r.json' 'report --diff n.json a.json' 'report --diff a.json n.json' \
      'corpus list --dir c' 'check c/index.json' 'matrix m'; do
      # shellcheck disable=SC2086
      heaptape $command
      fails_with 1 "$text"
    done
  done
}
