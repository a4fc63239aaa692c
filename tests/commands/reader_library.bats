# Compares libheaptape-trace, its examples and its Python module with the output of heaptape.
load tables_helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL
  golden=$HEAPTAPE_SOURCE/tests/golden
  reader=$HEAPTAPE_PROGRAMS/read_library
  example | sed '/ 6100 /d' | "$HEAPTAPE_PROGRAMS/make_trace" a.ht
  "$HEAPTAPE" convert -q -p 100 -o a.htw a.ht
  library=$(find "$HEAPTAPE_BUILD/src/tables/library" -name 'libheaptape-trace.so.1')
}

# with_module ARGUMENT...: runs python3 with the module. The library is built without a sanitizer
# for that.
with_module() {
  PYTHONPATH=$HEAPTAPE_SOURCE/python${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1 HEAPTAPE_TRACE_LIBRARY=$library \
    timeout -k 1 600 "${python:-python3}" "$@"
}

module() {
  with_module -c "$@"
}

# rows_of TABLE FILE COLUMN...: the rows of an exported table without quotes; all columns by
# default.
rows_of() {
  "$HEAPTAPE" export -q -F csv -t "$1" "$2" | python3 -c '
import csv, sys
for row in csv.DictReader(sys.stdin):
    print(*[row[name] for name in sys.argv[1:] or row], sep=",")' "${@:3}"
}

# Debian's numpy belongs to Debian's Python, which need not be the first in PATH.
needs_numpy() {
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import numpy' 2>/dev/null; then
      return 0
    fi
  done
  skip "python3 has no numpy"
}

@test "only the functions of the header are exported, with a version" {
  nm -D --defined-only "$library" | sed -n 's/.* T //p' | sort >exported
  sed -n 's/^[a-z].*[ *]\(heaptape_trace_[a-z_]*\)(.*/\1@@HEAPTAPE_TRACE_1/p' "$HEAPTAPE_SOURCE/include/heaptape/trace.h" | sort >declared
  [ -s declared ]
  diff declared exported
  # The only other symbol is the version itself.
  nm -D --defined-only "$library" | grep -v ' T ' >others || true
  [ "$(wc -l <others)" -eq 1 ]
  grep -q ' A HEAPTAPE_TRACE_1$' others
  readelf -d "$library" | grep -q 'SONAME.*\[libheaptape-trace.so.1\]'
}

@test "the structs keep their layout" {
  cat >layout.c <<'END'
#include <heaptape/trace.h>
#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)
AT(heaptape_event, time_ns, 0); AT(heaptape_event, text, 72); AT(heaptape_event, known, 80); AT(heaptape_event, error, 98);
AT(heaptape_op, time_ns, 0); AT(heaptape_op, dependencies, 48); AT(heaptape_op, n_dependencies, 64); AT(heaptape_op, error, 82);
AT(heaptape_process, exe, 24); AT(heaptape_process, lost_records, 88); AT(heaptape_process, sites, 96); AT(heaptape_process, early_usual_ns, 120);
AT(heaptape_frame, address, 24); AT(heaptape_frame, library, 37); AT(heaptape_thread, tid, 4);
AT(heaptape_dependency, thread, 8); AT(heaptape_column, items, 8);
END
  cc -fsyntax-only -I"$HEAPTAPE_SOURCE/include" layout.c
}

@test "the header is clean in C and C++" {
  printf '#include <heaptape/trace.h>\nint main(void) { return heaptape_trace_allocates(4) != 1; }\n' >use.c
  cp use.c use.cc
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$HEAPTAPE_SOURCE/include" use.c
  local compiler
  for compiler in g++ clang++; do
    command -v "$compiler" || continue
    "$compiler" -std=c++11 -Wall -Wextra -Wpedantic -Wold-style-cast -Werror -fsyntax-only -I"$HEAPTAPE_SOURCE/include" use.cc
  done
}

@test "a program builds and runs with the installed files, by pkg-config" {
  skip_under_sanitizer
  command -v pkg-config || skip "no pkg-config"
  DESTDIR=$PWD/stage meson install -C "$HEAPTAPE_BUILD" --no-rebuild --quiet
  pc=$(find stage -name heaptape-trace.pc)
  lib=$(dirname "$(dirname "$pc")")
  PKG_CONFIG_LIBDIR=$(dirname "$pc") PKG_CONFIG_SYSROOT_DIR=$PWD/stage pkg-config --cflags --libs heaptape-trace >flags
  for example in live_sites size_histogram; do
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror -o "$example" "$HEAPTAPE_SOURCE/examples/$example.c" $(cat flags)
    LD_LIBRARY_PATH=$lib "./$example" a.htw
  done
}

@test "events equal the rows of the table, with all columns" {
  for file in a.ht a.htw "$golden"/{stacks-2,pages-1,trace-1}.ht "$golden/workload-1.htw"; do
    rows_of events "$file" >want
    [ -s want ]
    "$reader" events "$file" >got
    cmp want got
  done
}

@test "columns equal the columns of the table" {
  for file in a.ht a.htw "$golden"/{stacks-2,trace-1}.ht "$golden/workload-1.htw"; do
    "$HEAPTAPE" export -q -F csv -t events "$file" | python3 -c '
import csv, sys
rows = list(csv.DictReader(sys.stdin))
print(len(rows), sum(int(r["size"] or 0) for r in rows) % 2**64, sum(r["freed_block"] != "" for r in rows),
      sum(int(r["thread"]) for r in rows), sep=",")' >want
    "$reader" columns "$file" | cut -d, -f1-4 | diff want -
  done
}

@test "the number of events equals stat's" {
  for file in a.ht "$golden/stacks-2.ht" "$golden/workload-1.htw"; do
    want=$("$HEAPTAPE" stat --json "$file" | jq .events)
    got=$("$reader" facts "$file" | awk '$1 == "process" { n += $4 } END { print n }')
    counted=$("$reader" events "$file" | awk -F, '$5 != "preexisting"' | wc -l)
    echo "$file: $want $got $counted"
    [ "$want" -eq "$got" ]
    [ "$want" -eq "$counted" ]
  done
}

@test "operations of a workload, with their slots and dependencies" {
  "$reader" ops a.htw >ops
  cat >want <<'END'
0,0,malloc,32,0,0,0,0
END
  head -n 1 ops | diff want -
  [ "$(wc -l <ops)" -eq "$("$HEAPTAPE" stat --json a.htw | jq .events)" ]
  # The thread start depends on the creation, and the realloc in the first thread on the second
  # thread's allocation.
  grep -q '^1,0,thread.start,0,0,-1,0,0,0:1$' ops
  grep -q '^0,2,realloc,96,0,1,0,8,1:1$' ops
  run "$reader" ops a.ht
  [ "$status" -eq 1 ]
  has "$output" "error 71"
  has "$output" "a.ht: is a trace, expected a workload"
}

@test "processes, threads, call sites and frames" {
  "$reader" facts "$golden/stacks-2.ht" >facts
  rows_of sites "$golden/stacks-2.ht" site function | sed 's/^\([0-9]*\),/site \1 /' >want
  [ -s want ]
  grep '^site' facts | diff want -
  rows_of sites "$golden/stacks-2.ht" stack | tr ';' '\n' | sort >want
  grep '^frame' facts | cut -d' ' -f4- | sort | diff want -
  "$reader" facts a.ht | grep -v thread >facts
  printf 'process 0 100 11 2 prog -x\nprocess 1 200 2 1 second\n' | diff - facts
}

@test "calls that the contract forbids fail, and others work at any time" {
  for file in "$golden/stacks-2.ht" "$golden/trace-1.ht" "$golden/workload-1.htw" a.ht; do
    "$reader" misuse "$file" >got
    [ "$(wc -l <got)" -ge 20 ]
    ! grep -v ' ok$' got || false
  done
}

@test "a pipe can be read once" {
  "$reader" events a.ht >want
  cat a.ht | "$reader" events - | cmp want -
  "$reader" events a.htw >want
  cat a.htw | "$reader" events - | cmp want -
  cat a.htw | "$reader" columns -
  run "$reader" facts - <a.ht
  [ "$status" -eq 1 ]
  has "$output" "error 11"
  has "$output" "-: processes and call sites are available after all events have been read"
  run "$reader" again - <a.ht
  [ "$status" -eq 1 ]
  has "$output" "-: can be read only once"
}

@test "a handle is closed while its file is still being read" {
  for i in 1 2 3 4 5; do
    "$reader" first "$golden/workload-1.htw"
  done
}

# as_heaptape FILE: every use of it fails with the one-line error of the command line.
as_heaptape() {
  local use
  ! "$HEAPTAPE" export -q -F csv -t events "$1" >/dev/null 2>want || false
  for use in events columns facts first; do
    run --separate-stderr "$reader" "$use" "$1"
    echo "$use $1: $status $stderr"
    [ "$status" -eq 1 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    echo "$stderr" | diff want -
  done
}

@test "other files have the error of the command line" {
  bats_require_minimum_version 1.5.0
  echo 'no trace' >text
  : >empty
  as_heaptape text
  as_heaptape empty
  as_heaptape missing
  as_heaptape "$golden/aggregate-1.hta"
  has "$stderr" "is an aggregate"
}

@test "a truncated file has an error after its events" {
  bats_require_minimum_version 1.5.0
  for file in stacks-2.ht trace-1.ht workload-1.htw; do
    size=$(stat -c %s "$golden/$file")
    head -c $((size - size / 4)) "$golden/$file" >"cut-$file"
    rows_of events "cut-$file" 2>/dev/null >want
    run --separate-stderr "$reader" events "cut-$file"
    echo "$status $stderr"
    [ "$status" -eq 1 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [ "${lines[-1]}" = "error 61" ]
    printf '%s\n' "${lines[@]}" | head -n -1 | diff want - >/dev/null
  done
}

@test "damaged files have an error or events, and never crash" {
  python3 - "$golden" <<'END'
import random, sys
random.seed(18)
for name in ("stacks-2.ht", "trace-1.ht", "workload-1.htw"):
    data = open(f"{sys.argv[1]}/{name}", "rb").read()
    for i in range(12):
        damaged = bytearray(data[:random.randrange(len(data))] if i % 3 == 0 else data)
        for _ in range(i % 4):
            damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        open(f"damaged-{i}-{name}", "wb").write(damaged)
END
  for file in damaged-*; do
    for use in events columns ops facts first; do
      status=0
      timeout 300 "$reader" "$use" "$file" >out 2>err || status=$?
      [ "$status" -le 1 ] || { echo "$use $file: $status" && cat err && false; }
      [ "$(wc -l <err)" -eq "$status" ]
    done
  done
}

@test "example: histogram of sizes" {
  "$HEAPTAPE_PROGRAMS/size_histogram" a.ht | awk '{ print $1, $2 }' >got
  printf '32 2\n64 2\n128 1\n' | diff - got
  run "$HEAPTAPE_PROGRAMS/size_histogram" missing
  [ "$status" -eq 1 ]
  has "$output" "size_histogram: missing: "
}

@test "example: call sites with the most live bytes" {
  "$HEAPTAPE" convert -q -o stacks.htw "$golden/stacks-2.ht"
  "$HEAPTAPE_PROGRAMS/live_sites" stacks.htw >got
  [ -s got ]
  want=$("$HEAPTAPE" stat --json stacks.htw | jq .live_at_end_bytes)
  [ "$(awk '{ n += $1 } END { print n }' got)" -eq "$want" ]
}

@test "Python: events, operations and facts" {
  skip_under_sanitizer
  module '
import heaptape, sys
def text(value):
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)
with heaptape.open(sys.argv[1]) as trace:
    for e in trace.events():
        print(",".join(text(getattr(e, name)) for name in
              "process event time_ns thread operation size count align usable_size address freed_address freed_block site failed error text".split()))
' a.ht >got
  "$reader" events a.ht | diff - got
  module '
import heaptape, sys
trace = heaptape.open(sys.argv[1])
assert trace.kind == "workload"
ops = list(trace.ops())
assert ops[0].operation == "malloc" and ops[0].slot == 0
assert any(o.dependencies == ((0, 1),) for o in ops)
assert [(p.command, p.early_events, p.early_max_ns, p.early_usual_ns) for p in trace.processes()] == [("prog -x", 0, 0, 0)]
first, second = trace.events(), trace.events()
next(first)
next(second)
try:
    next(first)
    sys.exit("the first iteration goes on")
except ValueError:
    pass
assert len([next(second)] + list(second)) == len(list(trace.events())) - 1
trace.close()
try:
    trace.processes()
    sys.exit("a closed trace is read")
except ValueError:
    pass
' a.htw
  module '
import heaptape, sys
with heaptape.open(sys.argv[1]) as trace:
    p = trace.processes()[0]
    assert p.sites
    for site in range(1, p.sites + 1):
        assert trace.site(0, site).function in [f.function for f in trace.stack(0, site)]
    assert trace.tid(0, 0)
' "$golden/stacks-2.ht"
}

@test "Python: errors are exceptions with the text of heaptape" {
  skip_under_sanitizer
  head -c 5000 "$golden/workload-1.htw" >cut.htw
  module '
import errno, heaptape
for path, number in ("missing", errno.ENOENT), ("cut.htw", errno.ENODATA):
    try:
        for _ in heaptape.open(path).events():
            pass
        raise SystemExit("no error")
    except heaptape.Error as error:
        assert error.errno == number, error.errno
        assert str(error).startswith(path + ": "), error
'
}

@test "Python: threads that share a trace get events or exceptions" {
  skip_under_sanitizer
  "$HEAPTAPE_PROGRAMS/make_workload" big.htw churn 2 20000 >/dev/null
  module '
import heaptape, sys, threading, time
sys.setswitchinterval(1e-5)
n = sum(1 for _ in heaptape.open("big.htw").events())

def run(*functions):
    wrong = []
    def guarded(function):
        try:
            function()
        except ValueError as error:
            assert "closed" in str(error) or "iteration" in str(error), error
        except BaseException as error:
            wrong.append(error)
    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong

for i in range(10):
    trace = heaptape.open("big.htw")
    closed = lambda: (time.sleep(0.001 * i), trace.close())
    run(lambda: [e for e in trace.events()], closed)
    trace = heaptape.open("big.htw")
    run(lambda: [b for b in trace.batches("size", rows=100)], closed)
    trace = heaptape.open("big.htw")
    run(lambda: trace.columns("size"), closed)
    trace = heaptape.open("big.htw")
    run(lambda: [o for o in trace.ops()], closed, closed)
trace = heaptape.open("big.htw")
for i in range(5):
    run(*[lambda: [e for e in trace.events()]] * 3, lambda: trace.processes(), lambda: trace.columns("size", "thread"))
assert sum(1 for _ in trace.events()) == n
'
}

@test "Python: a child process gets an exception for objects of its parent" {
  skip_under_sanitizer
  module '
import heaptape, os, threading
trace = heaptape.open("a.ht")
events = trace.events()
next(events)
held = threading.Event()
def hold():
    with trace._guarded:
        held.set()
        os.read(end, 1)
end, other = os.pipe()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
pid = os.fork()
if pid == 0:
    for use in (lambda: next(events), trace.processes, lambda: list(trace.events()), lambda: trace.columns("size")):
        try:
            use()
            os._exit(1)
        except ValueError as error:
            if "fork" not in str(error):
                os._exit(2)
    trace.close()
    trace.close()
    # The child can use files that it opens itself.
    os._exit(0 if list(heaptape.open("a.ht").events()) else 3)
assert os.waitpid(pid, 0)[1] == 0
os.write(other, b"x")
thread.join()
assert list(events)
'
}

@test "Python: copies, signals, and values that C would cut" {
  skip_under_sanitizer
  module '
import copy, heaptape, signal
def fails(function, text):
    try:
        function()
    except ValueError as error:
        assert text in str(error), error
        return
    raise SystemExit(f"no error: {text}")

fails(lambda: heaptape.open("a.ht\0b"), "null")
fails(lambda: heaptape.open(b"a.ht\0b"), "null")
trace = heaptape.open("a.ht")
for number in -1, 1 << 32, (1 << 32) + 1, 1 << 64:
    fails(lambda: trace.site(number, 1), "is not a number from 0")
    fails(lambda: trace.site(0, number), "is not a number from 0")
    fails(lambda: trace.stack(number, 1), "is not a number from 0")
    fails(lambda: trace.tid(0, number), "is not a number from 0")
    fails(lambda: heaptape.allocates(number), "is not a number from 0")
for rows in 0, -1:
    fails(lambda: next(trace.batches("size", rows=rows)), "rows")
try:
    trace.stack(0, 4000000000)
    raise SystemExit("no error")
except heaptape.Error:
    pass
# A copy refers to the same open file.
other = copy.copy(trace)
other.close()
fails(trace.processes, "closed")
del other
trace.close()
# A signal handler closes the trace during a call.
trace = heaptape.open("a.ht")
signal.signal(signal.SIGALRM, lambda *_: trace.close())
with trace._guarded:
    try:
        signal.raise_signal(signal.SIGALRM)
        raise SystemExit("closed while it is in use")
    except ValueError as error:
        assert "in use" in str(error)
trace.close()
'
}

columns_code='
import heaptape, sys
trace = heaptape.open(sys.argv[1])
events = list(trace.events())
c = trace.columns()
assert list(c) == list(heaptape.COLUMNS)
for name, values in c.items():
    assert len(values) == len(events)
for i, e in enumerate(events):
    assert heaptape.operation_names[c["operation"][i]] == e.operation
    for name, (bit, _, _) in heaptape.COLUMNS.items():
        if name not in ("operation", "known") and getattr(e, name) is not None:
            assert c[name][i] == getattr(e, name), (i, name)
            assert name == "failed" or c["known"][i] >> bit & 1
n = 0
for batch in trace.batches("size", "thread", rows=100):
    assert list(batch) == ["size", "thread"]
    assert list(batch["size"]) == list(c["size"][n:n + 100])
    n += len(batch["size"])
assert n == len(events)
print(type(c["size"]).__module__)
'

@test "Python: columns without numpy are array.array" {
  skip_under_sanitizer
  module "import sys; sys.modules['numpy'] = None
$columns_code" "$golden/workload-1.htw" >got
  [ "$(cat got)" = array ]
}

@test "Python: columns with numpy are numpy arrays" {
  skip_under_sanitizer
  needs_numpy
  module "$columns_code" "$golden/workload-1.htw" >got
  [ "$(cat got)" = numpy ]
}

@test "Python example: live bytes over time" {
  skip_under_sanitizer
  needs_numpy
  with_module "$HEAPTAPE_SOURCE/examples/growth.py" a.ht >got
  tail -n 1 got
  "$HEAPTAPE" stat --json a.htw | jq -r '"peak \(.peak_live_bytes) bytes, at the end \(.live_at_end_bytes) bytes"' >want
  tail -n 1 got | diff want -
}
