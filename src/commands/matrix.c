#include "experiments/matrix/jobs.h"

#include "base/fio.h"
#include "base/printable.h"
#include "cli/paths.h"
#include "commands/parts.h"
#include "commands/replay_options.h"
#include "report/text/pooled.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct command_matrix, member)

static const struct option options[] = {
    {'w', "workload", OPTION_LIST, "FILE", NULL, "replay FILE", AT(workloads)},
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "replay on this allocator, as for 'heaptape compare'; ratios are to the first",
     AT(allocators)},
    {0, "sweep", OPTION_LIST, "VARIABLE=VALUE,VALUE...", NULL,
     "try each value of an environment variable on each allocator", AT(sweeps)},
    {'r', "runs", OPTION_NUMBER, "N", "5", "replay each workload N times on each allocator",
     AT(runs), .min = 1, .max = MEASURE_MAX_RUNS},
    {0, "replay-option", OPTION_LIST, "OPTION", NULL,
     "an option of 'heaptape replay' for all jobs: --replay-option=--touch=none",
     AT(replay_options)},
    {0, "engine", OPTION_CHOICE, MATRIX_ENGINES, "local",
     "run the jobs here one by one, by GNU parallel, or as a job array of Slurm", AT(engine)},
    {0, "engine-option", OPTION_LIST, "OPTION", NULL,
     "an option for parallel or sbatch: --engine-option=--sshlogin=a,b", AT(engine_options)},
    {0, "retry", OPTION_FLAG, NULL, NULL, "run failed jobs again", AT(retry)},
    {0, "across-machines", OPTION_FLAG, NULL, NULL, "also combine runs on different machines",
     AT(across_machines)},
    {0, "job", OPTION_NUMBER, "N", NULL, "run only job N; used by the engines", AT(job), .min = 1,
     .max = UINT32_MAX},
    {0},
};

struct matrix_adding {
    struct matrix *m;
    const char *workload;
};

static int add_job(void *context, const char *allocator, struct err *e)
{
    const struct matrix_adding *a = context;
    return matrix_add(a->m, a->workload, allocator, e);
}

static int add_workload(struct matrix *m, const struct command_matrix *o, const char *file,
                        struct err *e)
{
    char path[PATH_MAX];
    struct matrix_adding a = {m, path};
    if (!realpath(file, path))
        return err_set_errno(e, "%s", file);
    int rc = o->allocators.n ? 0 : replay_each_swept(&o->sweeps, "glibc", add_job, &a, e);
    for (size_t i = 0; rc == 0 && i < o->allocators.n; i++)
        rc = replay_each_swept(&o->sweeps, o->allocators.items[i], add_job, &a, e);
    return rc;
}

// Adds all jobs of the first run, then all jobs of the second run, and so on, so that other load on
// the machine affects all allocators alike.
static int make_jobs(struct matrix *m, const struct command_matrix *o, const char *folder,
                     struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->replay_options.n; i++)
        rc = matrix_add_option(m, o->replay_options.items[i], e);
    for (uint64_t run = 0; rc == 0 && run < o->runs; run++) {
        for (size_t i = 0; rc == 0 && i < o->workloads.n; i++)
            rc = add_workload(m, o, o->workloads.items[i], e);
    }
    return rc < 0 ? rc : matrix_create(m, folder, e);
}

static void show_job(size_t number, size_t left, size_t of)
{
    note("job %zu: %zu of %zu", number, of - left + 1, of);
}

// Reads the last line that a failed job wrote. If that fails, stores the reason instead.
static void read_failure(const char *path, char *text, size_t size)
{
    enum { LAST_BYTES = 4096 };
    char last[LAST_BYTES + 1];
    struct input in;
    struct err e = {0};
    ssize_t n = input_open_regular(&in, path, &e);
    if (n == 0 && in.size_bytes > LAST_BYTES)
        n = input_seek(&in, in.size_bytes - LAST_BYTES, &e);
    if (n == 0)
        n = input_read(&in, last, LAST_BYTES, &e);
    last[n > 0 ? n : 0] = 0;
    while (n > 0 && last[n - 1] == '\n')
        last[--n] = 0;
    const char *newline = strrchr(last, '\n'), *line = newline ? newline + 1 : last;
    if (n < 0 && n != -ENODATA)
        line = e.text;
    line += strncmp(line, "heaptape: ", 10) == 0 ? 10 : 0;
    printable_copy(text, size, line, strlen(line));
    input_close(&in);
}

static void print_failure(const struct matrix *m, size_t number)
{
    char text[512] = "", *path = matrix_path(m, number, true);
    if (path)
        read_failure(path, text, sizeof text);
    cli_warn("job %zu failed: %s on %s: %s", number, m->jobs[number - 1].workload,
             m->jobs[number - 1].allocator, *text ? text : "it wrote nothing");
    free(path);
}

