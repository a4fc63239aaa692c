// What raw and munged logs of logalloc share.
#ifndef HEAPTAPE_FORMATS_LOGALLOC_H
#define HEAPTAPE_FORMATS_LOGALLOC_H

#include "formats/text.h"
#include "trace/event/event.h"

// The kinds that have a function in logalloc, ended by 0.
extern const uint8_t logalloc_kinds[];

// Blocks as addresses, and as #slot. NULL is written as 0x0, as Firefox prints it: logalloc_munge.py does not know (nil).
extern const struct text_syntax logalloc_raw, logalloc_munged;

// Reads "<pid> [<tid>] <function>([<args>])[=<result>]". NULL and *call filled in, or what was expected at `*at`.
const char *logalloc_parse(const char **at, const char *end, const struct text_syntax *s,
                           struct text_call *call);

// Writes such a line and its newline. Returns where it ends.
char *logalloc_put(char *to, const struct text_syntax *s, uint64_t pid, uint64_t tid,
                   const struct event *ev);

#endif
