load ../helper

@test "the generated files are up to date" {
  run "$HEAPTAPE_SOURCE/tools/generate" --check "$HEAPTAPE"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "a stale generated file is found" {
  mkdir copy
  cp -r "$HEAPTAPE_SOURCE/tools" "$HEAPTAPE_SOURCE/docs" copy/
  sed -i 's/show this help/Planted/' copy/docs/man/heaptape.1.scd
  run copy/tools/generate --check "$HEAPTAPE"
  [ "$status" -eq 1 ]
  has "$output" "docs/man/heaptape.1.scd is stale"
  run copy/tools/generate "$HEAPTAPE"
  [ "$status" -eq 0 ]
  cmp copy/docs/man/heaptape.1.scd "$HEAPTAPE_SOURCE/docs/man/heaptape.1.scd"
}

@test "every command has a man page, which is built" {
  command -v scdoc >/dev/null || skip "no scdoc"
  "$HEAPTAPE" help --man | sed -n 's/^\*\(heaptape-[a-z]*\)\*.*/\1/p' >commands
  for page in heaptape $(cat commands); do
    echo "$page"
    [ -f "$HEAPTAPE_BUILD/docs/$page.1" ]
    scdoc <"$HEAPTAPE_SOURCE/docs/man/$page.1.scd" >page.1
    grep -q EXIT page.1 || [ "$page" != heaptape ]
  done
}

# complete WORD...: what bash offers for the last word.
complete_line() {
  bash -c 'complete() { :; }; compopt() { :; }
    . "$HEAPTAPE_SOURCE/docs/completion/heaptape.bash"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _heaptape
    printf "%s\n" "${COMPREPLY[@]}"' - "$@"
}

@test "completion offers commands and options" {
  run complete_line heaptape hel
  [ "$output" = help ]
  run complete_line heaptape --v
  [ "$output" = --version ]
}
