#!/usr/bin/env python3
"""growth.py FILE [PROCESS]: prints live bytes of a recorded process over time, with numpy."""
import sys

import heaptape
import numpy


def main(path, number=0):
    with heaptape.open(path) as trace:
        c = trace.columns("process", "event", "time_ns", "size", "freed_block", "failed", "operation")
    mine = c["process"] == number
    c = {name: values[mine] for name, values in c.items()}
    allocates = numpy.array([heaptape.allocates(i) for i in range(256)])[c["operation"]]
    size = numpy.where(allocates & (c["failed"] == 0), c["size"], 0).astype(numpy.int64)
    freed = numpy.zeros_like(size)
    ends = numpy.flatnonzero(c["freed_block"] != heaptape.NONE64)
    # Events of a process are numbered from 0 in order, so the number is the index.
    freed[ends] = size[c["freed_block"][ends]]
    live = numpy.cumsum(size - freed)
    for i in numpy.linspace(0, len(live) - 1, min(10, len(live))).astype(int):
        print(f"{c['time_ns'][i] / 1e9:12.6f} s {live[i]:14} bytes")
    print(f"peak {live.max(initial=0)} bytes, at the end {live[-1] if len(live) else 0} bytes")


if len(sys.argv) not in (2, 3):
    sys.exit("usage: growth.py FILE [PROCESS]")
try:
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 0)
except heaptape.Error as error:
    sys.exit(f"growth.py: {error}")
