#include "analysis/placement_arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, PAGE_WORDS = PLACEMENT_ARENA_PAGE_GRANULES / WORD_BITS, MIN_WORDS = 1024 };

void placement_arena_release(struct placement_arena *a)
{
    free(a->words);
    free(a->nodes);
    *a = (struct placement_arena){0};
}

static uint32_t longest_run(uint64_t w)
{
    uint32_t n = 0;
    if (w == UINT64_MAX)
        return WORD_BITS;
    for (; w; w &= w >> 1)
        n++;
    return n;
}

static struct placement_arena_node leaf_of(uint64_t w)
{
    return (struct placement_arena_node){
        w == UINT64_MAX ? WORD_BITS : (uint32_t)__builtin_ctzll(~w),
        w == UINT64_MAX ? WORD_BITS : (uint32_t)__builtin_clzll(~w), longest_run(w)};
}

// Joins two nodes that cover `half` granules each.
static struct placement_arena_node join(const struct placement_arena_node *l,
                                        const struct placement_arena_node *r, uint32_t half)
{
    uint32_t longest = l->longest > r->longest ? l->longest : r->longest,
             middle = l->suffix + r->prefix;
    return (struct placement_arena_node){l->prefix == half ? half + r->prefix : l->prefix,
                                         r->suffix == half ? half + l->suffix : r->suffix,
                                         middle > longest ? middle : longest};
}

// Updates the nodes above words [first, last]. Stops at a level where nothing has changed.
static void update_nodes(struct placement_arena *a, size_t first, size_t last)
{
    for (size_t w = first; w <= last; w++)
        a->nodes[a->n_words + w] = leaf_of(a->words[w]);
    uint32_t half = WORD_BITS;
    for (first += a->n_words, last += a->n_words; first > 1; half *= 2) {
        bool changed = false;
        first /= 2;
        last /= 2;
        for (size_t i = first; i <= last; i++) {
            struct placement_arena_node n = join(&a->nodes[2 * i], &a->nodes[2 * i + 1], half);
            changed |= memcmp(&n, &a->nodes[i], sizeof n) != 0;
            a->nodes[i] = n;
        }
        if (!changed)
            return;
    }
}

static int grow_arena(struct placement_arena *a)
{
    size_t n = a->n_words ? 2 * a->n_words : MIN_WORDS;
    if (n > PLACEMENT_ARENA_MAX_WORDS)
        return -EFBIG;
    uint64_t *words = realloc(a->words, n * sizeof *words);
    a->words = words ? words : a->words;
    struct placement_arena_node *nodes = words ? realloc(a->nodes, 2 * n * sizeof *nodes) : NULL;
    if (!nodes)
        return -ENOMEM;
    a->nodes = nodes;
    memset(a->words + a->n_words, 0xff, (n - a->n_words) * sizeof *words);
    memset(a->nodes, 0, 2 * n * sizeof *nodes);
    a->n_words = n;
    update_nodes(a, 0, n - 1);
    return 0;
}

static bool is_free_page(const struct placement_arena *a, size_t page)
{
    const uint64_t *w = a->words + page * PAGE_WORDS;
    return (w[0] & w[1] & w[2] & w[3]) == UINT64_MAX;
}
_Static_assert(PAGE_WORDS == 4, "is_free_page tests four words");

static void change_word(uint64_t *w, uint64_t from, uint64_t to, bool is_free)
{
    uint64_t mask = (to - from == WORD_BITS ? UINT64_MAX : ((uint64_t)1 << (to - from)) - 1)
                    << from;
    *w = is_free ? *w | mask : *w & ~mask;
}

// Marks granules [at, end) as free or used.
static void change(struct placement_arena *a, uint64_t at, uint64_t end, bool is_free)
{
    size_t first = at / WORD_BITS, last = (end - 1) / WORD_BITS, w = first;
    for (size_t page = first / PAGE_WORDS; page <= last / PAGE_WORDS; page++) {
        bool was = is_free_page(a, page);
        for (; w <= last && w / PAGE_WORDS == page; w++)
            change_word(&a->words[w], w == first ? at % WORD_BITS : 0,
                        w == last ? (end - 1) % WORD_BITS + 1 : WORD_BITS, is_free);
        a->used_pages += (uint64_t)was - (uint64_t)is_free_page(a, page);
    }
    update_nodes(a, first, last);
}

// Returns the lowest bit of a run of n set bits. The word must contain such a run.
static unsigned find_run(uint64_t w, uint32_t n)
{
    for (uint32_t have = 1, step; have < n; have += step) {
        step = have < n - have ? have : n - have;
        w &= w >> step;
    }
    return (unsigned)__builtin_ctzll(w);
}

// Returns the first granule of the lowest free run of n granules. The arena must contain such a
// run.
static uint64_t find_lowest(const struct placement_arena *a, uint32_t n)
{
    size_t i = 1;
    uint64_t start = 0, half = (uint64_t)a->n_words * WORD_BITS / 2;
    for (; i < a->n_words; half /= 2) {
        const struct placement_arena_node *l = &a->nodes[2 * i], *r = l + 1;
        if (l->longest >= n) {
            i = 2 * i;
        } else if (l->suffix + r->prefix >= n) {
            return start + half - l->suffix;
        } else {
            i = 2 * i + 1;
            start += half;
        }
    }
    return start + find_run(a->words[i - a->n_words], n);
}

int placement_arena_put(struct placement_arena *a, uint32_t granules, uint64_t *at)
{
    while (!a->n_words || a->nodes[1].longest < granules) {
        int rc = grow_arena(a);
        if (rc < 0)
            return rc;
    }
    *at = find_lowest(a, granules);
    change(a, *at, *at + granules, false);
    return 0;
}

void placement_arena_free(struct placement_arena *a, uint64_t at, uint32_t granules)
{
    change(a, at, at + granules, true);
}

bool placement_arena_extend(struct placement_arena *a, uint64_t at, uint32_t granules)
{
    if (at + granules > (uint64_t)a->n_words * WORD_BITS)
        return false;
    for (uint64_t g = at, end = at + granules; g < end;) {
        uint64_t w = a->words[g / WORD_BITS] >> g % WORD_BITS, n = WORD_BITS - g % WORD_BITS;
        n = n < end - g ? n : end - g;
        if (n < WORD_BITS && (~w & (((uint64_t)1 << n) - 1)))
            return false;
        if (n == WORD_BITS && w != UINT64_MAX)
            return false;
        g += n;
    }
    change(a, at, at + granules, false);
    return true;
}

uint64_t placement_arena_end(const struct placement_arena *a)
{
    return a->n_words ? (uint64_t)a->n_words * WORD_BITS - a->nodes[1].suffix : 0;
}
