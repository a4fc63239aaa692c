// Writes what a reader has read of a trace into another one, in which its processes have other numbers.
#ifndef HEAPTAPE_TRACE_RENUMBER_H
#define HEAPTAPE_TRACE_RENUMBER_H

#include "trace/reader.h"
#include "trace/writer.h"

enum { RENUMBER_NONE = 0xffffffff }; // of a process that is not in the other trace

// Each takes an item of that type, and the new numbers by the old ones; names and pages are of a process that has one. Modules
// of the names come `shift` numbers later. 0 or a negative errno with the text set.
int renumber_samples(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                     struct err *e);
int renumber_names(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   uint32_t shift, struct err *e);
int renumber_pages(struct trace_writer *w, const struct trace_item *item, const uint32_t *numbers,
                   struct err *e);

#endif
