load trace

# sites SIZE: a line for each malloc of SIZE, in the order of time, with the functions of its site,
# innermost first; "-" for functions outside the program.
sites() {
  "$HEAPTAPE" dump -F json -k malloc -k heaptape.frames -k heaptape.frame t.ht >events
  python3 - "$1" "$BATS_TEST_DIRNAME" <<'END'
import json, sys
sys.path.append(sys.argv[2])
from sites import read_sites
size = int(sys.argv[1])
places = sorted((int(l.split()[1], 16), l.split()[0]) for l in open("told"))
events = [json.loads(l) for l in open("events")]
# Functions of the test are at most 2 KiB long.
def function(address):
    below = [name for at, name in places if at < address <= at + 2048]
    return below[-1] if below else "-"
sites = read_sites(events)
# A batch of the trace may have the events of a later thread.
for e in sorted(events, key=lambda e: e.get("time_ns", 0)):
    if e["kind"] == "malloc" and e["size"] == size:
        chain, site = [], e["site"]
        while site:
            address, site = sites[e["pid"], site]
            chain.append(function(address))
        print(*chain)
END
}

@test "the chain of callers, up to the requested depth" {
  skip_under_sanitizer
  record_options=--stacks=8 record "$HEAPTAPE_PROGRAMS/stacks" deep 12
  sites 7000 >seen
  [ "$(wc -l <seen)" -eq 12 ]
  [ "$(sed -n 1p seen | cut -d' ' -f1-3)" = "leaf deep main" ]
  [ "$(sed -n 3p seen | cut -d' ' -f1-5)" = "leaf deep deep deep main" ]
  [ "$(sed -n 12p seen)" = "leaf deep deep deep deep deep deep deep" ]
}

@test "the return address alone" {
  skip_under_sanitizer
  record_options=--stacks=1 record "$HEAPTAPE_PROGRAMS/stacks" deep 12
  [ "$(sites 7000 | sort | uniq -c | awk '{ print $1, $2, NF }')" = "12 leaf 2" ]
}

@test "every allocating call has a site, and each address of the site a module" {
  skip_under_sanitizer
  record_options=--stacks=16 record "$HEAPTAPE_PROGRAMS/calls"
  "$HEAPTAPE" dump -F json t.ht >all
  "$HEAPTAPE" dump -F json -k heaptape.frames -k heaptape.frame -k heaptape.module t.ht >definitions
  python3 - "$BATS_TEST_DIRNAME" <<'END'
import json, sys
sys.path.append(sys.argv[1])
from sites import read_sites
definitions = [json.loads(l) for l in open("definitions")]
sites = read_sites(definitions)
modules = [d for d in definitions if d["kind"] == "heaptape.module"]
taken = [e for e in map(json.loads, open("all")) if e.get("result", "0x0") != "0x0"]
assert len(taken) > 20
for e in taken:
    assert (e["pid"], e["site"]) in sites, e
for (pid, _), (address, outer) in sites.items():
    assert not outer or (pid, outer) in sites, outer
    assert any(int(m["ptr"], 16) <= address < int(m["ptr"], 16) + m["size"] for m in modules), address
own = [m for m in modules if m["text"].endswith("/calls")]
assert own and len(own[0]["text"].split(" ")[0]) == 40, modules
END
}

@test "each thread with its own stack" {
  skip_under_sanitizer
  record_options=--stacks=16 record "$HEAPTAPE_PROGRAMS/stacks" threads 5
  sites 7001 >seen
  [ "$(wc -l <seen)" -eq 5 ]
  [ "$(sed -n 1p seen | cut -d' ' -f1-3)" = "leaf deep thread" ]
  [ "$(sed -n 5p seen | cut -d' ' -f1-7)" = "leaf deep deep deep deep deep thread" ]
}

@test "a fork child defines its sites again" {
  skip_under_sanitizer
  record_options=--stacks=16 record "$HEAPTAPE_PROGRAMS/stacks" fork
  [ "$(sites 7002 | cut -d' ' -f1-5 | sort | uniq -c | sed 's/^ *//')" = "2 leaf deep deep deep main" ]
}