int command_add_result(struct document *d, const struct matrix *m, size_t number, struct err *e)
{
    if (matrix_state(m, number) != MATRIX_DONE)
        return 0;
    char *path = matrix_path(m, number, false);
    int rc = path ? document_add_result(d, path, e) : err_no_memory(e, NULL);
    free(path);
    return rc;
}

// Prints the pooled results for the workload of job `first`.
static void print_workload(const struct matrix *m, size_t first, bool across_machines)
{
    struct document d = {.mode = "report"};
    struct err e = {0};
    int rc = 0;
    for (size_t i = first; rc == 0 && i <= m->n_jobs; i++) {
        if (strcmp(m->jobs[i - 1].workload, m->jobs[first - 1].workload) == 0)
            rc = command_add_result(&d, m, i, &e);
    }
    if (rc == 0 && d.n_items) {
        printf("%s\n\n", cli_text(m->jobs[first - 1].workload));
        rc = pooled_print(&d, across_machines, &e);
        putchar('\n');
    }
    document_release(&d);
    die_on_error(rc, EXIT_FAILED, &e);
}

bool command_is_first_job(const struct matrix *m, size_t number)
{
    for (size_t i = 1; i < number; i++) {
        if (strcmp(m->jobs[i - 1].workload, m->jobs[number - 1].workload) == 0)
            return false;
    }
    return true;
}

void command_find_self(char path[PATH_MAX])
{
    if (!paths_self(path))
        die(EXIT_FAILED, "/proc/self/exe: %s", strerror(errno));
}

void command_run_matrix(struct matrix *m, const struct command_matrix *o, const char *folder)
{
    char heaptape[PATH_MAX];
    struct err e = {0};
    command_find_self(heaptape);
    const struct matrix_how how = {.engine = o->engine,
                                   .heaptape = heaptape,
                                   .options = o->engine_options.items,
                                   .n_options = o->engine_options.n,
                                   .started = show_job};
    int rc = o->workloads.n ? make_jobs(m, o, folder, &e) : matrix_open(m, folder, &e);
    if (rc == 0)
        rc = matrix_run_all(m, &how, o->retry, &e);
    die_on_error(rc, EXIT_FAILED, &e);
    for (size_t i = 1; i <= m->n_jobs; i++) {
        if (matrix_state(m, i) == MATRIX_FAILED)
            print_failure(m, i);
    }
}

size_t command_count_jobs(const struct matrix *m, enum matrix_state state)
{
    size_t n = 0;
    for (size_t i = 1; i <= m->n_jobs; i++)
        n += matrix_state(m, i) == state;
    return n;
}

static int run_job(uint64_t number, const char *folder)
{
    char heaptape[PATH_MAX];
    struct matrix m = {0};
    struct err e = {0};
    command_find_self(heaptape);
    int rc = matrix_open(&m, folder, &e) ?: matrix_run(&m, number, heaptape, &e);
    die_on_error(rc, EXIT_FAILED, &e);
    matrix_release(&m);
    return rc ? EXIT_FAILED : EXIT_DONE;
}

static int run_matrix(const void *fields, char **argv)
{
    const struct command_matrix *o = fields;
    struct matrix m = {0};
    bool is_new = o->workloads.n || o->allocators.n || o->sweeps.n || o->replay_options.n;
    if (is_new && (o->job || !o->workloads.n))
        return usage_error(&cmd_matrix,
                           o->job ? "--job runs a job that is in DIR already" : "-w is missing");
    if (replay_check_sweeps(&cmd_matrix, &o->sweeps) != EXIT_DONE)
        return EXIT_USAGE;
    if (o->engine_options.n && o->engine == MATRIX_LOCAL)
        return usage_error(&cmd_matrix,
                           "--engine-option is for --engine=parallel and --engine=slurm");
    if (o->job)
        return run_job(o->job, argv[0]);
    command_run_matrix(&m, o, argv[0]);
    for (size_t i = 1; i <= m.n_jobs; i++) {
        if (command_is_first_job(&m, i))
            print_workload(&m, i, o->across_machines);
    }
    size_t done = command_count_jobs(&m, MATRIX_DONE);
    int code = done == m.n_jobs ? EXIT_DONE : EXIT_FAILED;
    printf("%zu jobs done, %zu failed, %zu not run\n", done, command_count_jobs(&m, MATRIX_FAILED),
           command_count_jobs(&m, MATRIX_UNDONE));
    matrix_release(&m);
    return code;
}

const struct command cmd_matrix = {
    .name = "matrix",
    .operands = "DIR",
    .summary = "Replay workloads on allocators as jobs of GNU parallel or Slurm",
    .examples =
        {
            {"Replay two workloads on two allocators, one job after the other",
             "heaptape matrix -w a.htw -w b.htw -a glibc -a jemalloc results"},
            {"Continue an interrupted matrix, and run failed jobs again",
             "heaptape matrix --retry results"},
            {"Run the jobs on two hosts that share the directories",
             "heaptape matrix -w a.htw -a glibc -a jemalloc --engine parallel \\\n"
             "    --engine-option=--sshlogin=host1,host2 /shared/results"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct command_matrix),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_matrix,
};
