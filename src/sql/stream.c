#include "sql/stream.h"

#include "base/buf.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { BATCHES = 4, BATCH_ROWS = 512 };

struct batch {
    size_t n;
    struct buf text;
    struct tables_row rows[BATCH_ROWS]; // a TABLES_TEXT is an offset into `text` until the batch is full
};

struct sql_stream {
    const char *path;
    enum tables_id table;
    struct tables_wanted wanted;
    struct tables_condition *conditions; // owned
    const struct convert_watch *watch;
    uint32_t texts; // columns whose texts are borrowed
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    // Under the mutex: batches[i % BATCHES] is the reader's for i from `read` to `written`.
    size_t read, written;
    bool over, stop;
    int rc;
    struct err e;
    // Of the reader.
    bool holds; // batches[read] is being read
    size_t at;
    struct batch batches[BATCHES];
};

// The batch is full, or the last one. 0, or -ECANCELED when the reader wants no more.
static int hand_over(struct sql_stream *s)
{
    struct batch *b = &s->batches[s->written % BATCHES];
    for (size_t i = 0; s->texts && i < b->n; i++) {
        for (uint32_t left = b->rows[i].present & s->texts; left; left &= left - 1) {
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
    struct sql_stream *s = context;
    struct batch *b = &s->batches[s->written % BATCHES];
    struct tables_row *to = &b->rows[b->n];
    (void)table;
    to->present = row->present;
    for (uint32_t left = row->present; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        to->values[i] = row->values[i];
        if (s->texts >> i & 1) {
            to->values[i].integer = (int64_t)b->text.size;
            if (buf_put(&b->text, row->values[i].text, strlen(row->values[i].text) + 1) < 0)
                return -ENOMEM;
        }
    }
    return ++b->n == BATCH_ROWS ? hand_over(s) : 0;
}

static void *scan(void *context)
{
    struct sql_stream *s = context;
    struct tables_scan how = {.row = put_row, .context = s, .watch = s->watch};
    how.of[s->table] = s->wanted;
    int rc = tables_scan(s->path, &how, &s->e);
    if (rc == 0 && s->batches[s->written % BATCHES].n)
        rc = hand_over(s);
    pthread_mutex_lock(&s->mutex);
    s->rc = rc;
    s->over = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void stream_free(struct sql_stream *s)
{
    for (size_t i = 0; i < BATCHES; i++)
        buf_release(&s->batches[i].text);
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->changed);
    free(s->conditions);
    free(s);
}

struct sql_stream *sql_stream_start(const char *path, enum tables_id table, const struct tables_wanted *wanted,
                                    const struct convert_watch *watch)
{
    struct sql_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->path = path;
    s->table = table;
    s->watch = watch;
    s->wanted = *wanted;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    for (unsigned i = 0; i < tables_definitions[table].n_columns; i++)
        s->texts |= (uint32_t)(tables_definitions[table].columns[i].type == TABLES_TEXT) << i;
    s->conditions = malloc((wanted->n_conditions + 1) * sizeof *s->conditions);
    if (s->conditions && wanted->n_conditions)
        memcpy(s->conditions, wanted->conditions, wanted->n_conditions * sizeof *s->conditions);
    s->wanted.conditions = s->conditions;
    if (!s->conditions || pthread_create(&s->thread, NULL, scan, s) != 0) {
        stream_free(s);
        return NULL;
    }
    return s;
}

int sql_stream_next(struct sql_stream *s, const struct tables_row **row, struct err *e)
{
    if (s->holds && s->at < s->batches[s->read % BATCHES].n) {
        *row = &s->batches[s->read % BATCHES].rows[s->at++];
        return 1;
    }
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
    s->at = 1;
    *row = &s->batches[s->read % BATCHES].rows[0];
    return 1;
}

void sql_stream_stop(struct sql_stream *s)
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
