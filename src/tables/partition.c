// Writes a table as one file per process, in directories named KEY=VALUE, following Hive's
// convention for partitions. https://duckdb.org/docs/data/partitioning/hive_partitioning
#include "base/clock.h"
#include "tables/export.h"
#include "workload/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

// Value that query engines read as NULL.
#define NO_VALUE "__HIVE_DEFAULT_PARTITION__"

// Limit on the number of rows that all files together hold in memory. If many processes run
// concurrently, row groups are therefore smaller.
enum { MAX_BUFFERED_ROWS = 1 << 19 };

struct partition_file {
    struct tables_output output;
    char *path;
};

struct partitions {
    const struct tables_export_settings *settings;
    struct file file;              // input
    char *folder;                  // directory of this recording
    struct partition_file **files; // indexed by process number; NULL if not open
    size_t n, capacity;
    size_t last;     // process of the last row
    size_t buffered; // number of rows in memory
    struct err *e;
};

// Escapes a value as Hive does: %XX replaces each character that is special in paths.
static void put_value(FILE *to, const char *value)
{
    if (!value || !*value)
        fputs(NO_VALUE, to);
    for (; value && *value; value++) {
        bool plain = (*value >= '0' && *value <= '9') || (*value >= 'a' && *value <= 'z') ||
                     (*value >= 'A' && *value <= 'Z') || strchr("._-+", *value);
        fprintf(to, plain ? "%c" : "%%%02X", (unsigned char)*value);
    }
}

// Returns DIR/TABLE/host=HOST/recording=TIME, or NULL when out of memory.
static char *make_folder(const struct partitions *p)
{
    const struct trace_session *s = &p->file.trace.reader.session;
    char *folder = NULL, when[32] = "";
    size_t bytes;
    time_t seconds = (time_t)(s->realtime_ns / CLOCK_NS_PER_S);
    struct tm utc;
    FILE *to = open_memstream(&folder, &bytes);
    if (!to)
        return NULL;
    if (gmtime_r(&seconds, &utc))
        strftime(when, sizeof when, "%Y%m%dT%H%M%S", &utc);
    fprintf(to, "%s/%s/host=", p->settings->output, tables_definitions[p->settings->table].name);
    put_value(to, s->host);
    fprintf(to, "/recording=%s.%09" PRIu64 "Z", when, (uint64_t)(s->realtime_ns % CLOCK_NS_PER_S));
    bool failed = ferror(to);
    if (fclose(to) != 0 || failed) {
        free(folder);
        return NULL;
    }
    return folder;
}

// Returns false for the table of processes, which is a single file with a pid column.
static bool is_by_process(const struct partitions *p)
{
    return p->settings->table != TABLES_TABLE_PROCESSES;
}

static int open_file(struct partitions *p, struct partition_file *f, uint32_t process)
{
    char *folder = NULL;
    const struct trace_reader *r = &p->file.trace.reader;
    unsigned long pid = process < r->n_processes ? r->processes[process]->pid : 0;
    int n = is_by_process(p) ? asprintf(&folder, "%s/pid=%lu", p->folder, pid)
                             : asprintf(&folder, "%s", p->folder);
    int rc = n < 0 ? -ENOMEM : output_make_folder(folder, p->e);
    if (rc == 0 &&
        asprintf(&f->path, "%s/%" PRIu32 ".%s", folder, process, p->settings->format->name) < 0) {
        f->path = NULL;
        rc = -ENOMEM;
    }
    if (n >= 0)
        free(folder);
    f->output = (struct tables_output){.table = &tables_definitions[p->settings->table],
                                       .out = {.fd = -1},
                                       .csv_safe = p->settings->csv_safe,
                                       .e = p->e};
    rc = rc < 0 ? rc
                : output_open(&f->output.out, f->path,
                              OUTPUT_ASIDE | (p->settings->force ? OUTPUT_FORCE : 0), p->e);
    return rc < 0 ? rc : p->settings->format->begin(&f->output);
}

