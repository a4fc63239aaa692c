# Python functions in call stacks.

load trace

setup() {
  bats_require_minimum_version 1.5.0
  cd "$BATS_TEST_TMPDIR" || return
  python=/usr/bin/python3
  "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || skip "no Python 3.11 to 3.13"
}

teardown() {
  show_failure
}

# script: the rest of a script from standard input, after the function keep(), which allocates one
# block of SIZE bytes that no other code allocates.
script() {
  {
    echo 'import ctypes, os, sys, threading'
    echo 'from time import sleep'
    echo 'kept = []'
    echo 'def keep(size):'
    echo '    kept.append(bytearray(size - 1))' # line 5
    cat
  } >app.py
}

record_script() {
  record_options=--stacks record "$python" app.py "$@"
  expect "done" [ "$status" -eq 0 ]
}

# stack SIZE [FILE]: the Python functions of the stack that allocated blocks of SIZE bytes, with
# their lines, innermost first, up to the script.
stack() {
  local file=${2:-t.ht}
  [ -e "$file.json" ] || "$HEAPTAPE" stat -q --by site --top 0 --format json "$file" >"$file.json"
  jq -r --argjson size "$1" \
    '[.sites[] | select(.allocs > 0 and .allocated_bytes / .allocs == $size) | [.frames[] | select(.module == "" and .file != "")
      | .function + ":" + (.line | tostring)] | join(" ")] | unique | .[]' "$file.json"
}

# has_stack SIZE FUNCTION:LINE...
has_stack() {
  local size=$1 found
  shift
  found=$(stack "$size")
  echo "$size: $found"
  [ "$found" = "$*" ]
}

everything='def plain():
    keep(10007)
def outer():
    def inner(x):
        keep(10009)
        return x
    sorted([3], key=inner)
def numbers():
    keep(10037)
    yield 1
    keep(10039)
def deep(n):
    if n:
        return deep(n - 1)
    keep(10061)
class Store:
    def put(self):
        [keep(size) for size in (10067,)]
    def __del__(self):
        keep(10069)
def entry():
    keep(10079)
def run():
    plain()
    outer()
    list(numbers())
    deep(3)
    Store().put()
    thread = threading.Thread(target=entry)
    thread.start()
    thread.join()
    ctypes.CFUNCTYPE(None)(lambda: keep(10091))()
    eval(compile("keep(10093)", "größe.py", "eval"))'

has_everything() {
  has_stack 10007 keep:5 plain:7 run:29 "<module>:39"
  has_stack 10009 keep:5 "outer.<locals>.inner:10" outer:12 run:30 "<module>:39"
  has_stack 10037 keep:5 numbers:14 run:31 "<module>:39"
  has_stack 10039 keep:5 numbers:16 run:31 "<module>:39"
  has_stack 10061 keep:5 deep:20 deep:19 deep:19 deep:19 run:32 "<module>:39"
  [[ "$(stack 10067)" == "keep:5 "*"Store.put:23 run:33 <module>:39" ]]
  has_stack 10069 keep:5 Store.__del__:25 run:33 "<module>:39"
  [[ "$(stack 10079)" == "keep:5 entry:27 Thread.run:"* ]]
  has_stack 10091 keep:5 "run.<locals>.<lambda>:37" run:37 "<module>:39"
  has_stack 10093 keep:5 "<module>:1" run:38 "<module>:39"
}

@test "python: functions, generators, callbacks, threads and recursion have their lines" {
  script <<<"$everything"$'\nrun()'
  record_script
  has_everything
  # The file of a function is complete, in any alphabet.
  "$HEAPTAPE" stat -q --by site --top 0 --format json t.ht >sites.json
  [ "$(jq -r '[.sites[].frames[] | select(.function == "plain").file] | unique[]' sites.json)" = "$PWD/app.py" ]
  [ "$(jq '[.sites[].frames[] | select(.file == "größe.py")] | length' sites.json)" -ge 1 ]
  # The workload keeps the names.
  "$HEAPTAPE" convert -q -o t.htw t.ht
  [ "$(stack 10007 t.htw)" = "$(stack 10007)" ]
}

