// The registry of foreign formats, and the interface that a format implements.
#ifndef HEAPTAPE_FORMATS_FORMATS_H
#define HEAPTAPE_FORMATS_FORMATS_H

#include "formats/formats_table.h"
#include "trace/event/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct import;
struct text_line;
struct export;
struct export_call;

// Properties of calls that a format can store. Other properties are dropped or written as the
// nearest equivalent, and reported.
enum format_holds {
    FORMAT_HOLDS_STAMPS = 1,     // the time of each call
    FORMAT_HOLDS_PIDS = 2,       // several processes
    FORMAT_HOLDS_TIDS = 4,       // the thread of each call
    FORMAT_HOLDS_FAILED = 8,     // calls that failed
    FORMAT_HOLDS_NULL = 16,      // free(NULL)
    FORMAT_HOLDS_ADDRESSES = 32, // addresses: raw traces can be written without a conversion
    FORMAT_HOLDS_FREED = 64,     // a realloc that only freed
    // Only addresses name blocks, so in file order an address is allocated and freed in turn.
    FORMAT_ALTERNATES = 128,
    FORMAT_HOLDS_RESIDENCY = 256, // amount of large blocks that the program used
    FORMAT_HOLDS_EARLIER = 512,   // frees and reallocs of blocks allocated before the recording
};

// How files of a format are read: by `line`, by `record` (records of one size), or by `read`, which
// reads the whole file. All three are NULL in a format that is only written.
struct format_import {
    // `line` and `record` put the events of one line (formats/text.h) or record (formats/import.h).
    int (*line)(struct import *im, struct text_line *line);
    int (*record)(struct import *im, const uint8_t *record);
    int (*read)(struct import *im);
    size_t record_bytes;
    const char *record_name; // "a record", for messages
    bool keeps_blanks;       // lines keep trailing blanks, and the last line needs no newline
    size_t state_bytes;      // size of im->state, zeroed before `begin`
    int (*begin)(struct import *im);    // called before the first line or record
    void (*release)(struct import *im); // frees what im->state holds, even after an error
    bool several_processes;             // set if a file may hold several processes
    bool seeks; // set if `read` seeks; pipes are then copied to a temporary file
    // How long an event that contradicts earlier events is held back for an event that explains it,
    // in ns, or in events for formats without times. 1 if the file is in the order of the calls.
    uint64_t window;
};

// How files of a format are written (formats/export.h). Only `put` and `holds` are required.
struct format_export {
    unsigned holds; // FORMAT_HOLDS_*
    unsigned notes; // bit set of enum event_note: the notes that are stored
    // The kinds that are written unchanged, as enum event_kind, ending with 0. NULL: all kinds.
    const uint8_t *kinds;
    bool folder;        // output is a directory, x->folder; x->out is unused
    size_t state_bytes; // size of x->state, zeroed before `begin`
    int (*begin)(struct export *x);
    int (*put)(struct export *x, const struct export_call *c); // NULL in a format that is only read
    // Gets each call that is not written, unconverted. May be NULL.
    int (*drop)(struct export *x, const struct export_call *c);
    int (*end)(struct export *x);
    void (*release)(struct export *x); // frees what x->state holds, even after an error
};

// A format that is read, written, or both. The functions return 0, or a negative errno with the
// text set in im->e or x->e.
struct format {
    const char *name;
    struct format_import import;
    struct format_export export;
};

// All formats in the order of the table; ends with NULL.
extern const struct format *const formats[];

static inline bool formats_is_read(const struct format *f)
{
    return f->import.line || f->import.record || f->import.read;
}

// Returns NULL if there is no format of this name.
const struct format *formats_find(const char *name);

// Parse functions of options. They store the format with this name in the `const struct format *`
// at `field`. Return 0, or -EINVAL if the format does not exist or cannot be imported or exported.
int formats_parse_import(const char *name, void *field);
int formats_parse_export(const char *name, void *field);

#endif
