#include "analysis/measure.h"
#include "base/buf.h"
#include "cli/command.h"
#include "cli/paths.h"
#include "commands/parts.h"
#include "commands/replay_options.h"
#include "experiments/corpus/index.h"
#include "replay/machine.h"
#include "replay/run.h"
#include "report/page/page.h"
#include "report/text/pooled.h"
#include "workload/file.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct corpus_options {
    const char *folder, *results, *against;
    struct option_list allocators, engine_options;
    uint64_t size, runs;
    enum matrix_engine engine;
    bool install, retry, json;
};

#define AT(member) offsetof(struct corpus_options, member)

static const struct option options[] = {
    {'d', "dir", OPTION_STRING, "DIR", NULL,
     "use the corpus in DIR; without it, list prints heaptape's own index", AT(folder)},
    {0, "install", OPTION_FLAG, NULL, NULL,
     "with record: install missing programs with apt-get, as root", AT(install)},
    {0, "size", OPTION_NUMBER, "PERCENT", "100", "with record: scale the work of each program",
     AT(size), .min = 1, .max = 10000},
    {0, "json", OPTION_FLAG, NULL, NULL, "with list: print one JSON object", AT(json)},
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "with run: replay on this allocator; ratios are to the first [all that 'heaptape allocators' "
     "finds]",
     AT(allocators)},
    {'r', "runs", OPTION_NUMBER, "N", "8",
     "with run: replay each workload N times on each allocator", AT(runs), .min = 1,
     .max = MEASURE_MAX_RUNS},
    {0, "results", OPTION_STRING, "DIR", NULL,
     "with run: write the results to DIR [results in the corpus]", AT(results)},
    {0, "against", OPTION_STRING, "DIR", NULL,
     "with run: also print significant changes since the run with the results in DIR", AT(against)},
    {0, "engine", OPTION_CHOICE, MATRIX_ENGINES, "local", "with run: as for 'heaptape matrix'",
     AT(engine)},
    {0, "engine-option", OPTION_LIST, "OPTION", NULL, "with run: as for 'heaptape matrix'",
     AT(engine_options)},
    {0, "retry", OPTION_FLAG, NULL, NULL, "with run: run failed jobs again", AT(retry)},
    {0},
};

static _Noreturn void out_of_memory(void)
{
    die(EXIT_FAILED, "out of memory");
}

// Concatenates the strings. The caller frees the result.
static char *join_text(const char *a, const char *b, const char *c)
{
    char *text = NULL;
    if (asprintf(&text, "%s%s%s", a, b, c) < 0)
        out_of_memory();
    return text;
}

// Runs a command and writes the start of its standard output to `text`. Returns the exit status,
// 128 + N after signal N, or a negative errno.
static int run_command(char *const *words, char *text, size_t size)
{
    int ends[2], status = 0;
    pid_t pid;
    posix_spawn_file_actions_t files;
    if (pipe(ends) < 0)
        return -errno;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&files, ends[0]);
    posix_spawn_file_actions_addclose(&files, ends[1]);
    int rc = posix_spawnp(&pid, words[0], &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    if (!from)
        out_of_memory();
    text[rc ? 0 : fread(text, 1, size - 1, from)] = 0;
    while (rc == 0 && fgetc(from) != EOF)
        ;
    fclose(from);
    while (rc == 0 && waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return rc ? -rc : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void find_data(const char *name, char path[PATH_MAX])
{
    int rc = paths_find_data(name, path, PATH_MAX);
    if (rc < 0)
        die(EXIT_FAILED, "%s: not found where heaptape was installed: %s", name, strerror(-rc));
}

// Reads the directory's index, or the index that is installed with heaptape. With `may_lack`,
// treats a missing index as empty. Returns the path of the index, which the caller must free.
static char *read_index(struct corpus_index *x, const char *folder, bool may_lack)
{
    struct err e = {0};
    char ours[PATH_MAX];
    if (!folder)
        find_data("corpus/index.json", ours);
    char *path = folder ? join_text(folder, "/", "index.json") : strdup(ours);
    if (!path)
        out_of_memory();
    int rc = corpus_index_read(x, path, &e);
    if (rc < 0 && !(rc == -ENOENT && may_lack))
        die(EXIT_FAILED, "%s", e.text);
    return path;
}

static void expect_names(const struct corpus_index *x, const char *path, char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!corpus_index_find(x, names[i]))
            die(EXIT_FAILED, "%s: contains no workload '%s'", path, names[i]);
    }
}

static const char *text_or_dash(const char *text, bool is_known)
{
    return is_known ? text : "-";
}

