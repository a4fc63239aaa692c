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
      expect "the reason" [ "${stderr%cannot write}" = "$stderr" ]
    done
  done
}

# refused STATUS TEXT ARG...: heaptape ARG... fails with this status and names the mistake.
refused() {
  local status_wanted=$1 text=$2
  shift 2
  heaptape "$@"
  expect "status $status_wanted of $*" [ "$status" -eq "$status_wanted" ]
  has "${stderr_lines[0]}" "$text"
}

@test "options that are missing, or that need another option, are named before any file is read" {
  refused 2 "--certificate and --key require each other" receive --dir d --certificate c
  refused 2 "--format is missing: " export a.ht
  refused 2 "--format parquet writes a table: name it with --table" export -F parquet a.ht
  refused 2 "--format is missing: " import a.log
  refused 2 "--pid all writes several files: name them with -o, for example out.%p.htw" import -F android --pid all -
  refused 2 "--pid all writes several files: name them with -o, for example -o out.%p.htw" convert --pid all -
  refused 2 "--job runs a job that is in DIR already" matrix --job 1 -w a.htw d
  refused 2 "--engine-option is for --engine=parallel and --engine=slurm" matrix --engine-option=x d
  refused 2 "--offset: 'x' is not a time such as 1.5s or 20ms" merge --offset x a.htw b.htw
  refused 2 "only one allocator is allowed; use 'heaptape compare' for several" replay -a glibc -a glibc a.htw
  refused 2 "--wrap requires up to 32 NAME=FUNCTION[,...] without repeated names; FUNCTION is malloc" record --wrap x --pid 1
  local item
  for item in x x= x=mallok x=operator_new x=malloc,x=free x=malloc, =malloc x=malloc_usable_size,y=malloc_usable_size ""; do
    refused 2 "--wrap requires up to 32 NAME=FUNCTION" record --wrap "$item" --pid 1
    refused 2 "--wrap requires up to 32 NAME=FUNCTION" record --wrap "$item" -o t.ht -- true
  done
  refused 2 "--wrap requires" record --wrap "$(printf 'x%d=malloc,' {1..32})y=free" --pid 1
  refused 2 "--segment requires %n in FILE for the number of the segment" record --segment 1M -o a.ht true
  refused 2 "--spool names a directory: 'a%n' must not contain %n" record -o http://localhost/a/ --spool a%n true
  refused 2 "pprof is a profile: use 'heaptape stat --by site --format pprof'" export -F pprof a.ht
  refused 2 "at least two allocators (-a) or a tunable (--sweep) are required" compare -a glibc a.htw
  refused 2 "--keep CONDITION or --keep-cmd COMMAND is required" reduce a.htw
  [ -z "$(ls | grep -v separate-stderr)" ]
}
