// The replays of a matrix: which workload on which allocator, in files that engines on several hosts can share.
//
// The folder holds `jobs`, which is written once, and for job N either N.json, what `replay --json` printed, or N.err, what it
// said when it failed. What is not there has not been done.
#ifndef HEAPTAPE_MATRIX_JOBS_H
#define HEAPTAPE_MATRIX_JOBS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct matrix_job {
    char *workload, *allocator; // owned; the path is absolute
};

// All zero is an empty one.
struct matrix {
    char *folder;            // absolute; owned
    struct matrix_job *jobs; // numbered from 1
    char **options;          // of each replay; owned
    size_t n_jobs, n_options;
    size_t jobs_capacity, options_capacity;
};

enum matrix_state { MATRIX_UNDONE, MATRIX_DONE, MATRIX_FAILED };

void matrix_release(struct matrix *m);

// Adds a job, or an option of all replays, before the list is written. 0 or a negative errno with the text set: -EINVAL for a
// text with a tab or a newline.
int matrix_add(struct matrix *m, const char *workload, const char *allocator, struct err *e);
int matrix_add_option(struct matrix *m, const char *option, struct err *e);

// Makes the folder unless it is there, and writes the list of jobs. The list of jobs that are there already must be the same:
// else -EEXIST. 0 or a negative errno with the text set.
int matrix_create(struct matrix *m, const char *folder, struct err *e);

// Reads the list into the empty *m. 0 or a negative errno with the text set: -ENOENT where there is none, -EBADMSG.
int matrix_open(struct matrix *m, const char *folder, struct err *e);

enum matrix_state matrix_state(const struct matrix *m, size_t number);

// The path of the job's result, or of what it said when it failed. For the caller to free; NULL: out of memory.
char *matrix_path(const struct matrix *m, size_t number, bool failed);

// Runs job `number` by the program `heaptape`, unless it is done. 1: it failed, and its .err says why; 0, also where it is done
// already; or a negative errno with the text set.
int matrix_run(const struct matrix *m, size_t number, const char *heaptape, struct err *e);

#endif
