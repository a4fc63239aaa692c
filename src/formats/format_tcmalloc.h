// The raw trace of gperftools' wip-malloc-tracing: what reading and writing it share. docs/reference/foreign-formats.md,
// "tcmalloc".
#ifndef HEAPTAPE_FORMATS_FORMAT_TCMALLOC_H
#define HEAPTAPE_FORMATS_FORMAT_TCMALLOC_H

#include "formats/export.h"

#define TCMALLOC_MAGIC 0x6cbd63e4u

enum tcmalloc_type {
    TCMALLOC_MALLOC = 0,
    TCMALLOC_FREE = 1,
    TCMALLOC_TOKENS = 2,
    TCMALLOC_BUFFER = 3,
    TCMALLOC_FREE_SIZED = 4,
    TCMALLOC_LONG = 7, // the low 8 bits are the type
    TCMALLOC_DEATH = 0x07,
    TCMALLOC_END = 0x0f,
    TCMALLOC_REALLOC = 0x17,
    TCMALLOC_MEMALIGN = 0x1f,
    TCMALLOC_BARRIER = 0x27,
    TCMALLOC_MISC = 0x2f,
};

enum {
    TCMALLOC_TYPE_BITS = 3,      // in an item's first number
    TCMALLOC_LONG_TYPE_BITS = 8, // of the types whose low bits are TCMALLOC_LONG
    TCMALLOC_NUMBER_BYTES = 9,   // of a varint at most
    TCMALLOC_CPU_BITS = 10,      // of ts|cpu
    TCMALLOC_SIZE_UNIT = 8,
};

// format_tcmalloc_export.c: the functions of struct format_export.
struct tcmalloc_export {
    struct tcmalloc_writer *threads; // by number
    size_t n, capacity;
    uint64_t *tokens; // by slot + 1: its block's token
    size_t n_tokens, tokens_capacity;
    uint64_t next_token; // of all threads
    uint32_t thread;     // the one with events in `events`
    uint64_t ts, calls;
    struct buf events; // the buffer under work
};

int tcmalloc_begin(struct export *x);
int tcmalloc_put(struct export *x, const struct export_call *c);
int tcmalloc_end(struct export *x);
void tcmalloc_release(struct export *x);

#endif
