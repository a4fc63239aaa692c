#include "tables/stream.h"

#include "base/buf.h"
#include "base/ring.h"
#include "base/thread.h"

#include <errno.h>
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
    struct ring ring;
    struct batch batches[BATCHES];
    int filling; // batch that the scanning thread fills
    // Result of the scan. Valid when the ring is over and empty.
    int rc;
    struct err e;
    int reading; // batch that the reader reads; -1 if there is none
    size_t at;   // next row in the batch
};

// Waits for an empty batch. Returns 0, or -ECANCELED if the reader has stopped.
static int begin_batch(struct tables_stream *s)
{
    s->filling = ring_wait_empty(&s->ring);
    if (s->filling < 0)
        return -ECANCELED;
    s->batches[s->filling].n = 0;
    s->batches[s->filling].text.size = 0;
    return 0;
}

// Passes the batch to the reader.
static void pass_batch(struct tables_stream *s)
{
    struct batch *b = &s->batches[s->filling];
    for (size_t i = 0; b->text.size && i < b->n; i++) {
        for (uint32_t left = b->rows[i].present & s->texts[b->tables[i]]; left; left &= left - 1) {
            union tables_value *v = &b->rows[i].values[__builtin_ctz(left)];
            v->text = (const char *)b->text.data + v->integer;
        }
    }
    ring_fill(&s->ring);
}

static int put_row(void *context, enum tables_id table, const struct tables_row *row)
{
    struct tables_stream *s = context;
    struct batch *b = &s->batches[s->filling];
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
    if (++b->n < BATCH_ROWS)
        return 0;
    pass_batch(s);
    return begin_batch(s);
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
    s->rc = begin_batch(s);
    if (s->rc == 0)
        s->rc =
            s->file ? tables_scan_file(s->file, &how, &s->e) : tables_scan(s->path, &how, &s->e);
    if (s->rc == 0 && s->batches[s->filling].n)
        pass_batch(s);
    ring_over(&s->ring);
    return NULL;
}

static void stream_free(struct tables_stream *s)
{
    for (size_t i = 0; i < BATCHES; i++)
        buf_release(&s->batches[i].text);
    for (size_t i = 0; i < TABLES_N; i++)
        free(s->conditions[i]);
    ring_release(&s->ring);
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
    s->reading = -1;
    ring_init(&s->ring, BATCHES);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < TABLES_N; i++)
        rc = copy_wanted(s, (enum tables_id)i);
    if (rc < 0 || thread_start(&s->thread, 0, run_scan, s) < 0) {
        stream_free(s);
        return NULL;
    }
    return s;
}

int tables_stream_next(struct tables_stream *s, enum tables_id *table,
                       const struct tables_row **row, struct err *e)
{
    if (s->reading < 0 || s->at == s->batches[s->reading].n) {
        if (s->reading >= 0)
            ring_empty(&s->ring);
        s->reading = ring_wait_full(&s->ring);
        s->at = 0;
    }
    if (s->reading < 0)
        return s->rc < 0 ? err_set(e, s->rc, "%s", s->e.text) : 0;
    const struct batch *b = &s->batches[s->reading];
    if (table)
        *table = b->tables[s->at];
    *row = &b->rows[s->at++];
    return 1;
}

void tables_stream_stop(struct tables_stream *s)
{
    if (!s)
        return;
    ring_stop(&s->ring);
    pthread_join(s->thread, NULL);
    stream_free(s);
}
