// Copies items of a trace to another trace with different process numbers.
#ifndef HEAPTAPE_TRACE_RENUMBER_H
#define HEAPTAPE_TRACE_RENUMBER_H

#include "trace/reader.h"
#include "trace/writer.h"

enum { RENUMBER_NONE = 0xffffffff }; // the process is not in the other trace

// Copy an item of the type in the function's name. `numbers` maps old process numbers to new ones;
// the process of names and pages must have a new number. renumber_names adds `shift` to module
// numbers. Return 0, or a negative errno with the message set.
int renumber_samples(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                     struct err *e);
int renumber_names(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   uint32_t shift, struct err *e);
int renumber_pages(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   struct err *e);

#endif
