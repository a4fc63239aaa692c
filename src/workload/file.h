// Opens files: the one place that finds out whether a file is a trace or a workload.
//
//     struct file f;
//     int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
//     if (rc == 0 && f.kind == FILE_TRACE)   … f.trace.reader …
//     if (rc == 0 && f.kind == FILE_WORKLOAD) … f.workload.reader …
//     file_close(&f);
//
// A command that wants a workload, and converts a trace into one, calls convert_open (convert/open.h).
#ifndef HEAPTAPE_WORKLOAD_FILE_H
#define HEAPTAPE_WORKLOAD_FILE_H

#include "base/fio.h"
#include "trace/file.h"
#include "workload/reader.h"

// Kinds of file, and how to open them.
enum {
    FILE_TRACE = 1,
    FILE_WORKLOAD = 2,
    FILE_JSON = 4, // begins with "{" as the output of --json does
    FILE_TWICE =
        8, // it is going to be read again from the start: a pipe is first copied to a temporary file
    FILE_TRACE_TWICE = 16, // if it is a trace
    FILE_AGGREGATE = 32,   // for file_sniff alone: record/aggregate/stat.h reads it
    FILE_REGULAR = 64,     // refused unless regular: its name was read from a file or folder
};

struct workload_file {
    struct input in;
    struct workload_reader *reader;
};

struct file {
    unsigned kind;                 // one of FILE_TRACE, FILE_WORKLOAD, FILE_JSON
    struct trace_file trace;       // the one of that kind is open
    struct workload_file workload; //
    struct input json;             // at its first byte
};

// As input_open; of a folder, the trace whose segments are in it (trace/join.h).
int file_open_input(struct input *in, const char *path, struct err *e);

// Opens the file at `path` (file_open_input), which must outlive *f, if it is of one of the kinds in `accept`. 0 or negative
// errno with the text set, -EPROTO if it is of another kind. *f can be closed in either case.
int file_open(struct file *f, const char *path, unsigned accept, struct err *e);
void file_close(struct file *f);

// The same with an input that stands at its first byte, which is moved into *f or closed.
int file_adopt(struct file *f, struct input *in, unsigned accept, struct err *e);

// What is read, for its size and the position in it.
const struct input *file_input(const struct file *f);

// The kind of an input that stands at its first byte and stays there: one of those in `accept`, or a negative errno
// with the text set.
int file_sniff(struct input *in, unsigned accept, struct err *e);

// Opens a workload on an input that stands at its first byte; *in is moved into *w. *w can be closed in either case.
int workload_file_adopt(struct workload_file *w, struct input *in, struct err *e);

// Reads on from the start, with a new reader. -ESPIPE if the input cannot be read twice.
int workload_file_rewind(struct workload_file *w, struct err *e);

void workload_file_close(struct workload_file *w);

#endif