// Closes a file. If `whole` is set, the file is complete and gets its final name. Returns 0 or a
// negative errno.
static int close_file(struct partitions *p, size_t number, bool whole)
{
    struct partition_file *f = number < p->n ? p->files[number] : NULL;
    if (!f)
        return 0;
    p->buffered -= f->output.buffered;
    int rc = tables_export_finish(p->settings->format, &f->output, whole ? 0 : -ECANCELED);
    free(f->path);
    free(f);
    p->files[number] = NULL;
    return whole ? rc : 0;
}

static int get_file(struct partitions *p, uint32_t process, struct partition_file **to)
{
    if (HT_EXTEND(&p->files, &p->n, &p->capacity, (size_t)process + 1) < 0)
        return -ENOMEM;
    *to = p->files[process];
    if (*to)
        return 0;
    *to = p->files[process] = calloc(1, sizeof **to);
    return *to ? open_file(p, *to, process) : -ENOMEM;
}

// Writes the rows of the file that holds the most rows in memory.
static int flush_largest(struct partitions *p)
{
    struct tables_output *largest = NULL;
    for (size_t i = 0; i < p->n; i++) {
        if (p->files[i] && (!largest || p->files[i]->output.buffered > largest->buffered))
            largest = &p->files[i]->output;
    }
    p->buffered -= largest->buffered;
    return p->settings->format->flush(largest);
}

static int put_row(void *context, enum tables_id table, const struct tables_row *row)
{
    struct partitions *p = context;
    struct partition_file *f;
    // Column 0 of every table is the process.
    uint32_t process = is_by_process(p) ? (uint32_t)row->values[0].integer : 0;
    // Rows of call sites are grouped by process. When the process changes, the previous process's
    // file is complete.
    int rc = table == TABLES_TABLE_SITES && p->last != process ? close_file(p, p->last, true) : 0;
    rc = rc < 0 ? rc : get_file(p, process, &f);
    if (rc < 0)
        return rc;
    p->last = process;
    p->buffered -= f->output.buffered;
    rc = p->settings->format->row(&f->output, row);
    p->buffered += f->output.buffered;
    return rc == 0 && p->buffered > MAX_BUFFERED_ROWS ? flush_largest(p) : rc;
}

// Closes the file of a process after its last row of events, blocks or samples.
static int end_process(void *context, const struct tables_facts *facts)
{
    struct partitions *p = context;
    enum tables_id table = p->settings->table;
    return table == TABLES_TABLE_SITES || table == TABLES_TABLE_PROCESSES
               ? 0
               : close_file(p, facts->process, true);
}

static int open_input(struct partitions *p, const char *from, struct err *e)
{
    int rc = file_open(&p->file, from, FILE_TRACE | FILE_WORKLOAD | FILE_TRACE_TWICE, e);
    if (rc == 0 && p->file.kind == FILE_WORKLOAD)
        rc =
            err_set(e, -EINVAL,
                    "%s: is a workload, which does not store host and time of the recording", from);
    p->folder = rc == 0 ? make_folder(p) : NULL;
    return rc < 0 ? rc : p->folder ? 0 : -ENOMEM;
}

int tables_partition(const char *from, const struct tables_export_settings *s, struct err *e)
{
    const struct tables_definition *table = &tables_definitions[s->table];
    struct partitions p = {.settings = s, .e = e};
    struct tables_scan scan = {
        .row = put_row, .facts = end_process, .context = &p, .watch = s->watch};
    struct rlimit files;
    // Raise the limit, because each running process needs an open file.
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){files.rlim_max, files.rlim_max});
    scan.of[s->table] =
        (struct tables_wanted){.rows = true, .columns = (1u << table->n_columns) - 1};
    int rc = open_input(&p, from, e);
    rc = rc < 0 ? rc : tables_scan_file(&p.file, &scan, e);
    for (size_t i = 0; i < p.n; i++) {
        int closed = close_file(&p, i, rc == 0);
        rc = rc < 0 ? rc : closed;
    }
    free(p.files);
    free(p.folder);
    file_close(&p.file);
    return rc == -ENOMEM ? err_no_memory(e, from) : rc;
}
