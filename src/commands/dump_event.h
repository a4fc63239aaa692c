// One event as `dump` prints it.
#ifndef HEAPTAPE_COMMANDS_DUMP_EVENT_H
#define HEAPTAPE_COMMANDS_DUMP_EVENT_H

#include "workload/workload.h"

#define DUMP_NO_SLOT UINT64_MAX

struct dump_line {
    bool slots; // `ptr` and `result` are slots, DUMP_NO_SLOT for none; else addresses
    uint32_t pid, tid;
    uint32_t thread;   // number in its process
    uint64_t stamp_ns; // since the start of the recording or process
    uint8_t kind, error;
    bool failed;
    uint64_t size, count, align, value, ptr, result;
    const char *text; // not terminated
    uint32_t text_bytes;
    const uint64_t *notes; // HT_NOTES of them, or NULL
    const struct workload_dependency *dependencies;
    uint32_t n_dependencies;
};

// "[pid tid] +12.345678 malloc(32) = 0x55…" on stdout.
void dump_text(const struct dump_line *line);

// A JSON object on a line of stdout.
void dump_json(const struct dump_line *line);

#endif
