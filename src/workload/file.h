// Opens traces, workloads and JSON documents and detects their type.
//
//     struct file f;
//     int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
//     if (rc == 0 && f.kind == FILE_TRACE)   … f.trace.reader …
//     if (rc == 0 && f.kind == FILE_WORKLOAD) … f.workload.reader …
//     file_close(&f);
//
// Commands that need a workload and also accept a trace call convert_open (convert/open.h).
#pragma once

#include "base/fio.h"
#include "trace/file.h"
#include "workload/reader.h"

// Types of files, and flags of file_open.
enum {
    FILE_TRACE = 1,
    FILE_WORKLOAD = 2,
    FILE_JSON = 4, // starts with "{", like the output of --json
    // The caller reads the file twice; a pipe is first copied to a temporary file.
    FILE_TWICE = 8,
    FILE_TRACE_TWICE = 16, // like FILE_TWICE, but only for traces
    FILE_AGGREGATE = 32,   // for file_sniff only; record/aggregate/stat.h reads aggregates
    // Accept only regular files. For paths that come from a file or directory instead of from the
    // user.
    FILE_REGULAR = 64,
};

struct workload_file {
    struct input in;
    struct workload_reader *reader;
};

struct file {
    unsigned kind;                 // FILE_TRACE, FILE_WORKLOAD or FILE_JSON
    struct trace_file trace;       // open if `kind` is FILE_TRACE
    struct workload_file workload; // open if `kind` is FILE_WORKLOAD
    struct input json;             // positioned at its first byte
};

// Like input_open, but opens a directory of segments as one joined trace (trace/join.h).
int file_open_input(struct input *in, const char *path, struct err *e);

// Opens the file at `path` if `accept` includes its type. `path` must outlive *f. Returns 0, or a
// negative errno with the message set: -EPROTO if the type is not accepted. Call file_close even
// after an error.
int file_open(struct file *f, const char *path, unsigned accept, struct err *e);
void file_close(struct file *f);

// Like file_open, but for an input positioned at its first byte. Moves the input to *f. After an
// error, closes the input instead.
int file_adopt(struct file *f, struct input *in, unsigned accept, struct err *e);

// Returns the input, for querying its size and position.
const struct input *file_input(const struct file *f);

// Detects the type of an input positioned at its first byte, without consuming bytes. Returns the
// type if `accept` includes it, or a negative errno with the message set.
int file_sniff(struct input *in, unsigned accept, struct err *e);

// Opens a workload on an input positioned at its first byte, and moves *in to *w. Call
// workload_file_close even after an error.
int workload_file_adopt(struct workload_file *w, struct input *in, struct err *e);

// Returns to the start of the workload with a new reader. Returns 0, or a negative errno: -ESPIPE
// for a pipe.
int workload_file_rewind(struct workload_file *w, struct err *e);

void workload_file_close(struct workload_file *w);
