// Who runs the jobs of a matrix: this process, GNU parallel or Slurm.
#ifndef HEAPTAPE_MATRIX_ENGINE_H
#define HEAPTAPE_MATRIX_ENGINE_H

#include "experiments/matrix/jobs.h"

enum matrix_engine { MATRIX_LOCAL, MATRIX_PARALLEL, MATRIX_SLURM };
#define MATRIX_ENGINES "local|parallel|slurm"

struct matrix_how {
    enum matrix_engine engine;
    const char *heaptape;       // path of the program, the same on all hosts
    const char *const *options; // for the engine's command
    size_t n_options;
    void (*started)(size_t number, size_t undone,
                    size_t of); // before each job, with MATRIX_LOCAL; NULL: not wanted
};

// Runs all jobs that are neither done nor failed; with `again`, the failed ones too. Whether they succeed is in their files: 0, or
// a negative errno with the text set where the engine itself fails.
int matrix_run_all(struct matrix *m, const struct matrix_how *how, bool again, struct err *e);

#endif
