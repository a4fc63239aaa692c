load ../helper

language() {
  run "$HEAPTAPE_SOURCE/tests/house/language.py" "$HEAPTAPE" "$@"
  echo "$output"
}

@test "no word of the list of replaced words is used" {
  language
  [ "$status" -eq 0 ]
}

# finds PLACE WORD...: language.py finds each WORD in PLACE of the copy, and nothing else.
finds() {
  local place=$1 text
  shift
  language copy
  [ "$status" -eq 1 ]
  expect "one line for each" [ "${#lines[@]}" -eq $# ]
  for text; do
    has "$output" "$place"
    has "$output" "'$text' (use "
  done
}

copy_sources() {
  rm -rf copy
  mkdir -p copy/docs
  cp -r "$HEAPTAPE_SOURCE"/{src,README.md,CONTRIBUTING.md} copy/
  cp -r "$HEAPTAPE_SOURCE"/docs/{man,reference} copy/docs/
}

@test "a planted key is found, in a schema, in the code and in the docs" {
  copy_sources
  sed -i 's/"available": {/"faithfulness": {/' copy/docs/reference/json/allocators.schema.json
  finds allocators.schema.json faithfulness
  copy_sources
  sed -i 's/json_put_string(j, "library"/json_put_string(j, "harness_ns"/' copy/src/commands/allocators.c
  finds src/commands/allocators.c harness_ns
  copy_sources
  printf '\nThe key `own_gives` and `gives` are there.\n' >>copy/docs/reference/json.md
  finds docs/reference/json.md own_gives gives
}

@test "a planted heading, sentence, option and message are found" {
  copy_sources
  printf '\n## Rounding up and holders\n' >>copy/README.md
  finds README.md 'Rounding up' holders
  copy_sources
  printf '\n| file | most |\n|---|---|\n| a | b |\n' >>copy/docs/reference/json.md
  finds docs/reference/json.md most
  copy_sources
  printf '\nIts blocks are given\nup with --callers.\n' >>copy/docs/man/heaptape-stat.1.scd
  finds docs/man/heaptape-stat.1.scd 'given up' --callers
  copy_sources
  sed -i 's/"%s: is a directory"/"%s: no room for the "\n"births"/' copy/src/base/fio.c
  language copy
  [ "$status" -eq 1 ]
  has "$output" "src/base/fio.c"
  has "$output" "'room' (use"
  has "$output" "'births' (use"
}

@test "a planted option and a planted help text are found" {
  copy_sources
  cat >program <<'FAKE'
#!/bin/bash
"$REAL" "$@" | sed -e 's/--trim-every/--slop/' -e 's/Print this help/Settle it/' -e 's/show this help/settle this help/'
FAKE
  chmod +x program
  REAL=$HEAPTAPE run "$HEAPTAPE_SOURCE/tests/house/language.py" "$PWD/program" copy
  [ "$status" -eq 1 ]
  has "$output" "heaptape replay --help:1: 'slop' (use "
  has "$output" "heaptape stat --help:1: 'settle' (use "
}

@test "parts of other words and exceptions are not reported" {
  copy_sources
  printf '\nPlaceholders, the time-stamp counter, edge cases, `takes_no_value` and --callersfoo are fine.\n' >>copy/README.md
  language copy
  [ "$status" -eq 0 ]
}
