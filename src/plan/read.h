// Makes a plan of a workload.
#ifndef HEAPTAPE_PLAN_READ_H
#define HEAPTAPE_PLAN_READ_H

#include "plan/plan.h"
#include "workload/reader.h"

// Told now and then how many ops have been read.
struct plan_progress {
    void (*report)(void *context, uint64_t ops);
    void *context;
};

// Reads all that is left of the workload into a new plan, and finishes it. `progress` may be NULL. 0, or a negative
// errno of the reader's or the plan's.
int plan_read(struct plan *p, struct workload_reader *r, const struct plan_progress *progress, struct err *e);

// The same without finishing it.
int plan_read_ops(struct plan *p, struct workload_reader *r, const struct plan_progress *progress, struct err *e);

#endif
