// The registry of foreign formats, and what a format is to the rest.
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

// What a written file can hold. What a call has beyond it is dropped or written as the nearest thing, and reported.
enum format_holds {
    FORMAT_HOLDS_STAMPS = 1,     // the time of each call
    FORMAT_HOLDS_PIDS = 2,       // several processes
    FORMAT_HOLDS_TIDS = 4,       // the thread of each call
    FORMAT_HOLDS_FAILED = 8,     // calls that failed
    FORMAT_HOLDS_NULL = 16,      // free(NULL)
    FORMAT_HOLDS_ADDRESSES = 32, // addresses: it can be written from a raw trace as recorded, too
    FORMAT_HOLDS_FREED = 64,     // a realloc that only freed
    FORMAT_ALTERNATES =
        128, // addresses alone name blocks: in the file's order each is allocated, freed, allocated
    FORMAT_HOLDS_RESIDENCY = 256, // how much of big blocks the program used
    FORMAT_HOLDS_EARLIER = 512,   // frees and reallocs of blocks that no call before them allocated
};

// How files of a format are read: by lines, by records of one size, or by a function that reads the whole file. All three
// are NULL in a format that is only written.
struct format_import {
    // Puts the events of one line (formats/text.h) or record (formats/import.h).
    int (*line)(struct import *im, struct text_line *line);
    int (*record)(struct import *im, const uint8_t *record);
    int (*read)(struct import *im);
    size_t record_bytes;
    const char *record_name; // "a record", for messages
    bool keeps_blanks;       // lines keep trailing blanks, and the last line needs no newline
    size_t state_bytes;      // size of im->state, which is zeroed before `begin`
    int (*begin)(struct import *im);    // before the first line or record
    void (*release)(struct import *im); // frees what im->state holds, also after an error
    bool several_processes;             // a file may hold more than one
    bool seeks; // it reads here and there: of a pipe a temporary copy is made
    // For how long, in ns (of formats without times: events), an event that contradicts those before it is held back for
    // one that explains it. 1 where the order in the file is the order of the calls.
    uint64_t window;
};

// How files of a format are written (formats/export.h). Only `put` and `holds` are always needed.
struct format_export {
    unsigned holds;       // FORMAT_HOLDS_*
    unsigned notes;       // a bit for each enum event_note that it stores
    const uint8_t *kinds; // enum event_kind, ended by 0: what is written as such; NULL: all
    bool folder;          // it is a folder: what is written goes into x->folder, not to x->out
    size_t state_bytes;   // of x->state, zeroed before `begin`
    int (*begin)(struct export *x);
    int (*put)(struct export *x, const struct export_call *c); // NULL: it is only read
    int (*drop)(struct export *x,
                const struct export_call *c); // a call that is not written, as it came
    int (*end)(struct export *x);
    void (*release)(struct export *x); // of what the state holds, also after an error
};

// One format: read, written, or both. The functions return 0 or a negative errno with im->e or x->e set.
struct format {
    const char *name;
    struct format_import import;
    struct format_export export;
};

// In the order of the table; ended by NULL.
extern const struct format *const formats[];

static inline bool formats_is_read(const struct format *f)
{
    return f->import.line || f->import.record || f->import.read;
}

// NULL when there is none of that name.
const struct format *formats_find(const char *name);

// Parse functions of options: store the format of this name that can be imported or exported in the
// `const struct format *` at `field`. 0 or -EINVAL.
int formats_parse_import(const char *name, void *field);
int formats_parse_export(const char *name, void *field);

#endif