static void print_entry(const struct corpus_entry *c)
{
    char threads[32];
    bool is_recorded = c->events != UINT64_MAX, has_rss = c->peak_recorded_rss_bytes != UINT64_MAX;
    snprintf(threads, sizeof threads, "%llu", (unsigned long long)c->threads);
    printf("%s %s %s %10s %7s %10s %10s %9s %10s\n", cli_cell(c->name, 11),
           cli_cell(c->program, 14), cli_cell(text_or_dash(c->version, c->version), 28),
           text_or_dash(human_number(c->events), is_recorded), text_or_dash(threads, is_recorded),
           text_or_dash(human_size(c->peak_live_bytes), is_recorded),
           text_or_dash(human_size(c->peak_recorded_rss_bytes), has_rss),
           text_or_dash(human_time((double)c->duration_ns), is_recorded),
           text_or_dash(human_size(c->file_bytes), is_recorded));
}

static int list_corpus(const struct corpus_options *o, char **names, size_t n)
{
    struct corpus_index x = {0};
    char *path = read_index(&x, o->folder, false);
    expect_names(&x, path, names, n);
    if (o->json)
        corpus_index_print(&x, (const char *const *)names, n, stdout);
    else
        cli_table_head("%-11s %-14s %-28s %10s %7s %10s %10s %9s %10s", "name", "program",
                       "version", "events", "threads", "peak live", "peak RSS", "duration", "file");
    for (size_t i = 0; !o->json && i < x.n; i++) {
        const struct corpus_entry *c = &x.entries[i];
        if (!corpus_index_wants((const char *const *)names, n, c->name))
            continue;
        print_entry(c);
    }
    free(path);
    corpus_index_release(&x);
    return EXIT_DONE;
}

static char *copy_known(const char *text)
{
    char *copy = *text ? strdup(text) : NULL;
    if (*text && !copy)
        out_of_memory();
    return copy;
}

static uint64_t known_number(uint64_t v)
{
    return v ? v : UINT64_MAX;
}

static void add_machine(struct corpus_entry *c)
{
    struct machine m;
    machine_read(&m);
    c->architecture = copy_known(m.architecture);
    c->cpu_model = copy_known(m.cpu_model);
    c->cpu_governor = copy_known(m.governor);
    c->transparent_hugepages = copy_known(m.transparent_hugepages);
    c->cores = known_number(m.cores);
    c->memory_bytes = known_number(m.memory_bytes);
    c->page_bytes = known_number(m.page_bytes);
}

// Copies the figures of the workload's summary.
static int add_workload(struct corpus_entry *c, const char *path, struct err *e)
{
    struct file f;
    struct workload_summary s;
    const struct workload_sample *samples = NULL;
    size_t n = 0;
    int rc = file_open(&f, path, FILE_WORKLOAD | FILE_REGULAR, e)
                 ?: workload_read_summary(f.workload.reader, &s, e)
                 ?: workload_read_samples(f.workload.reader, &samples, &n, e);
    if (rc == 0) {
        const struct workload_header *h = workload_reader_header(f.workload.reader);
        uint64_t rss = 0;
        for (size_t i = 0; i < n; i++)
            rss = samples[i].rss_bytes > rss ? samples[i].rss_bytes : rss;
        double ticks = (double)(s.last_stamp - s.first_stamp) * (double)(1ull << h->stamp_shift);
        c->events = s.events;
        c->threads = s.threads;
        c->peak_live_bytes = s.peak_live_bytes;
        c->peak_recorded_rss_bytes = known_number(rss);
        c->duration_ns = h->clock_hz ? (uint64_t)(ticks * 1e9 / (double)h->clock_hz) : 0;
        c->file_bytes = file_input(&f)->size_bytes;
    }
    file_close(&f);
    return rc;
}

// Stores the lines that the driver printed: program, version, licence, checksum.
static int add_lines(struct corpus_entry *c, char *text)
{
    char **const members[] = {&c->program, &c->version, &c->licence, &c->sha256};
    char *rest = text;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        char *line = strsep(&rest, "\n");
        if (!line || !*line)
            return -EBADMSG;
        *members[i] = copy_known(line);
    }
    return 0;
}

struct recording {
    char heaptape[PATH_MAX], driver[PATH_MAX], folder[PATH_MAX];
    struct corpus_index index;
    char *index_path;
    const struct corpus_options *options;
    size_t recorded, skipped, failed;
};

