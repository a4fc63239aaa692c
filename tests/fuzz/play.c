#include "play.h"

#include "replay/plan/file.h"
#include "replay/plan/ops.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    MAX_WORDS = 1 << 22, // limit of played words; hostile counts may exceed it
    SCHEDULES = 5,
    SCHEDULED_THREADS = 64, // plans with more threads are played only thread by thread
    SCHEDULED_WORDS = 1 << 18,
};

struct played_thread {
    uint64_t at; // position of the next word; 0 if the thread has not started or has stopped
    uint64_t progress;
    bool started; // a thread has started this thread
};

struct played {
    const uint64_t *words;
    const struct plan_header *header;
    struct played_thread *threads;
    // For each entry: the number of the allocating thread plus OWNER_FIRST, or 0 if the entry has
    // no block.
    uint32_t *owners;
    uint64_t left;  // remaining words to play
    bool proved;    // if true, also check that blocks exist when they are used, and that no thread
                    // waits forever
    bool uncoupled; // if true, COUPLE does not wait
};

enum { OWNER_ALONE = 1, OWNER_FIRST }; // owner of preexisting blocks, and of thread 0's blocks

static void need(bool ok)
{
    if (!ok)
        abort();
}

static uint32_t owner_of(const struct played *p, const struct played_thread *t)
{
    bool is_thread = t >= p->threads && t < p->threads + p->header->n_threads;
    return is_thread ? (uint32_t)(t - p->threads) + OWNER_FIRST : OWNER_ALONE;
}

static void use_entry(struct played *p, struct played_thread *t, enum plan_op op, uint64_t entry)
{
    unsigned kind = plan_op_info(op).kind;
    if (!kind)
        return;
    need(entry < p->header->slot_table_entries);
    if (!p->proved)
        return;
    bool frees = event_infos[kind].class == HT_CLASS_FREE || op == PLAN_REALLOC_FREE;
    bool resizes = event_infos[kind].class == HT_CLASS_RESIZE && (unsigned)op == kind;
    // Entry 0 is NULL: it may be freed any number of times, but never allocated.
    need(entry ? (p->owners[entry] != 0) == (frees || resizes) : frees);
    if (entry)
        p->owners[entry] = frees ? 0 : owner_of(p, t);
}

// Checks that a block exists when a thread touches its pages.
static void touch_entry(const struct played *p, uint64_t entry)
{
    need(entry < p->header->slot_table_entries);
    need(!p->proved || p->owners[entry]);
}

static void start_thread(struct played *p, uint64_t number)
{
    const struct plan_thread *threads =
        (const struct plan_thread *)(p->words + p->header->threads_at);
    need(number < p->header->n_threads);
    if (!threads[number].first_word)
        return;
    need(!threads[number].at_start && !p->threads[number].started);
    p->threads[number].started = true;
    p->threads[number].at = threads[number].first_word;
}

// Plays up to `n_ops` ops until the thread stops or waits. Returns true if it made progress.
static bool play(struct played *p, struct played_thread *t, uint64_t n_ops)
{
    uint64_t begin = t->at;
    while (t->at && p->left && n_ops--) {
        need(t->at < p->header->words);
        const uint64_t *w = p->words + t->at;
        enum plan_op op = plan_op_of(*w);
        unsigned n = plan_op_words(*w);
        need(t->at + n <= p->header->words);
        p->left -= n < p->left ? n : p->left;
        if (op == PLAN_WAIT || op == PLAN_COUPLE) {
            uint64_t of = plan_size_of(*w);
            need(of < p->header->n_threads);
            if (p->threads[of].progress < w[1] && !(op == PLAN_COUPLE && p->uncoupled))
                return t->at != begin;
        }
        if (op == PLAN_JUMP) {
            t->at += 1 + (*w >> 8);
            continue;
        }
        if (op == PLAN_START_THREAD)
            start_thread(p, plan_size_of(*w));
        if (op == PLAN_WIDE)
            use_entry(p, t, plan_op_of(*w >> 8), w[1]);
        else if (op == PLAN_TOUCH_LATE)
            touch_entry(p, plan_entry_of(*w));
        else
            use_entry(p, t, op, plan_entry_of(*w));
        need(op != PLAN_NEXT_SEGMENT);
        t->at += n;
        if (*w & PLAN_PUBLISH && plan_op_info(op).is_numbered)
            t->progress = t->at;
        if (op == PLAN_STOP)
            t->at = 0;
    }
    return t->at != begin;
}

