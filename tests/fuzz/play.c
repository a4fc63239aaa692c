#include "play.h"

#include "plan/file.h"
#include "plan/ops.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { MAX_WORDS = 1 << 22 }; // that are played: of hostile counts there may be more

struct played_thread {
    uint64_t at; // 0: not started, or stopped
    uint64_t progress;
    bool started; // by a thread
};

struct played {
    const uint64_t *words;
    const struct plan_header *header;
    struct played_thread *threads;
    bool *live;    // by entry
    uint64_t left; // words that may still be played
    bool proved;   // no block is used that does not exist, and no thread waits for ever
};

static void need(bool ok)
{
    if (!ok)
        abort();
}

static void use_entry(struct played *p, enum plan_op op, uint64_t entry)
{
    unsigned kind = plan_kind_of(op);
    if (!kind)
        return;
    need(entry < p->header->slot_table_entries);
    if (!p->proved)
        return;
    bool frees = event_infos[kind].class == HT_CLASS_FREE || op == PLAN_REALLOC_FREE;
    bool resizes = op == PLAN_REALLOC || op == PLAN_REALLOCARRAY;
    // Entry 0 is NULL: freed as often as one likes, never allocated.
    need(entry ? p->live[entry] == (frees || resizes) : frees);
    if (entry)
        p->live[entry] = !frees;
}

static void start_thread(struct played *p, uint64_t number)
{
    const struct plan_thread *threads = (const struct plan_thread *)(p->words + p->header->threads_at);
    need(number < p->header->n_threads);
    if (!threads[number].first_word)
        return;
    need(!threads[number].at_start && !p->threads[number].started);
    p->threads[number].started = true;
    p->threads[number].at = threads[number].first_word;
}

// Plays until the thread stops, or waits for another: true when it went on.
static bool play(struct played *p, struct played_thread *t)
{
    uint64_t begin = t->at;
    while (t->at && p->left) {
        need(t->at < p->header->words);
        const uint64_t *w = p->words + t->at;
        enum plan_op op = plan_op_of(*w);
        unsigned n = plan_op_words(*w);
        need(t->at + n <= p->header->words);
        p->left -= n < p->left ? n : p->left;
        if (op == PLAN_WAIT || op == PLAN_COUPLE) {
            uint64_t of = plan_size_of(*w);
            need(of < p->header->n_threads);
            if (p->threads[of].progress < w[1])
                return t->at != begin;
        }
        if (op == PLAN_JUMP) {
            t->at += 1 + (*w >> 8);
            continue;
        }
        if (op == PLAN_START_THREAD)
            start_thread(p, plan_size_of(*w));
        if (op == PLAN_WIDE)
            use_entry(p, plan_op_of(*w >> 8), w[1]);
        else
            use_entry(p, op, plan_entry_of(*w));
        need(op != PLAN_NEXT_SEGMENT);
        t->at += n;
        if (*w & PLAN_PUBLISH && plan_is_numbered(op))
            t->progress = t->at;
        if (op == PLAN_STOP)
            t->at = 0;
    }
    return t->at != begin;
}

static void play_all(struct played *p)
{
    const struct plan_thread *threads = (const struct plan_thread *)(p->words + p->header->threads_at);
    struct played_thread alone = {.at = p->header->preexisting_at};
    play(p, &alone);
    for (uint32_t i = 0; i < p->header->n_threads; i++)
        p->threads[i].at = threads[i].at_start ? threads[i].first_word : 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < p->header->n_threads; i++)
            moved |= p->threads[i].at && play(p, &p->threads[i]);
    }
    for (uint32_t i = 0; p->proved && i < p->header->n_threads && p->left; i++)
        need(!p->threads[i].at);
    alone.at = p->header->leftovers_at;
    play(p, &alone);
    for (uint64_t i = 0; p->proved && i < p->header->slot_table_entries && p->left; i++)
        need(!p->live[i]);
}

void play_plan(const struct plan *plan, bool proved)
{
    size_t bytes = plan_own_bytes(plan);
    const uint64_t *words = mmap(NULL, bytes, PROT_READ, MAP_SHARED, plan_fd(plan), (off_t)plan_file_at(plan));
    need(words != MAP_FAILED);
    const struct plan_header *h = (const struct plan_header *)words;
    need(h->magic == PLAN_MAGIC && h->words * sizeof *words <= bytes);
    struct played p = {.words = words,
                       .header = h,
                       .threads = calloc(h->n_threads + 1, sizeof *p.threads),
                       .live = calloc(h->slot_table_entries + 1, 1),
                       .left = MAX_WORDS,
                       .proved = proved};
    need(p.threads && p.live);
    play_all(&p);
    free(p.threads);
    free(p.live);
    munmap((void *)words, bytes);
}