// Adds the entry of a workload that the driver recorded.
static int put_entry(struct recording *r, const char *name, char *text, struct err *e)
{
    struct corpus_entry c = {.name = copy_known(name), .size_percent = r->options->size};
    char *file = join_text(r->folder, "/", name), *path = join_text(file, ".htw", "");
    int rc = add_lines(&c, text);
    if (rc < 0)
        err_set(e, rc, "%s: program, version, licence or checksum is missing in the output",
                r->driver);
    add_machine(&c);
    if (rc == 0)
        rc = add_workload(&c, path, e);
    if (rc == 0 && (rc = corpus_index_put(&r->index, &c)) < 0)
        out_of_memory();
    if (rc == 0)
        rc = corpus_index_write(&r->index, r->index_path, e);
    corpus_entry_release(&c);
    free(file);
    free(path);
    return rc;
}

static void record_one(struct recording *r, const char *name)
{
    enum { MISSING = 3 }; // exit status of the driver if a program is missing
    char size[24], text[1024];
    struct err e = {0};
    snprintf(size, sizeof size, "%llu", (unsigned long long)r->options->size);
    char *words[] = {r->driver, r->heaptape, (char *)name,
                     r->folder, size,        r->options->install ? "1" : "0",
                     NULL};
    note("%s: recording", name);
    int status = run_command(words, text, sizeof text);
    if (status == EXIT_DONE && put_entry(r, name, text, &e) == 0) {
        const struct corpus_entry *c = corpus_index_find(&r->index, name);
        r->recorded++;
        note("%s: %s, %s", name, human_items(c->events, "event", "events"),
             human_size(c->file_bytes));
        return;
    }
    text[strcspn(text, "\n")] = 0;
    const char *said = *e.text      ? e.text
                       : status < 0 ? strerror(-status)
                       : *text      ? text
                                    : "it wrote nothing";
    said += strncmp(said, "heaptape: ", 10) == 0 ? 10 : 0;
    (status == MISSING ? note : cli_warn)("%s: %s: %s", name,
                                          status == MISSING ? "skipped" : "failed", said);
    *(status == MISSING ? &r->skipped : &r->failed) += 1;
}

// Finds the scripts in the driver's directory and sorts them. The caller must call globfree.
static void find_scripts(const char *driver, glob_t *found)
{
    char pattern[PATH_MAX];
    snprintf(pattern, sizeof pattern, "%.*s/*.sh", (int)(strrchr(driver, '/') - driver), driver);
    if (glob(pattern, 0, NULL, found) != 0)
        die(EXIT_FAILED, "%s: no recipe was found", pattern);
    for (size_t i = 0; i < found->gl_pathc; i++) {
        char *name = strrchr(found->gl_pathv[i], '/') + 1;
        name[strlen(name) - 3] = 0;
    }
}

static const char *script_name(const glob_t *scripts, size_t i)
{
    return strrchr(scripts->gl_pathv[i], '/') + 1;
}

static void expect_scripts(const glob_t *scripts, char **names, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        bool found = false;
        for (size_t i = 0; i < scripts->gl_pathc; i++)
            found |= strcmp(names[k], script_name(scripts, i)) == 0;
        if (!found)
            die(EXIT_FAILED, "'%s' is not a program of the corpus", names[k]);
    }
}

static int record_corpus(const struct corpus_options *o, char **names, size_t n)
{
    struct recording r = {.options = o};
    glob_t scripts;
    command_find_self(r.heaptape);
    find_data("corpus/driver", r.driver);
    find_scripts(r.driver, &scripts);
    expect_scripts(&scripts, names, n);
    if ((mkdir(o->folder, 0777) < 0 && errno != EEXIST) || !realpath(o->folder, r.folder))
        die(EXIT_FAILED, "%s: %s", o->folder, strerror(errno));
    r.index_path = read_index(&r.index, r.folder, true);
    for (size_t i = 0; i < scripts.gl_pathc; i++) {
        if (corpus_index_wants((const char *const *)names, n, script_name(&scripts, i)))
            record_one(&r, script_name(&scripts, i));
    }
    (r.recorded ? note : cli_warn)("%zu recorded, %zu skipped, %zu failed", r.recorded, r.skipped,
                                   r.failed);
    globfree(&scripts);
    free(r.index_path);
    corpus_index_release(&r.index);
    return r.recorded && !r.failed ? EXIT_DONE : EXIT_FAILED;
}

