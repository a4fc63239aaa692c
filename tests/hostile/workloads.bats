load hostile

bats_require_minimum_version 1.5.0

# Workloads with correct checksums and contradictory contents (liar.c). Every command must refuse
# such a workload with the same message, and print no other message before.

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  PROGRAMS=$HEAPTAPE_PROGRAMS/hostile
}

# refused_by LIE TEXT COMMAND...: one line with the text, status 1.
refused_by() {
  local lie=$1 text=$2
  shift 2
  "$PROGRAMS/liar" "$lie" w.htw
  heaptape "$@"
  fails_with 1 "w.htw: invalid frame: $text, at byte "
}

# The ops follow the header, which contains the version.
version=$("$HEAPTAPE" --version)
version=${version#heaptape }
ops_at=$((61 + ${#version}))

# refused LIE TEXT: by each command that reads the whole file.
refused() {
  refused_by "$@" check w.htw
  refused_by "$@" stat w.htw
  refused_by "$@" stat --by site w.htw
  refused_by "$@" report -f -o w.html w.htw
  refused_by "$@" replay w.htw
  refused_by "$@" compare -a glibc -a glibc w.htw
  refused_by "$@" merge -f -o m.htw w.htw w.htw
  refused_by "$@" export -F json -f -o w.json w.htw
  refused_by "$@" slice -f -o s.htw --from 3 w.htw
  "$PROGRAMS/liar" "$1" w.htw
  "$HEAPTAPE" dump w.htw > dump.txt 2> err.txt || [ $? -eq 1 ]
  has "$(cat err.txt)" "heaptape: w.htw: invalid frame: $2, at byte "
}

@test "hostile: all commands read a workload without a lie" {
  "$PROGRAMS/liar" none w.htw
  for command in 'check' 'stat' 'stat --brief' 'dump' 'report -f -o w.html' 'replay -r 1' 'merge -f -o m.htw w.htw' \
    'export -F json -f -o w.json' 'slice -f -o s.htw --from 3' 'slice -f -o s.htw --to 100'; do
    # shellcheck disable=SC2086
    heaptape $command w.htw
    expect "$command: status 0" [ "$status" -eq 0 ]
  done
}

@test "hostile: a slot allocated twice is refused by all commands" {
  refused twice "op 4 of thread 0 allocates into slot 2, which already holds a block"
}

@test "hostile: a slot freed twice is refused by all commands" {
  refused freed "op 5 of thread 0 uses slot 2, which holds no block"
}

@test "hostile: a summary that contradicts the ops is refused by all commands" {
  refused summary "the summary says threads 1, its ops make 2"
}

@test "hostile: an index that contradicts the frames is refused by all commands" {
  refused index "the index does not agree with the ops at byte $ops_at"
}

@test "hostile: an op with a missing call site is refused by all commands" {
  refused site "an op has call site 4000000000 of 0 call sites"
}

@test "hostile: unordered uses of a slot are refused by check and by all commands that replay" {
  text="op 0 of thread 1 uses slot 0 without a dependency on its use by op 0 of thread 0"
  refused_by race "$text" check w.htw
  refused_by race "$text" replay w.htw
  refused_by race "$text" replay --verify w.htw
  refused_by race "$text" replay --threads one w.htw
  refused_by race "$text" replay --memory 64k w.htw
  refused_by race "$text" compare -a glibc -a glibc w.htw
}

@test "hostile: a slice that ends early checks summary, index and call sites up to its end" {
  refused_by summary "the summary says threads 1, its ops make at least 2" slice -f -o s.htw --to 100 w.htw
  refused_by index "the index does not agree with the ops at byte $ops_at" slice -f -o s.htw --to 100 w.htw
  refused_by site "an op has call site 4000000000 of 0 call sites" slice -f -o s.htw --to 100 w.htw
  expect "no file" [ ! -e s.htw ]
}

@test "hostile: merge allocates no memory in proportion to the number of a call site" {
  skip_under_sanitizer
  "$PROGRAMS/liar" site w.htw
  run --separate-stderr bash -c 'ulimit -v 1000000; exec timeout -k 1 120 "$HEAPTAPE" merge -f -o m.htw w.htw w.htw'
  fails_with 1 "w.htw: invalid frame: an op has call site 4000000000 of 0 call sites"
}

@test "hostile: stat --brief reports that the totals were not compared" {
  "$PROGRAMS/liar" summary w.htw
  heaptape stat --brief w.htw
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "compared with events"
  heaptape stat --brief --json w.htw
  expect "summary_only is true" [ "$(jq .summary_only <<< "$output")" = true ]
  heaptape stat --brief --json - < <(cat w.htw)
  fails_with 1 "the summary says threads 1, its ops make 2"
  "$PROGRAMS/liar" none w.htw
  heaptape stat --json w.htw
  expect "summary_only is false" [ "$(jq .summary_only <<< "$output")" = false ]
  heaptape stat -v w.htw
  expect "no such note" [ "${output/compared with events/}" = "$output" ]
}

@test "hostile: dump stops before an invalid op, names it with its place, and exits with 1" {
  "$PROGRAMS/liar" twice w.htw
  heaptape dump w.htw
  expect "status 1" [ "$status" -eq 1 ]
  has "$output" "malloc(8) = #0"
  has "$stderr" "heaptape: w.htw: invalid frame: op 4 of thread 0 allocates into slot 2, which already holds a block, at byte "
}
