#!/usr/bin/env python3
"""second_reader.py FILE: prints a trace or a workload like `heaptape dump --format json`.

It was written from docs/reference/ alone and shares no code with heaptape: if the two differ,
one of the programs or the documents is wrong. The table of kinds comes from trace.md. The
program zstd decompresses payloads; checksums are verified if the program xxhsum is installed.
"""

import os
import re
import shutil
import struct
import subprocess
import sys

FORMATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "reference")
PAYLOAD_MAX = 16 << 20
TEXT_MAX = 4096
PREEXISTING = 120  # a preexisting block
MASK64 = (1 << 64) - 1

TRACE_SESSION, TRACE_PROCESS, TRACE_EVENTS = 1, 2, 3
WORKLOAD_HEADER, WORKLOAD_OPS, WORKLOAD_INDEX = 1, 2, 5
TAG_EPOCH, TAG_BASE, TAG_LONG = 1, 2, 3
CALLOC = 6
NOTE_SITE = 30
NOTES = {27: "allocator", 28: "count", 29: "path", NOTE_SITE: "site", 31: "usable"}
FAILED, FROM_NULL, FREED, HAS_SITE, HAS_WAITS, NO_SLOT = 1, 2, 4, 0x20, 0x40, 0x80


class Bad(Exception):
    """The file violates the documents."""


def need(condition, what):
    if not condition:
        raise Bad(what)

NO_THREAD = 0xFFFFFFFF


class Kind:
    def __init__(self, cells):
        self.number, self.name, _, self.cls, _, self.form, fields = cells
        self.number = int(self.number)
        # "count=param:signed": field, name in JSON if it differs, sign.
        parsed = [re.fullmatch(r"(\w+)(?:=(\w+))?(:signed)?", field).groups() for field in fields.split()]
        self.fields = [field for field, _, _ in parsed]
        self.names = {field: name or field for field, name, _ in parsed}
        self.signed = {field for field, _, sign in parsed if sign}


def read_kinds():
    """Returns the kind table of trace.md, by number."""
    with open(os.path.join(FORMATS, "trace-format.md"), encoding="utf-8") as f:
        rows = [line for line in f if re.match(r"\| \d+ \| \S+ \| .*(ALLOC|FREE|RESIZE|HALF|MAP|THREAD|MARK|META)", line)]
    kinds = [Kind([cell.strip() for cell in row.strip()[1:-1].split("|")]) for row in rows]
    return {kind.number: kind for kind in kinds}


# Frames


def lz4_length(data, at, length):
    if length == 15:
        while True:
            byte = data[at]
            at += 1
            length += byte
            if byte != 255:
                break
    return at, length


def lz4_block(data):
    out = bytearray()
    at = 0
    while True:
        token = data[at]
        at, length = lz4_length(data, at + 1, token >> 4)
        need(at + length <= len(data), "LZ4 literals go beyond the payload")
        out += data[at : at + length]
        at += length
        if at == len(data):
            return bytes(out)
        distance = data[at] | data[at + 1] << 8
        at, length = lz4_length(data, at + 2, token & 15)
        need(0 < distance <= len(out), "an LZ4 match goes before the payload")
        start = len(out) - distance
        for i in range(start, start + length + 4):
            out.append(out[i])
        need(len(out) <= PAYLOAD_MAX, "an LZ4 block is too long")


def zstd_frames(data):
    done = subprocess.run(["zstd", "-q", "-d", "-c"], input=data, stdout=subprocess.PIPE, check=False)
    need(done.returncode == 0, "zstd refuses a payload")
    return done.stdout


DECOMPRESS = {0: bytes, 1: lz4_block, 2: zstd_frames}


def checksum_is(data, want):
    """Verifies a checksum. Returns True if xxhsum is missing."""
    if not shutil.which("xxhsum"):
        return True
    done = subprocess.run(["xxhsum", "-q", "-H3", "-"], input=data, stdout=subprocess.PIPE, check=True)
    return int(re.search(rb"[0-9a-f]{16}", done.stdout).group(), 16) == want