// Returns the names of the installed allocators. The caller frees the array.
static const char **find_allocators(size_t *n)
{
    char player[PATH_MAX], version[128];
    struct replay_run_settings how = {.player = player,
                                      .timeout_ns = REPLAY_TIMEOUT_SECONDS * 1000000000ull};
    const char **names = NULL;
    size_t capacity = 0;
    replay_find_own("heaptape-replay", player);
    for (const struct allocator_info *i = allocator_infos; i->name; i++) {
        struct allocator a = {0};
        struct err ignored = {0};
        char *library = NULL;
        if (allocator_parse(&a, i->name, &ignored) == 0 &&
            replay_probe(&a, &how, version, &library, &ignored) == 0 &&
            HT_APPEND(&names, n, &capacity, i->name) < 0)
            out_of_memory();
        allocator_release(&a);
        free(library);
    }
    return names;
}

// Runs the jobs for the workloads that `names` selects from the index.
static void run_jobs(struct matrix *m, const struct corpus_options *o, const struct corpus_index *x,
                     char **names, size_t n, const char *results)
{
    char **files = calloc(x->n, sizeof *files);
    struct command_matrix how = {.allocators = o->allocators,
                                 .engine_options = o->engine_options,
                                 .runs = o->runs,
                                 .engine = o->engine,
                                 .retry = o->retry};
    if (!files)
        out_of_memory();
    how.workloads.items = (const char **)files;
    for (size_t i = 0; i < x->n; i++) {
        if (corpus_index_wants((const char *const *)names, n, x->entries[i].name) &&
            asprintf(&files[how.workloads.n++], "%s/%s.htw", o->folder, x->entries[i].name) < 0)
            out_of_memory();
    }
    const char **found = o->allocators.n ? NULL : find_allocators(&how.allocators.n);
    how.allocators.items = found ? found : o->allocators.items;
    command_run_matrix(m, &how, results);
    while (how.workloads.n)
        free(files[--how.workloads.n]);
    free(files);
    free(found);
}

// Returns the allocators of a matrix in the order of its jobs. The caller must free the array. The
// names are borrowed.
static const char **list_allocators(const struct matrix *m, size_t *n)
{
    const char **names = calloc(m->n_jobs + 1, sizeof *names);
    if (!names)
        out_of_memory();
    *n = 0;
    for (size_t i = 0; i < m->n_jobs; i++) {
        size_t k = 0;
        while (k < *n && strcmp(names[k], m->jobs[i].allocator) != 0)
            k++;
        if (k == *n)
            names[(*n)++] = m->jobs[i].allocator;
    }
    return names;
}

// Writes the name of a job's workload without its directory and ending.
static void job_label(const struct matrix_job *job, char label[64])
{
    const char *slash = strrchr(job->workload, '/');
    snprintf(label, 64, "%s", slash ? slash + 1 : job->workload);
    label[strcspn(label, ".")] = 0;
}

// Reads the results of all jobs whose workload has this label.
static int read_results(struct document *d, const struct matrix *m, const char *label,
                        struct err *e)
{
    int rc = 0;
    for (size_t i = 1; rc == 0 && i <= m->n_jobs; i++) {
        char other[64];
        job_label(&m->jobs[i - 1], other);
        if (strcmp(other, label) == 0)
            rc = command_add_result(d, m, i, e);
    }
    return rc;
}

static int print_results(const struct matrix *m, struct pooled_table *t, struct document *page,
                         struct err *e)
{
    int rc = 0;
    pooled_print_head(t);
    for (size_t i = 1; rc == 0 && i <= m->n_jobs; i++) {
        struct document d = {.mode = "report"};
        char label[64];
        if (!command_is_first_job(m, i))
            continue;
        job_label(&m->jobs[i - 1], label);
        rc = read_results(&d, m, label, e);
        // The page shows the first run, whose jobs are consecutive.
        for (size_t k = i; rc == 0 && k < i + t->n && k <= m->n_jobs; k++)
            rc = command_add_result(page, m, k, e);
        if (rc == 0)
            rc = pooled_print_rows(&d, label, t, e);
        document_release(&d);
    }
    if (rc == 0)
        pooled_print_foot(t);
    return rc;
}

// Prints the changes since the run in the directory `against`. Returns the number of figures that
// are significantly worse, or a negative errno with the message set or -ENOMEM.
static int print_changes(const struct matrix *m, const char *against, const struct pooled_table *t,
                         struct err *e)
{
    struct matrix earlier = {0};
    char label[64];
    struct pooled_changes c = {.label = label, .runs = SIZE_MAX};
    int rc = matrix_open(&earlier, against, e);
    putchar('\n');
    for (size_t i = 1; rc == 0 && i <= m->n_jobs; i++) {
        struct document before = {.mode = "report"}, now = {.mode = "report"};
        if (!command_is_first_job(m, i))
            continue;
        job_label(&m->jobs[i - 1], label);
        rc = read_results(&before, &earlier, label, e)
                 ?: read_results(&now, m, label, e)
                 ?: pooled_print_changes(&before, &now, t, &c, e);
        document_release(&before);
        document_release(&now);
    }
    if (rc == 0)
        pooled_print_changes_foot(&c, t, against);
    matrix_release(&earlier);
    return rc < 0 ? rc : c.worse > INT_MAX ? INT_MAX : (int)c.worse;
}

