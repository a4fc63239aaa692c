"""Reads traces and workloads of heaptape, by libheaptape-trace.

    import heaptape
    with heaptape.open("a.ht") as trace:
        for event in trace.events():
            print(event.time_ns, event.operation, event.size)

    columns = heaptape.open("a.ht").columns("time_ns", "size")  # numpy arrays, or array.array without numpy

What the values mean is described in <heaptape/trace.h> and docs/reference/tables.md. The library is libheaptape-trace.so.1, or
the file that the environment variable HEAPTAPE_TRACE_LIBRARY names.
"""
import array
import collections
import ctypes
import os
import threading

try:
    import numpy
except ImportError:
    numpy = None

__all__ = ["COLUMNS", "Error", "Event", "Frame", "Op", "Process", "Trace", "allocates", "open", "operation_names", "version"]

NONE32 = 0xFFFFFFFF
NONE64 = 0xFFFFFFFFFFFFFFFF
_KIND_TRACE, _KIND_WORKLOAD = 1, 2
_SITE_UNKNOWN = 0

_u8, _u32, _u64, _text = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p


class _Event(ctypes.Structure):
    _fields_ = [(name, _u64) for name in ("time_ns", "event", "size", "count", "align", "usable_size", "address",
                                          "freed_address", "freed_block")]
    _fields_ += [("text", _text)]
    _fields_ += [(name, _u32) for name in ("known", "process", "thread", "site")]
    _fields_ += [(name, _u8) for name in ("operation", "failed", "error")]


class _Dependency(ctypes.Structure):
    _fields_ = [("op", _u64), ("thread", _u32), ("reserved", _u32)]


class _Op(ctypes.Structure):
    _fields_ = [(name, _u64) for name in ("time_ns", "op", "size", "count", "align", "value")]
    _fields_ += [("dependencies", ctypes.POINTER(_Dependency)), ("text", _text)]
    _fields_ += [(name, _u32) for name in ("n_dependencies", "thread", "slot", "site")]
    _fields_ += [(name, _u8) for name in ("operation", "flags", "error")]


class _Process(ctypes.Structure):
    _fields_ = [("process", _u32), ("pid", _u32), ("parent_pid", _u64), ("forked_from", _u64)]
    _fields_ += [(name, _text) for name in ("exe", "command", "allocator")]
    _fields_ += [(name, _u64) for name in ("start_time_ns", "end_time_ns", "exit_status", "events", "threads", "lost_records")]
    _fields_ += [("sites", _u32)]
    _fields_ += [(name, _u64) for name in ("early_events", "early_max_ns", "early_usual_ns")]


class _Thread(ctypes.Structure):
    _fields_ = [("thread", _u32), ("tid", _u32)]


class _Frame(ctypes.Structure):
    _fields_ = [("function", _text), ("file", _text), ("object", _text), ("address", _u64), ("line", _u32), ("known", _u8),
                ("library", _u8)]


class _Column(ctypes.Structure):
    _fields_ = [("id", _u32), ("item_bytes", _u32), ("items", ctypes.c_void_p)]


# Name: number, type of numpy, type of array.array.
COLUMNS = {
    "process": (0, "u4", "I"), "event": (1, "u8", "Q"), "time_ns": (2, "u8", "Q"), "thread": (3, "u4", "I"),
    "operation": (4, "u1", "B"), "size": (5, "u8", "Q"), "count": (6, "u8", "Q"), "align": (7, "u8", "Q"),
    "usable_size": (8, "u8", "Q"), "address": (9, "u8", "Q"), "freed_address": (10, "u8", "Q"), "freed_block": (11, "u8", "Q"),
    "site": (12, "u4", "I"), "failed": (13, "u1", "B"), "error": (14, "u1", "B"), "known": (16, "u4", "I"),
}
_TEXT_BIT = 15

# A value is None if it is unknown or the operation does not have it.
Event = collections.namedtuple("Event", "process event time_ns thread operation size count align usable_size address "
                               "freed_address freed_block site failed error text")
