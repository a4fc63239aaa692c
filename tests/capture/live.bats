load ../helper

# record --format: writes another tool's file while the program runs.

calls_of() {
  sed -n 's/^[0-9]* [0-9]* \([a-z_]*\)(.*/\1/p' "$1" | sort | uniq -c
}

# The number of calls of malloc, and of functions that formats write as malloc.
mallocs() {
  "$HEAPTAPE" stat --json --brief "$1" | jq '[.by_kind | .malloc, .calloc, .realloc, .reallocarray] | add'
}

# mallocs_of FORMAT FILE...: the same in files of that format.
mallocs_of() {
  local format=$1 file
  shift
  for file in "$@"; do
    "$HEAPTAPE" import -q -f -F "$format" -o one.htw "$file"
    mallocs one.htw
  done | jq -s add
}

@test "live: a log through a file descriptor, as with MALLOC_LOG" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q --log-fd 3 -- ls / 3>&1 1>&2 | gzip -c >log.gz
  zcat log.gz >log
  expect "many lines" [ "$(wc -l <log)" -gt 20 ]
  expect "only lines of logalloc" [ -z "$(grep -vE '^[0-9]+ [0-9]+ [a-z_]+\([^()]*\)(=0x[0-9a-f]+)?$' log)" ]
  heaptape import -F logalloc log
  expect "status 0" [ "$status" -eq 0 ]
}

@test "live: the log has the calls of the trace" {
  skip_under_sanitizer
  program=$HEAPTAPE_PROGRAMS/calls
  "$HEAPTAPE" record -q -o a.ht -- "$program" >/dev/null || true
  "$HEAPTAPE" export -q -F logalloc -o a.log a.ht
  "$HEAPTAPE" record -q -F logalloc -o b.log -- "$program" >/dev/null || true
  diff <(calls_of a.log) <(calls_of b.log)
  "$HEAPTAPE" record -q -F logalloc -o - -- "$program" 2>/dev/null >c.log || true
  diff <(calls_of a.log) <(calls_of c.log)
}

@test "live: the program keeps its exit status, its file descriptors and its output" {
  skip_under_sanitizer
  status=0
  "$HEAPTAPE" record -q -F logalloc -o log -- sh -c 'ls >/dev/null; exit 7' || status=$?
  expect "its own status" [ "$status" -eq 7 ]
  status=0
  "$HEAPTAPE" record -q -f -F logalloc -o log -- sh -c 'ls >/dev/null; kill -9 $$' || status=$?
  expect "128 + 9" [ "$status" -eq 137 ]
  ls -l /proc/self/fd 4</dev/null | sed 's/.* \([0-9]* ->\)/\1/; /proc/d; 1d; s/pipe:.*/pipe/' >want
  "$HEAPTAPE" record -q --log-fd 9 -- ls -l /proc/self/fd 4</dev/null 9>fds |
    sed 's/.* \([0-9]* ->\)/\1/; /proc/d; 1d; s/pipe:.*/pipe/' >got
  diff want got
}

@test "live: MALLOC_LOG is a file to append to, or a file descriptor; -o takes precedence" {
  skip_under_sanitizer
  echo before >log
  MALLOC_LOG=log "$HEAPTAPE" record -q -- ls >/dev/null
  expect "appended" [ "$(head -n 1 log)" = before ]
  before=$(wc -l <log)
  expect "a log" [ "$before" -gt 20 ]
  MALLOC_LOG=log "$HEAPTAPE" record -q -F logalloc -- ls >/dev/null
  expect "appended again" [ "$(wc -l <log)" -gt $((before + 20)) ]
  MALLOC_LOG=5 "$HEAPTAPE" record -q -- ls >/dev/null 5>five
  expect "a file descriptor" [ "$(wc -l <five)" -gt 20 ]
  MALLOC_LOG=none "$HEAPTAPE" record -q -o a.ht -- ls >/dev/null
  expect "no log" [ ! -e none ]
  MALLOC_LOG='' "$HEAPTAPE" record -q -- ls >/dev/null
  [ -e heaptape.ht ]
}

