// Reads glibc's heap and verifies all that can be verified: sizes, flags, rings and malloc's
// totals.
#include "record/attach/blocks.h"

#include "base/buf.h"
#include "record/attach/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_HEAPS = 1 << 16,
    WINDOW = 256 << 10,
    PAGE = 4096,
    PAGES_AT_ONCE = 512,
    // Maximum number of pages read while searching for separately mapped blocks.
    MAX_PAGES = 1 << 16,
    // Searched range beside the program's thread-local variables, which are next to the thread
    // pointer. The range contains libc's variables.
    TLS_BYTES = 4096,
    CODE_BEFORE = 20 << 10,
    CODE_AFTER = 4 << 10, // code of malloc's internal functions around the exported functions
};

struct heap_walk {
    struct blocks *to;
    struct remote *remote;
    struct err *e;
    struct arena_data data;
    uint64_t main_arena;
    struct arena_parameters parameters;
    uint64_t window_at; // address of `window`
    size_t window_bytes;
    uint8_t *window;
    struct spool_block *heaps; // heaps of all arenas except the main arena
    size_t n_heaps, heaps_capacity;
    uint64_t *free; // free blocks that look like live blocks
    size_t n_free, free_capacity;
    uint64_t key; // key stored in all blocks in thread caches
};

static int set_unexpected(const struct heap_walk *w, const char *what, uint64_t at)
{
    return err_set(w->e, -ENOTSUP, "%s at 0x%llx is not as expected", what, (unsigned long long)at);
}

static uint64_t reveal_pointer(uint64_t at, uint64_t pointer)
{
    return at >> 12 ^ pointer;
}

// Returns true if each bin is a consistent ring.
static bool has_bins(const struct remote *r, const struct arena *a, uint64_t at)
{
    for (unsigned i = 0; i < ARENA_BINS; i++) {
        uint64_t self = arena_bin(at, i), first = a->bins[2 * i], back;
        if (first == self ? a->bins[2 * i + 1] != self
                          : !remote_read(r, first + 24, &back, sizeof back) || back != self)
            return false;
    }
    return true;
}

static int find_main_arena(struct heap_walk *w)
{
    for (uint64_t at = w->data.start; at + sizeof(struct arena) <= w->data.end; at += 8) {
        const struct arena *a =
            (const struct arena *)(const void *)(w->data.bytes + (at - w->data.start));
        if (!arena_has_empty_bin(a, at) || !has_bins(w->remote, a, at))
            continue;
        if (w->main_arena)
            return set_unexpected(w, "a second main arena", at);
        w->main_arena = at;
    }
    return w->main_arena ? 0 : err_set(w->e, -ENOTSUP, "its main arena was not found");
}

static int find_parameters(struct heap_walk *w)
{
    return arena_find_parameters(&w->data, &w->parameters) == 1
               ? 0
               : err_set(w->e, -ENOTSUP, "its parameters were not found (is it tuned?)");
}

// Reads two words through a window, for sequential access.
static bool read_head(struct heap_walk *w, uint64_t at, uint64_t end, uint64_t head[2])
{
    uint64_t offset = at - w->window_at;
    if (offset > w->window_bytes || w->window_bytes - offset < 16) {
        w->window_at = at;
        w->window_bytes = end - at < WINDOW ? end - at : WINDOW;
        offset = 0;
        if (w->window_bytes < 16 || !remote_read(w->remote, at, w->window, w->window_bytes)) {
            w->window_bytes = 0;
            return false;
        }
    }
    memcpy(head, w->window + offset, 16);
    return true;
}

static int add_block(struct heap_walk *w, uint64_t address, uint64_t size)
{
    return HT_APPEND(&w->to->all, &w->to->n, &w->to->capacity, (struct spool_block){address, size});
}

// Returns true at the end of a heap that is followed by another heap. Such a heap ends with the
// rest of its top chunk and a chunk of size 0.
static bool is_fencepost(struct heap_walk *w, uint64_t at, uint64_t end, uint64_t size)
{
    uint64_t last[2];
    bool fits = (size & ~ARENA_PREV_INUSE) == end - 16 - at && (end - at == 32 || end - at == 48);
    return fits && read_head(w, end - 16, end, last) && (last[1] & ~ARENA_SIZE_FLAGS) == 0;
}

