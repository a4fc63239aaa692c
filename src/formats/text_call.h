// Lines of the text formats, understood: one call each.
#ifndef HEAPTAPE_FORMATS_TEXT_CALL_H
#define HEAPTAPE_FORMATS_TEXT_CALL_H

#include "event/event.h"

#include <stdbool.h>
#include <stdint.h>

struct text_call {
    struct event event; // blocks by their addresses, or by text_slot_address of their slots
    uint64_t pid, tid;
    uint64_t start_ns, end_ns; // when `timed`
    bool timed;
};

// Each understands the line at `*at`, which ends with a newline at `end` and holds nothing else that is one. NULL, and
// *call is filled in; or what was expected at `*at`, which has moved there ("a size").

// <tid>: <function> <values> [<start ns> <end ns>]
const char *android_parse(const char **at, const char *end, struct text_call *call);

// <pid> [<tid>] <function>([<args>])[=<result>], blocks as addresses, or as #slot when `munged`.
const char *logalloc_parse(const char **at, const char *end, bool munged, struct text_call *call);

// Slots of a munged log stand for addresses: any number from 1 up to 2^44.
static inline uint64_t text_slot_address(uint64_t slot)
{
    return slot << 4;
}

static inline uint64_t text_slot_of(uint64_t address)
{
    return address >> 4;
}

#endif
