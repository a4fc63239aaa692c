load ../helper

# Messages about wrong options, files and processes that users may specify by mistake. Other tests
# check the messages about damaged files.

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

# Writes two traces, a workload, and a workload without times.
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

@test "messages: outputs" {
  write_files
  mkdir folder
  refuses 1 "folder: is a directory" convert -o folder a.ht
  refuses 1 "folder: is a directory" convert -f -o folder a.ht
  heaptape convert -o missing/a.htw a.ht
  fails_with 1 "missing/a.htw" ": cannot create: No such file or directory"
  on_terminal 80 "$HEAPTAPE" convert -o - a.ht >shown
  [ "$(cat shown)" = "heaptape: (stdout): is a terminal; use -o FILE or redirect" ]
  on_terminal 80 "$HEAPTAPE" record -o - -- touch started >shown
  [ "$(cat shown)" = "heaptape: (stdout): is a terminal; use -o FILE or redirect" ]
  [ ! -e started ]
  : >p.html
  refuses 1 "p.html: exists; use -f to replace it" report -o p.html a.ht
  refuses 1 "the name of the output is empty" report -o "" a.ht
  refuses 1 "the name of the output is empty" convert -o "" a.ht
  skip_under_sanitizer
  refuses 125 "/dev/null: is not a regular file, but an aggregate must be, because it is replaced periodically" \
    record -f --aggregate -o /dev/null -- true
  refuses 125 "/dev/null: is not a regular file, but a dump must be, because it is written to a temporary file and renamed" \
    record -f --flight 1M -o /dev/null -- true
}

@test "messages: compressed files" {
  write_files
  gzip -k a.ht
  refuses 1 "a.ht.gz: is compressed: pipe the output of 'zcat' to heaptape" stat a.ht.gz
  refuses 1 "a.ht.gz: is compressed: pipe the output of 'zcat' to heaptape" report -o a.html a.ht.gz
  refuses 1 "a.ht.gz: is compressed: pipe the output of 'zcat' to heaptape" import -F heaptrack a.ht.gz
  printf '\x28\xb5\x2f\xfd....................' >a.zst
  refuses 1 "a.zst: is compressed: pipe the output of 'zstdcat' to heaptape" convert a.zst
}

# from_pipe TEXT FILE COMMAND...: heaptape refuses the file as a FIFO, with "pipe: TEXT".
from_pipe() {
  local text=$1 file=$2
  shift 2
  cat "$file" >pipe 2>/dev/null 3>&- &
  refuses 1 "pipe: $text" "$@" pipe
  wait $! || true
}

@test "messages: pipes" {
  write_files
  mkfifo pipe
  from_pipe "cannot be read twice; use a file" a.ht symbolize -o s.ht
  from_pipe "cannot be read twice; use a file" w.htw symbolize -o s.htw
  from_pipe "cannot read a trace or workload from a pipe; use a file" a.ht report -o p.html
  [ ! -e s.ht ] && [ ! -e s.htw ] && [ ! -e p.html ]
}

# cut_off BYTES FROM TO: copies the file without its last bytes, and sets $left to the bytes that are
# left.
cut_off() {
  head -c -"$1" "$2" >"$3"
  left=$(stat -c %s "$3")
}

@test "messages: files that are cut off" {
  local at
  write_files
  "$HEAPTAPE" export -q -F parquet -t events -o whole.parquet a.ht
  cut_off 20 w.htw a.htw
  refuses 1 "a.htw: cut off before the summary, at byte $left" symbolize -o s.htw a.htw
  refuses 1 "a.htw: cut off before the summary, at byte $left" slice -o s.htw --threads 0 a.htw
  cut_off 5 w.htw a.htw
  refuses 1 "a.htw: cut off inside the trailer, at byte $left" check a.htw
  head -c 10 w.htw >a.htw
  refuses 1 "a.htw: cut off inside a frame header, at byte 0" check a.htw
  cut_off 1 a.ht c.ht
  heaptape check c.ht
  fails_with 1 "c.ht: cut off inside a frame of " " bytes, at byte "
  for at in 1 4 200; do
    cut_off $at whole.parquet a.parquet
    refuses 1 "a.parquet: cut off: it does not end in the length of a footer, at byte $left" check a.parquet
  done
  head -c 3 whole.parquet >a.parquet
  refuses 1 "a.parquet: is not a heaptape trace or workload, at byte 0" check a.parquet
  head -c 6 whole.parquet >a.parquet
  refuses 1 "a.parquet: cut off, at byte 6" check a.parquet
}

