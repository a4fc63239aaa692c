#!/usr/bin/python3
"""Records a program that stops five times, and checks the resident memory that heaptape reports for these times.

    judge_rss.py TRACE COMMAND...

At each stop, the program prints the milliseconds since its start, the sum of Rss in /proc/self/smaps in KiB, and the
bytes that malloc counts as used (0: unknown), and waits for a line. It gets the line when the trace has a later map
of its pages."""
import json
import os
import subprocess
import sys
import time

trace, command = sys.argv[1], sys.argv[2:]
heaptape = os.environ["HEAPTAPE"]
PARTS = ("live_bytes", "rounding_bytes", "partly_free_bytes", "wholly_free_bytes", "allocator_bytes")
CACHED = 7 * sum(range(24, 1033, 16))  # the thread cache of glibc may hold this much, which malloc counts as used


def map_after(ns):
    """Returns the figures of the first map after the time; waits for the map without a limit."""
    while True:
        out = subprocess.run([heaptape, "stat", "-q", "--rss", "--json", f"--at={ns / 1e9:.9f}s", trace], capture_output=True, check=False)
        if out.returncode == 0:
            r = json.loads(out.stdout)
            if r["is_after_point"] and r["page_maps"]:
                return r
        time.sleep(0.2)


def is_near(what, a, b, slack=0):
    if abs(a - b) <= 0.05 * b + slack:
        return True
    print(f"{what}: {a} and {b}")
    return False


def is_right(r, smaps, used):
    total = sum(r[p] for p in PARTS) + r["not_heap"]["bytes"]
    heap = r["live_bytes"] + r["rounding_bytes"] + 8 * r["blocks"]
    print(trace, r["time_ns"] // 1000000, "ms: smaps", smaps, "sampled", r["sampled"]["rss_bytes"], "sum", total, "used", used,
          "blocks", heap, [r[p] for p in PARTS], flush=True)
    assert total == r["sum_bytes"]
    return (is_near("sum and smaps", total, smaps) and is_near("sum and sampled", total, r["sampled"]["rss_bytes"])
            and (not used or is_near("blocks and malloc's own count", heap, used, CACHED)))


with subprocess.Popen([heaptape, "record", "-q", "-o", trace, "--"] + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
    for stage in range(5):
        ms, kib, used = map(int, program.stdout.readline().split())
        print("stage", stage, "of", trace, "at", ms, "ms", flush=True)
        # The program is waiting. The time of a map is the middle of its measurement: on a busy
        # machine, the first map may have begun before the program waited.
        r = map_after((ms + 1) * 1000000)
        for _ in range(2):
            if is_right(r, kib * 1024, used):
                break
            r = map_after(r["time_ns"] + 1000000)  # times of points are rounded to the trace's units
        else:
            assert is_right(r, kib * 1024, used)
        program.stdin.write("\n")
        program.stdin.flush()
assert program.returncode == 0
