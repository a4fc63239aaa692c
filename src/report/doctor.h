// The result of `doctor`: samples of a process ("looks"), the verdict derived from them, and notes
// about memory that the verdict does not cover.
#pragma once

#include "base/json.h"
#include "record/look/look.h"
#include "report/verdict.h"

// Amounts of memory whose growth over the looks is computed.
enum {
    DOCTOR_RSS,
    DOCTOR_LIVE,
    DOCTOR_HEAP,
    DOCTOR_OWNER,
    DOCTOR_LEVELS = DOCTOR_OWNER + VERDICT_OWNERS
};

enum { DOCTOR_MAX_LOOKS = 1024, DOCTOR_NOTES = 6, DOCTOR_NOTE_BYTES = 500 };

// A trial of the remedy. The remedy is a call, in the process, that makes the allocator return free
// memory.
struct doctor_try {
    const char *call;                   // NULL if no call was made
    uint64_t before_bytes, after_bytes; // RSS before and after the call
    // `paused_ns` is the longest time for which a thread was stopped.
    uint64_t call_ns, paused_ns;
};

// Initialize to zero.
struct doctor {
    struct look first, last;
    size_t looks;
    // Number of points in points[DOCTOR_LIVE], one for each look that could read nearly all memory.
    size_t live_looks;
    // Each array has `looks` points, except the array for DOCTOR_LIVE; owned.
    struct growth_point *points[DOCTOR_LEVELS];
    uint64_t cpu_ns[DOCTOR_MAX_LOOKS]; // CPU time of the process at each look
    struct verdict_facts facts;
    struct verdict verdict;
    char notes[DOCTOR_NOTES][DOCTOR_NOTE_BYTES];
    size_t n_notes;
    char title[700];    // process, size, threads and allocator
    char next[400];     // the next command to run, or ""
    const char *effect; // how the next command affects the process, or NULL
    bool is_file;       // the result is from a recording, so there are no looks
    const char *file;   // name of the recording, or NULL if the recording is not kept; borrowed
    char *const *argv;  // program that was recorded for the verdict, or NULL; borrowed
    bool ended;         // the process ended after the last look
    struct doctor_try tried;
    // Longest time for which a thread was stopped to read the allocator's statistics.
    uint64_t asked_ns;
};

// Compares the look with the previous look, and adds it. `low` and `high` are the lowest and the
// highest RSS between the two looks. Returns 0 or -ENOMEM.
int doctor_add(struct doctor *d, struct look *l, uint64_t low, uint64_t high);

// Sets the verdict, the notes and the next command according to the looks so far.
void doctor_judge(struct doctor *d);

// Finds the verdict of a recording whose statistics are complete. d->file and d->argv must be set.
// *s is borrowed.
void doctor_judge_file(struct doctor *d, const struct file_stat *s);

// Returns true if the remedy can be a call, in the process, that makes the allocator return free
// memory.
bool doctor_can_try(const struct doctor *d);

void doctor_release(struct doctor *d);

// Prints at most 25 lines of 80 columns. Returns 0 or -ENOMEM.
int doctor_print(const struct doctor *d);

// Writes the object of `doctor --json`.
void doctor_json(struct json *j, const struct doctor *d);
