// SESSION, PROCESS and PROCESS_END facts as tagged fields. Inside src/trace only.
#ifndef HEAPTAPE_TRACE_FIELDS_H
#define HEAPTAPE_TRACE_FIELDS_H

#include "base/buf.h"
#include "trace/trace.h"

#include <stdbool.h>

#include <stddef.h>

// Append the fields. 0 or -ENOMEM.
int fields_put_session(struct buf *b, const struct trace_session *s);
int fields_put_process(struct buf *b, const struct trace_process *p);
int fields_put_process_end(struct buf *b, const struct trace_process *p);
int fields_put_unrecorded(struct buf *b, const struct trace_unrecorded *u);

// Fill in from a frame's bytes; unknown tags are skipped. 0, -EBADMSG or -ENOMEM. What was there before and has no
// field stays.
int fields_get_session(const uint8_t *at, size_t n, struct trace_session *s);
int fields_get_process(const uint8_t *at, size_t n, struct trace_process *p);
int fields_get_unrecorded(const uint8_t *at, size_t n, struct trace_unrecorded *u);

// The number of the process that a PROCESS or PROCESS_END frame is about; UINT32_MAX when it does not say.
uint32_t fields_process_number(const uint8_t *at, size_t n);

// One number field; `fallback` when there is none.
uint64_t fields_number(const uint8_t *at, size_t n, unsigned tag, uint64_t fallback);

// Takes the next of a process's thread names: *at is moved on, `name` is not terminated. False at the end, and where the
// bytes are no names.
bool fields_next_name(const uint8_t **at, const uint8_t *end, uint64_t *tid, const char **name,
                      size_t *bytes);

#endif
