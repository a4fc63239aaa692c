#!/usr/bin/python3
"""Records a program that stops five times, and judges what heaptape says of its resident memory then.

    judge_rss.py TRACE COMMAND...

The program prints the milliseconds since it started, the sum of Rss in its /proc/self/smaps in KiB, and what malloc counts as
used in bytes (0: not known), and then waits for a line. It gets that when the trace has a map of its pages of that time."""
import json
import os
import subprocess
import sys
import time

trace, command = sys.argv[1], sys.argv[2:]
heaptape = os.environ["HEAPTAPE"]
PARTS = ("live_bytes", "rounding_bytes", "partly_free_bytes", "wholly_free_bytes", "allocator_bytes")
CACHED = 7 * sum(range(24, 1033, 16))  # what glibc's thread cache may hold counts as used there


def map_after(ms):
    """The figures of the first map after the time; waits for it as long as it takes."""
    while True:
        out = subprocess.run([heaptape, "stat", "-q", "--rss", "--json", f"--at={ms}ms", trace], capture_output=True, check=False)
        if out.returncode == 0:
            r = json.loads(out.stdout)
            if r["is_after_point"] and r["page_maps"]:
                return r
        time.sleep(0.2)


def near(what, a, b, slack=0):
    assert abs(a - b) <= 0.05 * b + slack, f"{what}: {a} and {b}"


with subprocess.Popen([heaptape, "record", "-q", "-o", trace, "--"] + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
    for stage in range(5):
        ms, kib, used = map(int, program.stdout.readline().split())
        # The map is begun after the program has printed the time, and it waits now.
        r = map_after(ms + 1)
        total = sum(r[p] for p in PARTS) + r["not_heap"]["bytes"]
        heap = r["live_bytes"] + r["rounding_bytes"] + 8 * r["blocks"]
        print(trace, ms, "ms: smaps", kib * 1024, "sampled", r["sampled"]["rss_bytes"], "sum", total, "used", used, "blocks", heap,
              [r[p] for p in PARTS], flush=True)
        assert total == r["sum_bytes"]
        near("sum and smaps", total, kib * 1024)
        near("sum and sampled", total, r["sampled"]["rss_bytes"])
        if used:
            near("blocks and malloc's own count", heap, used, CACHED)
        program.stdin.write("\n")
        program.stdin.flush()
assert program.returncode == 0
