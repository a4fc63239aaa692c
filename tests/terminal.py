#!/usr/bin/env python3
"""terminal.py STEP,STEP,... COMMAND...: runs a program on a pseudo terminal of 80 columns and 24
rows, and prints the terminal's final state.

Steps, in order: wait:TEXT (until it is written after the previous step), key:CHARACTER (or up,
down, left, right), size:ROWSxCOLUMNS (until a screen of this size is drawn), signal:NAME (to the
program), stopped: (until the program is stopped and the terminal restored), append:FILE (bytes that
are not part of a trace). Exits with 1 if a step takes more than 60 seconds.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

SECONDS = 60
ARROWS = {"up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D"}
SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    def __init__(self, command):
        self.out = b""
        self.seen = 0  # position after the last wait
        self.resized = None
        ready, go = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(go)
            os.read(ready, 1)  # until the terminal has its size
            os.execvp(command[0], command)
        os.close(ready)
        self.resize(24, 80)
        self.before = termios.tcgetattr(self.fd)
        os.close(go)

    def resize(self, rows, columns):
        self.size = rows, columns
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """Reads output for at most `seconds`. Returns False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.out += data
        return data != b""

    def wait(self, text):
        end = time.time() + SECONDS
        while text not in self.out[self.seen:]:
            if time.time() > end or (not self.read(0.1) and text not in self.out[self.seen:]):
                sys.exit("terminal.py: '%s' was not written; the end is %r" % (text.decode(), self.out[-300:]))
        self.seen = len(self.out)

    def await_size(self):
        """Waits for a screen of the new size. A screen of the old size may still be unread."""
        end = time.time() + SECONDS
        while self.fits() != (True, True):
            if time.time() > end or not self.read(0.1):
                sys.exit("terminal.py: no screen of %d rows and %d columns; the end is %r" % (*self.size, self.out[-300:]))

    def fits(self):
        """Returns whether the last screen after the resize has few enough rows, and the width."""
        after = [s for s in screens(self.out[self.resized:]) if b"live " in s][-1:]
        return after and (len(lines(after[0])) <= self.size[0], longest(after) == self.size[1])

    def stopped(self):
        end = time.time() + SECONDS
        while os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG) == (0, 0):
            if time.time() > end:
                sys.exit("terminal.py: the program does not stop")
            self.read(0.1)
        # Output written before the stop may not have been read yet.
        while not self.is_restored():
            if time.time() > end:
                sys.exit("terminal.py: the stopped program has not restored the terminal")
            self.read(0.1)

    def is_restored(self):
        on = [m for m in re.findall(rb"\x1b\[\?(1049|25|7)([hl])", self.out)]
        last = {mode: how for mode, how in on}
        return termios.tcgetattr(self.fd) == self.before and last in ({}, {b"1049": b"l", b"25": b"h", b"7": b"h"})

    def step(self, what, text):
        if what == "wait":
            self.wait(text.encode())
        elif what == "key":
            os.write(self.fd, ARROWS.get(text, text.encode()))
        elif what == "size":
            rows, columns = (int(n) for n in text.split("x"))
            self.seen = self.resized = len(self.out)
            self.resize(rows, columns)
            self.await_size()
        elif what == "signal":
            self.seen = len(self.out)
            os.kill(self.pid, getattr(signal, "SIG" + text))
        elif what == "stopped":
            self.stopped()
        elif what == "append":
            with open(text, "ab") as f:
                f.write(b"no frame of a trace" * 1000)
        else:
            sys.exit("terminal.py: unknown step '%s'" % what)

    def finish(self):
        end = time.time() + SECONDS
        while self.read(0.1):
            if time.time() > end:
                os.kill(self.pid, signal.SIGKILL)
                sys.exit("terminal.py: the program does not exit")
        return os.waitpid(self.pid, 0)[1]


def lines(out):
    return SEQUENCE.sub(b"", out).replace(b"\r", b"").split(b"\n")


def screens(out):
    """Returns the output between two moves of the cursor to the start."""
    return out.split(b"\x1b[H")[1:]


def longest(drawn):
    return max(len(line.decode(errors="replace")) for screen in drawn for line in lines(screen))


def main():
    t = Terminal(sys.argv[2:])
    for step in sys.argv[1].split(","):
        what, _, text = step.partition(":")
        t.step(what, text)
    status = t.finish()
    if os.WIFSIGNALED(status):
        print("killed by", signal.Signals(os.WTERMSIG(status)).name)
    else:
        print("exit", os.WEXITSTATUS(status))
    print("restored" if t.is_restored() else "not restored: %r" % t.out[-100:])
    print("bold", int(b"\x1b[1m" in t.out))
    if t.resized is not None:
        few, wide = t.fits()
        print("after resize: %s %d rows, %s %d columns" % ("at most" if few else "more than", t.size[0],
              "cut at" if wide else "not cut at", t.size[1]))


if __name__ == "__main__":
    main()
