// Sequential input and output for files, pipes and "-", with byte offsets for messages.
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

// Sequential reader. A reader with fd -1 and all other members zero is closed.
struct input {
    int fd;
    bool owns_fd;
    const char *name;    // name for messages, borrowed from the caller of input_open
    uint64_t offset;     // offset of the next byte that input_read returns
    uint64_t size_bytes; // size of a regular file, 0 if unknown (pipe)
    // bytes that input_peek has read; input_read has already returned the first ahead_read bytes
    struct buf ahead;
    size_t ahead_read;
};

// Opens a file or pipe that the user named. "-" is stdin, which messages call "(stdin)". Rejects
// directories, devices and empty regular files. Blocks until a named pipe has a writer. `path` must
// outlive the input.
int input_open(struct input *in, const char *path, struct err *e);

// Opens a file whose name was read from a file or directory. Accepts only regular files, so that
// the call never blocks. Rejects empty files.
int input_open_regular(struct input *in, const char *path, struct err *e);

// Opens a regular file without blocking. Returns the descriptor and fills in *st, or returns a
// negative errno: -EINVAL if the file is not regular.
int input_regular_fd(const char *path, struct stat *st);
void input_close(struct input *in);

// Reads up to `want` bytes (at most 64 KiB) without consuming them. Returns the number of bytes,
// which is less than `want` only at the end of the input, or a negative errno. *bytes is borrowed
// until the next call.
ssize_t input_peek(struct input *in, size_t want, const uint8_t **bytes, struct err *e);

// Returns 0, or -EPROTO with the message set if the first bytes are those of a compressed file.
int input_check_compressed(const struct input *in, const uint8_t *bytes, size_t n, struct err *e);

// Reads `want` bytes, or fewer if the input ends. Returns the number of bytes, or a negative errno.
ssize_t input_read(struct input *in, void *to, size_t want, struct err *e);

// Reads the available bytes, at most `most`. Blocks only if none are available. Returns the number
// of bytes, 0 at the end of the input, or a negative errno.
ssize_t input_read_some(struct input *in, void *to, size_t most, struct err *e);

// Appends the rest of the input to *to. Returns 0, a negative errno with the message set, or -EFBIG
// without a message if *to would exceed `max` bytes.
int input_read_all(struct input *in, struct buf *to, size_t max, struct err *e);

// Appends the contents of a regular file to *to. Rejects a file larger than `max` bytes with -EFBIG
// and the message "is not WHAT". Returns 0, or a negative errno with the message set.
int input_read_file(const char *path, struct buf *to, size_t max, const char *what, struct err *e);

// Moves to an absolute offset. Returns 0, or a negative errno: -ESPIPE for a pipe.
int input_seek(struct input *in, uint64_t offset, struct err *e);

// Copies the rest of a pipe to an unnamed file in $TMPDIR or /tmp, and makes the input read the
// copy. Offsets then count from the start of the copy. For a regular file, does nothing. Returns 0,
// or a negative errno.
int input_make_seekable(struct input *in, struct err *e);

enum {
    OUTPUT_FORCE = 1, // replace an existing file, but not before output_commit or output_close
    // Write to an unnamed file, or to NAME.tmp-PID if the file system does not support unnamed
    // files. output_close gives the file its name. Use this for formats that are invalid if
    // truncated: the kernel removes an unnamed file, no matter how the program ends. The descriptor
    // is also readable.
    OUTPUT_ASIDE = 2,
    // Replace an existing file when the first byte is written. If nothing is written, keep the
    // existing file. Use this for files that other programs read while they grow.
    OUTPUT_GROWS = 4,
};

// Sequential writer. Unbuffered, because callers write whole frames. A writer with fd -1 and all
// other members zero is closed.
struct output {
    int fd;
    bool owns_fd;
    const char *name;
    uint64_t offset;     // number of bytes written so far
    uint64_t write_ns;   // time spent in writes
    char *aside;         // temporary path, or NULL if the output is written in place
    bool unnamed;        // the file at `aside` has no name yet
    bool grows;          // the file gets its name when the first byte is written
    bool follows;        // the file is regular and was created by this output
    bool truncated;      // another process truncated the file
    uint64_t left_bytes; // smallest size seen after a truncation
};

// Opens `path` for writing. "-" is stdout, which must not be a terminal. Messages call it
// "(stdout)". Unless OUTPUT_FORCE is set, an existing regular file is rejected with "exists; use -f
// to replace it". Devices, fifos and sockets (/dev/null, a named pipe) are written in place. Never
// writes through a symbolic link to a regular file. Creates files with mode 0600, because traces
// and workloads contain a program's arguments and addresses. Returns 0, or a negative errno.
int output_open(struct output *out, const char *path, unsigned flags, struct err *e);

// Opens an unnamed file in $TMPDIR or /tmp, to be written and then read with input_from_output.
int output_open_unnamed(struct output *out, struct err *e);

// Moves an unnamed file from *out to *in, which reads it from the start. `name` is used in messages
// and borrowed. Closes *out even after an error. Returns 0, or a negative errno.
int input_from_output(struct input *in, struct output *out, const char *name, struct err *e);

// A signal handler sets this variable to make the interrupted write and all later writes of the
// thread fail with -ECANCELED.
extern _Thread_local volatile sig_atomic_t output_cancelled;

// output_writing is nonzero while the thread is writing. output_writes counts the thread's writes
// of at least one byte.
extern _Thread_local volatile sig_atomic_t output_writing, output_writes;

// Copies the rest of the input. Returns 0, or a negative errno.
int input_copy(struct input *in, struct output *to, struct err *e);

// Writes all n bytes. On error, the bytes already written stay in the file. Returns 0, or a
// negative errno.
int output_write(struct output *out, const void *bytes, size_t n, struct err *e);

// Like output_write, but writes several pieces, with one writev(2) if possible. Modifies the array.
int output_write_parts(struct output *out, struct iovec *parts, size_t n, struct err *e);

// Gives the file its final name now, without waiting for output_close. Does nothing if the output
// is written in place. Returns 0, or a negative errno.
int output_commit(struct output *out, struct err *e);

// Truncates a regular file created by this output. Returns 0, -ESPIPE for any other output, or
// another negative errno.
int output_restart(struct output *out, struct err *e);

// Creates the directory and its missing parents with mode 0700. Returns 0, or a negative errno with
// the message set.
int output_make_folder(const char *folder, struct err *e);

// Checks that `path` can be opened with OUTPUT_ASIDE later, without leaving a file there. Returns
// 0, or a negative errno of output_open. If `path` exists and is not a regular file, returns
// -EINVAL with a message that ends in `why`, or 0 if `why` is NULL.
int output_check_aside(const char *path, bool force, const char *why, struct err *e);

// Closes the output. With `commit`, renames a temporary file to its final name; otherwise removes
// the temporary file. Returns 0, -ESTALE if the name no longer refers to the file or some of its
// bytes are missing, or another negative errno. After -ESTALE, the message contains the path of the
// kept data, unless keeping the data failed.
int output_close(struct output *out, bool commit, struct err *e);

// Closes the output, and commits it if `rc` is 0. Returns `rc` if it is negative, else the result
// of output_close.
int output_finish(struct output *out, int rc, struct err *e);
