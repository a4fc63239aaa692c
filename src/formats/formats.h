// The registry of foreign formats, and the interface that formats implement.
#pragma once

#include "formats/formats_table.h"
#include "trace/event/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct import;
struct text_line;
struct export;
struct export_call;
struct workload_reader;

// Properties of calls that a format can store. Other properties are dropped or replaced by the
// nearest equivalent, and the change is reported.
enum format_holds {
    FORMAT_HOLDS_STAMPS = 1,     // the time of each call
    FORMAT_HOLDS_PIDS = 2,       // several processes
    FORMAT_HOLDS_TIDS = 4,       // the thread of each call
    FORMAT_HOLDS_FAILED = 8,     // calls that failed
    FORMAT_HOLDS_NULL = 16,      // free(NULL)
    FORMAT_HOLDS_ADDRESSES = 32, // addresses: raw traces can be written without conversion
    FORMAT_HOLDS_FREED = 64,     // a realloc that only freed
    // Blocks are identified only by address, so allocations and frees of an address must alternate
    // in the file.
    FORMAT_ALTERNATES = 128,
    FORMAT_HOLDS_RESIDENCY = 256, // how much of each big block the program used
    FORMAT_HOLDS_EARLIER = 512,   // frees and reallocs of blocks allocated before the recording
};

// Reader of a format: `line`, `record` (records of fixed size), or `read`, which reads the whole
// file. If all three are NULL, the format can only be written.
struct format_import {
    // `line` and `record` call import_put for each event of one line (formats/text.h) or record.
    int (*line)(struct import *im, struct text_line *line);
    int (*record)(struct import *im, const uint8_t *record);
    int (*read)(struct import *im);
    size_t record_bytes;
    const char *record_name; // for messages, for example "a record"
    bool keeps_blanks;  // trailing blanks are part of the line, and the last line needs no newline
    size_t state_bytes; // size of im->state, which is zeroed before `begin`
    int (*begin)(struct import *im); // called before the first line or record
    void (*release)(void *state);    // frees what im->state holds, even after an error
    bool several_processes;          // a file may hold several processes
    bool seeks;                      // `read` seeks, so pipes are first copied to a temporary file
    // How long the converter may hold back an event that contradicts earlier events, while it
    // searches for an event that resolves the contradiction. The unit is ns or, for formats without
    // times, events. 1 if the file is in call order.
    uint64_t window;
    bool no_early_frees; // initial value of im->no_early_frees
};

// Writer of a format (formats/export.h). Only `holds` and either `put` or `profile` are required.
struct format_export {
    unsigned holds; // FORMAT_HOLDS_*
    unsigned notes; // bit set of enum event_note: the notes that can be stored
    // Kinds that can be written unchanged (enum event_kind), terminated by 0. If NULL, all kinds.
    const uint8_t *kinds;
    bool folder;        // the output is the directory x->folder; x->out is unused
    size_t state_bytes; // size of x->state, which is zeroed before `begin`
    int (*begin)(struct export *x);
    // `put` and `profile` are NULL if the format can only be read.
    int (*put)(struct export *x, const struct export_call *c);
    // For formats that store totals instead of calls. Reads the whole workload, which is seekable,
    // and writes everything. Replaces `put`, `drop` and `end`.
    int (*profile)(struct export *x, struct workload_reader *r);
    // Called with each call that is not written, before any conversion. May be NULL.
    int (*drop)(struct export *x, const struct export_call *c);
    int (*end)(struct export *x);
    void (*release)(void *state); // frees what x->state holds, even after an error
};

// A format that can be read, written, or both. The functions return 0, or a negative errno with the
// message set in im->e or x->e.
struct format {
    const char *name;
    struct format_import import;
    struct format_export export;
};

// All formats in table order, ending with NULL.
extern const struct format *const formats[];

static inline bool formats_is_read(const struct format *f)
{
    return f->import.line || f->import.record || f->import.read;
}

static inline bool formats_is_written(const struct format *f)
{
    return f->export.put || f->export.profile;
}

// Returns the format with this name, or NULL.
const struct format *formats_find(const char *name);

// Option parsers. Store the format with this name in `field`, which points to a `const struct
// format *`. Return 0, or -EINVAL if the format does not exist or cannot be imported or exported.
int formats_parse_import(const char *name, void *field);
int formats_parse_export(const char *name, void *field);