// Prints the tables and writes the page. Returns the number of figures that are significantly worse
// than in the run in the directory `against`, which may be NULL.
static int show_results(const struct matrix *m, const char *page_path, const char *against)
{
    struct document page = {.mode = "report"};
    struct err e = {0};
    struct pooled_table t = {0};
    int worse = 0;
    const char **names = list_allocators(m, &t.n);
    t.names = names;
    for (size_t i = 1; i <= m->n_jobs; i++)
        t.workloads += command_is_first_job(m, i);
    int rc = print_results(m, &t, &page, &e);
    if (rc == 0 && against)
        rc = worse = print_changes(m, against, &t, &e);
    fflush(stdout);
    if (rc >= 0 && page.n_items)
        rc = page_save(&page, page_path, true, &e);
    if (rc < 0)
        die(EXIT_FAILED, "%s", *e.text ? e.text : "out of memory");
    if (page.n_items)
        note("wrote %s, with the first run of each workload on each allocator", page_path);
    pooled_table_release(&t);
    free(names);
    document_release(&page);
    return worse;
}

static int run_matrix(const struct corpus_options *o, char **names, size_t n)
{
    struct corpus_index x = {0};
    struct matrix m = {0};
    char *index_path = read_index(&x, o->folder, false);
    expect_names(&x, index_path, names, n);
    if (!x.n)
        die(EXIT_FAILED, "%s: contains no workload", index_path);
    if (o->engine_options.n && o->engine == MATRIX_LOCAL)
        return usage_error(&cmd_corpus,
                           "--engine-option is for --engine=parallel and --engine=slurm");
    char *in_corpus = join_text(o->folder, "/", "results");
    const char *results = o->results ? o->results : in_corpus;
    char *page = join_text(results, "/", "index.html");
    run_jobs(&m, o, &x, names, n, results);
    int worse = show_results(&m, page, o->against);
    int code = command_count_jobs(&m, MATRIX_DONE) == m.n_jobs && !worse ? EXIT_DONE : EXIT_FAILED;
    matrix_release(&m);
    free(page);
    free(in_corpus);
    free(index_path);
    corpus_index_release(&x);
    return code;
}

static int run_corpus(const void *fields, char **argv)
{
    // In the order of `words`.
    static int (*const verbs[])(const struct corpus_options *o, char **names,
                                size_t n) = {record_corpus, list_corpus, run_matrix};
    const struct corpus_options *o = fields;
    int verb = cli_find_word(&cmd_corpus, argv[0]);
    if (verb < 0)
        return EXIT_USAGE;
    if (verbs[verb] != list_corpus && !o->folder)
        return usage_error(&cmd_corpus, "--dir is missing");
    return verbs[verb](o, argv + 1, (size_t)cli_common.n_operands - 1);
}

static const struct command_mode modes[] = {
    {.verb = "record", .accepts = "install|size"},
    {.verb = "list", .accepts = "json"},
    {.verb = "run", .accepts = "allocator|runs|results|against|engine|engine-option|retry"},
    {0},
};

static const struct command_word words[] = {
    {"record", "record, convert and anonymize each program"},
    {"list", "print the index"},
    {"run", "replay all workloads and compare the allocators"},
    {0},
};

const struct command cmd_corpus = {
    .name = "corpus",
    .operands = "record|list|run [NAME...]",
    .summary = "Record 40 programs and compare allocators on their workloads",
    .words_title = "Verbs",
    .words = words,
    .examples =
        {
            {"Record all programs, and install the missing ones first",
             "heaptape corpus record --dir corpus --install"},
            {"Compare three allocators on them",
             "heaptape corpus run --dir corpus -a glibc -a jemalloc -a mimalloc"},
            {"Compare again after an update, and print what has changed",
             "heaptape corpus run --dir corpus -a mimalloc --results new \\\n    --against "
             "corpus/results"},
            {"Compare two allocators by Slurm jobs, with the results in another directory",
             "heaptape corpus run --dir corpus -a glibc -a jemalloc --engine slurm \\\n"
             "    --results /shared/results"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct corpus_options),
    .modes = {modes},
    .min_operands = 1,
    .max_operands = 1000,
    .run = run_corpus,
};