# without_end FROM TO: copies the file without its last frame, and sets $left to the bytes that are
# left.
without_end() {
  cut_off 1 "$1" "$2"
  heaptape check "$2"
  left=${stderr##* }
  truncate -s "$left" "$2"
}

@test "messages: files without their last frame" {
  write_files
  local name
  without_end a.ht c.ht
  refuses 1 "c.ht: cut off after a complete frame, at byte $left" check c.ht
  without_end "$HEAPTAPE_SOURCE/tests/golden/aggregate-1.hta" a.hta
  for name in check stat 'report -o p.html'; do
    # shellcheck disable=SC2086 # several words
    refuses 1 "a.hta: is cut off: the END frame is missing" $name a.hta
  done
  mkdir s t
  "$HEAPTAPE_PROGRAMS/parts_of_trace" segments s/%n.ht 500 <"$HEAPTAPE_SOURCE/tests/golden/stacks-3.ht"
  "$HEAPTAPE_PROGRAMS/parts_of_trace" segments t/%n.ht 500 <"$HEAPTAPE_SOURCE/tests/golden/trace-2.ht"
  mv s/1.ht whole.ht
  without_end whole.ht s/1.ht
  refuses 1 "s/1.ht: is cut off, and another segment follows" stat s
  cp t/2.ht s/3.ht
  refuses 1 "s/3.ht: belongs to another recording than s/2.ht" stat s
  [ ! -e p.html ]
}

@test "messages: call sites" {
  write_files
  local golden=$HEAPTAPE_SOURCE/tests/golden/stacks-3.ht
  cp "$golden" s.ht
  refuses 1 "a.ht: no call sites were recorded (use 'heaptape record --stacks')" stat --by site a.ht
  refuses 1 "a.ht: no call sites were recorded (use 'heaptape record --stacks')" symbolize -o n.ht a.ht
  refuses 1 "s.ht: --from 999999s: the recording ends before this point" stat --by site --from 999999s s.ht
  refuses 1 "s.ht: --to mark:nosuch: no such mark after the start of the span" stat --by site --from 1 --to mark:nosuch s.ht
  refuses 1 "w.htw: a workload has no addresses; --rss requires the trace" stat --rss w.htw
  refuses 1 "a.ht: the trace contains no events of process 9; it contains processes 1" convert -p 9 -o n.htw a.ht
  # Each pid once, and the number of pids that are not listed.
  for ((i = 0; i < 60; i++)); do
    printf '{"kind":"malloc","pid":%d,"tid":1,"time_ns":%d,"size":16,"result":"0x1000"}\n' "$((1000 + i))" "$i"
  done | "$HEAPTAPE" import -q --trace --format json -o many.ht -
  heaptape convert -p 9 -o n.htw many.ht
  fails_with 1 "it contains processes 1000, 1001, 1002, " " and 33 more"
  skip_under_sanitizer
  "$HEAPTAPE" record -q --stacks -o 0.ht -- ls >/dev/null
  "$HEAPTAPE" record -q --stacks=sample:4K -o 4096.ht -- ls >/dev/null
  "$HEAPTAPE" convert -q -o 0.htw 0.ht
  "$HEAPTAPE" convert -q -o 4096.htw 4096.ht
  refuses 1 "the inputs' stacks were sampled differently: one per 0 bytes and one per 4096 (0: all or none); record them with the same --stacks" \
    merge -o m.htw 0.htw 4096.htw
  [ ! -e m.htw ] && [ ! -e n.ht ]
}

@test "messages: damaged tables" {
  local row
  write_files
  "$HEAPTAPE" export -q -F parquet -t events -o whole.parquet a.ht
  for row in '4:invalid page header, at byte 4' '-30:the footer is invalid, at byte '; do
    cp whole.parquet a.parquet
    python3 - "${row%%:*}" <<'END'
import sys
with open("a.parquet", "r+b") as f:
    f.seek(int(sys.argv[1]), 2 * (sys.argv[1] < "0"))
    f.write(b"\xff" * 4)
END
    heaptape check a.parquet
    fails_with 1 "a.parquet: ${row#*:}"
  done
}

@test "messages: aggregates" {
  local file=$HEAPTAPE_SOURCE/tests/golden/aggregate-1.hta events="is an aggregate, which has no events: 'stat', 'report' and 'top' read it"
  cp "$file" a.hta
  refuses 1 "a.hta: is an aggregate, which has no pools: --by pool needs a trace or a workload" stat --by pool a.hta
  refuses 1 "a.hta: is an aggregate, which has no events: --from and --to need a trace" stat --by site --from 1s a.hta
  refuses 1 "a.hta: is an aggregate; --diff compares traces, workloads or results" report --diff -o p.html a.hta a.hta
  refuses 1 "a.hta: $events" dump a.hta
  refuses 1 "a.hta: $events" convert -o a.htw a.hta
  refuses 1 "a.hta: $events" diff a.hta a.hta
  [ ! -e a.htw ] && [ ! -e p.html ]
}

@test "messages: documents" {
  write_files
  "$HEAPTAPE" stat --brief --json w.htw >brief.json
  refuses 1 "brief.json: was printed by 'stat --brief' and has no figures to show; use 'stat --json' alone" report -o p.html brief.json
  "$HEAPTAPE" replay -q --verify --json -a glibc w.htw >verify.json
  refuses 1 "verify.json: is the result of 'replay --verify', which measures nothing" report -o p.html verify.json
  echo '{"other": 1}' >other.json
  refuses 1 "other.json: is JSON, but was not printed by stat, replay or compare" report -o p.html other.json
  echo '{' >large.json
  truncate -s 257M large.json # sparse
  refuses 1 "large.json: the document is larger than 256 MiB" check large.json
  refuses 1 "large.json: JSON of over 256 MiB" report -o p.html large.json
  [ ! -e p.html ]
}

@test "messages: an incomplete installation" {
  write_files
  mkdir empty
  export HEAPTAPE_LIBEXEC=$PWD/empty
  refuses 125 "libheaptape.so: not found next to the heaptape executable; install it or set HEAPTAPE_LIBEXEC" record -o t.ht -- true
  refuses 125 "libheaptape.so: not found next to the heaptape executable; install it or set HEAPTAPE_LIBEXEC" record -o t.ht --pid $$
  refuses 1 "heaptape-replay: not found where heaptape was installed: No such file or directory" replay -a glibc w.htw
  refuses 1 "heaptape-replay: not found where heaptape was installed: No such file or directory" compare -a glibc -a jemalloc w.htw
  refuses 1 "heaptape-replay: not found where heaptape was installed: No such file or directory" allocators
  [ ! -e t.ht ]
}

# Everyday mistakes on the command line.
@test "messages: options and operands" {
  misused "an operand is missing" stat
  misused "an operand is missing after 'a.ht'" diff a.ht
  misused "an operand is missing after '1'" ctl 1
  misused "'x' is not a process ID" ctl x status
  misused "unknown verb 'foo'" ctl 1 foo
  misused "-o requires FILE|-" convert a.ht -o
  misused "--by: 'a.ht' is not one of site|pool" stat --by a.ht
  misused "--top: 'x' is not a whole number" stat --top x a.ht
  misused "--from and --to require --by site" stat --from 1s a.ht
  misused "--top requires --wrappers or --by" stat --top 3 a.ht
  misused "--format requires --wrappers or --by" stat --format json a.ht
  misused "--weight requires --wrappers or --by" stat --weight end a.ht
  misused "--by cannot be combined with --brief" stat --by site --brief a.ht
  misused "--brief cannot be combined with --verbose" stat --brief --verbose a.ht
  misused "--json cannot be combined with --format" stat --by site --json --format folded a.ht
  misused "--cpus: '1-0' is not a list of numbers such as 2,3 or 0-7" replay --cpus 1-0 w.htw
  misused "--pid: 'nosuch' is not one of PID|all" convert -p nosuch a.ht
  misused "--duration: '0' is not more than 0 and at most 4294967295 seconds" record --duration 0 -o t.ht -- true
  misused "--stacks: 'abc' is not one of DEPTH|sample[:BYTES]" record --stacks=abc -o t.ht -- true
  misused "--max-size: '5Q' is not a number of bytes such as 4096, 64K, 16M or 2G" record --max-size 5Q -o t.ht -- true
  misused "--pid takes no PROGRAM" record --pid 1 -- true
  misused "--threads: 'x' is not a list of threads such as 0,3-5" slice --threads x -o s.htw w.htw
  misused "--partition needs a directory: name it with -o" export -F parquet -t events --partition w.htw
  misused "--format csv writes a table: name it with --table" export -F csv w.htw
  misused "--try requires --yes without a terminal and with --json" doctor --try $$
  misused "--try requires --yes without a terminal and with --json" doctor --try --json $$
  # shellcheck disable=SC2046 # several words
  misused "--keep can be given at most 16 times" reduce -o r.htw $(printf ' --keep verify%.0s' {1..17}) w.htw
  misused "--dir is missing" corpus run
  misused "--size requires the verb record" corpus --size 3
  misused "the verb list cannot be combined with --size" corpus list --size 3
  misused "the verb run cannot be combined with --install" corpus run --install
}

@test "messages: values and files that a command cannot use" {
  write_files
  gzip -c android >android.gz
  misused "--heap: unknown allocator 'nosuch': 'heaptape stat -v' lists the allocators of a recording" convert -o n.htw --heap nosuch a.ht
  refuses 1 "a.ht: the process made no calls of the chosen allocator" convert -o n.htw --heap mimalloc a.ht
  [ ! -e n.htw ]
  misused "unexpected operand '2'; use -- before a PROGRAM" doctor $$ 2
  misused "'-' is not supported: name files" symbolize -o n.ht -
  misused "standard input is not supported, because a query may read a file several times" sql - 'SELECT 1'
  misused "--runs: '1001' is out of range: 1 to 1000" replay -r 1001 w.htw
  refuses 125 "file descriptor 77: Bad file descriptor" record --log-fd 77 -- true 77>&-
  refuses 125 "file descriptor 9: is not open for writing" record --log-fd 9 -- true 9</dev/null
  refuses 1 "$$: is not being recorded" ctl $$ status
  refuses 1 "$$: is not being recorded" top $$
  refuses 1 "a.ht: expected the header of a wl file (codes 8 to 11, then 1) at byte 0" trace_run a.ht
  refuses 1 "w.htw: --keep-cmd '/nonexistent' holds in 0 of 1 replays: its exit status is 127" reduce --keep-cmd /nonexistent -o n.htw w.htw
  heaptape record -F json -o n.json.gz -- true
  has "$stderr" "heaptape: n.json.gz: will not be compressed; compress the file after the recording"
  heaptape export -F json - < <(cat w.htw) >/dev/null
  [ "$stderr" = "heaptape: call stacks are not written: they are at the end of the workload, and a pipe cannot seek" ]
  bats_require_minimum_version 1.5.0
  run --separate-stderr env PATH=/nonexistent "$HEAPTAPE" report --open -o page.html a.ht
  [ "$stderr" = "heaptape: page.html cannot be opened: xdg-open: No such file or directory" ]
  [ ! -e n.htw ] && [ ! -e n.ht ]
}

@test "messages: results and matrices" {
  write_files
  "$HEAPTAPE" replay -q --json -r 1 -a glibc w.htw >r.json
  refuses 1 "w.htw and r.json cannot be compared: both must be workloads or traces, or both results of the same allocators" \
    report --diff w.htw r.json
  "$HEAPTAPE" matrix -q -w w.htw -a glibc -r 1 m >/dev/null
  refuses 1 "$PWD/m: has other jobs; without -w and -a they are continued" matrix -w untimed.htw -a glibc m
  mkdir jobs
  echo 'heaptape matrix 1' >jobs/jobs
  refuses 1 "$PWD/jobs/jobs: has no jobs" matrix jobs
  echo 'job' >>jobs/jobs
  refuses 1 "$PWD/jobs/jobs: is not a list of jobs, at byte 18" matrix jobs
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
  refuses 1 "./: is not a shared library" replay -a ./ w.htw
  refuses 1 "glibc: LD_PRELOAD cannot be a tunable (use the library as the allocator)" replay -a glibc,LD_PRELOAD=x w.htw
  refuses 1 "glibc: the tunable 'x' is not VARIABLE=VALUE or glibc.NAME=VALUE" replay -a glibc,x w.htw
  refuses 1 "untimed.htw: has no times, which --speed needs" replay --speed recorded -a glibc -r 1 untimed.htw
  printf 'static char pool[1 << 20], *at = pool;\nvoid *malloc(unsigned long n) { return (at += n + 15 & ~15ul) - n; }\nvoid free(void *p) { (void)p; }\n' >m.c
  cc -w -fno-builtin -shared -fPIC -o m.so m.c
  heaptape replay -r 1 -a ./m.so w.htw
  fails_with 1 "m.so: malloc is from this allocator, but calloc is from /"
  refuses 1 "'nosuch' is not a program of the corpus" corpus record --dir c nosuch
  mkdir -p c
  echo '{}' >c/index.json
  refuses 1 "c/index.json: is not an index of a corpus, at byte 0: it has no 'entries'" corpus run --dir c
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

@test "messages: uploads need their keys" {
  mkdir spool
  unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
  refuses 1 "--s3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment" upload --s3=x spool http://h/
  (umask 077 && echo text >cert.pem && echo text >key.pem)
  refuses 1 "cert.pem: is not a PEM file" receive --listen 127.0.0.1:0 --dir d --certificate cert.pem --key key.pem
  refuses 1 "none.pem: No such file or directory" receive --listen 127.0.0.1:0 --dir d --certificate none.pem --key key.pem
}

@test "messages: processes" {
  misused "--try requires a PID" doctor --try -- true
  # In most containers, no process is a kernel thread.
  [ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ] && [ "$(id -u)" -eq 0 ] || skip "no kernel thread"
  refuses 1 "2: is a kernel thread, which has no memory" doctor 2
  refuses 125 "2: is a kernel thread, which has no memory" record --pid 2
}

# sleeper COMMAND...: starts sleep after the command, as $pid.
sleeper() {
  ("$@"; exec sleep 1000) 3>&- &
  pid=$!
  wait_until is_named sleep "$pid"
}

is_named() {
  [ "$(cat "/proc/$2/comm")" = "$1" ]
}

# has_state LETTER PID
has_state() {
  grep -q "^State:[[:space:]]*$1" "/proc/$2/status"
}

# traced PID: traces the process until the test ends, as process $tracer.
traced() {
  python3 -c 'import ctypes, signal, sys
ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) # PTRACE_SEIZE
signal.pause()' "$1" 3>&- &
  tracer=$!
  wait_until grep -q "^TracerPid:[[:space:]]*$tracer" "/proc/$1/status"
}

@test "messages: processes that cannot be recorded" {
  local pid tracer child
  sleeper true
  refuses 1 "$pid: is not being recorded" ctl "$pid" status
  refuses 1 "$pid: is not being recorded" ctl "$pid" detach
  refuses 1 "$pid: is not being recorded" ctl "$pid" dump
  [ -x "$HEAPTAPE_PROGRAMS/filtered" ] && [ "$(id -u)" -eq 0 ] || skip "attaching and tracing need root"
  skip_under_sanitizer
  traced "$pid"
  refuses 125 "$pid: is traced by process $tracer (a debugger, or strace)" record -o t.ht --pid "$pid"
  kill -9 "$tracer"
  wait "$tracer" || true
  kill -STOP "$pid"
  wait_until has_state T "$pid"
  refuses 125 "$pid: is stopped; continue it first" record -o t.ht --pid "$pid"
  kill -9 "$pid"
  sleeper trap '' TRAP
  refuses 125 "$pid: ignores SIGTRAP, or blocks and handles it, and a breakpoint would change that" record -o t.ht --pid "$pid"
  kill -9 "$pid"
  sleeper true
  prlimit --pid "$pid" --nofile=3
  refuses 125 "$pid: no file descriptor or memory is left for the library" record -o t.ht --pid "$pid"
  kill -9 "$pid"
  # A parent that does not wait for its child.
  sleeper eval 'sleep 1000 &'
  child=$(pgrep -P "$pid")
  kill -9 "$child"
  wait_until has_state Z "$child"
  refuses 125 "$child: the process has ended" record -o t.ht --pid "$child"
  refuses 1 "$child: the process has ended" doctor "$child"
  refuses 1 "$child: is not being recorded" ctl "$child" status
  kill -9 "$pid"
  mkfifo input
  exec 7<>input
  python3 -c 'import ctypes, os
ctypes.CDLL(None).prctl(22, 1) # PR_SET_SECCOMP, SECCOMP_MODE_STRICT
os.read(0, 1)' <input 3>&- 7>&- &
  pid=$!
  wait_until grep -q '^Seccomp:[[:space:]]*1' "/proc/$pid/status"
  refuses 125 "$pid: may only read, write and exit (strict seccomp mode)" record -o t.ht --pid "$pid"
  kill -9 "$pid"
  exec 7>&-
  [ ! -e t.ht ]
}

@test "messages: a started program that cannot be detached, and a recorder that was killed" {
  skip_under_sanitizer
  local recorder pid
  "$HEAPTAPE" record -q -o t.ht -- sleep 1000 3>&- &
  recorder=$!
  wait_until pgrep -P "$recorder" sleep
  pid=$(pgrep -P "$recorder" sleep)
  wait_until has_events "$pid" 1
  if [ -x "$HEAPTAPE_PROGRAMS/filtered" ] && [ "$(id -u)" -eq 0 ]; then
    refuses 1 "$pid: was started with the library, which remains (to end the recording, run 'heaptape ctl $pid stop')" \
      ctl "$pid" detach
  fi
  kill -9 "$recorder"
  wait "$recorder" || true
  refuses 1 "$pid: the recorder of this process has ended" ctl "$pid" dump
  heaptape top "$pid"
  fails_with 1 "$pid: cannot read the open files of its recorder, process $recorder: No such file or directory"
  kill -9 "$pid"
}