// Reads the chunks from `at` to the chunk `top`. If `top` is 0, reads to a fencepost.
static int walk_chunks(struct heap_walk *w, uint64_t at, uint64_t end, uint64_t top, uint64_t flag)
{
    uint64_t head[2], next[2] = {0};
    int rc = 0;
    if (!read_head(w, at, end, head))
        return set_unexpected(w, "a heap", at);
    for (uint64_t size; rc == 0; at += size, memcpy(head, next, sizeof head)) {
        size = head[1] & ~ARENA_SIZE_FLAGS;
        if (at == top)
            return at + size == end && head[1] & ARENA_PREV_INUSE
                       ? 0
                       : set_unexpected(w, "the top chunk", at);
        if (!top && is_fencepost(w, at, end, head[1]))
            return 0;
        if (size < 32 || size % 16 || size > end - at || end - at - size < 16 ||
            !read_head(w, at + size, end, next))
            return set_unexpected(w, "a chunk", at);
        // Free chunks do not have the arena flag.
        bool in_use = next[1] & ARENA_PREV_INUSE;
        if (in_use ? (head[1] & (ARENA_MMAPPED | ARENA_NON_MAIN)) != flag
                   : next[0] != size || head[1] & ARENA_MMAPPED)
            return set_unexpected(w, in_use ? "a chunk in use" : "a free chunk", at);
        rc = in_use ? add_block(w, at + 16, size - 8) : 0;
    }
    return rc;
}

static int walk_main(struct heap_walk *w, const struct arena *a)
{
    uint64_t start = w->parameters.sbrk_base, end = start + a->system_mem;
    if (a->top == arena_bin(w->main_arena, 0)) // never used
        return 0;
    if (a->flags & ARENA_NONCONTIGUOUS || start % 16 || a->top - start >= a->system_mem)
        return err_set(w->e, -ENOTSUP, "its main heap is not contiguous");
    w->window_bytes = 0;
    return walk_chunks(w, start, end, a->top, 0);
}

// Reads the heaps from the last to the first. The first heap contains the arena.
static int walk_heaps(struct heap_walk *w, uint64_t arena, const struct arena *a)
{
    uint64_t at = a->top & ~(ARENA_HEAP_BYTES - 1), total = 0;
    for (unsigned i = 0; at && i < MAX_HEAPS; i++) {
        struct arena_heap h;
        uint64_t start = at + sizeof h, top = i == 0 ? a->top : 0;
        if (!remote_read(w->remote, at, &h, sizeof h) || h.arena != arena ||
            h.size > ARENA_HEAP_BYTES || h.size < PAGE || h.size > h.mprotect_size ||
            h.prev % ARENA_HEAP_BYTES)
            return set_unexpected(w, "a heap", at);
        if (!h.prev && arena != start)
            return set_unexpected(w, "the first heap of an arena", at);
        start = h.prev ? start : (arena + sizeof *a + 15) & ~15ull;
        total += h.size;
        if (HT_APPEND(&w->heaps, &w->n_heaps, &w->heaps_capacity,
                      (struct spool_block){at, h.size}) < 0)
            return -ENOMEM;
        w->window_bytes = 0;
        int rc = walk_chunks(w, start, at + h.size, top, ARENA_NON_MAIN);
        if (rc < 0)
            return rc;
        at = h.prev;
    }
    return total == a->system_mem ? 0 : set_unexpected(w, "the size of an arena", arena);
}

static int add_free(struct heap_walk *w, uint64_t block)
{
    return HT_APPEND(&w->free, &w->n_free, &w->free_capacity, block);
}

static int add_fastbins(struct heap_walk *w, const struct arena *a)
{
    for (unsigned i = 0; i < ARENA_FASTBINS; i++) {
        for (uint64_t at = a->fastbins[i]; at;) {
            uint64_t words[3];
            if (at % 16 || w->n_free > w->to->n ||
                !remote_read(w->remote, at, words, sizeof words) ||
                (words[1] & ~ARENA_SIZE_FLAGS) != 32 + 16ull * i)
                return set_unexpected(w, "a fastbin's chunk", at);
            int rc = add_free(w, at + 16);
            if (rc < 0)
                return rc;
            at = reveal_pointer(at + 16, words[2]);
        }
    }
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const struct spool_block *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void sort_blocks(struct blocks *b)
{
    if (b->n)
        qsort(b->all, b->n, sizeof *b->all, by_address);
}

static const struct spool_block *find_block(const struct heap_walk *w, uint64_t address)
{
    const struct spool_block key = {.address = address};
    return bsearch(&key, w->to->all, w->to->n, sizeof key, by_address);
}

// Follows a chain of free blocks. If `add` is set, adds the blocks; otherwise only verifies the
// chain.
static bool follow_chain(struct heap_walk *w, const struct arena_cache *c, unsigned i, bool add)
{
    uint64_t at = c->entries[i], words[2];
    unsigned n = 0;
    for (; at && n < c->counts[i]; n++) {
        const struct spool_block *b = find_block(w, at);
        if (!b || b->size != 24 + 16ull * i || !remote_read(w->remote, at, words, sizeof words) ||
            !words[1])
            return false;
        if (add && ((w->key && words[1] != w->key) || add_free(w, at) < 0))
            return false;
        w->key = add ? words[1] : w->key;
        at = reveal_pointer(at, words[0]);
    }
    return !at && n == c->counts[i];
}

static bool follow_cache(struct heap_walk *w, uint64_t at, bool add)
{
    const struct spool_block *b = find_block(w, at);
    struct arena_cache c;
    bool good = b && b->size == sizeof c + 8 && remote_read(w->remote, at, &c, sizeof c);
    for (unsigned i = 0; good && i < ARENA_CACHED_SIZES; i++)
        good = c.counts[i] <= w->parameters.cached_count && follow_chain(w, &c, i, add);
    // The cache itself is not a block of the program, so it counts as free.
    return good && (!add || add_free(w, at) == 0);
}

// Counts the threads that have a valid cache at `distance` from the thread pointer. The distance
// is the same in all threads. Returns 0 if any thread has other contents there.
static size_t count_caches(struct heap_walk *w, const struct machine_registers *threads, size_t n,
                           uint64_t distance, bool add)
{
    size_t caches = 0;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        uint64_t at;
        good = remote_read(w->remote, threads[i].thread + MACHINE_TLS * distance, &at, sizeof at);
        if (good && at) {
            caches++;
            good = follow_cache(w, at, add);
        }
    }
    return good ? caches : 0;
}

