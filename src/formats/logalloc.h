// Code shared by raw and munged logalloc logs.
#pragma once

#include "formats/text.h"
#include "trace/event/event.h"

// FORMAT_HOLDS_* flags of raw and munged logalloc.
#define LOGALLOC_HOLDS                                                                             \
    (FORMAT_HOLDS_PIDS | FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED |            \
     FORMAT_HOLDS_NULL | FORMAT_HOLDS_ADDRESSES | FORMAT_HOLDS_EARLIER | FORMAT_ALTERNATES)

// The kinds for which logalloc has a function, terminated by 0.
extern const uint8_t logalloc_kinds[];

// Raw logs identify blocks by address, munged logs by #slot. NULL is written as 0x0, as Firefox
// does, because logalloc_munge.py does not understand "(nil)".
extern const struct text_syntax logalloc_raw, logalloc_munged;

// Parses "<pid> [<tid>] <function>([<args>])[=<result>]". Returns NULL with *call filled in, or a
// description of the text expected at `*at`.
const char *logalloc_parse(const char **at, const char *end, const struct text_syntax *s,
                           struct text_call *call);

// Writes a line that logalloc_parse accepts, including its newline. Returns the end of the text.
char *logalloc_put(char *to, const struct text_syntax *s, uint64_t pid, uint64_t tid,
                   const struct event *ev);
