// Engines that run the jobs of a matrix: this process, GNU parallel or Slurm.
#ifndef HEAPTAPE_MATRIX_ENGINE_H
#define HEAPTAPE_MATRIX_ENGINE_H

#include "experiments/matrix/jobs.h"

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

#endif
