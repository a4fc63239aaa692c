#include "tables/stream.h"

#include "base/buf.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 4, BATCH_ROWS = 512 };

struct batch {
    size_t n;
    struct buf text;
    uint8_t tables[BATCH_ROWS]; // enum tables_id
    // Until the batch is passed to the reader, a TABLES_TEXT value is an offset into `text`.
    struct tables_row rows[BATCH_ROWS];
};

struct tables_stream {
    const char *path;
    struct file *file;
    struct tables_scan how;
    struct tables_condition *conditions[TABLES_N]; // owned
    uint32_t texts[TABLES_N]; // bit sets of the TABLES_TEXT columns, whose strings are copied
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    // The mutex protects these members. The batches from `read` to `written` - 1 (modulo BATCHES)
    // belong to the reader.
    size_t read, written;
    bool over, stop;
    int rc;
    struct err e;
    // Only the reader uses these members.
    bool holds; // the reader is reading batches[read]
    size_t at;
    struct batch batches[BATCHES];
};

// Passes a full batch or the last batch to the reader. Returns 0, or -ECANCELED if the reader has
// stopped.
static int pass_batch(struct tables_stream *s)
{
    struct batch *b = &s->batches[s->written % BATCHES];
    for (size_t i = 0; b->text.size && i < b->n; i++) {
        for (uint32_t left = b->rows[i].present & s->texts[b->tables[i]]; left; left &= left - 1) {
            union tables_value *v = &b->rows[i].values[__builtin_ctz(left)];
            v->text = (const char *)b->text.data + v->integer;
        }
    }
    pthread_mutex_lock(&s->mutex);
    s->written++;
    pthread_cond_signal(&s->changed);
    while (s->written - s->read == BATCHES && !s->stop)
        pthread_cond_wait(&s->changed, &s->mutex);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->mutex);
    b = &s->batches[s->written % BATCHES];
    b->n = 0;
    b->text.size = 0;
    return stop ? -ECANCELED : 0;
}

static int put_row(void *context, enum tables_id table, const struct tables_row *row)
{
    struct tables_stream *s = context;
    struct batch *b = &s->batches[s->written % BATCHES];
    struct tables_row *to = &b->rows[b->n];
    b->tables[b->n] = (uint8_t)table;
    to->present = row->present;
    to->event_kind = row->event_kind;
    for (uint32_t left = row->present; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        to->values[i] = row->values[i];
        if (s->texts[table] >> i & 1) {
            to->values[i].integer = (int64_t)b->text.size;
            if (buf_put(&b->text, row->values[i].text, strlen(row->values[i].text) + 1) < 0)
                return -ENOMEM;
        }
    }
    return ++b->n == BATCH_ROWS ? pass_batch(s) : 0;
}

static int put_facts(void *context, const struct tables_facts *facts)
{
    struct tables_stream *s = context;
    return s->how.facts(s->how.context, facts);
}

static void *run_scan(void *context)
{
    struct tables_stream *s = context;
    struct tables_scan how = s->how;
    how.row = put_row;
    how.facts = s->how.facts ? put_facts : NULL;
    how.context = s;
    int rc = s->file ? tables_scan_file(s->file, &how, &s->e) : tables_scan(s->path, &how, &s->e);
    if (rc == 0 && s->batches[s->written % BATCHES].n)
        rc = pass_batch(s);
    pthread_mutex_lock(&s->mutex);
    s->rc = rc;
    s->over = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void stream_free(struct tables_stream *s)
{
    for (size_t i = 0; i < BATCHES; i++)
        buf_release(&s->batches[i].text);
    for (size_t i = 0; i < TABLES_N; i++)
        free(s->conditions[i]);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    free(s);
}

static int copy_wanted(struct tables_stream *s, enum tables_id table)
{
    struct tables_wanted *w = &s->how.of[table];
    for (unsigned i = 0; i < tables_definitions[table].n_columns; i++)
        s->texts[table] |= (uint32_t)(tables_definitions[table].columns[i].type == TABLES_TEXT)
                           << i;
    if (!w->n_conditions)
        return 0;
    s->conditions[table] = malloc(w->n_conditions * sizeof *w->conditions);
    if (!s->conditions[table])
        return -ENOMEM;
    memcpy(s->conditions[table], w->conditions, w->n_conditions * sizeof *w->conditions);
    w->conditions = s->conditions[table];
    return 0;
}

struct tables_stream *tables_stream_start(const char *path, struct file *file,
                                          const struct tables_scan *how)
{
    struct tables_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->path = path;
    s->file = file;
    s->how = *how;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < TABLES_N; i++)
        rc = copy_wanted(s, (enum tables_id)i);
    if (rc < 0 || thread_start(&s->thread, 0, run_scan, s) < 0) {
        stream_free(s);
        return NULL;
    }
    return s;
}

// Sets *row to the next row of the current batch.
static int next_row(struct tables_stream *s, enum tables_id *table, const struct tables_row **row)
{
    const struct batch *b = &s->batches[s->read % BATCHES];
    if (table)
        *table = b->tables[s->at];
    *row = &b->rows[s->at++];
    return 1;
}

int tables_stream_next(struct tables_stream *s, enum tables_id *table,
                       const struct tables_row **row, struct err *e)
{
    if (s->holds && s->at < s->batches[s->read % BATCHES].n)
        return next_row(s, table, row);
    pthread_mutex_lock(&s->mutex);
    if (s->holds) {
        s->read++;
        s->holds = false;
        pthread_cond_signal(&s->changed);
    }
    while (s->read == s->written && !s->over)
        pthread_cond_wait(&s->changed, &s->mutex);
    s->holds = s->read != s->written;
    int rc = s->rc;
    pthread_mutex_unlock(&s->mutex);
    if (!s->holds)
        return rc < 0 ? err_set(e, rc, "%s", s->e.text) : 0;
    s->at = 0;
    return next_row(s, table, row);
}

void tables_stream_stop(struct tables_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    stream_free(s);
}