static int add_caches(struct heap_walk *w, const struct machine_registers *threads, size_t n)
{
    uint64_t found = 0, start = w->remote->tls_bytes & ~UINT64_C(7);
    size_t most = 0;
    bool twice = false;
    if (!w->parameters.cached_count)
        return 0;
    // The searched range may include part of a thread's stack. A stack may contain a copy of the
    // pointer, but not at the same distance in all threads.
    for (uint64_t distance = start + 8; distance <= start + TLS_BYTES; distance += 8) {
        size_t caches = count_caches(w, threads, n, distance, false);
        if (!caches || caches < most)
            continue;
        twice = caches == most;
        most = caches;
        found = distance;
    }
    if (twice)
        return err_set(w->e, -ENOTSUP, "its threads' caches were found twice");
    // A thread is changing its cache, or there are no caches yet.
    if (!found || !count_caches(w, threads, n, found, true))
        return err_set(w->e, -EAGAIN, "its threads' caches were not found");
    return 0;
}

// Returns the distance from the start of a mapping to its chunk, or 0. The chunk of an aligned
// block does not start at the start of the mapping.
static uint64_t find_alignment_gap(const struct heap_walk *w, uint64_t at, uint64_t size)
{
    uint64_t head[2];
    for (uint64_t align = 32; align < size; align *= 2) {
        uint64_t lead = ((at + 16 + align - 1) & ~(align - 1)) - 16 - at;
        if (lead && lead < size && remote_read(w->remote, at + lead, head, sizeof head) &&
            head[0] == lead && head[1] == ((size - lead) | ARENA_MMAPPED))
            return lead;
    }
    return 0;
}

// State of the search for blocks that malloc mapped separately, each at a page boundary.
struct mapped {
    uint64_t n, bytes;
    unsigned pages;
    int pagemap;
    uint64_t entries_at, entries[PAGES_AT_ONCE]; // pagemap entries, from page entries_at on
};

static int open_pagemap(const struct heap_walk *w)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/pagemap", (long)w->remote->pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

// Returns true if the page has ever been written. Reading any other page would make the kernel map
// it.
static bool is_touched(struct mapped *m, uint64_t at)
{
    const uint64_t present_or_swapped = 3ull << 62;
    uint64_t page = at / PAGE;
    if (!m->entries_at || page < m->entries_at || page - m->entries_at >= PAGES_AT_ONCE) {
        m->entries_at = page;
        memset(m->entries, 0, sizeof m->entries);
        if (pread(m->pagemap, m->entries, sizeof m->entries, (off_t)(page * sizeof *m->entries)) <=
            0)
            return false;
    }
    return m->entries[page - m->entries_at] & present_or_swapped;
}

// Returns the size of the heap at `at`, or 0.
static uint64_t heap_bytes(const struct heap_walk *w, uint64_t at)
{
    for (size_t i = 0; at % ARENA_HEAP_BYTES == 0 && i < w->n_heaps; i++) {
        if (w->heaps[i].address == at)
            return w->heaps[i].size;
    }
    return 0;
}

