#include "tables/library/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int library_open(heaptape_trace *t, struct err *e)
{
    if (t->open)
        return 0;
    int rc = file_open(&t->file, t->path, FILE_TRACE | FILE_WORKLOAD | FILE_TRACE_TWICE, e);
    if (rc < 0)
        file_close(&t->file);
    t->open = rc == 0;
    return rc;
}

static void stop_reading(heaptape_trace *t)
{
    tables_stream_stop(t->stream);
    t->stream = NULL;
    if (t->open)
        file_close(&t->file);
    t->open = false;
}

int heaptape_trace_open(heaptape_trace **to, const char *path)
{
    struct stat st;
    heaptape_trace *t = calloc(1, sizeof *t);
    *to = t;
    if (!t)
        return -ENOMEM;
    if (!path)
        return err_set(&t->e, -EINVAL, "no path to open");
    t->path = strdup(path);
    if (!t->path)
        return err_no_memory(&t->e, path);
    t->once = strcmp(path, "-") == 0 ||
              (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
    return library_open(t, &t->e);
}

void heaptape_trace_close(heaptape_trace *t)
{
    if (!t)
        return;
    stop_reading(t);
    library_facts_release(&t->facts);
    library_facts_release(&t->coming);
    buf_release(&t->text);
    free(t->op_numbers);
    free(t->dependencies);
    free(t->path);
    free(t);
}

int heaptape_trace_rewind(heaptape_trace *t)
{
    struct err *e = library_begin(t);
    if (t->once && t->use != LIBRARY_UNUSED)
        return err_set(e, -ESPIPE, "%s: can be read only once", t->path);
    if (!t->path)
        return err_set(e, -EINVAL, "no path to open");
    if (t->use != LIBRARY_UNUSED)
        stop_reading(t);
    library_facts_release(&t->facts);
    library_facts_release(&t->coming);
    t->n_threads = 0;
    t->use = LIBRARY_UNUSED;
    t->over = false;
    t->failed = 0;
    t->failure.text[0] = t->cut.text[0] = 0;
    return library_open(t, e);
}

const char *heaptape_trace_error(const heaptape_trace *t)
{
    return t ? t->e.text : "out of memory";
}

int heaptape_trace_kind(const heaptape_trace *t)
{
    if (!t->open)
        return 0;
    return t->file.kind == FILE_TRACE ? HEAPTAPE_TRACE_FILE : HEAPTAPE_WORKLOAD_FILE;
}

const char *heaptape_trace_operation_name(unsigned operation)
{
    return operation < HT_KIND_LIMIT && event_counts(operation) ? event_infos[operation].name
                                                                : NULL;
}

int heaptape_trace_allocates(unsigned operation)
{
    unsigned class = operation < HT_KIND_LIMIT ? event_infos[operation].class : HT_CLASS_NONE;
    return class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE;
}

const char *heaptape_trace_version(void)
{
    return HEAPTAPE_VERSION;
}
