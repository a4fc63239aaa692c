#!/usr/bin/python3
"""stat_check.py HEAPTAPE WORKLOAD [TRACE]: compares `stat --json` with counts over `dump
--format json`.

It shares no code with heaptape: each number is computed from its definition in
docs/reference/figures.md. With the TRACE of the workload, which must have one thread, moved
reallocs are compared too, since only addresses show them. Prints each difference; exits with 1
if there are any.
"""
import collections
import json
import subprocess
import sys

TAKES = {"malloc", "calloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc", "preexisting"}
RESIZES = {"realloc", "reallocarray"}
FREES = {"free", "free_sized", "free_aligned_sized"}

wrong = 0


def same(what, got, want, tolerance=0):
    global wrong
    if got == want or (tolerance and abs(got - want) <= tolerance):
        return
    wrong += 1
    print(f"{what}: stat says {got}, counted {want}")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def is_take(kind):
    return kind in TAKES or kind.startswith("new")


def is_free(kind):
    return kind in FREES or kind.startswith("delete")


def limit(n, first):
    """Returns the smallest of first, 2 first, 4 first, … that is at least n."""
    while first < n:
        first *= 2
    return first


def requested(call):
    return call["size"] * call.get("count", 1) if call["kind"] in ("calloc", "reallocarray") else call["size"]


class Usage:
    """Counts all figures of stat, slowly and simply."""

    def __init__(self):
        self.live = {}  # slot: [size, event, ns, thread, known]
        self.levels = []  # (event or None, ns, live bytes, live blocks) after each event
        self.bytes = self.events = self.last_ns = 0
        self.kinds = collections.Counter()
        self.sizes, self.kind_sizes = collections.Counter(), collections.defaultdict(list)
        self.lives, self.times = collections.Counter(), collections.Counter()
        self.life_bytes = collections.Counter()
        self.peak = (0, 0, 0, {})
        self.grown = self.shrunk = self.same = self.null_frees = self.failed = 0
        self.factors = collections.Counter()
        self.own, self.pairs = collections.Counter(), collections.Counter()
        self.allocs = collections.Counter()
        self.aligns, self.padding = collections.Counter(), 0
        self.first_level = 0

    def request(self, call, size):
        self.sizes[size] += 1
        self.kind_sizes[call["kind"]].append(size)
        self.allocs[call["tid"]] += 1
        if call.get("align"):
            self.aligns[call["align"]] += 1
            self.padding += -size % call["align"]

    def take(self, call, slot, size):
        known = call["kind"] != "preexisting"
        self.live[slot] = [size, self.events, self.last_ns, call["tid"], known]
        self.bytes += size
        if known:
            self.request(call, size)

    def use(self, call, block):
        if block[3] == call["tid"]:
            self.own[call["tid"]] += 1
        else:
            self.pairs[block[3], call["tid"]] += 1

    def give(self, call, slot):
        block = self.live.pop(slot)
        self.use(call, block)
        self.bytes -= block[0]
        if block[4]:
            events = limit(self.events - block[1], 1)
            self.lives[events] += 1
            self.life_bytes[events] += block[0]
            self.times[limit(self.last_ns - block[2], 1)] += 1

    def resize(self, call, slot, size):
        block = self.live[slot]
        self.use(call, block)
        self.grown += size > block[0]
        self.shrunk += size < block[0]
        self.same += size == block[0]
        if size > block[0]:
            limits = [f for f in (1.125, 1.25, 1.5, 1.75, 2, 3, 4, 8) if size <= f * block[0]]
            self.factors[limits[0] if limits else None] += 1
        self.bytes += size - block[0]
        self.request(call, size)
        block[0], block[3] = size, call["tid"]

    def realloc(self, call):
        old, new = call["old_ptr"], call["result"]
        if call.get("error"):
            self.failed += 1
        elif old is None:
            self.take(call, new, requested(call))
        elif new is None:
            self.give(call, old)
        else:
            self.resize(call, new, requested(call))

    def apply(self, call):
        kind = call["kind"]
        if is_take(kind):
            if call["result"] is None:
                self.failed += 1
            else:
                self.take(call, call["result"], requested(call))
        elif is_free(kind):
            if call["ptr"] is None:
                self.null_frees += 1
            else:
                self.give(call, call["ptr"])
        elif kind in RESIZES:
            self.realloc(call)

    def count(self, call):
        counted = call["kind"] != "preexisting"
        if counted:
            self.last_ns = max(self.last_ns, call.get("time_ns", 0))
        self.apply(call)
        if self.bytes > self.peak[0]:
            self.peak = self.bytes, self.events, len(self.live), None
        if not counted:
            if not self.events:
                self.first_level = self.bytes
            return
        self.kinds[call["kind"]] += 1
        self.levels.append((self.last_ns, self.bytes, len(self.live)))
        self.events += 1


