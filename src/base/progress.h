// The progress of a long job: one line on stderr, on a terminal only.
#ifndef HEAPTAPE_BASE_PROGRESS_H
#define HEAPTAPE_BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const char *what; // "convert a.ht"; borrowed
    const char *unit; // what is counted: "events", or "B" for bytes; borrowed
    uint64_t total;   // 0 when unknown: no percentage, no time left
    uint64_t start_ns, shown_ns;
    bool enabled, shown;
};

// Shows nothing when `quiet` or when stderr is no terminal.
void progress_init(struct progress *p, const char *what, const char *unit, uint64_t total,
                   bool quiet);

// `done` of total so far. Writes at most 10 times a second; call it as often as once in a millisecond of work.
void progress_update(struct progress *p, uint64_t done);

// Removes the line: before a message, and at the end.
void progress_clear(struct progress *p);

// The line after `elapsed_ns`, into `text`: "convert a.ht: 12.3 M events, 45 %, 3.2 M/s, 12 s left".
void progress_text(const struct progress *p, uint64_t done, uint64_t elapsed_ns, char *text,
                   size_t size);

#endif
