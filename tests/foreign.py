#!/usr/bin/python3
"""Reads other tools' files by docs/reference/foreign-formats.md alone, and checks heaptape's
imports and exports.

  foreign.py calls FORMAT FILE       the calls of each thread, with blocks named by their allocation,
                                     in the form of `dump` of an import
  foreign.py wl FILE                 can trace_run play it? Prints threads, calls and syncs
  foreign.py replay FILE             can gperftools' replay play it? Prints instructions and the
                                     blocks left allocated
  foreign.py same A.json B.json      two dumps have the same calls in the same threads and order
  foreign.py live A.json B.json      two dumps have the same live bytes at every call if the threads
                                     alternate as in A

Several checks in one run: foreign.py CHECK... + CHECK..."""
import collections
import functools
import itertools
import json
import random
import struct
import sys

TAKES = {"malloc", "calloc", "memalign", "valloc", "pvalloc"}
AS_MEMALIGN = {"posix_memalign", "aligned_alloc"}


def fail(text):
    sys.exit(f"foreign.py: {text}")


class Call(collections.namedtuple("Call", "thread kind size align given taken")):
    """A call: `given` is the freed block, `taken` the allocated block; None without one."""


@functools.lru_cache(maxsize=None)
def read_dump(path):
    """Yields the calls of a `dump --format json`."""
    return list(dump_calls(path))


def dump_calls(path):
    for line in open(path, encoding="utf-8"):
        c = json.loads(line)
        kind = "memalign" if c["kind"] in AS_MEMALIGN else c["kind"]
        if kind not in TAKES | {"free", "free_sized", "realloc"}:
            continue
        size = c.get("size", 0) * c.get("count", 1)
        failed = "error" in c
        given = None if failed else c.get("ptr", c.get("old_ptr"))
        yield Call(c["tid"], kind, size, c.get("align", 0), given, None if failed else c.get("result"))


def wl_number(data, at):
    v = 0
    while True:
        v = v << 7 | data[at] & 127
        at += 1
        if not data[at - 1] & 128:
            return v, at


WL_OPERANDS = {0: 0, 1: 0, 2: 2, 3: 2, 4: 3, 5: 1, 6: 1, 7: 1, 12: 3, 13: 2, 14: 2}
WL_KINDS = {2: "malloc", 3: "calloc", 4: "realloc", 5: "free", 12: "memalign", 13: "valloc", 14: "pvalloc"}


def wl_header(data):
    facts, offsets, at = {}, [], 0
    while data[at] != 1:
        op = data[at]
        v, at = wl_number(data, at + 1)
        if op == 11:
            offsets.append(v)
        elif op in (8, 9, 10):
            facts[op] = v
        else:
            fail(f"code {op} in the header")
    return facts[8], facts[9], facts[10], offsets


def wl_ops(data, at):
    while True:
        op, at, v = data[at], at + 1, []
        if op not in WL_OPERANDS:
            fail(f"code {op} at byte {at - 1}")
        for _ in range(WL_OPERANDS[op]):
            n, at = wl_number(data, at)
            v.append(n)
        if op == 1:
            return
        if op:
            yield op, v


def wl_call(thread, op, v):
    index = lambda i: i or None
    if op == 5:
        return Call(thread, "free", 0, 0, index(v[0]), None)
    if op == 4:
        return Call(thread, "realloc", v[2], 0, index(v[1]), index(v[0]))
    if op == 12:
        return Call(thread, "memalign", v[2], v[1], None, index(v[0]))
    return Call(thread, WL_KINDS[op], v[1], 0, None, index(v[0]))


def play_wl(path, seed, stock):
    """Yields the calls in a random order allowed by the syncs. `stock` also rejects what
    trace_run cannot play."""
    data = open(path, "rb").read()
    n_ptrs, n_syncs, n_threads, offsets = wl_header(data)
    if n_threads != len(offsets):
        fail("the number of threads differs from the header")
    streams = [collections.deque(wl_ops(data, at)) for at in offsets]
    chance, posted, live, syncs = random.Random(seed), set(), set(), 0
    while any(streams):
        ready = [i for i, s in enumerate(streams) if s and not (s[0][0] == 7 and s[0][1][0] not in posted)]
        if not ready:
            fail("deadlock")
        i = chance.choice(ready)
        for _ in range(chance.randint(1, 200)):
            if not streams[i] or (streams[i][0][0] == 7 and streams[i][0][1][0] not in posted):
                break
            op, v = streams[i].popleft()
            if op in (6, 7):
                syncs += op == 6
                if stock and v[0] >= n_syncs:
                    fail(f"sync {v[0]} of {n_syncs}")
                posted.add(v[0])
                continue
            call = wl_call(i, op, v)
            if stock:
                check_stock_call(call, op, live, n_ptrs)
            yield call
    if stock:
        print(f"{len(offsets)} threads, {syncs} syncs")


