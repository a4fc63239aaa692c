# A workload as a C program: it makes the same calls in order and verifies them.
load replay_helper

# program WORKLOAD [OPTION...]: compiles WORKLOAD to ./program.
program() {
  "$HEAPTAPE" export -q -f -F c -o program.c "$1"
  cc -std=gnu11 -Wall -Wextra -Werror -O1 -pthread "${@:2}" -o program program.c
}

# same_calls A B: both dumps have the same calls with the same sizes in each thread. Thread numbers
# may differ. With several threads, calls by the C library are ignored (calloc and free(NULL)).
same_calls() {
  "$HEAPTAPE" dump --format json "$1" >a.json
  "$HEAPTAPE" dump --format json "$2" >b.json
  python3 - <<'END'
import collections, json
AS = {"reallocarray": "realloc", "new": "malloc", "new[]": "malloc", "preexisting": "malloc"}
def calls(path):
    threads, create = collections.defaultdict(list), False
    for line in open(path):
        c = json.loads(line)
        kind = c["kind"]
        create |= kind == "thread.create"
        kind = "free" if kind.startswith(("free", "delete")) else AS.get(kind.split("(")[0], kind)
        if "error" in c or kind.startswith(("thread", "mark", "malloc_", "mall", "heaptape", "process")) and kind != "malloc":
            continue
        size = c.get("size", 0) * c.get("count", 1)
        if kind != "free" and "align" in c or kind in ("valloc", "pvalloc"):
            kind = "aligned"
            size = size if c["kind"] != "pvalloc" else (size + 4095) // 4096 * 4096
        if kind == "realloc" and c.get("result") is None:
            kind = "free"
        elif kind == "free":
            size = 0
            if c.get("ptr") is None and c.get("slot") is None:
                kind = "free(NULL)"
        threads[c["tid"]].append((kind, size))
    return sorted([c for c in t if not create or c[0] not in ("calloc", "free(NULL)")] for t in threads.values() if t)
a, b = calls("a.json"), calls("b.json")
assert len(a) == len(b), (len(a), len(b))
for x, y in zip(a, b):
    for i, (p, q) in enumerate(zip(x, y)):
        assert p == q, (i, p, q)
    assert len(x) == len(y), (x[len(y):][:5], y[len(x):][:5])
print(sum(map(len, a)), "calls of", len(a), "threads")
END
}

@test "the program makes the calls of the workload" {
  skip_under_sanitizer
  for how in "kinds 1 3000" "churn 1 20000" "churn 4 20000 20"; do
    # shellcheck disable=SC2086 # words
    make_workload $how
    program w.htw
    "$HEAPTAPE" record -q -f -o r.ht -- ./program >out
    "$HEAPTAPE" convert -q -f -o r.htw r.ht
    echo "$how:"
    same_calls w.htw r.htw
    bytes=$(sed -n '/^"/p' program.c | wc -c)
    "$HEAPTAPE" stat --json --brief w.htw >out.json
    json "assert $bytes <= 20 * d['events'], ($bytes, d['events'])"
  done
}

@test "the program also compiles with clang" {
  command -v clang >/dev/null || skip "no clang"
  make_workload kinds 2 100
  "$HEAPTAPE" export -q -F c -o program.c w.htw
  clang -Wall -Wextra -Werror -c -o program.o program.c
  clang -Wall -Wextra -Werror -DCHECK=1 -c -o program.o program.c
}

@test "threads of the program use a block one by one" {
  echo 'int main(void) { return 0; }' >empty.c
  cc -fsanitize=thread -o empty empty.c 2>/dev/null && ./empty 2>/dev/null || skip "no thread sanitizer"
  make_workload churn 4 5000 30
  program w.htw -fsanitize=thread -g
  TSAN_OPTIONS=exitcode=66 setarch -R ./program >out 2>err || { head -n 30 err && false; }
  grep '^[0-9]* calls, ' out
}

@test "preexisting blocks are allocated first" {
  skip_under_sanitizer
  make_workload churn 1 20000
  "$HEAPTAPE" slice -q -f --from 10000 -o part.htw w.htw
  "$HEAPTAPE" stat --json --brief part.htw >out.json
  json 'assert d["preexisting_blocks"] > 10'
  program part.htw -DCHECK=1
  ./program >out
  before=$(sed -n '/^static const char \*const before/,/NULL/p' program.c | grep -o '[ma][0-9]*,' | wc -l)
  json "assert d['preexisting_blocks'] == $before, $before"
}

@test "the program finds faults of an allocator, and reports none on a correct one" {
  make_workload churn 2 3000
  program w.htw -DCHECK=1
  ./program
  bad=$HEAPTAPE_PROGRAMS/hostile/libtest-badalloc.so
  skip_under_sanitizer
  make_workload kinds 1 30000
  program w.htw -DCHECK=1
  while read -r mode said; do
    status=0
    BADMODE=$mode LD_PRELOAD=$bad ./program >out 2>err || status=$?
    echo "$mode: $status $(cat out err)"
    [ "$status" -eq 1 ]
    grep "^$said: call [0-9]* of thread 0, slot [0-9]*$" err
  done <<'END'
misalign a block is not aligned
dirty calloc returned memory that is not zero
realloclose realloc lost what the block held
null out of memory
END
}