@test "live: MTRACE_CTL_FILE, and mtrace's default name" {
  skip_under_sanitizer
  MTRACE_CTL_FILE=m.mtrace "$HEAPTAPE" record -q -- ls >/dev/null
  "$HEAPTAPE" import -q -F mtrace -o m.htw m.mtrace
  # from_other_tools.bats removes such files while it holds the lock.
  exec 7>"$HEAPTAPE_BUILD/mtrace.lock"
  flock 7
  read -r pid child <<<"$(MTRACE_CTL_FILE='' "$HEAPTAPE" record -q -- sh -c 'ls >/dev/null & echo $$ $!; wait')"
  expect "the program's" [ -s "/tmp/mtrace.out.$pid" ]
  "$HEAPTAPE" import -q -F mtrace -o d.htw "/tmp/mtrace.out.$pid"
  rm "/tmp/mtrace.out.$pid" "/tmp/mtrace.out.$child"
  pid=$("$HEAPTAPE" record -q -F mtrace -- sh -c 'echo $$; exec ls nothing 2>/dev/null' || true)
  expect "before exec and after" [ -s "/tmp/mtrace.out.$pid" ] && [ -s "/tmp/mtrace.out.$pid.1" ]
  rm "/tmp/mtrace.out.$pid" "/tmp/mtrace.out.$pid.1"
  exec 7>&-
}

@test "live: TCMALLOC_TRACE_OUTPUT writes the raw trace of gperftools" {
  skip_under_sanitizer
  TCMALLOC_TRACE_OUTPUT=raw "$HEAPTAPE" record -q -- ls / >/dev/null
  "$HEAPTAPE" import -q -F tcmalloc -o raw.htw raw
  expect "the number of calls" [ "$(mallocs raw.htw)" -gt 100 ]
  cp raw first
  TCMALLOC_TRACE_OUTPUT=raw "$HEAPTAPE" record -q -- ls / >/dev/null
  cmp raw first
  [ -s raw.1 ]
  TCMALLOC_TRACE_OUTPUT=raw.lz4 "$HEAPTAPE" record -- ls / 2>said >/dev/null
  has "$(cat said)" "raw.lz4: will not be compressed"
  "$HEAPTAPE" import -q -F tcmalloc -o raw.lz4.htw raw.lz4
  # Options take precedence over the variable.
  TCMALLOC_TRACE_OUTPUT=other "$HEAPTAPE" record -q -F logalloc -o log -- ls / >/dev/null
  TCMALLOC_TRACE_OUTPUT='' "$HEAPTAPE" record -q -o t.ht -- ls / >/dev/null
  expect "no file" [ ! -e other ]
}

@test "live: MTRACE_CTL_FILE names an existing file: other runs and processes get numbered files" {
  skip_under_sanitizer
  MTRACE_CTL_FILE=m "$HEAPTAPE" record -q -- ls >/dev/null
  cp m first
  MTRACE_CTL_FILE=m heaptape record -- ls
  expect "the program ran" [ "$status" -eq 0 ]
  cmp m first
  "$HEAPTAPE" import -q -F mtrace -o b.htw m.1
  "$HEAPTAPE" record -q -F android -o all -- sh -c 'ls / >/dev/null; ls /tmp >/dev/null; :'
  expect "three processes" [ "$(ls all all.1 all.2 | wc -l)" -eq 3 ]
  expect "the calls of a trace" [ "$(cat all all.1 all.2 | wc -l)" -gt 100 ]
  fails_to_replace=$("$HEAPTAPE" record -F android -o all -- true 2>&1 || true)
  has "$fails_to_replace" "exists"
}