@test "python: after attach" {
  [ -x "$HEAPTAPE_PROGRAMS/filtered" ] || skip "heaptape cannot attach on this machine"
  script <<<"$everything"$'\nwhile not os.path.exists("go"): sleep(0.01)\nrun()\nopen("ran", "w").close()\nsleep(60)'
  "$python" app.py 3>&- &
  local program=$!
  "$HEAPTAPE" record -q -f --stacks -o t.ht --pid $program 2>err 3>&- &
  local recorder=$!
  wait_until [ -s t.ht ]
  touch go
  wait_until [ -e ran ]
  kill $recorder
  wait $recorder || :
  kill $program
  has_stack 10007 keep:5 plain:7 run:29 "<module>:40"
  has_stack 10039 keep:5 numbers:16 run:31 "<module>:40"
  has_stack 10061 keep:5 deep:20 deep:19 deep:19 deep:19 run:32 "<module>:40"
}

@test "python: a fork child, and threads that run at the same time" {
  script <<'END'
def work(number):
    for i in range(300):
        keep(20011 + 64 * number)
def run():
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
child = os.fork()
if child == 0:
    keep(10103)
    os._exit(0)
os.waitpid(child, 0)
run()
END
  record_script
  # All threads have the same stack.
  "$HEAPTAPE" stat -q --by site --top 1 --format json t.ht >sites.json
  jq -e '.sites[0] | .allocs == 2400 and ([.frames[].function] | contains(["keep", "work", "Thread.run"]))' sites.json
  local pid
  pid=$("$HEAPTAPE" dump -q --format json --kind malloc t.ht | jq 'select(.size == 10103).pid')
  "$HEAPTAPE" convert -q --pid "$pid" -o child.htw t.ht
  [ "$(stack 10103 child.htw)" = "keep:5 <module>:15" ]
}

@test "python: a function that replaces a deleted one at its address has its own name" {
  script <<'END'
def once(number):
    names = {"keep": keep}
    text = "\n" * number + "def f%04d(): keep(%d)\nf%04d()" % (number, 30011 + 64 * number, number)
    exec(compile(text, "file%04d.py" % number, "exec"), names)
for number in range(200):
    once(number)
END
  record_script
  local number
  for number in 0 1 2 77 199; do
    has_stack $((30011 + 64 * number)) keep:5 "$(printf 'f%04d' $number):$((number + 1))" "<module>:$((number + 2))" once:9 "<module>:11"
  done
}

@test "python: the interpreter in a library that is unloaded" {
  local library
  library=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("INSTSONAME"))')
  cat >embed.c <<'END'
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    (void)argc;
    for (int i = 0; i < 3; i++) {
        void *python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
        if (!python)
            return 77;
        ((void (*)(int))dlsym(python, "Py_InitializeEx"))(0);
        ((int (*)(const char *))dlsym(python, "PyRun_SimpleString"))(
            "def f():\n    return bytearray(10110)\nf()");
        ((int (*)(void))dlsym(python, "Py_FinalizeEx"))();
        dlclose(python);
        for (int k = 0; k < 3000; k++)
            free(malloc(10112));
    }
    return 0;
}
END
  cc -o embed embed.c -ldl
  record_options=--stacks record ./embed "$library"
  [ "$status" -ne 77 ] || skip "no $library"
  [ "$status" -eq 0 ]
  has_stack 10111 f:2 "<module>:3"
  has_stack 10112
}

@test "python: stat, report and doctor name the line that leaks" {
  script <<'END'
class Orders:
    def load(self):
        keep(40009)
orders = Orders()
for i in range(200):
    orders.load()
    sleep(0.02)
os._exit(0)
END
  record_script
  "$HEAPTAPE" stat -q t.ht >stat.txt
  [[ "$(tr -s ' \n' ' ' <stat.txt)" == *"in keep (app.py:5) < Orders.load (app.py:8) < <module> (app.py:11)"* ]]
  "$HEAPTAPE" doctor -q t.ht >doctor.txt
  [[ "$(tr -s ' \n' ' ' <doctor.txt)" == *"in keep (app.py:5) < Orders.load (app.py:8)"* ]]
  "$HEAPTAPE" report -q -o t.html t.ht
  grep -q "Orders.load" t.html
  "$HEAPTAPE" export -q --format folded t.ht 2>/dev/null | grep -q "Orders.load" ||
    "$HEAPTAPE" stat -q --by site --format folded t.ht | grep -q "Orders.load"
  run ! grep -q "tracemalloc" stat.txt
}
