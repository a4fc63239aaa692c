load ../helper

# Messages about wrong options, files and processes that users easily name. Other tests have the
# messages about damaged files.

# refuses STATUS TEXT ARG...: heaptape exits with STATUS, and its only line is TEXT.
refuses() {
  local want=$1 text=$2
  shift 2
  echo "heaptape $*"
  heaptape "$@"
  fails_with "$want" "$text"
  [ "$stderr" = "heaptape: $text" ]
}

# misused TEXT ARG...: heaptape exits with 2, and its first line is TEXT.
misused() {
  local text=$1
  shift
  echo "heaptape $*"
  heaptape "$@"
  usage_fails "$text"
  [ "${stderr_lines[0]}" = "heaptape: $text" ]
}

# Writes two traces, a workload, a workload without times, and a result.
write_files() {
  printf 'process 1 a\n0 10 malloc size=10 result=4096\n0 20 free ptr=4096\nend\n' >lines
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <lines
  cp a.ht b.ht
  "$HEAPTAPE_PROGRAMS/make_workload" w.htw churn 1 100 >/dev/null
  echo '1: malloc 0x1000 10' >android
  "$HEAPTAPE" import -q -F android -o untimed.htw android
}

@test "messages: files" {
  write_files
  ln -s a.ht link.ht
  refuses 1 "/dev/null: is a device, not a file or pipe" stat /dev/null
  refuses 125 "link.ht: is a symbolic link; use the path of the file itself" record -f -o link.ht -- true
  refuses 1 "a.ht: contains no samples of resident memory" stat --rss a.ht
  refuses 1 "untimed.htw: has no timestamps; --from and --to need an event or a mark" stat --by site --from 1s untimed.htw
  refuses 1 "w.htw: is a workload, which does not store host and time of the recording" \
    export -F csv -t events --partition -o part w.htw
  refuses 1 "w.htw: the part contains no events" slice -o part.htw --threads 9 w.htw
  refuses 1 "-: cannot read a trace or workload from a pipe; use a file" report -o page.html - < <(cat a.ht)
  head -c 200 /dev/zero >zeros
  refuses 1 "zeros: no intact frame found" check --salvage -o whole.ht zeros
  mkdir segments recording
  cp a.ht segments/1.ht
  cp b.ht segments/2.ht
  refuses 1 "segments/1.ht: is not a segment of a recording" stat segments
  refuses 1 "recording: contains no recording: recording/session: No such file or directory" record --collect recording
  echo text >recording/session
  refuses 1 "recording/session: is not a session file" record --collect recording
  [ ! -e part ] && [ ! -e part.htw ] && [ ! -e page.html ] && [ ! -e whole.ht ] && [ ! -e heaptape.ht ]
}

@test "messages: results and matrices" {
  write_files
  "$HEAPTAPE" replay -q --json -r 1 -a glibc w.htw >r.json
  refuses 1 "w.htw and r.json cannot be compared: both must be workloads or traces, or both results of the same allocators" \
    report --diff w.htw r.json
  "$HEAPTAPE" matrix -q -w w.htw -a glibc -r 1 m >/dev/null
  refuses 1 "$PWD/m: has other jobs; without -w and -a they are continued" matrix -w untimed.htw -a glibc m
  mkdir tab$'\t'
  cp w.htw tab$'\t'
  heaptape matrix -w tab$'\t'/w.htw -a glibc -r 1 n
  fails_with 1 "w.htw': is empty, or has a tab or a newline"
  misused "--fail-on x: expected METRIC>LIMIT or site:REGEX:METRIC>LIMIT, with peak_live, end_live, bytes or calls, and a limit such as +5%, +1MiB, +100 or 64MiB" \
    diff --fail-on x a.ht b.ht
}

@test "messages: allocators and reductions" {
  write_files
  refuses 1 "nosuch: unknown allocator (try a path, or a name from 'heaptape allocators')" replay -a nosuch w.htw
  refuses 1 "'': an allocator's name or path is missing" replay -a '' w.htw
  refuses 1 "./: is no shared library" replay -a ./ w.htw
  refuses 1 "glibc: LD_PRELOAD cannot be a tunable (use the library as the allocator)" replay -a glibc,LD_PRELOAD=x w.htw
  refuses 1 "glibc: the tunable 'x' is not VARIABLE=VALUE" replay -a glibc,x w.htw
  refuses 1 "untimed.htw: has no times, which --speed needs" replay --speed recorded -a glibc -r 1 untimed.htw
  misused "--runs: '0' is out of range: 1 to 1000" replay -r 0 -a glibc w.htw
  misused "--keep CONDITION or --keep-cmd COMMAND is required" reduce -o r.htw w.htw
}

@test "messages: queries" {
  write_files
  misused "FILE is missing" sql
  misused "the query is missing" sql a.ht
  misused "standard input is not supported, because a query may read a file several times" sql - 'SELECT 1'
  refuses 2 "query: the query is empty" sql a.ht ''
  refuses 2 'query: expected one statement, found a second: "SELECT 2"' sql a.ht 'SELECT 1; SELECT 2'
}

@test "messages: uploads" {
  mkdir spool
  misused "'ftp://h' is not a URL of the form http://HOST/PATH/ or https://HOST/PATH/" upload spool ftp://h
  misused "the URL has a name or password, which 'ps' would show: put them into ~/.netrc or a token file" \
    upload spool http://u:p@h/
  misused "'http://h/a?b': the URL of a directory must not contain '?', '#', '%' or a space" upload spool 'http://h/a?b'
  unset AWS_REGION AWS_DEFAULT_REGION
  refuses 1 "--s3 needs a region: --s3=REGION or AWS_REGION" upload --s3 spool http://h/
  (umask 077 && echo secret >token && printf 'a b\n' >two && : >none && head -c 100000 /dev/zero | tr '\0' a >big)
  refuses 1 "--s3 and a token exclude each other" upload --s3=x --token-file token spool http://h/
  refuses 1 "--listen nowhere: expected HOST:PORT or [ADDRESS]:PORT" receive --listen nowhere --dir d
  refuses 1 "two: expected one token per line, at byte 1" receive --listen 127.0.0.1:0 --dir d --token-file two
  refuses 1 "none: contains no token" receive --listen 127.0.0.1:0 --dir d --token-file none
  refuses 1 "big: expected a file of tokens of at most 8192 bytes" receive --listen 127.0.0.1:0 --dir d --token-file big
}

@test "messages: processes" {
  misused "--try requires a PID" doctor --try -- true
  # In most containers, no process is a kernel thread.
  [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ] && [ "$(id -u)" -eq 0 ] || skip "no kernel thread"
  refuses 1 "2: is a kernel thread, which has no memory" doctor 2
  refuses 125 "2: is a kernel thread, which has no memory" record --pid 2
}