def frames(data, at, magic):
    """Returns type, payload, and end of the frame."""
    turn = 0
    while at < len(data):
        if magic == b"HTw1" and len(data) - at == 16:
            return
        need(at + 40 <= len(data), "cut off")
        head = data[at : at + 40]
        found, kind, codec, version, stored, plain, number, payload_sum, head_sum = struct.unpack("<4sBBHIIQQQ", head)
        need(found == magic and version == 1 and number == turn, f"no frame {turn} at byte {at}")
        need(checksum_is(head[:32], head_sum), f"the header at byte {at} is damaged")
        payload = data[at + 40 : at + 40 + stored]
        need(len(payload) == stored, "cut off")
        need(checksum_is(payload, payload_sum), f"the payload of the frame at byte {at} is damaged")
        need(plain <= PAYLOAD_MAX and codec in DECOMPRESS, f"what is the codec at byte {at}?")
        payload = DECOMPRESS[codec](payload)
        need(len(payload) == plain, f"the frame at byte {at} has another length than it says")
        at += 40 + stored
        turn += 1
        yield kind, payload, at


def varint(data, at):
    value = shift = 0
    while True:
        need(at < len(data) and shift < 70, "a varint does not end")
        value |= (data[at] & 127) << shift
        at += 1
        shift += 7
        if data[at - 1] < 128:
            return value & MASK64, at


def zigzag(value):
    return value >> 1 if value % 2 == 0 else -(value + 1 >> 1)


def tagged(payload):
    """Returns the fields by tag, as bytes."""
    fields, at = {}, 0
    while at < len(payload):
        tag, at = varint(payload, at)
        length, at = varint(payload, at)
        need(at + length <= len(payload), "a field goes beyond its frame")
        fields[tag] = payload[at : at + length]
        at += length
    return fields


def number(fields, tag):
    return varint(fields[tag], 0)[0] if fields.get(tag) else 0


# Output


def json_text(text):
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\ufffd": "\\ufffd"}
    out = "".join(short.get(c, f"\\u{ord(c):04x}" if ord(c) < 32 or c == "\x7f" else c) for c in text.decode("utf-8", "replace"))
    return f'"{out}"'


class Clock:
    """Converts stamps to nanoseconds since the start."""

    def __init__(self, hz, shift, start):
        self.hz, self.shift, self.start = hz, shift, start

    def ns(self, stamp):
        return (max(stamp - self.start, 0) << self.shift) * 10**9 // self.hz


def print_event(kind, pid, tid, ns, event):
    """Prints an event: the values of the line by field name; ptr and result as printed."""
    out = [f'{{"kind":"{kind.name}","pid":{pid},"tid":{tid}' + ("" if ns is None else f',"time_ns":{ns}')]
    for name in ("size", "count", "align", "value"):
        if name in kind.fields:
            value = event[name] - (1 << 64) * (name in kind.signed and event[name] >> 63)
            if kind.names[name] == "parent" and value == NO_THREAD:
                value = "null"
            out.append(f'"{kind.names[name]}":{value}')
    if "ptr" in kind.fields:
        out.append(f'"{"old_ptr" if kind.cls == "RESIZE" else "ptr"}":{event["ptr"]}')
    if "result" in kind.fields:
        out.append(f'"result":{event["result"]}')
    if event["error"]:
        out.append(f'"error":{event["error"]}')
    if "thread" in event:
        out.append(f'"thread":{event["thread"]}')
    for _, note in sorted(NOTES.items()):
        if note != "count" and event.get(note):  # the count is a field
            out.append(f'"{note}":{event[note]}')
    if event.get("text"):
        out.append(f'"text":{json_text(event["text"])}')
    if event.get("depends_on"):
        out.append('"depends_on":[' + ",".join(f"[{thread},{op}]" for thread, op in event["depends_on"]) + "]")
    print(",".join(out) + "}")


# Traces


class StreamState:
    """State for decoding the records of a stream."""

    def __init__(self):
        self.epoch = self.base = self.old = 0
        self.notes = {}


class Segment:
    SIZE = 48

    def __init__(self, payload, at):
        fields = struct.unpack_from("<IIIIQQQII", payload, at)
        self.process, self.thread, self.tid, self.stream, self.first_word, self.epoch, self.base = fields[:7]
        self.words, self.records = fields[7:]


class Words:
    """The identity transform: consecutive words."""

    def __init__(self, data):
        need(len(data) % 8 == 0, "half a word")
        self.all = struct.unpack(f"<{len(data) // 8}Q", data)
        self.at = 0

    def record(self, _lane, _kinds):
        head = self.all[self.at]
        further = head >> 27 & 255 if head & 31 == TAG_LONG else 0
        more = self.all[self.at + 1 : self.at + 1 + further]
        need(len(more) == further, "a record goes beyond its frame")
        self.at += 1 + further
        return head, more

    def at_end(self):
        return self.at == len(self.all)


