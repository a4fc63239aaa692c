// Copies items of a trace to another trace with different process numbers.
#pragma once

#include "trace/reader.h"
#include "trace/writer.h"

enum { RENUMBER_NONE = 0xffffffff }; // number of a process that is not in the other trace

// Each function copies an item of the type in its name. `numbers` maps the old process numbers to
// the new numbers. The process that names or pages belong to must have a new number. renumber_names
// adds `shift` to module numbers. The functions return 0, or a negative errno with the message set.
int renumber_samples(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                     struct err *e);
int renumber_names(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   uint32_t shift, struct err *e);
int renumber_pages(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   struct err *e);