Op = collections.namedtuple("Op", "thread op time_ns operation size count align value slot site flags error dependencies text")
Process = collections.namedtuple("Process", "process pid parent_pid forked_from exe command allocator start_time_ns "
                                 "end_time_ns exit_status events threads lost_records sites early_events early_max_ns early_usual_ns")
Frame = collections.namedtuple("Frame", "function file line object address known library")


class Error(Exception):
    """An error with heaptape's message; `errno` is the error's number."""

    def __init__(self, text, errno):
        super().__init__(text)
        self.errno = errno


def _load():
    library = ctypes.CDLL(os.environ.get("HEAPTAPE_TRACE_LIBRARY") or "libheaptape-trace.so.1")
    handle, number, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    to = lambda kind: ctypes.POINTER(ctypes.POINTER(kind))
    for name, result, arguments in (
            ("open", number, [ctypes.POINTER(handle), ctypes.c_char_p]),
            ("close", None, [handle]),
            ("rewind", number, [handle]),
            ("error", ctypes.c_char_p, [handle]),
            ("kind", number, [handle]),
            ("next_event", number, [handle, to(_Event)]),
            ("next_op", number, [handle, to(_Op)]),
            ("read_columns", ctypes.c_int64, [handle, ctypes.POINTER(_Column), size, size]),
            ("processes", ctypes.c_int64, [handle]),
            ("process", number, [handle, size, to(_Process)]),
            ("thread", number, [handle, _u32, _u32, to(_Thread)]),
            ("site", number, [handle, _u32, _u32, to(_Frame)]),
            ("frame", number, [handle, _u32, _u32, size, to(_Frame)]),
            ("operation_name", ctypes.c_char_p, [ctypes.c_uint]),
            ("allocates", number, [ctypes.c_uint]),
            ("version", ctypes.c_char_p, [])):
        function = getattr(library, "heaptape_trace_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


def version():
    """Returns the version of the library."""
    return _library.heaptape_trace_version().decode()


def _operation_names():
    names = ((number, _library.heaptape_trace_operation_name(number)) for number in range(256))
    return {number: name.decode() for number, name in names if name}


# Number in the column "operation": name.
operation_names = _operation_names()


def allocates(operation):
    """Returns True if the operation with this number allocates or resizes a block."""
    return bool(_library.heaptape_trace_allocates(_u32_of(operation)))


def _decoded(text):
    return None if text is None else os.fsdecode(text)


def _u32_of(number):
    # ctypes would drop the upper bits.
    if not 0 <= number <= NONE32:
        raise ValueError(f"{number} is not a number from 0 to {NONE32}")
    return number


def _or_none(number):
    return None if number == NONE64 else number


def _frame(f):
    return Frame(_decoded(f.function), _decoded(f.file), f.line or None, _decoded(f.object), f.address, bool(f.known),
                 bool(f.library))


class _Guarded:
    """A handle of the library, for one thread of one process at a time. Use `with` around calls
    and while borrowed data is used."""

    def __init__(self):
        self.handle = ctypes.c_void_p()
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.in_use = False

    def refuse(self):
        if self.process != os.getpid():
            raise ValueError("the trace was opened by another process, before a fork")
        raise ValueError("the trace is in use by what this signal or finalizer interrupts")

    def __enter__(self):
        # Check before taking the lock, which another thread may have held at the fork.
        if self.process != os.getpid():
            self.refuse()
        self.lock.acquire()
        if self.in_use:
            self.lock.release()
            self.refuse()
        self.in_use = True

    def __exit__(self, *_):
        self.in_use = False
        self.lock.release()


class Trace:
    """An open trace or workload. `kind` is "trace" or "workload". Each iteration begins at the
    first event and ends the previous iteration.

    Threads may share a Trace: they wait for each other, and an iteration that another thread
    ends raises ValueError. A child process cannot use a Trace that its parent has opened."""

    def __init__(self, path):
        path = os.fsencode(path)
        if b"\0" in path:
            raise ValueError("embedded null byte")
        self._guarded = _Guarded()
        self._pass = 0
        rc = _library.heaptape_trace_open(ctypes.byref(self._guarded.handle), path)
        if rc < 0:
            try:
                self._check(rc)
            finally:
                self.close()
        self.kind = "trace" if _library.heaptape_trace_kind(self._guarded.handle) == _KIND_TRACE else "workload"

    def close(self):
        """Frees the file's memory and ends iterations."""
        if self._guarded.process != os.getpid():
            # The library's reader thread exists only in the other process.
            self._guarded.handle = ctypes.c_void_p()
            return
        with self._guarded:
            handle, self._guarded.handle = self._guarded.handle, ctypes.c_void_p()
            self._pass += 1
            if handle:
                _library.heaptape_trace_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if hasattr(self, "_guarded"):
            self.close()

    # The methods from here to _read require the guard.

    def _check(self, rc):
        if rc < 0:
            raise Error(os.fsdecode(_library.heaptape_trace_error(self._guarded.handle)), -rc)
        return rc

    def _opened(self):
        if not self._guarded.handle:
            raise ValueError("the trace is closed")
        return self._guarded.handle

    def _begin(self):
        self._check(_library.heaptape_trace_rewind(self._opened()))
        self._pass += 1
        return self._pass

    def _continue(self, number):
        if number != self._pass:
            raise ValueError("another iteration of the same trace has begun, or it was closed")
        return self._opened()

    def _read(self, names, arrays, at, rows):
        """Fills arrays with rows from index `at` on. Returns the number of rows."""
        columns = (_Column * len(names))()
        for i, name in enumerate(names):
            number, _, kind = COLUMNS[name]
            width = array.array(kind).itemsize
            columns[i] = _Column(number, width, _address(arrays[name]) + at * width)
        return self._check(_library.heaptape_trace_read_columns(self._opened(), columns, len(names), rows))

    def _items(self, function, kind, copy):
        """Yields copies of the structs of an iteration, which the library lends until its next
        call."""
        guarded, pointer, getpid = self._guarded, ctypes.POINTER(kind)(), os.getpid
        to, lock, process = ctypes.byref(pointer), guarded.lock, guarded.process
        with guarded:
            number = self._begin()
        while True:
            # An inlined `with guarded`, which would take a third of the time of an iteration.
            if getpid() != process:
                guarded.refuse()
            with lock:
                if guarded.in_use:
                    guarded.refuse()
                guarded.in_use = True
                try:
                    rc = function(self._continue(number), to)
                    if rc <= 0:
                        self._check(rc)
                        return
                    item = copy(pointer.contents)
                finally:
                    guarded.in_use = False
            yield item

    def events(self):
        """Yields each event, as an Event. A truncated file raises Error after its events."""
        names = operation_names

        def copy(e):
            known = e.known
            has = lambda bit, value: value if known >> bit & 1 else None
            return Event(e.process, e.event, has(2, e.time_ns), e.thread, names[e.operation], has(5, e.size), has(6, e.count),
                         has(7, e.align), has(8, e.usable_size), has(9, e.address), has(10, e.freed_address),
                         has(11, e.freed_block), has(12, e.site), bool(e.failed), has(14, e.error),
                         _decoded(e.text) if known >> _TEXT_BIT & 1 else None)

        return self._items(_library.heaptape_trace_next_event, _Event, copy)

    def ops(self):
        """Yields each operation of a workload, as an Op; `dependencies` are pairs (thread, op)."""

        def copy(o):
            dependencies = tuple((o.dependencies[i].thread, o.dependencies[i].op) for i in range(o.n_dependencies))
            return Op(o.thread, o.op, _or_none(o.time_ns), operation_names[o.operation], o.size, o.count, o.align, o.value,
                      None if o.slot == NONE32 else o.slot, o.site or None, o.flags, o.error or None, dependencies,
                      _decoded(o.text))

        return self._items(_library.heaptape_trace_next_op, _Op, copy)

    def batches(self, *names, rows=1 << 16):
        """Yields columns of up to `rows` events at a time, as dicts of arrays, which the library
        fills without a copy."""
        names = _column_names(names)
        if rows < 1:
            raise ValueError("rows must be at least 1")
        with self._guarded:
            number = self._begin()
        while True:
            arrays = {name: _array(name, rows) for name in names}
            with self._guarded:
                self._continue(number)
                got = self._read(names, arrays, 0, rows)
            if not got:
                return
            yield {name: a[:got] for name, a in arrays.items()} if got < rows else arrays

    def columns(self, *names):
        """Returns columns of all events (default: all columns) as a dict of arrays, which the
        library fills without a copy."""
        names = _column_names(names)
        room, n = 1 << 16, 0
        arrays = {name: _array(name, room) for name in names}
        with self._guarded:
            self._begin()
            while True:
                got = self._read(names, arrays, n, room - n)
                n += got
                if not got:
                    break
                if n == room:
                    room += room // 4
                    for name in names:
                        _resize(arrays, name, room)
        for name in names:
            _resize(arrays, name, n)
        return arrays

    def processes(self):
        """Returns facts of the processes, as a list of Process."""
        pointer, found = ctypes.POINTER(_Process)(), []
        with self._guarded:
            for i in range(self._check(_library.heaptape_trace_processes(self._opened()))):
                self._check(_library.heaptape_trace_process(self._opened(), i, ctypes.byref(pointer)))
                p = pointer.contents
                found.append(Process(p.process, p.pid, _or_none(p.parent_pid), _or_none(p.forked_from), _decoded(p.exe),
                                     _decoded(p.command), _decoded(p.allocator), _or_none(p.start_time_ns),
                                     _or_none(p.end_time_ns), _or_none(p.exit_status), p.events, p.threads,
                                     p.lost_records, p.sites, p.early_events, p.early_max_ns, p.early_usual_ns))
        return found

    def tid(self, process, thread):
        """Returns the system's thread id of a thread, or None if it is unknown."""
        pointer = ctypes.POINTER(_Thread)()
        process, thread = _u32_of(process), _u32_of(thread)
        with self._guarded:
            self._check(_library.heaptape_trace_thread(self._opened(), process, thread, ctypes.byref(pointer)))
            return pointer.contents.tid or None

    def site(self, process, site):
        """Returns the function that represents a call site, as a Frame, or None if its stack is
        unknown."""
        pointer = ctypes.POINTER(_Frame)()
        process, site = _u32_of(process), _u32_of(site)
        with self._guarded:
            found = self._check(_library.heaptape_trace_site(self._opened(), process, site, ctypes.byref(pointer)))
            return _frame(pointer.contents) if found != _SITE_UNKNOWN else None

    def stack(self, process, site):
        """Returns the call stack of a call site, innermost function first, as a list of Frame."""
        pointer, frames = ctypes.POINTER(_Frame)(), []
        process, site = _u32_of(process), _u32_of(site)
        with self._guarded:
            while self._check(_library.heaptape_trace_frame(self._opened(), process, site, len(frames),
                                                            ctypes.byref(pointer))):
                frames.append(_frame(pointer.contents))
        return frames


def _column_names(names):
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"{name!r} is not one of the columns {', '.join(COLUMNS)}")
    return list(dict.fromkeys(names or COLUMNS))


def _array(name, rows):
    _, numpy_type, kind = COLUMNS[name]
    return numpy.empty(rows, numpy_type) if numpy else array.array(kind, bytes(array.array(kind).itemsize * rows))


def _address(a):
    return a.ctypes.data if numpy else a.buffer_info()[0]


def _resize(arrays, name, rows):
    """Grows in place: large memory is remapped, not copied."""
    a = arrays[name]
    if numpy:
        a.resize(rows, refcheck=False)
    elif rows < len(a):
        del a[rows:]
    else:
        a.frombytes(bytes(a.itemsize * (rows - len(a))))


def open(path):
    """Opens a trace, a workload, or the directory of a trace's segments, as a Trace. "-" is
    standard input."""
    return Trace(path)
