load ../helper

@test "no arguments: usage on stderr, exit 2" {
  heaptape
  [ "$status" -eq 2 ]
  [ -z "$output" ]
  has "$stderr" "usage: heaptape COMMAND"
}

@test "--help and help list the commands on stdout" {
  heaptape --help
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  has "$output" "Start here:"
  local first=$output
  heaptape help
  [ "$output" = "$first" ]
}

@test "--version" {
  heaptape --version
  [ "$status" -eq 0 ]
  [[ $output =~ ^heaptape\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "--version --verbose lists build options, loaded libraries, and heaptape's files" {
  heaptape --version --verbose
  [ "$status" -eq 0 ]
  local fact
  for fact in 'heaptape +[0-9.]+' 'compiler +(gcc|.*[Cc]lang) ?.*[0-9]' "architecture +$(uname -m)" 'attach +(yes|no)' \
    "glibc +$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)" "zstd +$(pkg-config --modversion libzstd)" \
    "elfutils +$(pkg-config --modversion libdw)" "libheaptape.so +$(realpath "$HEAPTAPE_BUILD")/.*libheaptape.so"; do
    grep -Eq "^$fact" <<<"$output"
  done
  heaptape --version --nonsense
  usage_fails "unexpected operand '--nonsense'"
}

@test "the version equals that of the change log" {
  heaptape --version
  [ "$output" = "heaptape $(sed -n 's/^## \([0-9.]*\).*/\1/p' "$HEAPTAPE_SOURCE/CHANGELOG.md" | head -n 1)" ]
}

@test "an unknown command is refused" {
  heaptape xyzzy
  usage_fails "unknown command 'xyzzy'"
}

@test "a near-miss command is suggested" {
  heaptape hepl
  usage_fails "unknown command 'hepl'; did you mean 'help'?"
}

@test "an unknown option before the command is refused" {
  heaptape --nonsense
  usage_fails "unknown option '--nonsense'"
}

@test "help of an unknown command is refused" {
  heaptape help xyzzy
  usage_fails "unknown command 'xyzzy'"
}

@test "messages escape control characters" {
  heaptape $'x\ny\e[31m'
  usage_fails "unknown command 'x\x0ay\x1b[31m'"
}

@test "standard output that is full is an error" {
  bats_require_minimum_version 1.5.0
  run --separate-stderr bash -c '"$HEAPTAPE" --help > /dev/full'
  fails_with 1 "(stdout): No space left on device"
}

@test "full or closed standard output is an error of every command that prints" {
  bats_require_minimum_version 1.5.0
  local command to small="$HEAPTAPE_SOURCE/tests/golden" trace workload
  trace=$(find "$small" -name '*.ht' -size -100k | sort | tail -n 1)
  "$HEAPTAPE" convert -q -o a.htw "$trace"
  workload=a.htw
  for to in '>/dev/full' '>&-'; do
    for command in allocators "stat $trace" "stat --json $trace" "dump $trace" "check $trace" "diff $trace $trace" \
      "export -F json $trace" "export -F csv --table events $trace" "convert -o - $trace" "slice -o - $workload" \
      "merge -o - $workload $workload" "anonymize -o - $trace" "report -o - $trace" "sql $trace 'select 1'"; do
      run --separate-stderr bash -c "\"\$HEAPTAPE\" $command $to"
      expect "1 from $command $to" [ "$status" -eq 1 ]
      has "$stderr" "heaptape: (stdout): "
    done
  done
}