// Plays thread after thread until each blocks.
static void play_in_turn(struct played *p)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < p->header->n_threads; i++)
            moved |= p->threads[i].at && play(p, &p->threads[i], UINT64_MAX);
    }
}

// Always runs the first thread of an order that can continue, so threads at the end of the order
// lag as far as the plan allows. Order 0 is by ascending thread number, order 1 by descending
// number.
static void play_in_order(struct played *p, unsigned number)
{
    uint32_t order[SCHEDULED_THREADS], n = p->header->n_threads, random = number;
    for (uint32_t i = 0; i < n; i++)
        order[i] = number == 1 ? n - 1 - i : i;
    for (uint32_t i = n; number > 1 && i-- > 1;) {
        random = random * 1664525 + 1013904223;
        uint32_t j = (random >> 8) % (i + 1), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (uint32_t i = 0; i < n;) {
        struct played_thread *t = &p->threads[order[i]];
        i = t->at && play(p, t, 1) ? 0 : i + 1;
    }
}

// Plays all threads in order number `schedule`, or thread after thread if `schedule` is SCHEDULES.
static void play_all(struct played *p, unsigned schedule)
{
    const struct plan_thread *threads =
        (const struct plan_thread *)(p->words + p->header->threads_at);
    struct played_thread alone = {.at = p->header->preexisting_at};
    play(p, &alone, UINT64_MAX);
    for (uint32_t i = 0; i < p->header->n_threads; i++)
        p->threads[i] =
            (struct played_thread){.at = threads[i].at_start ? threads[i].first_word : 0};
    if (schedule == SCHEDULES)
        play_in_turn(p);
    else
        play_in_order(p, schedule);
    for (uint32_t i = 0; p->proved && i < p->header->n_threads && p->left; i++)
        need(!p->threads[i].at);
    alone.at = p->header->leftovers_at;
    play(p, &alone, UINT64_MAX);
    for (uint64_t i = 0; p->proved && i < p->header->slot_table_entries && p->left; i++)
        need(!p->owners[i]);
}

void play_plan(const struct plan *plan, bool proved)
{
    size_t bytes = plan_facts(plan)->own_bytes;
    const uint64_t *words =
        mmap(NULL, bytes, PROT_READ, MAP_SHARED, plan_fd(plan), (off_t)plan_facts(plan)->file_at);
    need(words != MAP_FAILED);
    const struct plan_header *h = (const struct plan_header *)words;
    need(h->magic == PLAN_MAGIC && h->words * sizeof *words <= bytes);
    struct played p = {.words = words,
                       .header = h,
                       .threads = calloc(h->n_threads + 1, sizeof *p.threads),
                       .owners = calloc(h->slot_table_entries + 1, sizeof *p.owners),
                       .left = MAX_WORDS,
                       .proved = proved};
    need(p.threads && p.owners);
    play_all(&p, SCHEDULES);
    bool is_ordered = proved && !plan_facts(plan)->unproved && h->n_threads <= SCHEDULED_THREADS;
    for (unsigned i = 0; is_ordered && i < SCHEDULES; i++) {
        memset(p.owners, 0, h->slot_table_entries * sizeof *p.owners);
        p.left = SCHEDULED_WORDS;
        p.uncoupled = true;
        play_all(&p, i);
    }
    free(p.threads);
    free(p.owners);
    munmap((void *)words, bytes);
}
