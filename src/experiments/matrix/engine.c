#include "experiments/matrix/jobs.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_local(const struct matrix *m, const struct matrix_how *how, const bool *wanted,
                     size_t n_wanted, struct err *e)
{
    size_t left = n_wanted;
    for (size_t i = 0; i < m->n_jobs; i++) {
        if (!wanted[i])
            continue;
        if (how->started)
            how->started(i + 1, left, n_wanted);
        left--;
        int rc = matrix_run(m, i + 1, how->heaptape, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

// Opens a file in memory, or returns NULL. The caller must close the file.
static FILE *open_memory(void)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f && fd >= 0)
        close(fd);
    return f;
}

// Runs the command with the contents of `input` as its standard input. An exit status up to `most`
// does not count as a failure of the engine. Returns 0, or a negative errno with the message set.
static int run_command(char *const *words, FILE *input, int most, struct err *e)
{
    int status = 0;
    pid_t pid;
    posix_spawn_file_actions_t files;
    if (!words)
        return err_no_memory(e, NULL);
    if (!input || fflush(input) != 0 || lseek(fileno(input), 0, SEEK_SET) < 0)
        return err_set_errno(e, "cannot write the input of %s", words[0]);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fileno(input), STDIN_FILENO);
    int rc = posix_spawnp(&pid, words[0], &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc != 0)
        return err_set(e, -rc, "%s: %s", words[0], strerror(rc));
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return err_set_errno(e, "%s", words[0]);
    }
    if (WIFSIGNALED(status))
        return err_set(e, -EINTR, "%s was terminated by signal %d", words[0], WTERMSIG(status));
    return WEXITSTATUS(status) > most
               ? err_set(e, -EIO, "%s exited with status %d", words[0], WEXITSTATUS(status))
               : 0;
}

// Runs GNU parallel, which reads one job number per line. Without other options, it runs one job at
// a time on each host. An exit status up to 101 is the number of failed jobs.
static int run_parallel(const struct matrix *m, const struct matrix_how *how, const bool *wanted,
                        struct err *e)
{
    const char *const first[] = {"parallel", "--jobs", "1", "--will-cite", "--quote", NULL};
    const char *const last[] = {how->heaptape, "matrix", "-q", "--job", "{}", m->folder, NULL};
    char **words = matrix_command(first, how->options, how->n_options, last);
    FILE *f = open_memory();
    for (size_t i = 0; f && i < m->n_jobs; i++) {
        if (wanted[i])
            fprintf(f, "%zu\n", i + 1);
    }
    int rc = run_command(words, f, 101, e);
    if (f)
        fclose(f);
    free(words);
    return rc;
}

// Writes a string in single quotes for the shell.
static void put_quoted(FILE *f, const char *text)
{
    putc('\'', f);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", f);
        else
            putc(*text, f);
    }
    putc('\'', f);
}

// Writes job numbers as "1-4,7".
static char *format_ranges(const struct matrix *m, const bool *wanted)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    const char *comma = "";
    for (size_t i = 0; f && i < m->n_jobs; i++) {
        size_t from = i;
        while (i < m->n_jobs && wanted[i])
            i++;
        if (i == from)
            continue;
        fprintf(f, "%s%zu", comma, from + 1);
        if (i > from + 1)
            fprintf(f, "-%zu", i);
        comma = ",";
    }
    return f && fclose(f) == 0 ? text : NULL;
}

// Runs a job array of Slurm and waits until it has ended. Without other options, each task has its
// own node. sbatch returns the highest exit status of the tasks.
static int run_slurm(const struct matrix *m, const struct matrix_how *how, const bool *wanted,
                     struct err *e)
{
    char *tasks = format_ranges(m, wanted), *array = NULL;
    if (tasks && asprintf(&array, "--array=%s", tasks) < 0)
        array = NULL;
    const char *const first[] = {
        "sbatch", "--wait", "--quiet", "--job-name=heaptape", "--exclusive", "--output=/dev/null",
        NULL};
    const char *const last[] = {array, NULL};
    char **words = array ? matrix_command(first, how->options, how->n_options, last) : NULL;
    FILE *f = open_memory();
    if (f) {
        fputs("#!/bin/sh\nexec ", f);
        put_quoted(f, how->heaptape);
        fputs(" matrix -q --job \"$SLURM_ARRAY_TASK_ID\" ", f);
        put_quoted(f, m->folder);
        putc('\n', f);
    }
    int rc = run_command(words, f, 1, e);
    if (f)
        fclose(f);
    free(tasks);
    free(array);
    free(words);
    return rc;
}

int matrix_run_all(struct matrix *m, const struct matrix_how *how, bool again, struct err *e)
{
    bool *wanted = calloc(m->n_jobs, sizeof *wanted);
    size_t n = 0;
    if (!wanted)
        return err_no_memory(e, NULL);
    for (size_t i = 0; i < m->n_jobs; i++) {
        enum matrix_state state = matrix_state(m, i + 1);
        wanted[i] = state == MATRIX_UNDONE || (again && state == MATRIX_FAILED);
        n += wanted[i];
    }
    int rc = 0;
    if (n)
        rc = how->engine == MATRIX_PARALLEL ? run_parallel(m, how, wanted, e)
             : how->engine == MATRIX_SLURM  ? run_slurm(m, how, wanted, e)
                                            : run_local(m, how, wanted, n, e);
    free(wanted);
    return rc;
}
