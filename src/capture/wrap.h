// Shared by the wrappers.
#ifndef HEAPTAPE_CAPTURE_WRAP_H
#define HEAPTAPE_CAPTURE_WRAP_H

#include "capture/producer.h"

// What the version script then exports, if the symbol is in the event table.
#define WRAPPER __attribute__((visibility("default")))

// The return address of a wrapper: whose call it is.
#define WRAP_CALLER __builtin_return_address(0)

#define WRAP_COLD   __attribute__((noinline, cold))

// Records a call that took `p`, or failed, in any form; returns `p`, so that a wrapper can end with a tail call.
void *wrap_taken(enum event_kind kind, size_t size, void *p, const void *caller);

// The error of a call that returned `p`: 0 when it succeeded, or was asked for nothing.
uint8_t wrap_error(const void *p, size_t size);

#endif