def check_stock_call(c, op, live, n_ptrs):
    if op in (13, 14):
        fail("trace_run aborts on valloc and pvalloc")
    if max(c.given or 0, c.taken or 0) >= n_ptrs:
        fail("an index beyond the table")
    if c.given is not None and c.given not in live:
        fail(f"{c.kind} of an index that is not live: {c}")
    live.discard(c.given)
    if c.taken in live:
        fail(f"{c.kind} to an index that is live: {c}")
    if c.taken is not None:
        live.add(c.taken)


MTRACE_KINDS = [None, "malloc", "calloc", "free", "realloc", "memalign", "valloc", "pvalloc", "memalign"]


def read_mtrace(path, record_bytes=64):
    data = open(path, "rb").read()
    for at in range(record_bytes, len(data), record_bytes):
        tid, what, ptr1, ptr2, size = struct.unpack_from("<iIQQQ", data, at)
        size2 = struct.unpack_from("<Q", data, at + 32)[0] if record_bytes == 64 else 16
        what &= 255
        if not what:
            continue
        kind = MTRACE_KINDS[what]
        given = ptr1 or None if kind in ("free", "realloc") else None
        yield Call(tid, kind, size, size2 if kind == "memalign" else 0, given, ptr2 or None)


def read_replay(path):
    data, thread = open(path, "rb").read(), None
    for at in range(0, len(data), 24):
        first, a, b = struct.unpack_from("<QQQ", data, at)
        what, reg = first & 255, first >> 8
        if what == 0:
            yield Call(thread, "malloc", a, 0, None, reg)
        elif what == 1:
            yield Call(thread, "free", 0, 0, reg, None)
        elif what == 2:
            yield Call(thread, "free_sized", a, 0, reg, None)
        elif what == 3:
            yield Call(thread, "memalign", a, b, None, reg)
        elif what == 4:
            yield Call(thread, "realloc", b, 0, reg, a)
        elif what == 5:
            if thread == a:
                fail("a switch to the same thread")
            thread = a
        elif what == 6:
            if thread is None:
                fail("no thread to kill")
            thread = None
        elif what != 7:
            fail(f"instruction {what}")


def tcmalloc_number(data, at):
    bits = data[at] & -data[at]
    if not bits:
        return int.from_bytes(data[at + 1:at + 9], "little"), at + 9
    n = bits.bit_length()
    return int.from_bytes(data[at:at + n], "little") >> n, at + n


def signed(v):
    return v >> 1 ^ -(v & 1)


def tcmalloc_events(data, at, end, thread, state):
    """Yields the events of a buffer; `state` is size, freed and next token of the thread."""
    while at < end:
        word, at = tcmalloc_number(data, at)
        what = word & 7 if word & 7 != 7 else word & 255
        more, at = tcmalloc_number(data, at) if what in (2, 0x17, 0x1f) else (0, at)
        given = taken = None
        if what == 2:
            state[2] = word >> 3
            continue
        if what in (1, 4, 0x17):
            state[1] += signed(more if what == 0x17 else word >> 3)
            given = state[1]
        if what in (0, 0x17, 0x1f):
            state[0] += signed(word >> (8 if what else 3))
            taken = state[2]
            state[2] += 1
        kind = {0: "malloc", 1: "free", 4: "free", 0x17: "realloc", 0x1f: "memalign"}[what]
        yield Call(thread, kind, state[0] * 8 if taken is not None else 0, more if what == 0x1f else 0, given, taken)


def tcmalloc_streams(data):
    streams, states, at = collections.defaultdict(collections.deque), {}, 4
    while True:
        word, at = tcmalloc_number(data, at)
        what = word & 7 if word & 7 != 7 else word & 255
        if what == 0x0f:
            return streams
        _, at = tcmalloc_number(data, at)
        if what not in (3, 0x2f):
            continue
        n, at = tcmalloc_number(data, at)
        if what == 3:
            streams[word >> 3] += tcmalloc_events(data, at, at + n, word >> 3, states.setdefault(word >> 3, [0, 0, 0]))
        at += n


