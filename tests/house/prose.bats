load ../helper

prose() {
  run "$HEAPTAPE_SOURCE/tools/check-prose" "$@"
  echo "$output"
}

@test "comments, messages and documents read like those of other projects" {
  prose
  [ "$status" -eq 0 ]
}

# finds FILE TEXT: a file with this text fails.
finds() {
  local file=$1 text=$2
  printf "$text\n" >"$file"
  prose "$file"
  expect "found" [ "$status" -eq 1 ]
  has "$output" "$file: "
}

@test "odd phrases are found in each kind of text" {
  finds a.c '// What is live is none.\n// It stands for that of its own.\nint a;'
  finds b.c 'const char *b = "what is live stands for that of its own";'
  finds c.bats '# Of the blocks none is told.\n# Whose block is it of which nothing is known\ntrue'
  finds d.md 'What is live is told of its own.'
  finds e.scd 'What is live is told of its own.'
  finds f.js '// What is live is told of its own.\nlet a;'
}

@test "a few places, code and tables are no alarm" {
  echo '// The block of its own, under way.' >a.c
  prose a.c
  [ "$status" -eq 0 ]
  printf 'Text.\n\n    what is none of which\n\n| what is | none of which | of its own |\n' >b.md
  prose b.md
  [ "$status" -eq 0 ]
  { for i in $(seq 4); do echo "It says so."; done && for i in $(seq 4100); do printf 'word '; done; } >c.md
  prose c.md
  [ "$status" -eq 0 ]
}

@test "nothing to check is an error" {
  mkdir empty
  prose empty
  [ "$status" -eq 1 ]
}
