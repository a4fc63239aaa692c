# Tests the function that represents a call site. Functions of libraries and allocation wrappers are
# omitted if a function of the program calls them.

load ../helper

# build NAME COMMAND...: compiles standard input and records the program with whole stacks.
build() {
  local name=$1
  shift
  skip_under_sanitizer
  command -v "$1" >/dev/null || skip "no $1"
  "$@" -o "$name"
  "$HEAPTAPE" record -q -f --stacks=64 -o "$name.ht" -- "./$name"
}

# build_c NAME OPTION...
build_c() {
  local name=$1
  shift
  build "$name" gcc -x c -fno-omit-frame-pointer -fno-optimize-sibling-calls "$@" -
}

# Prints the shown function of each call site of FILE, without arguments, in the order of names.
shown() {
  "$HEAPTAPE" stat --by site --top 0 --format json "$1" >shown.json
  jq -r '.sites[] | select(.site > 0 and .frames[0].module != "") | .frames[.shown_frame].function | sub("[(].*"; "")' shown.json | sort -u
}

# Succeeds if the shown functions include all words.
shows() {
  local file=$1 word list
  shift
  list=$(shown "$file")
  for word; do
    expect "$word in: $list" grep -qxF -e "$word" <<<"$list"
  done
}

wrapper_names() {
  jq -r '.wrappers[].function | sub("[(].*"; "")' shown.json | sort | tr '\n' ' '
}

two_layers() {
  cat <<'C'
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline))
struct entry { struct entry *next; long key[14]; };
static struct entry *table;
static void *volatile kept;
APART static void *checked(size_t size)
{
    void *p = malloc(size);
    if (!p)
        abort();
    return p;
}
APART static void *xmalloc(size_t size)
{
    void *p = checked(size);
    memset(p, 1, size);
    return p;
}
APART static void *xrealloc(void *p, size_t size)
{
    p = p ? realloc(p, size) : malloc(size);
    if (!p)
        abort();
    return p;
}
// Called from as many places as xmalloc, but keeps its blocks.
APART static void keep_entry(long key)
{
    struct entry *e = malloc(sizeof *e);
    e->next = table;
    e->key[0] = key;
    table = e;
}
APART static void load_users(void) { kept = xmalloc(1000); keep_entry(1); }
APART static void load_words(void) { kept = xmalloc(2000); keep_entry(2); kept = xrealloc(kept, 5000); }
APART static void load_names(void) { kept = xmalloc(3000); keep_entry(3); kept = xrealloc(kept, 6000); }
APART static void load_years(void) { kept = xmalloc(4000); keep_entry(4); kept = xrealloc(NULL, 7000); }
int main(void)
{
    load_users();
    load_words();
    load_names();
    load_years();
    return !kept;
}
C
}

@test "wrappers: two layers of xmalloc are folded, a function that keeps its blocks is not" {
  skip_under_sanitizer
  two_layers | build_c two -O1 -g
  [ "$(shown two.ht | tr '\n' ' ')" = "keep_entry load_names load_users load_words load_years " ]
  [ "$(wrapper_names)" = "checked xmalloc xrealloc " ]
  # As text.
  heaptape stat --by site two.ht
  has "$output" "load_users (<stdin>:35) via xmalloc"
  heaptape stat --wrappers two.ht
  [[ "$output" == *" 9.8 KiB"*" 4 "*"4  xmalloc (<stdin>:16)"* ]]
  [[ "$output" != *keep_entry* ]]
  # With names in the recording, the shown functions are the same if the program's file exists.
  # Without the file, the names of the functions decide.
  "$HEAPTAPE" symbolize -q -o named.ht two.ht
  [ "$(shown named.ht | tr '\n' ' ')" = "keep_entry load_names load_users load_words load_years " ]
  mv two elsewhere
  [ "$(shown named.ht | tr '\n' ' ')" = "keep_entry load_names load_users load_words load_years " ]
}