class Columns:
    """Reassembles the words from their columns."""

    def __init__(self, data):
        lengths = struct.unpack_from("<16I", data)
        need(64 + sum(lengths) == len(data), "the columns are not as long as they say")
        self.columns, at = [], 64
        for length in lengths:
            self.columns.append(data[at : at + length])
            at += length
        self.at = [0] * 16
        self.stamp = 0

    def low_first(self, first, last):
        """Returns the number whose bytes are in these columns."""
        value = 0
        for i in range(first, last + 1):
            value |= self.columns[i][self.at[i]] << 8 * (i - first)
            self.at[i] += 1
        return value

    def word(self):
        value = struct.unpack_from("<Q", self.columns[15], self.at[15])[0]
        self.at[15] += 8
        return value

    def tag(self):
        return self.low_first(0, 0)

    def change(self):
        return self.low_first(1, 2)

    def relative(self):
        return self.low_first(5, 8)

    def address(self):
        return self.low_first(9, 14)

    def record(self, stream, kinds):
        tag = self.tag()
        if tag == TAG_EPOCH:
            return tag | ((stream.epoch + self.word()) % 2**59) << 5, ()
        if tag == TAG_BASE or tag in NOTES:
            return tag | self.word() << 5, ()
        self.stamp = (self.stamp + self.change()) % 2**14
        head = tag | self.stamp << 5
        if tag == TAG_LONG:
            head |= self.word() << 19
            return head, [self.word() for _ in range(head >> 27 & 255)]
        need(tag in kinds, f"a record has tag {tag}")
        if kinds[tag].form == "SIZED":
            return head | self.low_first(3, 4) << 19 | self.relative() << 35, ()
        return head | (self.address() + stream.base // 8) % 2**45 << 19, ()

    def at_end(self):
        return self.at == [len(column) for column in self.columns]


class ShortColumns(Columns):
    """Columns with site 0 for the site that the previous record defines."""

    def __init__(self, data):
        super().__init__(data)
        self.defined = 0

    def record(self, stream, kinds):
        head, more = super().record(stream, kinds)
        value = head >> 5
        if head & 31 == NOTE_SITE and value in (0, self.defined):
            head = NOTE_SITE | (value ^ self.defined) << 5
        addresses = more[1 : 1 + (head >> 43 & 2047) // 8]
        if head & 31 == TAG_LONG and kinds[head >> 19 & 255].name == "heaptape.frames" and addresses:
            self.defined = more[0]
            for address in reversed(addresses):
                self.defined = (self.defined * 0xD6E8FEB86659FD93 + address) % 2**59
        return head, more


class SparseColumns(ShortColumns):
    """Columns with timestamps only where they change, and with rotated addresses."""

    def __init__(self, data):
        super().__init__(data)
        self.changed = False

    def tag(self):
        tag = super().tag()
        self.changed = tag >= 32
        need(tag < 64 and (not self.changed or tag - 32 == TAG_LONG or 4 <= tag - 32 < 27), "only timestamps change")
        return tag % 32

    def change(self):
        return super().change() if self.changed else 0

    def relative(self):
        value = super().relative() % 2**29
        return value * 2 % 2**29 + (value >> 28)

    def address(self):
        value = super().address() % 2**45
        return value * 2 % 2**45 + (value >> 44)


class PackedColumns(SparseColumns):
    """Columns with 8, 4, 2 or 1 bits per item."""

    def __init__(self, data):
        lengths, at = struct.unpack_from("<16I", data), 64
        columns = []
        for length in lengths:
            packing, items = length >> 28, length % 2**28
            need(packing < 4, "how are the items packed?")
            bits, stored = 8 >> packing, -(-items // 2**packing)
            column, at = data[at : at + stored], at + stored
            need(len(column) == stored, "a column is too short")
            if packing:
                values, at = data[at : at + 2**bits], at + 2**bits
                column = bytes(values[byte >> shift & 2**bits - 1] for byte in column for shift in range(0, 8, bits))[:items]
            columns.append(column)
        super().__init__(struct.pack("<16I", *map(len, columns)) + b"".join(columns) + data[at:])


TRANSFORMS = {0: Words, 1: Columns, 2: ShortColumns, 3: SparseColumns, 4: PackedColumns}


class Trace:
    def __init__(self, kinds):
        self.kinds = kinds
        self.session, self.pids, self.streams, self.events = {}, {}, {}, []

    def frame(self, kind, payload):
        if kind == TRACE_SESSION:
            self.session = tagged(payload)
        elif kind == TRACE_PROCESS:
            fields = tagged(payload)
            self.pids[number(fields, 20)] = number(fields, 21)
        elif kind == TRACE_EVENTS:
            self.events_frame(payload)

    def events_frame(self, payload):
        _, _, flags, count = struct.unpack_from("<QQII", payload)
        words_at = 24 + count * Segment.SIZE
        need(words_at <= len(payload), "segments go beyond their frame")
        need(flags >> 8 & 255 in TRANSFORMS, "what is the transform?")
        source = TRANSFORMS[flags >> 8 & 255](payload[words_at:])
        for i in range(count):
            self.segment(Segment(payload, 24 + i * Segment.SIZE), source)
        need(source.at_end(), "a frame holds more than its segments")

    def segment(self, segment, source):
        need(segment.process in self.pids, "a segment of an unknown process")
        stream = self.streams.setdefault((segment.process, segment.thread, segment.stream), StreamState())
        stream.epoch, stream.base = segment.epoch, segment.base
        words = 0
        for _ in range(segment.records):
            head, more = source.record(stream, self.kinds)
            words += 1 + len(more)
            self.record(segment, stream, head, more)
        need(not stream.notes, "a segment ends behind a note")
        need(words == segment.words, "a segment has another number of words than it says")

    def record(self, segment, stream, head, more):
        tag = head & 31
        if tag == TAG_EPOCH:
            stream.epoch = head >> 5
        elif tag == TAG_BASE:
            stream.base = (head >> 5) * 8
        elif tag in NOTES:
            stream.notes[NOTES[tag]] = head >> 5
            return
        else:
            number_of_kind = head >> 19 & 255 if tag == TAG_LONG else tag
            need(number_of_kind in self.kinds, f"there is no kind {number_of_kind}")
            kind = self.kinds[number_of_kind]
            event = self.long(kind, head, more) if tag == TAG_LONG else self.short(kind, stream, head)
            need(tag == CALLOC or "count" not in stream.notes, "a count stands before no short calloc")
            event.update(stream.notes)
            stream.notes = {}
            self.event(segment, stream, kind, stream.epoch * 2**14 + (head >> 5) % 2**14, event)
        need(not stream.notes, "a note stands before no record")

    def short(self, kind, stream, head):
        event = {"size": 0, "count": 1, "ptr": 0, "result": 0, "error": 0}
        if kind.form == "SIZED":
            event["size"] = head >> 19 & 0xFFFF
            address = stream.base + (head >> 35) * 8
        else:
            need(kind.form == "PLAIN", f"a short record of {kind.name}")
            address = (head >> 19) * 8
        if kind.cls in ("FREE", "HALF"):
            event["ptr"] = address
        else:
            event["ptr"], event["result"] = stream.old, address
        return event

    def long(self, kind, head, more):
        fields = [name for name in kind.fields if name != "text"]
        need(len(more) >= len(fields), f"a record of {kind.name} is too short")
        event = dict(zip(fields, more))
        text = struct.pack(f"<{len(more) - len(fields)}Q", *more[len(fields) :])
        length = head >> 43 & 0x7FF
        need((length + 7) // 8 * 8 == len(text), f"a record of {kind.name} has the wrong length")
        event["text"], event["error"] = text[:length], head >> 35 & 255
        return event

    def event(self, segment, stream, kind, stamp, event):
        if kind.name == "realloc.begin":
            stream.old = event["ptr"]
        elif kind.name == "realloc":
            stream.old = 0
        if kind.name == "thread.start":  # thread.create names the thread by that number
            event["thread"] = segment.thread
        if kind.cls not in ("HALF", "META"):
            self.events.append((stamp, segment.process, segment.tid, kind, event))

    def print(self):
        clock = Clock(number(self.session, 2), number(self.session, 3), number(self.session, 4))
        self.events.sort(key=lambda e: e[0])
        for stamp, process, tid, kind, event in self.events:
            for name in ("ptr", "result"):
                event[name] = f'"{event.get(name, 0):#x}"'
            print_event(kind, self.pids[process], tid, None if number(self.session, 13) else clock.ns(stamp), event)


# Workloads


class Column:
    """Two planes: the first bytes of the values, and the rest."""

    def __init__(self, first, rest):
        self.first, self.rest = first, rest
        self.at = self.rest_at = 0

    def next(self):
        byte = self.first[self.at]
        self.at += 1
        follow = 8
        for k in range(8):
            if not byte & 0x80 >> k:
                follow = k
                break
        low = self.rest[self.rest_at : self.rest_at + follow]
        need(len(low) == follow, "a column is too short")
        self.rest_at += follow
        high = byte & (0x7F >> follow)
        return int.from_bytes(low, "little") | high << 8 * follow

    def at_end(self):
        return self.at == len(self.first) and self.rest_at == len(self.rest)


def has_slot(kind, flags):
    return kind.cls in ("ALLOC", "FREE", "RESIZE") and not flags & NO_SLOT


def takes(kind, flags):
    return has_slot(kind, flags) and (kind.cls == "ALLOC" or bool(flags & FROM_NULL))


class Slots:
    """Decodes slots from the values ALLOCATED and USED of a block."""

    def __init__(self, takes, uses, ages, relative):
        self.takes, self.uses, self.ages, self.relative = takes, uses, ages, relative
        self.stack, self.used = [], []
        self.last_taken = self.last_used = 0

    def take(self):
        code = self.takes.next()
        if code == 0:
            need(self.stack, "a slot is taken from an empty stack")
            slot = self.stack.pop()
        else:
            slot = self.last_taken = (self.last_taken + zigzag(code - 1)) & MASK64
        self.used.append(slot)
        return slot

    def use(self, give_up):
        code = self.uses.next()
        if code < self.ages:
            need(code < len(self.used), "a slot is older than its block")
            slot = self.used[-1 - code]
        else:
            slot = code - self.ages
            if self.relative:
                slot = (self.last_used + zigzag(slot)) & MASK64
            self.last_used = slot
        (self.stack if give_up else self.used).append(slot)
        return slot


class Workload:
    def __init__(self, kinds):
        self.kinds = kinds
        self.header, self.done = {}, {}
        self.ops = 0
        self.clock = None

    def frame(self, kind, payload):
        if kind == WORKLOAD_HEADER:
            self.header = tagged(payload)
            self.clock = Clock(number(self.header, 1), number(self.header, 2), number(self.header, 4))
        elif kind == WORKLOAD_OPS:
            Window(self, payload).print()

    def print(self):
        pass


class Window:
    """One OPS frame."""

    NAMES = ("BLOCKS", "ALLOCATED", "USED", "SIZE", "MORE", "ALLOCATED_TIME", "TIME", "DEPENDENCY", "TEXT")

    def __init__(self, workload, payload):
        self.workload, self.payload = workload, payload
        first, self.base, self.count, self.blocks, self.slot_limit, self.thread_limit = struct.unpack_from("<QQIIII", payload)
        self.ages, shapes, self.texts, self.flags = struct.unpack_from("<IIII", payload, 32)
        need(first == workload.ops, "a window does not begin where the one before ended")
        self.sizes = struct.unpack_from("<18I", payload, 48)
        self.shapes = [payload[120 + 3 * i : 123 + 3 * i] for i in range(shapes)]
        self.at = 120 + 3 * shapes
        self.columns = {"BLOCKS": self.column(0)}
        self.of_ops = payload[self.at : self.at + self.count]
        self.at += self.count
        for i in range(1, 9):
            self.columns[self.NAMES[i]] = self.column(i)
        need(self.at + self.texts == len(payload), "a window is not as long as its columns")

    def column(self, i):
        values, rest = self.sizes[2 * i : 2 * i + 2]
        self.at += values + rest
        need(self.at <= len(self.payload), "a column goes beyond its frame")
        return Column(self.payload[self.at - values - rest : self.at - rest], self.payload[self.at - rest : self.at])

    def print(self):
        pid = number(self.workload.header, 5)
        stamped = number(self.workload.header, 3)
        heads = [[self.columns["BLOCKS"].next() for _ in range(4)] for _ in range(self.blocks)]
        need(sum(head[2] for head in heads) == self.count, "the blocks do not sum up")
        self.op_at = 0
        blocks = [self.block(head, stamped) for head in heads]
        order = self.by_stamp(blocks) if stamped else self.by_runs(blocks)
        for stamp, thread, kind, event in order:
            ns = self.workload.clock.ns(stamp) if stamped else None
            print_event(kind, pid, thread, ns, event)
        need(all(column.at_end() for column in self.columns.values()), "a column is too long")
        need(self.at == len(self.payload), "more text than told")
        self.workload.ops += self.count
        for thread, _, ops, _ in heads:
            self.workload.done[thread] = self.workload.done.get(thread, 0) + ops

    def by_stamp(self, blocks):
        return sorted((op for block in blocks for op in block), key=lambda op: op[0])

    def by_runs(self, blocks):
        at, left = [0] * len(blocks), self.count
        while left:
            block, run = self.columns["TIME"].next(), self.columns["TIME"].next()
            need(block < len(blocks) and 0 < run <= len(blocks[block]) - at[block], "a run of the order is too long")
            yield from blocks[block][at[block] : at[block] + run]
            at[block] += run
            left -= run

    def block(self, head, stamped):
        thread, first, ops, stamp = head
        need(thread < self.thread_limit, "a thread beyond the limit")
        need(first == self.workload.done.get(thread, 0), "a block does not go on where its thread was")
        slots = Slots(self.columns["ALLOCATED"], self.columns["USED"], self.ages, self.flags & 1)
        stamp = (self.base + stamp) & MASK64
        waited = {}
        out = []
        for _ in range(ops):
            kind_number, flags, third = self.shapes[self.of_ops[self.op_at]]
            self.op_at += 1
            kind = self.workload.kinds[kind_number]
            # Calls that succeed have no error: the byte is their allocator.
            noted = kind.cls in ("ALLOC", "FREE", "RESIZE") and not flags & FAILED
            event = {"error": 0, "allocator": third} if noted else {"error": third}
            self.slot(kind, flags, slots, event)
            self.values(kind, event)
            if flags & HAS_SITE:
                event["site"] = self.columns["MORE"].next()
            if stamped:
                column = "ALLOCATED_TIME" if takes(kind, flags) else "TIME"
                stamp = (stamp + self.columns[column].next()) & MASK64
            if flags & HAS_WAITS:
                event["depends_on"] = [self.wait(waited) for _ in range(self.columns["DEPENDENCY"].next())]
            out.append((stamp, thread, kind, event))
        return out

    def slot(self, kind, flags, slots, event):
        event["ptr"] = event["result"] = "null"
        if not has_slot(kind, flags):
            return
        if takes(kind, flags):
            slot = slots.take()
            event["result"] = slot
        else:
            give_up = kind.cls == "FREE" or bool(flags & FREED)
            slot = slots.use(give_up)
            event["ptr"] = slot
            if not give_up and not flags & FAILED:
                event["result"] = slot
        need(slot < self.slot_limit, "a slot beyond the limit")

    def values(self, kind, event):
        for name, column in (("size", "SIZE"), ("count", "MORE"), ("align", "MORE"), ("value", "MORE")):
            if name in kind.fields or (kind.number == PREEXISTING and name in ("align", "value")):
                event[name] = self.columns[column].next()
        if "text" in kind.fields:
            length = self.columns["TEXT"].next()
            need(length <= TEXT_MAX, "a text is too long")
            event["text"] = self.payload[self.at : self.at + length]
            self.at += length

    def wait(self, waited):
        thread = self.columns["DEPENDENCY"].next()
        reference = waited.get(thread, self.workload.done.get(thread, 0))
        waited[thread] = (reference + zigzag(self.columns["DEPENDENCY"].next())) & MASK64
        return thread, waited[thread]


def check_trailer(data, index_at):
    """Checks the trailer after the INDEX frame at index_at."""
    offset, magic = struct.unpack_from("<Q8s", data, len(data) - 16)
    need(magic == b"HHtwEnd1" and offset == index_at, "the trailer is wrong")


def read(data):
    magic = data[:4]
    need(magic in (b"HTr1", b"HTw1"), "neither a trace nor a workload")
    content = Trace(read_kinds()) if magic == b"HTr1" else Workload(read_kinds())
    at, last, last_at = 0, 0, 0
    try:
        for kind, payload, end in frames(data, 0, magic):
            content.frame(kind, payload)
            last, last_at, at = kind, at, end
    finally:
        content.print()
    if magic == b"HTw1":
        need(last == WORKLOAD_INDEX, "cut off")
        check_trailer(data, last_at)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: second_reader.py FILE")
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    try:
        read(data)
    except (Bad, IndexError, struct.error) as error:
        sys.exit(f"second_reader.py: {sys.argv[1]}: {error}")


if __name__ == "__main__":
    main()
