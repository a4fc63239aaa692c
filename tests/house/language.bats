load ../helper

language() {
  run "$HEAPTAPE_SOURCE/tests/house/language.py" "$HEAPTAPE" "$@"
  echo "$output"
}

@test "no word of the list of replaced words is used" {
  language
  [ "$status" -eq 0 ]
}

# finds PLACE WORD...: the last run printed a line for each WORD in PLACE, and $lines_wanted counts them.
finds() {
  local place=$1 text
  shift
  for text; do
    grep -F "$place" <<<"$output" | grep -F "'$text' (use " || expect "'$text' in $place" false
  done
  lines_wanted=$((${lines_wanted:-0} + $#))
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
  sed -i 's/json_put_string(j, "library"/json_put_string(j, "harness_ns"/' copy/src/commands/allocators.c
  printf '\nThe key `own_gives` and `gives` are there.\n' >>copy/docs/reference/json.md
  language copy
  [ "$status" -eq 1 ]
  finds allocators.schema.json faithfulness
  finds src/commands/allocators.c harness_ns
  finds docs/reference/json.md own_gives gives
  expect "one line for each" [ "${#lines[@]}" -eq $lines_wanted ]
}

@test "a planted heading, sentence, option and message are found" {
  copy_sources
  printf '\n## Rounding up and holders\n' >>copy/README.md
  printf '\n| file | most |\n|---|---|\n| a | b |\n' >>copy/docs/reference/json.md
  printf '\nIts blocks are given\nup with --callers.\n' >>copy/docs/man/heaptape-stat.1.scd
  language copy
  [ "$status" -eq 1 ]
  finds README.md 'Rounding up' holders
  finds docs/reference/json.md most
  finds docs/man/heaptape-stat.1.scd 'given up' --callers
  expect "one line for each" [ "${#lines[@]}" -eq $lines_wanted ]
  sed -i 's/"%s: is a directory"/"%s: no room for the "\n"births"/' copy/src/base/fio.c
  language copy
  [ "$status" -eq 1 ]
  finds src/base/fio.c room births
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