@test "wrappers: a leak names the function that remembers, not the one that allocates" {
  build_c leak -O1 -g -fno-builtin <<'C'
#include <stdlib.h>
#include <string.h>
static long live;
__attribute__((noinline)) static void *get(size_t size)
{
    char *p = malloc(size);
    if (!p)
        exit(3);
    memset(p, 1, size);
    live += size;
    return p;
}
static void drop(void *p, size_t size)
{
    free(p);
    live -= size;
}
struct session { struct session *next; char data[984]; };
static struct session *sessions;
__attribute__((noinline)) static void remember_session(void)
{
    struct session *s = get(sizeof *s);
    s->next = sessions;
    sessions = s;
}
static void leak(void)
{
    for (int n = 0; n < 2000; n++) {
        for (int i = 0; i < 20; i++)
            drop(get(500 + i), 500 + i);
        remember_session(), remember_session();
    }
}
int main(void)
{
    leak();
    return 0;
}
C
  shows leak.ht remember_session
  heaptape stat leak.ht
  has "$(tr -s ' \n' ' ' <<<"$output")" "remember_session (<stdin>:22)"
  [ "$(grep -c "get (" <<<"$output")" -eq 0 ]
  "$HEAPTAPE" stat --json leak.ht >stat.json
  jq -e '.call_sites.by_growth[0] | .frames[.shown_frame].function == "remember_session" and .frames[0].wrapper' stat.json
  # The findings of a JSON file are the same.
  jq -e '[.findings[].text | select(contains("remember_session (<stdin>:22)"))] | length > 0' stat.json
  "$HEAPTAPE" report -q -f -o a.html stat.json
  grep -qF "remember_session (\\u003cstdin>:22)" a.html
  heaptape top leak.ht
  has "$output" "remember_session"
  [ "$(grep -c " get$" <<<"$output")" -eq 0 ]
  [ "$(grep -c 'in get (' a.html)" -eq 0 ]
  # So is the function in tables.
  if "$HEAPTAPE" sql --help >/dev/null 2>&1; then
    heaptape sql leak.ht "select distinct function from sites where function in ('get', 'remember_session')"
    has "$output" remember_session
    [[ "$output" != *get* ]]
  fi
}

@test "wrappers: an owner with eight callers is not folded" {
  build_c owner -O1 -g <<'C'
#include <stdlib.h>
#define APART __attribute__((noinline))
struct entry { struct entry *next; char text[100]; };
static struct entry *table, *volatile last;
APART static void keep_entry(void)
{
    struct entry *e = malloc(sizeof *e);
    e->next = table;
    table = e;
}
// Returns its block, but has few callers for a function with a type.
APART static struct entry *new_entry(void)
{
    struct entry *e = malloc(sizeof *e);
    e->next = NULL;
    return e;
}
#define LOAD(name) APART static void name(void) { keep_entry(), keep_entry(); }
LOAD(a) LOAD(b) LOAD(c) LOAD(d) LOAD(e) LOAD(f)
APART static void g(void) { keep_entry(), last = new_entry(); }
APART static void h(void) { keep_entry(), last = new_entry(); }
int main(void)
{
    a(), b(), c(), d(), e(), f(), g(), h();
    return !table;
}
C
  [ "$(shown owner.ht | tr '\n' ' ')" = "keep_entry new_entry " ]
  [ -z "$(wrapper_names)" ]
}

@test "wrappers: a function with one caller is folded only if it returns a pointer to void" {
  build_c one -O1 -g -pthread <<'C'
#include <pthread.h>
#include <stdlib.h>
#define APART __attribute__((noinline))
static void *volatile kept;
APART static void *get(size_t n) { return malloc(n); }
APART static void fill_cache(void) { kept = get(10), kept = get(100); }
APART static char *parse_word(size_t n) { return malloc(n); }
APART static void parse_words(void) { kept = parse_word(1000), kept = parse_word(2000); }
// These return a pointer to void, but their callers are main and a library.
APART static void *direct(size_t n) { return malloc(n); }
APART static void *work(void *arg) { kept = malloc(3000); return arg; }
int main(void)
{
    pthread_t thread;
    fill_cache();
    parse_words();
    kept = direct(5000);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return !kept;
}
C
  shows one.ht fill_cache parse_word direct work
  [ "$(wrapper_names)" = "get " ]
}

@test "wrappers: a program without wrappers" {
  build_c none -O1 -g <<'C'
#include <stdlib.h>
static void *volatile kept;
int main(void) { kept = malloc(10); return !kept; }
C
  shows none.ht main
  heaptape stat --wrappers none.ht
  [ "$output" = "no allocation wrappers: no function of the program allocates for its callers" ]
}

@test "wrappers: in a stripped program, functions are known by the unwind tables" {
  build_c bare -O1 -g0 -s <<'C'
#include <stdlib.h>
#define APART __attribute__((noinline))
static void *volatile kept;
APART static void *xmalloc(size_t n)
{
    void *p = malloc(n);
    if (!p)
        abort();
    return p;
}
#define LOAD(name) APART static void name(void) { kept = xmalloc(1000); kept = xmalloc(2000); }
LOAD(a) LOAD(b) LOAD(c) LOAD(d) LOAD(e) LOAD(f) LOAD(g) LOAD(h)
int main(void)
{
    a(), b(), c(), d(), e(), f(), g(), h();
    return !kept;
}
C
  [ "$(shown bare.ht | grep -c '^bare+0x')" -eq 16 ]
  [ "$(jq -c '[.wrappers[] | [.calling_functions, .allocated_bytes]]' shown.json)" = '[[8,24000]]' ]
}

@test "wrappers: functions of C++'s library are omitted, also from headers" {
  for options in -O0 -O2; do
    build cxx g++ -x c++ -g -pthread $options -fno-omit-frame-pointer -fno-optimize-sibling-calls - <<'C'
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#define APART __attribute__((noinline))
APART size_t fill_vector() { std::vector<long> v; for (long i = 0; i < 1000; i++) v.push_back(i); return v.size(); }
APART size_t fill_map() { std::map<std::string, std::string> m; for (int i = 0; i < 100; i++) m[std::to_string(i) + "a long key of the map"] = "a long value of the map"; return m.size(); }
APART size_t join_names() { std::string s; for (int i = 0; i < 1000; i++) s += "name"; return s.size(); }
APART long *make_array(int n) { return new long[n]; }
// The debugging information has no qualified name for this instance of emplace_back.
APART size_t run_threads() { std::vector<std::thread> all; all.emplace_back([] {}); all.back().join(); return all.size(); }
APART std::shared_ptr<long> make_shared_long() { return std::make_shared<long>(1); }
int main()
{
    delete[] make_array(100);
    return run_threads() + fill_vector() + fill_map() + join_names() + *make_shared_long() == 0;
}
C
    shows cxx.ht run_threads fill_vector fill_map join_names make_array make_shared_long
    # Names end at the end of their parts also where the terminal is narrow.
    on_terminal 84 "$HEAPTAPE" top -n 1 cxx.ht | grep '<stdin>' >rows
    [ -s rows ]
    awk '{ gsub(/->/, ""); n = gsub(/[(]/, "") - gsub(/[)]/, ""); m = gsub(/</, "") - gsub(/>/, "") }
      n || m { print; bad = 1 } END { exit bad }' rows
    [ "$(shown cxx.ht | grep -cE 'std::|operator|__gnu|emplace')" -eq 0 ]
  done
}

@test "wrappers: functions of Rust's libraries are omitted, the program's own traits are not" {
  build_c rust -O1 <<'C'
#include <stdlib.h>
#define APART __attribute__((noinline, used))
static void *volatile kept;
APART static void *exchange(void) __asm__("_ZN5alloc7raw_vec11finish_grow17h0123456789abcdefE");
APART static void *exchange(void) { return malloc(100); }
APART static void *reserve(void) __asm__("_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$16reserve_for_push17h0123456789abcdefE");
APART static void *reserve(void) { void *p = exchange(); kept = p; return p; }
APART static void *write_fmt(void) __asm__("_ZN50_$LT$$RF$mut$u20$W$u20$as$u20$core..fmt..Write$GT$9write_fmt17h0123456789abcdefE");
APART static void *write_fmt(void) { void *p = reserve(); kept = p; return p; }
APART static void *record_audit(void) __asm__("_ZN7service12record_audit17h0123456789abcdefE");
APART static void *record_audit(void) { void *p = write_fmt(); kept = p; return p; }
APART static void *show(void) __asm__("_ZN53_$LT$service..Event$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE");
APART static void *show(void) { void *p = reserve(); kept = p; return p; }
int main(void)
{
    record_audit();
    show();
    return !kept;
}
C
  [ "$(shown rust.ht | tr '\n' ' ')" = "<service::Event as core::fmt::Display>::fmt service::record_audit " ]
}

@test "wrappers: python does not show its allocation functions" {
  skip_under_sanitizer
  PYTHONMALLOC=malloc "$HEAPTAPE" record -q --stacks=32 -o python.ht -- python3 -S -c 'kept = [str(i) * 10 for i in range(3000)]; more = {i: (i, [i]) for i in range(3000)}'
  shown python.ht >list
  wrapper_names >wrappers
  # Without symbols, the functions of python are addresses.
  grep -q '^Py' list || skip "python has no symbols"
  [ "$(grep -cE '^_?Py(Object|Mem)_(Raw)?(Malloc|Realloc|Calloc)$' list)" -eq 0 ]
  [ "$(grep -cE '^_PyMem_RawWcsdup$' list)" -eq 0 ]
  has "$(cat wrappers)" _PyMem_RawWcsdup
}

@test "stacks: recursive calls are one row" {
  build_c recursive -O1 -g <<'C'
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static int rec(int depth)
{
    if (!depth)
        kept = malloc(1000);
    return depth ? rec(depth - 1) + 1 : 0;
}
__attribute__((noinline)) static int odd(int depth);
__attribute__((noinline)) static int even(int depth)
{
    if (!depth)
        kept = malloc(2000);
    return depth ? odd(depth - 1) + 1 : 0;
}
__attribute__((noinline)) static int odd(int depth) { return depth ? even(depth - 1) + 1 : 0; }
int main(void)
{
    return rec(31) + even(20) == 0;
}
C
  heaptape stat --by site recursive.ht
  [ "$(grep -c "rec (" <<<"$output")" -eq 1 ]
  has "$output" "rec (<stdin>:6) ×32"
  has "$output" "even (<stdin>:13) ×10"
  has "$output" "odd (<stdin>:16) ×10"
  # The function of the last, incomplete round.
  [ "$(grep -cE "even \(|odd \(" <<<"$output")" -eq 3 ]
  # Functions of libraries are dimmed.
  "$HEAPTAPE" stat --color always --by site recursive.ht >colors
  grep -q $'\033\[2m__libc_start' colors
  [ "$(grep -c $'\033\[2mrec' colors)" -eq 0 ]
  # All functions are in the JSON.
  "$HEAPTAPE" stat --by site --format json recursive.ht >sites.json
  [ "$(jq '[.sites[].frames[] | select(.function == "rec")] | length' sites.json)" -eq 32 ]
}

@test "diff: a wrapper of one version is folded in both" {
  for n in 1 2; do
    build_c v$n -O1 -g "-DCALLERS=$n" <<'C'
#include <stdlib.h>
static void *volatile kept;
// With one caller, a function that returns a pointer to char is not a wrapper.
__attribute__((noinline)) static char *xmalloc(size_t n)
{
    void *p = malloc(n);
    if (!p)
        abort();
    return p;
}
__attribute__((noinline)) static void first(void) { kept = xmalloc(100 * CALLERS); }
__attribute__((noinline)) static void second(void) { kept = xmalloc(2000); }
int main(void)
{
    first();
    if (CALLERS == 2)
        second();
    return !kept;
}
C
  done
  shows v1.ht xmalloc
  shows v2.ht first second
  "$HEAPTAPE" diff --json v1.ht v2.ht >diff.json
  [ "$(jq -c '[.sites[] | [.function, .a.allocs, .b.allocs]] | sort' diff.json)" = '[["first",1,1],["second",0,1]]' ]
  # A limit for a call site also counts the wrapper through which the shown function allocates, but
  # not the callers.
  heaptape diff --fail-on 'site:xmalloc:calls>+0' --fail-on 'site:main:calls>0' v1.ht v2.ht
  [ "$status" -eq 1 ]
  has "$output" "FAILED  site:xmalloc:calls>+0: 1, then 2 "
  has "$output" "ok      site:main:calls>0: 0, then 0 "
}

@test "stacks: the shown function is in brief JSON, however deep the library is" {
  build_c deep -O1 <<'C'
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static int descend(int n) __asm__("_ZN4core4iter7descend17h0123456789abcdefE");
__attribute__((noinline)) static int descend(int n)
{
    if (!n)
        kept = malloc(5000);
    return n ? descend(n - 1) + 1 : 0;
}
__attribute__((noinline)) static int run(int n) __asm__("_ZN7service3run17h0123456789abcdefE");
__attribute__((noinline)) static int run(int n) { return descend(n) + 1; }
int main(void) { return run(45) == 0; }
C
  "$HEAPTAPE" stat --json deep.ht >stat.json
  jq -e '.call_sites.at_peak[0] | (.frames | length) == 32 and .shown_frame == 31 and .frames[31].function == "service::run"' stat.json
  heaptape stat --by site deep.ht
  has "$output" "service::run (deep) via core::iter::descend"
}

@test "stat --wrappers: no profile" {
  heaptape stat --wrappers --format folded "$HEAPTAPE_SOURCE/tests/golden/stacks-3.ht"
  [ "$status" -eq 2 ]
  has "$stderr" "heaptape: --wrappers has no profile: --format must be text or json"
}

@test "report: names are shortened as in text, recursion is one row" {
  command -v node >/dev/null || skip "no node"
  cat >page.js <<'JS'
const fs = require('fs');
const folder = process.argv[2];
const main = fs.readFileSync(folder + '/main.js', 'utf8');
const code = fs.readFileSync(folder + '/sites.js', 'utf8') + /function shortened[^]*?\n}\n/.exec(main)[0] + `
const name = (x) => ({function: x, module: ''});
[[name('main'), 10], [name('std::vector<int, std::allocator<int> >::push_back(int&&)'), 40], [name('void app::grow<std::string>(std::string const&)'), 18],
  [name('app::operator<<(app::big const&, x)'), 20], [name('app::cell::operator()(int, int, int)'), 20], [name('(anonymous namespace)::f(std::string)'), 30],
  [name('<T as app::Grow>::grow'), 12], [name('an_identifier_without_any_end'), 16]].forEach(([f, max]) => console.log(shortName(f.function, max)));
console.log(rowsOf([...'abababcccd'].map(name)).map((r) => r.frame.function + r.repeats).join(' '));
const frames = [{function: 'malloc', library: true}, {function: 'get', wrapper: true}, {function: 'keep'}];
console.log(ownFrame(frames).function, ownFrame(frames.slice(0, 2)).function, ownFrame(frames.slice(0, 1)).function);`;
require('vm').runInNewContext(code, {console, Math, Infinity});
JS
  run node page.js "$HEAPTAPE_SOURCE/src/report/page"
  [ "$output" = "main
std::vector<…>::push_back(…)
app::grow<…>(…)
app::operator<<(…)
…::operator()(…)
(anonymous namespace)::f(…)
<…>::grow
an_identifier_w…
a3 b3 c3 d1
keep get malloc" ]
}

@test "stacks: without names, functions are relative to their object" {
  skip_under_sanitizer
  two_layers | build_c bare -O1 -g0 -s
  "$HEAPTAPE" stat --by site --top 0 bare.ht >text
  grep -q 'bare+0x' text
  [ "$(grep -cE '  0x[0-9a-f]+' text)" -eq 0 ]
  cp bare.ht first.ht
  "$HEAPTAPE" record -q -f --stacks=64 -o second.ht -- ./bare
  "$HEAPTAPE" stat --by site --top 0 first.ht >one
  "$HEAPTAPE" stat --by site --top 0 second.ht >two
  diff one two
}
