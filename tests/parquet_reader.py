#!/usr/bin/env python3
"""parquet_reader.py [--stats] FILE [COLUMN...]: a second reader of Parquet, written from the
format's documents.

Prints the columns (default: all) as CSV like heaptape export; NULL is empty. --stats prints
rows, NULLs, minimum and maximum of each row group and column. Both compare these with the
values. Supports the encodings that heaptape writes. The program zstd decompresses pages."""
import csv
import struct
import subprocess
import sys

INT64, BYTE_ARRAY, BOOLEAN = 2, 6, 0


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, n):
        self.at += n
        assert self.at <= len(self.data), "cut off"
        return self.data[self.at - n:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        v = self.varint()
        return v >> 1 ^ -(v & 1)

    def thrift(self, kind):
        """Returns a value of Thrift's compact protocol; a struct is a dict by field number."""
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            return self.take(self.varint())
        if kind == 9:
            head = self.byte()
            n = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.thrift(head & 15) for _ in range(n)]
        assert kind == 12, kind
        fields, last = {}, 0
        while (head := self.byte()):
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            fields[last] = self.thrift(head & 15)
        return fields


def bits(data, width, n):
    number = int.from_bytes(data, "little")
    return [number >> i * width & (1 << width) - 1 for i in range(n)]


def hybrid(r, width, n):
    values = []
    while len(values) < n:
        head = r.varint()
        if head & 1:
            for _ in range(head >> 1):
                values += bits(r.take(width), width, 8)
        else:
            values += [int.from_bytes(r.take((width + 7) // 8), "little")] * (head >> 1)
    return values[:n]


def delta(r, n):
    block, miniblocks, total, value = r.varint(), r.varint(), r.varint(), r.zigzag()
    assert total == n
    values, each = [value], block // miniblocks
    while len(values) < n:
        low, widths = r.zigzag(), r.take(miniblocks)
        for width in widths:
            if len(values) >= n:
                assert width == 0
                break
            for d in bits(r.take(width * each // 8), width, each):
                if len(values) < n:
                    value = (value + low + d + 2**63) % 2**64 - 2**63
                    values.append(value)
    return values


def plain(r, kind, n):
    if kind == BYTE_ARRAY:
        return [r.take(struct.unpack("<I", r.take(4))[0]) for _ in range(n)]
    if kind == BOOLEAN:
        return [v for byte in r.take((n + 7) // 8) for v in bits(bytes([byte]), 1, 8)][:n]
    return list(struct.unpack(f"<{n}q", r.take(8 * n)))


def page(file, r):
    head = r.thrift(12)
    data = subprocess.run(["zstd", "-dcq"], input=r.take(head[3]), capture_output=True, check=True).stdout
    assert len(data) == head[2]
    return head, Reader(data)


def column(file, meta):
    """Returns the values of a column chunk; None is NULL."""
    assert meta[4] == 6
    r, names = Reader(file, meta.get(11, meta[9])), None
    if 11 in meta:
        head, data = page(file, r)
        assert head[1] == 2 and head[7][2] == 0
        names = plain(data, BYTE_ARRAY, head[7][1])
    assert r.at == meta[9]
    head, data = page(file, r)
    assert head[1] == 0 and head[5][1] == meta[5] and r.at == meta.get(11, meta[9]) + meta[7]
    levels = Reader(data.take(struct.unpack("<I", data.take(4))[0]))
    present = hybrid(levels, 1, meta[5])
    n, encoding = sum(present), head[5][2]
    assert encoding in meta[2]
    if encoding == 8:
        values = [names[i] for i in hybrid(data, data.byte(), n)]
    else:
        values = delta(data, n) if encoding == 5 else plain(data, meta[1], n)
    assert data.at == len(data.data), "bytes are left in a page"
    each = iter(values)
    return [next(each) if there else None for there in present]


def number(kind, text):
    return text if kind == BYTE_ARRAY else int.from_bytes(text, "little", signed=True)


def text(v):
    return "" if v is None else v.decode() if isinstance(v, bytes) else v


def main(words):
    stats = words[:1] == ["--stats"]
    file = open(words[stats], "rb").read()
    wanted = words[stats + 1:]
    assert file[:4] == file[-4:] == b"PAR1"
    footer = Reader(file, len(file) - 8 - struct.unpack("<I", file[-8:-4])[0]).thrift(12)
    names = [e[4].decode() for e in footer[2][1:]]
    assert footer[2][0][5] == len(names) == len(footer[7])
    assert footer[3] == sum(g[3] for g in footer[4])
    out = csv.writer(sys.stdout, lineterminator="\n")
    wanted = [i for i, name in enumerate(names) if not wanted or name in wanted]
    if not stats:
        out.writerow([names[i] for i in wanted])
    for group in footer[4]:
        metas = [group[1][i][3] for i in wanted]
        columns = [column(file, m) for m in metas]
        assert all(len(c) == group[3] for c in columns)
        if not stats:
            out.writerows(zip(*([text(v) for v in c] for c in columns)))
        for meta, values in zip(metas, columns):
            known = [v for v in values if v is not None]
            low, high = (number(meta[1], meta[12][f]) if f in meta[12] else None for f in (6, 5))
            assert meta[12][3] == len(values) - len(known)
            assert low is None or (low == min(known) and high == max(known))
            if stats:
                out.writerow([meta[3][0].decode(), len(values), meta[12][3], text(low), text(high)])


main(sys.argv[1:])
