load trace

setup_file() {
  # meson sets MALLOC_PERTURB_, which makes glibc write to all of each block.
  unset MALLOC_PERTURB_
}

# judge NAME COMMAND...: at each of the five stages, the categories add up to the RSS that the
# program reports.
judge() {
  skip_under_sanitizer
  timeout 600 /usr/bin/python3 "$HEAPTAPE_SOURCE/tests/capture/judge_rss.py" "$1.ht" "${@:2}"
}

@test "RSS equals the sum of its categories: small blocks, compared with smaps and mallinfo2" {
  judge small "$HEAPTAPE_PROGRAMS/rss_stages" small
}

@test "RSS equals the sum of its categories: threads, compared with smaps" {
  judge threads "$HEAPTAPE_PROGRAMS/rss_stages" threads
  # The heaps of glibc's other arenas.
  "$HEAPTAPE" stat --rss --json threads.ht >threads.json
  [ "$(grep -c '"kind": "thread_heap"' threads.json)" -ge 3 ]
}

@test "RSS equals the sum of its categories: partly written large blocks, compared with smaps" {
  judge arrays "$HEAPTAPE_PROGRAMS/rss_stages" arrays
  "$HEAPTAPE" stat --rss arrays.ht >text
  grep -q "blocks mapped one by one" text
}

@test "RSS equals the sum of its categories: python3 of Debian, compared with smaps" {
  export PYTHONMALLOC=malloc
  judge python /usr/bin/python3 -c '
import sys, time
def stop():
    started = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]) / 100
    ms = int((time.clock_gettime(time.CLOCK_BOOTTIME) - started) * 1000) + 10
    rss = sum(int(line.split()[1]) for line in open("/proc/self/smaps") if line.startswith("Rss:"))
    print(ms, rss, 0, flush=True)
    sys.stdin.readline()
x = [bytes(i % 900) for i in range(30000)]; stop()
y = [str(i) * 20 for i in range(30000)]; stop()
x = x[::11]; stop()
z = {i: [i] * 3 for i in range(50000)}; stop()
y = z = None; stop()
'
}

@test "maps of pages: none with --no-pages; salvage keeps them; check describes each frame" {
  skip_under_sanitizer
  judge with "$HEAPTAPE_PROGRAMS/rss_stages" small
  yes '' | "$HEAPTAPE" record -q --no-pages -o without.ht -- "$HEAPTAPE_PROGRAMS/rss_stages" small >/dev/null
  "$HEAPTAPE" stat --rss --json with.ht >with.json
  "$HEAPTAPE" stat --rss --json without.ht >without.json
  head -c -200 with.ht >cut.ht
  "$HEAPTAPE" check --salvage -o whole.ht cut.ht || true
  "$HEAPTAPE" stat --rss --json whole.ht >whole.json
  python3 - <<'END'
import json
a, b, c = (json.load(open(n + ".json")) for n in ("with", "without", "whole"))
print(a["page_maps"], b["page_maps"], c["page_maps"])
assert a["page_maps"] >= 5 and b["page_maps"] == 0
assert a["page_maps"] - 1 <= c["page_maps"] <= a["page_maps"]
# The kernel reports CPU time in units of 10 ms, so it may be 0.
assert a["sampled"]["minor_faults"] > 1000 and a["sampled"]["cpu_ns"] is not None
assert 0 < a["sampled"]["pss_bytes"] <= a["sampled"]["rss_bytes"]
assert b["unknown_bytes"] is not None and b["sampled"]["pss_bytes"] is None
END
}

# has_map DIRECTORY BYTES: the recording DIRECTORY/t.ht has a page map with at least this RSS.
has_map() {
  local found
  found=$("$HEAPTAPE" stat -q --rss --json "$1/t.ht" 2>/dev/null | jq ".page_maps > 0 and .sampled.rss_bytes >= $2")
  [ "$found" = true ]
}

@test "memory without recorded blocks: started and attached, with and without symbols, and no message about blocks" {
  skip_without_ptrace
  cat >hidden.c <<'END'
#include "when_told.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { BYTES = 50 << 20 };
static void calls(void)
{
    char *p = BLOCKS ? malloc(BYTES) : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, BYTES);
    if (CALLS)
        free(malloc(100));
}
int main(int argc, char **argv)
{
    (void)argv;
    if (CALLS)
        free(malloc(100));
    return when_told(argc, calls);
}
END
  local name heaptape=$HEAPTAPE
  mkdir blocks mapped stripped silent attached
  for name in blocks mapped silent attached; do
    gcc -D_GNU_SOURCE -fno-builtin "-DBLOCKS=($(test "$name" = blocks; echo $?) == 0)" "-DCALLS=$(test "$name" = silent; echo $?)" \
      -I"$HEAPTAPE_SOURCE/tests/capture" -o "$name/hidden" hidden.c
  done
  strip -o stripped/hidden mapped/hidden
  for name in blocks mapped stripped silent; do
    (cd "$name" && touch go && exec "$heaptape" record -f -o t.ht -- ./hidden >out 2>err 3>&-) &
  done
  (cd attached && exec ./hidden >out 3>&-) &
  wait_until grep -qs ready attached/out
  (cd attached && exec "$heaptape" record -f -o t.ht --pid $! >record 2>err 3>&-) &
  # The growth since the first map is reported.
  wait_until has_map attached 1
  touch attached/go
  for name in blocks mapped stripped silent attached; do
    wait_until has_map "$name" $((50 << 20))
    touch "$name/end"
  done
  wait
  cat ./*/err
  ! grep "without recorded blocks" blocks/err || false
  grep -q '(./hidden): anonymous mappings without recorded blocks have 50.* MiB of .* MiB of resident memory: the program called mmap (record its calls with --maps), or its allocator has unknown functions (name them with --wrap)$' mapped/err
  grep -q 'have 50.* of resident memory: the program called mmap (record its calls with --maps), or its allocator has no symbols (install the debug file of the executable, download it with debuginfod-find debuginfo FILE, or use --wrap ADDRESS=malloc,ADDRESS=free)$' stripped/err
  grep -q 'grew by [45][0-9].* of resident memory: blocks from before the recording or from a pause were written, the program called mmap (record its calls with --maps), or its allocator has unknown functions (name them with --wrap)$' attached/err
  # The compiler has inlined the allocator, or the program has none.
  [ "$(sed 's/.*(.\/hidden): anonymous mappings without recorded blocks have 50.*/memory/' silent/err)" = "memory
heaptape: ./hidden: nothing was recorded: the program did not call the malloc API" ]
  [ ! -e silent/t.ht ]
  # The finding of `stat` has the text of `record`, also for a trace without this note.
  "$HEAPTAPE" stat --json mapped/t.ht >mapped/stat
  grep -qF "$(jq -r '.findings[] | select(.name == "unexplained_memory") | .text | rtrimstr(".")' mapped/stat)" mapped/err
  jq -e '.unexplained_memory | length == 1 and .[0].bytes >= 52428800 and .[0].rss_bytes >= .[0].bytes and (.[0].growth | not)' mapped/stat
  "$HEAPTAPE" stat --json attached/t.ht | jq -e '.unexplained_memory[0].growth'
  "$HEAPTAPE" stat --json blocks/t.ht | jq -e '.unexplained_memory == [] and ([.findings[].name] | index("unexplained_memory") | not)'
}
