#!/usr/bin/env python3
"""heaptrack_sites.py OURS THEIRS [N]: compares the call sites with most bytes live at the end
with heaptrack's.

OURS is the output of 'heaptape stat --by site --format folded --weight end', THEIRS the output
of heaptrack_print with --print-flamegraph --flamegraph-cost-type leaked. Prints a line for each
of heaptrack's N (10) largest, and exits with 1 if one of them is missing among our N largest or
its bytes differ by more than 1 %.

The tools order inlined functions and shorten templates differently, so stacks are compared as
sets of function names, without arguments, templates, addresses and entry points in assembler,
which only one of them names.
"""
import collections
import re
import sys


ENTRIES = {"", "_start", "_dl_start_user", "clone", "clone3"}


def name(frame):
    """Shortens std::foo<int>::bar(int) const [clone] to std::foo::bar."""
    frame = re.sub(r" \([^()]*\.(?:h|S|cpp|cc|c|tcc|hpp)\)$", "", frame)  # source file added by heaptrack
    frame = re.sub(r"operator(<<|<=>|<=|<|>>|>=|->|>)", "operator_", frame)
    short = ""
    while short != frame:
        short, frame = frame, re.sub(r"<[^<>]*>", "", frame)
    frame = frame.replace("std::__cxx11::basic_string", "std::string").replace("operator()", "operator_call").split("(")[0]
    return frame.split()[-1] if frame.split() else ""


def stacks(path):
    """Returns bytes by stack."""
    total = collections.Counter()
    for line in open(path, encoding="utf-8", errors="replace"):
        frames, _, size = line.rstrip("\n").rpartition(" ")
        names = {name(f) for f in frames.split(";")}
        total[frozenset(n for n in names if n not in ENTRIES and "0x" not in n)] += int(size)
    return total


def main():
    ours, theirs = stacks(sys.argv[1]), stacks(sys.argv[2])
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    largest = {stack for stack, _ in ours.most_common(n)}
    # Sites with the size of the smallest one may be in any order.
    least = min(ours[s] for s in largest)
    bad = 0
    for stack, size in theirs.most_common(n):
        ok = ours[stack] >= least and abs(ours[stack] - size) * 100 <= size
        bad += not ok
        print("ok " if ok else "BAD", size, ours[stack], " ".join(sorted(stack)))
    print(f"{n - bad} of {n} are the same within 1 %")
    return bad > 0


sys.exit(main())
