// Functions of one command that other commands use.
#pragma once

#include "cli/command.h"
#include "experiments/matrix/jobs.h"
#include "report/json/document.h"
#include "report/sites_diff.h"
#include "workload/slice.h"

#include <limits.h>

// Defined in slice.c. Parses a point: "1200" (an event), "1.5s" (a time) or "mark:TEXT". If `text`
// is NULL, *p becomes SLICE_AT_EDGE. *p borrows from `text`. Returns 0 or -EINVAL.
int command_parse_point(const char *text, struct slice_point *p);

// Defined in slice.c. Parses --from and --to. Returns 0, or EXIT_USAGE after a message.
int command_parse_part(const struct command *c, const char *from, const char *to,
                       struct slice_point *first, struct slice_point *last);
extern const struct command_word command_points[]; // help on the syntax of points

// Defined in diff.c. Prints up to `top` call sites that changed or, if `top` is 0, all of them. If
// no call site changed, prints no table.
void command_print_sites(const struct sites_diff *d, uint64_t top);

// The options of `matrix`.
struct command_matrix {
    struct option_list workloads, allocators, sweeps, replay_options, engine_options;
    uint64_t runs, job;
    enum matrix_engine engine;
    bool retry, across_machines;
};

// Defined in matrix.c. Stores the path of this executable. Dies if the path is unknown.
void command_find_self(char path[PATH_MAX]);

// Defined in matrix.c. Creates the jobs in `folder` or, if o->workloads is empty, reads the
// existing jobs. Runs the jobs that are not done, and prints the failed jobs. Dies on errors. The
// caller releases *m.
void command_run_matrix(struct matrix *m, const struct command_matrix *o, const char *folder);
size_t command_count_jobs(const struct matrix *m, enum matrix_state state);

// Defined in matrix.c. Adds the result of a job to the document, unless the job is not done.
// Returns 0, or a negative errno with the message set.
int command_add_result(struct document *d, const struct matrix *m, size_t number, struct err *e);

// Defined in matrix.c. Returns true if no earlier job has the workload of job `number`.
bool command_is_first_job(const struct matrix *m, size_t number);