def read_tcmalloc(path):
    """Yields the calls of a plain file. A thread waits at the free of a block that is not
    allocated yet."""
    streams, taken = tcmalloc_streams(open(path, "rb").read()), set()
    while any(streams.values()):
        before = len(taken), sum(map(len, streams.values()))
        for s in streams.values():
            while s and (s[0].given is None or s[0].given in taken):
                taken.add(s[0].taken)
                yield s.popleft()
        if before == (len(taken), sum(map(len, streams.values()))):
            fail("deadlock")


def play_replay(path):
    live, n = set(), 0
    if open(path, "rb").read()[-24] != 7:
        fail("the player skips the last instruction")
    for n, c in enumerate(read_replay(path), 1):
        if c.given is not None and c.given not in live:
            fail(f"an empty register: {c}")
        live.discard(c.given)
        if c.taken in live:
            fail(f"a register in use: {c}")
        if c.taken is not None:
            live.add(c.taken)
        if c.kind == "realloc" and not c.size:
            fail("the player aborts on realloc to 0")
    print(f"{n} calls, {len(live)} left")


def by_thread(calls):
    """Returns the calls of each thread, with blocks named (thread, number of earlier
    allocations)."""
    names, taken, threads = {}, collections.Counter(), collections.defaultdict(list)
    for c in calls:
        given = names.pop(c.given, "unknown") if c.given is not None else None
        name = None
        if c.taken is not None:
            name = names[c.taken] = given if c.kind == "realloc" and given else (c.thread, taken[c.thread])
            taken[c.thread] += name != given
        threads[c.thread].append(c._replace(given=given, taken=name))
    return threads


def signature(calls):
    return [(c.kind, c.size, c.align) for c in calls]


def matched(a, b):
    """Renumbers the threads of `b` like threads with the same calls in `a`."""
    left, found = dict(b), {}
    for number, calls in a.items():
        same = [n for n, other in left.items() if signature(other) == signature(calls)]
        if not same:
            fail(f"no thread has the {len(calls)} calls of thread {number}")
        found[number] = same[0]
        del left[same[0]]
    if left:
        fail(f"more threads: {sorted(left)}")
    back = {n: number for number, n in found.items()}
    rename = lambda name: name if name is None or name == "unknown" else (back[name[0]], name[1])
    return {number: [c._replace(thread=number, given=rename(c.given), taken=rename(c.taken)) for c in b[n]]
            for number, n in found.items()}


def same(a, b):
    a = by_thread(a)
    b = matched(a, by_thread(b))
    for number, calls in a.items():
        for i, (x, y) in enumerate(zip(calls, b[number])):
            if x != y:
                fail(f"thread {number}, call {i}: {x} and {y}")
    print(f"{len(a)} threads, {sum(map(len, a.values()))} calls")


def live_bytes(order, threads):
    """Returns the live bytes after each call if the threads run in this order."""
    at, sizes, total = collections.Counter(), {}, 0
    for number in order:
        c = threads[number][at[number]]
        at[number] += 1
        total -= sizes.pop(c.given, 0)
        if c.taken is not None:
            sizes[c.taken] = c.size
            total += c.size
        yield total


def live(a, b):
    a = list(a)
    order = [c.thread for c in a]
    threads = by_thread(a)
    for i, (x, y) in enumerate(zip(live_bytes(order, threads), live_bytes(order, matched(threads, by_thread(b))))):
        if x != y:
            fail(f"after call {i}: {x} and {y} bytes live")
    print(f"{len(order)} calls, the same bytes live after each")


READERS = {"mtrace": read_mtrace, "mtrace32": lambda path: read_mtrace(path, 32), "tcmalloc-replay": read_replay,
           "tcmalloc": read_tcmalloc,
           "wl": lambda path: play_wl(path, 1, False), "dump": read_dump}


def check(what, *files):
    if what == "wl":
        for seed in range(4):
            calls = sum(1 for _ in play_wl(files[0], seed, True))
        print(f"{calls} calls")
    elif what == "replay":
        play_replay(files[0])
    elif what == "calls":
        same(READERS[files[0]](files[1]), read_dump(files[2]))
    elif what == "same":
        same(read_dump(files[0]), read_dump(files[1]))
    elif what == "live":
        live(read_dump(files[0]), read_dump(files[1]))
    else:
        fail(f"no check '{what}'")


for is_separator, words in itertools.groupby(sys.argv[1:], lambda word: word == "+"):
    if not is_separator:
        check(*words)
