// Writes the windows of a streamed plan to a file. Each window is written as soon as it is full.
#include "base/buf.h"
#include "replay/plan/build.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
    MIN_WINDOW_WORDS = 2048,
    // Large enough that a thread that is far ahead of the others rarely has to wait for them.
    MAX_WINDOW_WORDS = 3 << 20, // for a ring of 192 MiB
    WINDOW_STEP_WORDS = 512,
};

uint64_t plan_window_bytes(uint64_t memory_bytes)
{
    // The ring uses half of the memory allowed.
    uint64_t words = memory_bytes / 2 / PLAN_WINDOWS / 8 / WINDOW_STEP_WORDS * WINDOW_STEP_WORDS;
    if (words > MAX_WINDOW_WORDS)
        words = MAX_WINDOW_WORDS;
    return 8 * (words < MIN_WINDOW_WORDS ? MIN_WINDOW_WORDS : words);
}

int plan_windows_new(struct plan *p, struct err *e)
{
    p->facts.window_bytes = plan_window_bytes(p->settings.memory_bytes);
    p->window_words = calloc(p->facts.window_bytes, 1);
    if (!p->window_words)
        return err_no_memory(e, NULL);
    plan_memory_init_windows(&p->ring, p->window_words, p->facts.window_bytes / 8);
    return 0;
}

static int write_segments(const struct plan *p, struct err *e)
{
    size_t n = p->ring.n_open;
    struct plan_window_segment *segments = calloc(n, sizeof *segments);
    if (!segments)
        return err_no_memory(e, NULL);
    for (size_t i = 0; i < n; i++) {
        const struct plan_stream *s = p->ring.open[i];
        const struct plan_segment *g = &s->segments[(s->n_segments - 1) % PLAN_WINDOWS];
        segments[i] = (struct plan_window_segment){
            .thread = s->number, .first = g->first, .first_op = g->first_op};
    }
    int rc = output_write(p->settings.file, segments, n * sizeof *segments, e);
    free(segments);
    return rc;
}

int plan_write_window(struct plan *p, struct err *e)
{
    struct plan_memory *m = &p->ring;
    if (!m->n_open)
        return 0;
    plan_memory_close_window(m);
    if (HT_GROW(&p->windows, &p->windows_capacity, m->window + 1) < 0)
        return err_no_memory(e, NULL);
    uint64_t bytes = (m->used - m->words_at) * 8;
    p->windows[m->window] = (struct plan_window){.at = p->settings.file->offset,
                                                 .words = m->used - m->words_at,
                                                 .segments = m->n_open,
                                                 .hash = XXH3_64bits(m->words, bytes)};
    p->facts.windows = m->window + 1;
    return output_write(p->settings.file, m->words, bytes, e) ?: write_segments(p, e);
}