def at_peak(calls, peak_event):
    """Returns the live sizes after the event of the peak."""
    again = Usage()
    for call in calls:
        if again.events > peak_event:
            break
        again.count(call)
    return [block[0] for block in again.live.values()]


def check_calls(s, u):
    same("events", s["events"], u.events)
    same("by_kind", s["by_kind"], dict(u.kinds))
    # The peak is that of the converter's order. The file keeps the order of each thread and of each
    # block, and times: two threads that act at the same time may be in another order in the dump.
    unordered = s["threads"] * max(u.sizes, default=0) if s["threads"] > 1 else 0
    same("peak_live_bytes", s["peak_live_bytes"], u.peak[0], unordered)
    same("live_at_end", (s["live_at_end_bytes"], s["live_at_end_blocks"]), (u.bytes, len(u.live)))
    same("null_frees", s["null_frees"], u.null_frees)
    same("failed", sum(k["failed"] for k in s["calls"].values()), u.failed)
    for kind, sizes in u.kind_sizes.items():
        got = s["calls"][kind]
        same(kind, [got["sized"], got["bytes"], got["min_bytes"], got["max_bytes"]],
             [len(sizes), sum(sizes), min(sizes), max(sizes)])
        same(kind + " mean", got["mean_bytes"], sum(sizes) / len(sizes), 1e-6 * max(sizes) + 1e-6)
    same("requests", s["requests"]["bytes"], sum(size * n for size, n in u.sizes.items()))


