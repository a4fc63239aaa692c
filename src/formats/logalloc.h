// What raw and munged logs of logalloc share.
#ifndef HEAPTAPE_FORMATS_LOGALLOC_H
#define HEAPTAPE_FORMATS_LOGALLOC_H

#include "formats/text.h"
#include "trace/event/event.h"

// The kinds that have a function in logalloc, ended by 0.
extern const uint8_t logalloc_kinds[];

// Puts "<function>(<args>)[=<result>]" and the newline; blocks as `put_block` writes them. Returns where it ends.
char *logalloc_put_call(char *to, const struct event *ev,
                        char *(*put_block)(char *to, uint64_t block));

// An address: NULL is 0x0, as Firefox prints it. glibc's printf would write "(nil)", which logalloc_munge.py does not know.
char *logalloc_put_address(char *to, uint64_t address);

#endif