@test "on an alternate stack, and on the thread's stack after a signal" {
  skip_under_sanitizer
  [ "$(uname -m)" = x86_64 ] || skip "walks by unwind tables"
  record_options=--stacks record "$HEAPTAPE_PROGRAMS/stacks" signal
  [ "$status" -eq 0 ]
  sites 7003
  [[ "$(sites 7003)" == "leaf deep deep deep deep handler "*" main"* ]]
  record_options=--stacks=16 record "$HEAPTAPE_PROGRAMS/stacks" context
  [ "$status" -eq 0 ]
  [ "$(sites 7004 | cut -d' ' -f1-6 | head -1)" = "leaf deep deep deep deep in_context" ]
  [ "$(sites 7004 | cut -d' ' -f1-6 | tail -1)" = "leaf deep deep deep deep context" ]
}

@test "a coroutine's stack that ends at unmapped memory, or that another thread unmaps" {
  skip_under_sanitizer
  [ "$(uname -m)" = x86_64 ] || skip "written for x86-64"
  record_options=--stacks record "$HEAPTAPE_PROGRAMS/stacks" edge
  [ "$status" -eq 0 ]
  [ "$(sites 7008 | wc -l)" -ge 64 ]
  # The caller is known for any content of the frame pointer.
  [ "$(sites 7008 | cut -d' ' -f1 | sort -u)" = astray ]
}

@test "a restarted trace defines its sites again" {
  skip_under_sanitizer
  record_options=--stacks=16 record "$HEAPTAPE_PROGRAMS/stacks" reset
  [ "$status" -eq 0 ]
  [ "$(sites 7006 | cut -d' ' -f1-5)" = "leaf deep deep deep main" ]
}

@test "any value in the frame pointer" {
  skip_under_sanitizer
  [ "$(uname -m)" = x86_64 ] || skip "written for x86-64"
  record_options=--stacks=64 record "$HEAPTAPE_PROGRAMS/stacks" wild
  [ "$status" -eq 0 ]
  [ "$(sites 7005 | wc -l)" -eq 12 ]
}

@test "programs without frame pointers behave the same" {
  skip_under_sanitizer
  for depth in 1 64; do
    record_options=--stacks=$depth record python3 -c 'print(sum(len(str(i)) for i in range(100000)))'
    [ "$status" -eq 0 ]
    [ "$(cat told)" = 488890 ]
    "$HEAPTAPE" check t.ht
  done
}

@test "an invalid depth" {
  run "$HEAPTAPE" record --stacks=129 -o t.ht -- true
  [ "$status" -eq 2 ]
  [[ "${lines[0]}" == *"out of range: 1 to 128"* ]]
}

@test "all the way to main through libraries without frame pointers" {
  skip_under_sanitizer
  record_options=--stacks record "$HEAPTAPE_PROGRAMS/strings"
  "$HEAPTAPE" stat --by site --format json t.ht >sites.json
  # Every site of these bytes has the function that makes the strings, and ends at the process
  # entry.
  jq -e '[.sites[] | select(.allocated_bytes >= 100000)] | length >= 1 and
    all(.[]; [.frames[].function] | (any(.[]; startswith("make_strings")) and .[-1] == "_start"))' sites.json
}

@test "a fork while another thread has locked the loader" {
  skip_under_sanitizer
  cat >locked.c <<'END'
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static _Atomic int locked, forked;
static int hold(struct dl_phdr_info *info, size_t size, void *none)
{
    (void)info, (void)size, (void)none;
    for (locked = 1; !forked;)
        usleep(1000);
    return 1;
}
static void *work(void *none)
{
    free(malloc(7000));
    dl_iterate_phdr(hold, none);
    return none;
}
int main(void)
{
    pthread_t t;
    int status = 1;
    pthread_create(&t, NULL, work, NULL);
    while (!locked)
        usleep(1000);
    pid_t child = fork();
    if (!child)
        alarm(30); // ends a child that waits for the lock forever
    // More stacks than between two checks for unloaded objects.
    for (int i = 0; !child && i < 3000; i++)
        free(malloc(7000));
    if (!child)
        _exit(0);
    waitpid(child, &status, 0);
    forked = 1;
    pthread_join(t, NULL);
    printf("%d\n", status);
    return 0;
}
END
  gcc -O1 -fno-builtin -pthread -o locked locked.c
  run "$HEAPTAPE" record -q --stacks -o t.ht ./locked
  [ "$output" = 0 ]
  [ "$("$HEAPTAPE" stat --json --brief t.ht | jq .events)" -ge 6000 ]
}