@test "live: formats with block numbers get a file for each process, without a number for the program" {
  skip_under_sanitizer
  for format in wl tcmalloc-replay; do
    rm -f t*
    "$HEAPTAPE" record -q -o t.ht -- sh -c 'ls / >/dev/null; ls / >/dev/null; :'
    "$HEAPTAPE" record -q -F "$format" -o "t" -- sh -c 'ls / >/dev/null; ls / >/dev/null; :'
    expect "three processes" [ "$(ls t t.1 t.2 | wc -l)" -eq 3 ]
    expect "no others" [ ! -e t.3 ]
    # sh calls malloc less often than ls.
    expect "the program's own" [ "$(mallocs_of "$format" t)" -lt "$(mallocs_of "$format" t.1)" ]
    expect "all calls" [ "$(mallocs_of "$format" t t.1 t.2)" -eq "$(mallocs t.ht)" ]
    "$HEAPTAPE" export -q -F "$format" -o t.of-%p t.ht
    expect "of a trace, too" [ "$(mallocs_of "$format" t.of-*)" -eq "$(mallocs_of "$format" t t.1 t.2)" ]
  done
}

@test "live: standard output holds one process: a note names other processes, if there are any" {
  skip_under_sanitizer
  for format in wl tcmalloc-replay mtrace android; do
    heaptape record -F "$format" -o - -- sh -c 'ls / >&2; :'
    has "$stderr" "$format holds one process: other processes were not written (write one file per process: name it with -o)"
    heaptape record -F "$format" -o - -- ls /nothing
    expect "no note about others" [ "${stderr#*others}" = "$stderr" ]
  done
}

@test "live: %p in a name makes a file for each process" {
  skip_under_sanitizer
  pids=$("$HEAPTAPE" record -q -F android -o t.%p -- sh -c 'sh -c "echo \$\$; ls >/dev/null; :"; echo $$')
  expect "sh, sh, ls" [ "$(find . -name 't.*' | wc -l)" -eq 3 ]
  for pid in $pids; do
    heaptape import -F android "t.$pid"
    expect "status 0" [ "$status" -eq 0 ]
  done
}

@test "live: lines come while the program runs and when it pauses" {
  skip_under_sanitizer
  mkfifo log
  "$HEAPTAPE" record -q -F logalloc --force -o log -- sh -c 'ls >/dev/null; : >paused; exec sleep 1000' &
  recorder=$!
  exec 6<log
  timeout 120 grep -qm 1 'malloc(' <&6
  while [ ! -e paused ]; do sleep 0.05; done
  expect "still running" kill -0 $recorder
  kill $recorder
  wait $recorder || true
  exec 6<&-
}

@test "live: a reader that closes the pipe does not end the program" {
  skip_under_sanitizer
  {
    "$HEAPTAPE" record -F logalloc --log-fd 3 -- sh -c 'for i in 1 2 3 4 5 6 7 8 9; do ls -R /usr/include >/dev/null; done; echo all >finished' 3>&1 1>&2 2>err ||
      echo $? >status
  } | head -n 1 >first
  expect "one line" [ "$(wc -l <first)" -eq 1 ]
  [ "$(cat finished)" = all ]
  [ "$(cat status)" -eq 125 ]
  has "$(cat err)" "Broken pipe"
}

@test "live: formats without addresses are written at the end; ctf is a folder" {
  skip_under_sanitizer
  "$HEAPTAPE" record -q -F wl -o a.wl -- ls >/dev/null
  "$HEAPTAPE" import -q -F wl a.wl
  "$HEAPTAPE" record -q -F ctf -o a.ctf -- ls >/dev/null
  [ -s a.ctf/metadata ]
}

@test "live: errors" {
  skip_under_sanitizer
  heaptape record -F logalloc --log-fd 77 -- touch ran
  fails_with 125 "file descriptor 77"
  echo >log
  heaptape record -F logalloc -o log -- touch ran
  fails_with 125 "log: exists; use -f to replace it"
  expect "not run" [ ! -e ran ]
  heaptape record -F logalloc -o new -- ./nowhere
  fails_with 127 "nowhere"
  expect "no file" [ ! -e new ]
  heaptape record -F logalloc -o new --log-fd 3 -- ls
  usage_fails "--log-fd cannot be combined with --output"
  heaptape record -F logalloc --max-size 1M -o new -- ls
  usage_fails "--max-size"
  heaptape record -F ctf -- ls
  rm -r heaptape.ctf
}
