// Progress of a long job: one line on stderr, only on a terminal.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const char *what; // "convert a.ht"; borrowed
    const char *unit; // counted unit: "events", or "B" for bytes; borrowed
    uint64_t total;   // 0 if unknown; the line then has no percentage and no time left
    uint64_t start_ns, shown_ns;
    bool enabled, shown;
};

// Disables the line if `quiet` is set or stderr is not a terminal.
void progress_init(struct progress *p, const char *what, const char *unit, uint64_t total,
                   bool quiet);

// Updates the line, at most 10 times per second. Cheap enough to call every millisecond. Does
// nothing if p is NULL.
void progress_update(struct progress *p, uint64_t done);

// Removes the line. Call before printing a message and after the job. Does nothing if p is NULL.
void progress_clear(struct progress *p);

// Formats the line after `elapsed_ns`: "convert a.ht: 12.3 M events, 45 %, 3.2 M/s, 12 s left".
void progress_text(const struct progress *p, uint64_t done, uint64_t elapsed_ns, char *text,
                   size_t size);
