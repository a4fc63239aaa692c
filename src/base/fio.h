// Files, pipes and "-" as sequential input and output, with byte offsets for messages.
#ifndef HEAPTAPE_BASE_FIO_H
#define HEAPTAPE_BASE_FIO_H

#include "base/buf.h"
#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

// A sequential reader. All zero but fd = -1 is closed.
struct input {
    int fd;
    bool owns_fd;
    const char *name;    // as messages say it; borrowed from the caller of input_open
    uint64_t offset;     // of the next byte that input_read gives
    uint64_t size_bytes; // of a regular file, 0 when unknown (pipe)
    struct buf ahead;    // bytes that input_peek has read and input_read has not given yet
    size_t ahead_taken;
};

// Opens a file or pipe that the user named; "-" is stdin, named "(stdin)". Refuses a directory, a device and an empty
// regular file with a clear text. Waits for the writer of a named pipe. `path` must outlive the input.
int input_open(struct input *in, const char *path, struct err *e);

// Opens a file whose name was read from a file or a folder, and never waits: refuses all but regular files with a clear
// text, and empty files.
int input_open_regular(struct input *in, const char *path, struct err *e);

// The same for a reader that needs a descriptor. Returns it, or a negative errno: -EINVAL if this is no regular file. On
// success *st describes the file.
int input_regular_fd(const char *path, struct stat *st);
void input_close(struct input *in);

// Looks at up to `want` bytes without consuming them (want ≤ 64 KiB). Returns how many there are, fewer only
// at the end, or a negative errno. *bytes is borrowed until the next call.
ssize_t input_peek(struct input *in, size_t want, const uint8_t **bytes, struct err *e);

// Reads until `want` bytes are there or the input ends. Returns the bytes read, or a negative errno.
ssize_t input_read(struct input *in, void *to, size_t want, struct err *e);

// Reads what is there, up to `most` bytes, and waits only when there is nothing: 0 at the end.
ssize_t input_read_some(struct input *in, void *to, size_t most, struct err *e);

// Appends all that is left to *to. 0, -EFBIG without a text when that makes it longer than `max` bytes, or a negative errno with
// the text set.
int input_read_all(struct input *in, struct buf *to, size_t max, struct err *e);

// Moves to an absolute offset. -ESPIPE on a pipe.
int input_seek(struct input *in, uint64_t offset, struct err *e);

// What cannot be read twice (a pipe) is copied, from where it stands, into a file without a name in $TMPDIR or /tmp and
// read from there; offsets then count from the copy's start. A regular file is left as it is.
int input_make_seekable(struct input *in, struct err *e);

// Flags of output_open.
enum {
    OUTPUT_FORCE = 1, // replace an existing file, no sooner than output_commit or output_close
    // For forms that are not valid when cut off: write a file without a name, or NAME.tmp-PID where the file system has no
    // such thing, and give it its name in output_close. A file without a name leaves nothing behind, however the program
    // ends. It can be read, too.
    OUTPUT_ASIDE = 2,
    // For what others read while it grows: the first byte replaces an existing file, and without any it stays.
    OUTPUT_GROWS = 4,
};

// A sequential writer, unbuffered: callers write whole frames. All zero but fd = -1 is closed.
struct output {
    int fd;
    bool owns_fd;
    const char *name;
    uint64_t offset;     // bytes written so far
    uint64_t write_ns;   // how long output_write_parts took for them
    char *aside;         // temporary path, NULL when written in place
    bool unnamed;        // nothing stands at that path yet
    bool grows;          // the first byte gives it its name
    bool follows;        // a regular file that this output made
    bool truncated;      // by others, …
    uint64_t left_bytes; // … to so many at least once
};

// Opens `path` for writing; "-" is stdout, named "(stdout)", and refused when it is a terminal. Without
// OUTPUT_FORCE an existing regular file is refused with "exists; use -f to replace it"; devices, fifos and
// sockets (/dev/null, a named pipe) are written to as they are. Nothing is written through a symbolic link to a regular
// file. A new file is its owner's alone: traces and workloads hold a program's arguments and addresses.
int output_open(struct output *out, const char *path, unsigned flags, struct err *e);

// A file without a name in $TMPDIR or /tmp, for what is written once and then read.
int output_open_unnamed(struct output *out, struct err *e);

// Reads from the start what was written to an unnamed file, which *in takes over; `name` is for messages, borrowed. *out
// is closed in either case.
int input_from_output(struct input *in, struct output *out, const char *name, struct err *e);

// Set by a signal handler: the write that the signal interrupts, and every one after it, fails with -ECANCELED.
extern _Thread_local volatile sig_atomic_t output_cancelled;

// Of the thread: is it in a write, and how many have written something?
extern _Thread_local volatile sig_atomic_t output_writing, output_writes;

// Writes all of it. On error the file keeps what was written before.
int output_write(struct output *out, const void *bytes, size_t n, struct err *e);

// As output_write, of several pieces with one writev(2) where it takes them all. The array is used up.
int output_write_parts(struct output *out, struct iovec *parts, size_t n, struct err *e);

// Gives the file its name now, where an existing one is to be replaced: what was written is worth to be kept from here on.
int output_commit(struct output *out, struct err *e);

// Throws away what was written to a regular file of its own. -ESPIPE for anything else.
int output_restart(struct output *out, struct err *e);

// Makes the folder and those above it that are missing, for its owner alone. 0 or a negative errno with the text set.
int output_make_folder(const char *folder, struct err *e);

// Can `path` be written aside later on? -EINVAL, with a text that ends in `why`, unless it is a regular file or free; a
// negative errno with the text of output_open. Nothing is left there.
int output_check_aside(const char *path, bool force, const char *why, struct err *e);

// Finishes: renames what was written aside. When `commit` is false, what was written aside is removed
// instead. Returns -ESTALE if the name of the file does not lead to it any more, or bytes of it are missing: what can be kept is
// kept, and the text says where.
int output_close(struct output *out, bool commit, struct err *e);

#endif
