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
assert a["sampled"]["minor_faults"] > 1000 and a["sampled"]["cpu_ns"] > 0
assert 0 < a["sampled"]["pss_bytes"] <= a["sampled"]["rss_bytes"]
assert b["unknown_bytes"] is not None and b["sampled"]["pss_bytes"] is None
END
}