def check_sizes(s, u, peak_sizes):
    classes = collections.Counter()
    for size, n in u.sizes.items():
        classes[limit(size, 8)] += n
    same("sizes", {c["max_bytes"]: c["count"] for c in s["sizes"] if c["count"]}, dict(classes))
    peak = collections.Counter()
    end = collections.Counter()
    for size in peak_sizes:
        peak[limit(size, 8)] += size
    for block in u.live.values():
        end[limit(block[0], 8)] += block[0]
    same("peak by size", {c["max_bytes"]: c["live_at_peak_bytes"] for c in s["sizes"] if c["live_at_peak_bytes"]}, dict(peak))
    same("end by size", {c["max_bytes"]: c["live_at_end_bytes"] for c in s["sizes"] if c["live_at_end_bytes"]}, dict(end))
    glibc = sum(n * ((24 if size <= 24 else (size + 8 + 15) // 16 * 16 - 8) - size) for size, n in u.sizes.items())
    same("glibc slack", s["size_classes"]["glibc"]["internal_fragmentation_bytes"], glibc)
    four = sum(n * (four_class(size) - size) for size, n in u.sizes.items())
    same("four slack", s["size_classes"]["four_per_doubling"]["internal_fragmentation_bytes"], four)
    for name, key in ("by_count", lambda i: i[1]), ("by_bytes", lambda i: i[0] * i[1]):
        want = sorted(map(key, u.sizes.items()), reverse=True)[:20]
        got = [(t["size_bytes"], t["count"]) for t in s["top_sizes"][name]]
        same("top " + name, [key(t) for t in got], want)
        same("counts of top " + name, [u.sizes[size] for size, _ in got], [n for _, n in got])


def four_class(size):
    if size <= 8:
        return 8
    if size <= 128:
        return (size + 15) // 16 * 16
    power = limit(size, 8)
    step = power // 8
    return -(-size // step) * step


def check_lives(s, u):
    same("lifetimes", {l["max_events"]: l["count"] for l in s["lifetimes"]["by_events"]}, dict(u.lives))
    same("lifetimes' bytes", {l["max_events"]: l["bytes"] for l in s["lifetimes"]["by_events"]}, +u.life_bytes)
    same("lifetimes' sizes", sum(sum(l["by_size"]) for l in s["lifetimes"]["by_events"]), sum(u.lives.values()))
    for step in s["short_lived"]:
        same("freed at once", step["count"], sum(n for e, n in u.lives.items() if e <= step["within_events"]))
    # Rounding to nanoseconds may move a few into the next class.
    got = {l["max_ns"]: l["count"] for l in s["lifetimes"]["by_time"]}
    same("lifetimes in time", sum(got.values()), sum(u.times.values()))
    for ns in set(got) | set(u.times):
        same(f"lifetimes up to {ns} ns", got.get(ns, 0), u.times[ns], 3 + u.times[ns] // 20)
    same("never freed", s["never_freed"]["bytes"], u.bytes)
    ages = collections.Counter(limit(u.events - block[1], 1) for block in u.live.values())
    same("ages", {a["max_events"]: a["count"] for a in s["never_freed"]["by_age_events"]}, dict(ages))


def check_others(s, u):
    r = s["realloc"]
    same("grown", r["grown_in_place"]["count"] + r["grown_moved"]["count"], u.grown)
    same("shrunk", r["shrunk_in_place"]["count"] + r["shrunk_moved"]["count"], u.shrunk)
    same("same size", r["same_size"], u.same)
    same("factors", {f["max_factor"]: f["count"] for f in r["growth_factors"] if f["count"]}, dict(u.factors))
    same("remote_frees", s["remote_frees"], sum(u.pairs.values()))
    if len(u.pairs) <= 512:
        same("pairs", {(p[0], p[1]): p[2] for p in s["thread_pairs"]["from_to_count_bytes"]}, dict(u.pairs))
    if s["threads"] <= 64:
        same("own frees", {t["thread"]: t["local_frees"] for t in s["by_thread"] if t["local_frees"]}, dict(u.own))
        same("allocs", {t["thread"]: t["allocs"] for t in s["by_thread"] if t["allocs"]}, dict(u.allocs))
    same("alignments", {a["align_bytes"]: a["count"] for a in s["alignment"]["by_alignment"]}, dict(u.aligns))
    same("padding", s["alignment"]["padding_bytes"], u.padding)


def check_timeline(s, u):
    t = s["timeline"]["by_event"]
    at, level = 0, u.first_level
    for i, end in enumerate(t["end_event"]):
        bin_levels = [b for _, b, _ in u.levels[at:end]]
        same(f"bin {i} width", end - at, t["bin_events"] if i + 1 < len(t["end_event"]) else len(bin_levels))
        same(f"bin {i} events", t["events"][i], len(bin_levels))
        same(f"bin {i} max", t["max_bytes"][i], max([level] + bin_levels))
        same(f"bin {i} min", t["min_bytes"][i], min([level] + bin_levels))
        same(f"bin {i} mean", t["mean_bytes"][i], sum(bin_levels) / len(bin_levels), 1)
        same(f"bin {i} end", t["end_bytes"][i], bin_levels[-1])
        same(f"bin {i} groups", sum(g["end_bytes"][i] for g in t["by_size"]), bin_levels[-1])
        at, level = end, bin_levels[-1]
    same("bins' events", at, u.events)
    same("bins", len(t["events"]) <= 513, True)


def check_time(s, u):
    t = s["timeline"].get("by_time")
    if not t:
        return
    same("events by time", sum(t["events"]), u.events)
    same("last end", t["end_ns"][-1], u.last_ns, 2 + u.last_ns // 10**6)
    same("most by time", max(t["max_bytes"]), u.peak[0])
    at = 0
    for end, events in zip(t["end_event"], t["events"]):
        same("events of a bin of time", end - at, events)
        at = end
    weighted, level, before = 0, u.first_level, 0
    for ns, after, _ in u.levels:
        weighted += level * (ns - before)
        level, before = after, ns
    got, before = 0, 0
    for ns, mean in zip(t["end_ns"], t["mean_bytes"]):
        got += mean * (ns - before)
        before = ns
    same("live bytes over time", got, weighted, weighted // 1000 + 1000)


def check_moves(s, trace_calls):
    moved = stayed = 0
    sizes = {}
    for call in trace_calls:
        if is_take(call["kind"]) and not call.get("error"):
            sizes[call["result"]] = requested(call)
        elif is_free(call["kind"]):
            sizes.pop(call["ptr"], None)
        elif call["kind"] in RESIZES and not call.get("error"):
            old = sizes.pop(call["old_ptr"], None)
            size = requested(call)
            if int(call["result"], 16) == 0:
                continue
            sizes[call["result"]] = size
            if old is not None and size != old:
                moved += call["old_ptr"] != call["result"]
                stayed += call["old_ptr"] == call["result"]
    r = s["realloc"]
    same("moved", r["grown_moved"]["count"] + r["shrunk_moved"]["count"], moved)
    same("in place", r["grown_in_place"]["count"] + r["shrunk_in_place"]["count"], stayed)


def dumped(heaptape, path, extra=()):
    return [json.loads(line) for line in run(heaptape, "dump", "--format", "json", *extra, path).splitlines()]


def main():
    heaptape, path = sys.argv[1:3]
    s = json.loads(run(heaptape, "stat", "--json", path))
    kinds = ["--kind=preexisting"] + [f"--kind={kind}" for kind in s["by_kind"]]
    calls = dumped(heaptape, path, kinds)
    u = Usage()
    for call in calls:
        u.count(call)
    check_calls(s, u)
    check_sizes(s, u, at_peak(calls, u.peak[1]))
    same("peak", [s["peak"]["event"], s["peak"]["blocks"]], [u.peak[1], u.peak[2]])
    check_lives(s, u)
    check_others(s, u)
    check_timeline(s, u)
    check_time(s, u)
    if len(sys.argv) > 3:
        trace = dumped(heaptape, sys.argv[3], [f"--pid={s['processes'][0]['pid']}"])
        check_moves(s, trace)
    print(f"{path}: {u.events} events, {wrong} differences")
    sys.exit(wrong > 0)


main()
