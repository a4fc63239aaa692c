#include "record/drain/bundle.h"

#include <stdlib.h>

struct bundle *bundle_new(void)
{
    struct bundle *p = calloc(1, sizeof *p);
    if (p)
        p->words = malloc(sizeof *p->words * BUNDLE_WORDS);
    if (p && p->words)
        return p;
    free(p);
    return NULL;
}

void bundle_release_piece(struct bundle_piece *piece)
{
    if (piece->kind == BUNDLE_PROCESS || piece->kind == BUNDLE_PROCESS_END)
        trace_process_release(&piece->process);
    else if (piece->kind == BUNDLE_NAMES)
        names_release(&piece->names);
    else if (piece->kind == BUNDLE_PAGES)
        buf_release(&piece->pages);
}

void bundle_clear(struct bundle *p)
{
    for (size_t i = 0; i < p->n_pieces; i++)
        bundle_release_piece(&p->pieces[i]);
    p->n_pieces = 0;
    p->n_words = p->n_samples = 0;
    p->begins = p->ends = false;
    p->frame_bytes = 0;
    p->failed = 0;
    p->encoded = p->raw = false;
}

void bundle_free(struct bundle *p)
{
    while (p) {
        struct bundle *next = p->next;
        bundle_clear(p);
        free(p->pieces);
        free(p->words);
        free(p);
        p = next;
    }
}

struct bundle_piece *bundle_add(struct bundle *p, enum bundle_kind kind)
{
    if (HT_GROW(&p->pieces, &p->capacity, p->n_pieces + 1) < 0)
        return NULL;
    struct bundle_piece *piece = &p->pieces[p->n_pieces++];
    *piece = (struct bundle_piece){.kind = kind};
    return piece;
}

int bundle_encode(const struct bundle *p, struct trace_writer *w, struct err *e)
{
    w->frame_words = BUNDLE_WORDS;
    w->fast = p->fast;
    w->batch = p->batch;
    w->watermark = p->before;
    int rc = trace_batch_begin(w, e);
    for (size_t i = 0; i < p->n_pieces && rc == 0; i++) {
        const struct bundle_piece *piece = &p->pieces[i];
        if (piece->kind == BUNDLE_SEGMENT)
            rc = trace_batch_add_scanned(w, &piece->segment, piece->events, e);
    }
    if (rc < 0)
        return rc;
    return p->ends ? trace_batch_end(w, p->watermark, e) : trace_batch_flush(w, e);
}

uint64_t bundle_events(const struct bundle *p)
{
    uint64_t events = 0;
    for (size_t i = 0; i < p->n_pieces; i++)
        events += p->pieces[i].events;
    return events;
}
