load ../helper

# All commands that read a file, with their required options. If a command fails, it prints one line
# to stderr, exits with 1, and leaves no output file.
readers=("convert -o out.htw" "stat" "dump" "check" "replay -a glibc" "compare -a glibc -a glibc")

# each_reader FILE TEXT...: every command rejects FILE with each TEXT in its message.
each_reader() {
  local file=$1 words
  shift
  for words in "${readers[@]}"; do
    echo "heaptape $words $file"
    # shellcheck disable=SC2086 # the words of a command
    heaptape $words "$file"
    fails_with 1 "$@"
    [ -z "$output" ]
    [ ! -e out.htw ]
  done
}

@test "a missing file is named" {
  each_reader none.ht "none.ht" "No such file"
}

@test "a directory is refused" {
  mkdir folder.ht
  each_reader folder.ht "folder.ht" "is a directory"
}

@test "an empty file is refused" {
  : >empty.ht
  each_reader empty.ht "empty.ht" "is empty"
}

@test "a file without permission is refused" {
  [ "$(id -u)" -ne 0 ] || skip "root may read everything"
  echo secret >secret.ht
  chmod 0 secret.ht
  each_reader secret.ht "secret.ht" "Permission denied"
}

@test "random bytes are refused" {
  # The first byte is fixed: 'check' reads a file that begins with '{' as JSON.
  { printf '\377'; head -c 100000 /dev/urandom; } >random.ht
  each_reader random.ht "random.ht" "is not a heaptape trace"
}

@test "a text file and a short file are refused" {
  echo "x" >short.ht
  each_reader short.ht "short.ht"
  cat "$HEAPTAPE_SOURCE/README.md" >text.ht
  each_reader text.ht "text.ht" "is not a heaptape trace"
}

@test "a truncated frame header is reported as truncated" {
  printf 'HTr1' >cut.ht
  each_reader cut.ht "cut.ht" "cut off" "at byte 0"
  printf 'HTw1\1\0\1\0' >cut.htw
  readers=(stat dump check "replay -a glibc" "compare -a glibc -a glibc")
  each_reader cut.htw "cut.htw" "cut off" "at byte 0"
}

@test "a workload is refused by readers of traces" {
  printf 'HTw1\1\0\1\0%040d' 0 >workload.ht
  heaptape convert -o out.htw workload.ht
  fails_with 1 "workload.ht" "is a workload, expected a trace"
}

@test "an empty pipe is refused" {
  bats_require_minimum_version 1.5.0
  for words in "convert -o out.htw" stat dump "replay -a glibc"; do
    echo "$words"
    # shellcheck disable=SC2086 # the words of a command
    run --separate-stderr "$HEAPTAPE" $words - < <(:)
    fails_with 1 "(stdin)"
    [ ! -e out.htw ]
  done
}

@test "no operand, two operands, an unknown option: usage" {
  for words in "${readers[@]}"; do
    # shellcheck disable=SC2086 # the words of a command
    heaptape $words
    usage_fails "an operand is missing"
    # shellcheck disable=SC2086
    heaptape $words a b
    # stat reads several files.
    [ "$words" = stat ] || usage_fails "unexpected operand 'b'"
    # shellcheck disable=SC2086
    heaptape $words --nonsense a
    usage_fails "unknown option '--nonsense'"
  done
}

@test "every command shows help, and refuses an unknown option" {
  for name in $("$HEAPTAPE" help --man | sed -n 's/^\*heaptape-\([a-z]*\)\*.*/\1/p'); do
    echo "$name"
    heaptape "$name" --help
    [ "$status" -eq 0 ]
    has "${lines[0]}" "usage: heaptape $name"
    [ -z "$stderr" ]
    local text=$output
    heaptape help "$name"
    [ "$output" = "$text" ]
    heaptape "$name" --nonsense
    usage_fails "unknown option '--nonsense'"
  done
}

@test "a program that does not exist: 127; not executable: 126" {
  heaptape record -o a.ht -- ./none
  fails_with 127 "./none"
  heaptape record -o a.ht -- none-such-program
  fails_with 127 "none-such-program"
  # An unsearchable directory in PATH does not change the error.
  mkdir -m 0 locked
  PATH=$PWD/locked:$PATH heaptape record -o a.ht -- none-such-program
  fails_with 127 "none-such-program"
  echo 'int x;' >listed
  PATH=$PWD:$PATH heaptape record -o a.ht -- listed
  fails_with 126 "listed"
  echo 'int x;' >file
  heaptape record -o a.ht -- ./file
  fails_with 126 "./file"
  mkdir folder
  heaptape record -o a.ht -- ./folder
  fails_with 126 "./folder"
  heaptape record -o a.ht
  usage_fails "an operand is missing"
}

@test "an output that cannot be created" {
  heaptape record -o none/a.ht -- true
  fails_with 125 "none/a.ht"
  echo keep >a.ht
  heaptape record -o a.ht -- true
  fails_with 125 "a.ht" "exists"
  [ "$(cat a.ht)" = keep ]
}
