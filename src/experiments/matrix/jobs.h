// The jobs of a matrix: replays of workloads on allocators, in a directory that several hosts can
// share.
//
// The directory contains the file `jobs`, which is written once. If job N is done, the file N.json
// contains the output of `replay --json`. If job N failed, the file N.err contains the error
// output.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct matrix_job {
    char *workload, *allocator; // owned; the path is absolute
};

// A matrix. If all members are zero, the matrix is empty.
struct matrix {
    char *folder;            // absolute; owned
    struct matrix_job *jobs; // job numbers start at 1
    char **options;          // options of each replay; owned
    size_t n_jobs, n_options;
    size_t jobs_capacity, options_capacity;
};

enum matrix_state { MATRIX_UNDONE, MATRIX_DONE, MATRIX_FAILED };

void matrix_release(struct matrix *m);

// Add a job, or an option of all replays. Call before matrix_create. Return 0, -EINVAL for a string
// with a tab or a newline, or another negative errno, with the message set.
int matrix_add(struct matrix *m, const char *workload, const char *allocator, struct err *e);
int matrix_add_option(struct matrix *m, const char *option, struct err *e);

// Creates the directory, if missing, and writes the list of jobs. Returns 0, -EEXIST if the
// directory contains another list, or another negative errno, with the message set.
int matrix_create(struct matrix *m, const char *folder, struct err *e);

// Reads the list into *m, which must be empty. Returns 0, -ENOENT if there is no list, -EBADMSG, or
// another negative errno, with the message set.
int matrix_open(struct matrix *m, const char *folder, struct err *e);

enum matrix_state matrix_state(const struct matrix *m, size_t number);

// Returns the path of the result of a job or, if `failed`, of its error output. Returns NULL when
// out of memory. The caller must free the path.
char *matrix_path(const struct matrix *m, size_t number, bool failed);

// Runs a job with the program `heaptape`, unless the job is done. Returns 0 if the job is done, 1
// if it failed (its .err file contains the reason), or a negative errno with the message set.
int matrix_run(const struct matrix *m, size_t number, const char *heaptape, struct err *e);

// Returns an array of the words of `first`, the options, and the words of `last`, or NULL when out
// of memory. The caller frees the array, which borrows the words. `first`, `last` and the array end
// with NULL.
char **matrix_command(const char *const *first, const char *const *options, size_t n_options,
                      const char *const *last);

// engine.c: engines that run the jobs: this process, GNU parallel or Slurm.
enum matrix_engine { MATRIX_LOCAL, MATRIX_PARALLEL, MATRIX_SLURM };
#define MATRIX_ENGINES "local|parallel|slurm"

struct matrix_how {
    enum matrix_engine engine;
    const char *heaptape;       // path of the program; it is the same on all hosts
    const char *const *options; // options for the command that the engine runs
    size_t n_options;
    // With MATRIX_LOCAL, called before each job. May be NULL.
    void (*started)(size_t number, size_t undone, size_t of);
};

// Runs all jobs that have neither succeeded nor failed. With `again`, also runs the jobs that have
// failed. Returns 0 even if jobs fail; their .err files contain the reasons. If the engine itself
// fails, returns a negative errno with the message set.
int matrix_run_all(struct matrix *m, const struct matrix_how *how, bool again, struct err *e);