static int walk_mapping(struct heap_walk *w, struct mapped *m, uint64_t at, uint64_t end)
{
    uint64_t size;
    for (; at < end && m->bytes < w->parameters.mmapped_mem && m->pages < MAX_PAGES; at += size) {
        uint64_t head[2] = {0};
        size = heap_bytes(w, at);
        if (size)
            continue;
        bool read = is_touched(m, at) && remote_read(w->remote, at, head, sizeof head);
        m->pages += read;
        size = head[1] & ~ARENA_SIZE_FLAGS;
        if (head[0] || (head[1] & ARENA_SIZE_FLAGS) != ARENA_MMAPPED || !size || size % PAGE ||
            size > end - at) {
            size = PAGE;
            continue;
        }
        uint64_t lead = find_alignment_gap(w, at, size);
        m->n++;
        m->bytes += size;
        int rc = add_block(w, at + lead + 16, size - lead - 16);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int walk_mapped(struct heap_walk *w)
{
    char path[64], line[512];
    struct mapped m = {.pagemap = open_pagemap(w)};
    int rc = 0;
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)w->remote->pid);
    FILE *f = w->parameters.n_mmaps ? fopen(path, "re") : NULL;
    while (f && rc == 0 && fgets(line, sizeof line, f)) {
        unsigned long long start, end, inode;
        char rights[8];
        int rest = 0;
        if (sscanf(line, "%llx-%llx %7s %*x %*s %llu %n", &start, &end, rights, &inode, &rest) ==
                4 &&
            !inode && memcmp(rights, "rw-p", 4) == 0 &&
            (!rest || line[rest] != '[' || strncmp(line + rest, "[anon", 5) == 0))
            rc = walk_mapping(w, &m, start, end);
    }
    if (f)
        fclose(f);
    if (m.pagemap >= 0)
        close(m.pagemap);
    if (rc == 0 && (m.n != (uint64_t)w->parameters.n_mmaps || m.bytes != w->parameters.mmapped_mem))
        rc = err_set(w->e, -EAGAIN, "only %llu of its %d separately mapped blocks were found",
                     (unsigned long long)m.n, w->parameters.n_mmaps);
    return rc;
}

static int walk_arenas(struct heap_walk *w)
{
    uint64_t at = w->main_arena;
    struct arena a;
    for (unsigned i = 0; i < ARENA_MAX; i++) {
        if (!remote_read(w->remote, at, &a, sizeof a) || !has_bins(w->remote, &a, at))
            return set_unexpected(w, "an arena", at);
        if (a.mutex)
            return err_set(w->e, -EAGAIN, "its threads did not leave malloc in time");
        int rc = at == w->main_arena ? walk_main(w, &a) : walk_heaps(w, at, &a);
        if (rc == 0)
            rc = add_fastbins(w, &a);
        at = a.next;
        if (rc < 0 || at == w->main_arena)
            return rc;
    }
    return set_unexpected(w, "the ring of arenas", at);
}

bool blocks_is_malloc(struct remote *r, uint64_t address)
{
    return address >= remote_function(r, "malloc") - CODE_BEFORE &&
           address < remote_function(r, "malloc_info") + CODE_AFTER;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

// Removes the free blocks from the list, which must contain all of them.
static int remove_free(struct heap_walk *w)
{
    struct blocks *b = w->to;
    size_t n = 0, k = 0;
    qsort(w->free, w->n_free, sizeof *w->free, by_number);
    for (size_t i = 0; i < b->n; i++) {
        bool is_free = k < w->n_free && w->free[k] == b->all[i].address;
        k += is_free;
        if (!is_free)
            b->all[n++] = b->all[i];
    }
    b->n = n;
    return k == w->n_free ? 0 : set_unexpected(w, "a free block", w->free[k]);
}

static int walk_heap(struct heap_walk *w, const struct machine_registers *threads, size_t n)
{
    int rc = arena_read_data(&w->data, w->remote);
    if (rc == 0)
        rc = find_main_arena(w);
    if (rc == 0)
        rc = find_parameters(w);
    if (rc == 0)
        rc = walk_arenas(w);
    if (rc == 0)
        rc = walk_mapped(w);
    sort_blocks(w->to);
    if (rc == 0)
        rc = add_caches(w, threads, n);
    return rc < 0 ? rc : remove_free(w);
}

int blocks_check(struct remote *r, const char *version, struct err *e)
{
    if (!arena_is_known(version))
        return err_set(e, -ENOTSUP, "the heap layout of glibc %s is unknown", version);
    return remote_is_libc(r, remote_function(r, "malloc"))
               ? 0
               : err_set(e, -ENOTSUP, "its malloc is not glibc's");
}

int blocks_find(struct blocks *b, struct remote *r, const struct machine_registers *threads,
                size_t n, struct err *e)
{
    struct heap_walk w = {.to = b, .remote = r, .e = e};
    b->n = 0;
    w.window = malloc(WINDOW);
    int rc = w.window ? walk_heap(&w, threads, n) : -ENOMEM;
    free(w.window);
    free(w.data.bytes);
    free(w.heaps);
    free(w.free);
    if (rc == -ENOMEM || rc == -EACCES)
        err_set(e, rc, "%s", strerror(-rc));
    if (rc < 0)
        b->n = 0;
    return rc;
}

void blocks_release(struct blocks *b)
{
    free(b->all);
    *b = (struct blocks){0};
}
