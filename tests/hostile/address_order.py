#!/usr/bin/env python3
"""Counts the lines of a log that break the order of addresses: allocated twice, or freed while not allocated."""
import re
import struct
import sys


def android(path):
    for line in open(path):
        word = line.split()
        call, at = word[1], [int(a, 16) for a in word[2:4] if a.startswith("0x")]
        if call == "free":
            yield at[0], 0
        elif call == "realloc":
            yield at[1], at[0]
        elif call != "thread_done":
            yield 0, at[0]


def logalloc(path):
    null, seen = 0, set()
    for line in open(path):
        call = re.match(r"\d+ \d+ (\w+)\((.*?)\)(?:=(.*))?$", line)
        name, first, result = call[1], call[2].split(",")[0], call[3] or "0"
        freed, allocated = (int(a.lstrip("#"), 10 if "#" in line else 16) for a in (first, result))
        freed = freed if name in ("free", "realloc") else 0
        # A munged log has a slot for NULL, which is never allocated.
        null = null or ("#" in line and freed not in seen and freed)
        seen.add(allocated)
        yield (freed if freed != null else 0), allocated


def mtrace(path):
    for _, bits, ptr1, ptr2, _, _, _, _, _ in struct.iter_unpack("<iI7Q", open(path, "rb").read()):
        if bits & 255 != 255:
            yield (ptr1 if bits & 255 in (3, 4) else 0), ptr2


live, bad = set(), 0
for freed, allocated in {"android": android, "mtrace": mtrace}.get(sys.argv[1], logalloc)(sys.argv[2]):
    if freed:
        bad += freed not in live
        live.discard(freed)
    if allocated:
        bad += allocated in live
        live.add(allocated)
print(bad)
