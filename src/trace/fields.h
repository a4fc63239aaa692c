// Tagged fields of SESSION, PROCESS, PROCESS_END and UNRECORDED frames. For use in src/trace only.
#pragma once

#include "base/buf.h"
#include "trace/trace.h"

#include <stdbool.h>

#include <stddef.h>

// Append the fields. Return 0 or -ENOMEM.
int fields_put_session(struct buf *b, const struct trace_session *s);
int fields_put_process(struct buf *b, const struct trace_process *p);
int fields_put_process_end(struct buf *b, const struct trace_process *p);
int fields_put_unrecorded(struct buf *b, const struct trace_unrecorded *u);

// Read the fields of a frame and skip unknown tags. Members whose field is missing are unchanged.
// Return 0, -EBADMSG, -ENOMEM, or -EPROTO if the clock is unknown.
int fields_get_session(const uint8_t *at, size_t n, struct trace_session *s);
int fields_get_process(const uint8_t *at, size_t n, struct trace_process *p);
int fields_get_unrecorded(const uint8_t *at, size_t n, struct trace_unrecorded *u);

// Returns the process number in a PROCESS or PROCESS_END frame, or UINT32_MAX if it is missing.
uint32_t fields_process_number(const uint8_t *at, size_t n);

// Returns the number in the first field with this tag, or `fallback`.
uint64_t fields_number(const uint8_t *at, size_t n, unsigned tag, uint64_t fallback);

// Reads the next thread name and advances *at. `name` is not terminated. Returns false at the end
// or if the bytes are invalid.
bool fields_next_name(const uint8_t **at, const uint8_t *end, uint64_t *tid, const char **name,
                      size_t *bytes);
