// truth THREADS CALLS LOG [MODE...]: logs its calls (truth_log.h). Their order is known, because
// the program passes blocks between threads with atomics and locks. All blocks are in one size
// class, so that any thread soon reuses a freed address. Each mode makes about CALLS calls in
// total. Without modes, each mode runs except mremap:
//   ring     every thread passes its blocks to the next thread, which frees them
//   lock     a stack under a mutex
//   pool     a thread swaps its new block for an older block of any thread, which it frees
//   realloc  as pool, but realloc moves the old block, which frees its address during the call
//   mremap   as realloc, but with blocks that glibc maps: mremap(2) moves a block while others map
//            new blocks at its old address
//   birth    as pool, with threads that start, exit, and leave their blocks to later threads
//   small    modifies the other modes: blocks of at most 16 bytes instead of about 1,000
//   slow     modifies the other modes: threads sleep after every eight calls, so that stopper.c
//            can find them
#include "trace/event/event.h"

#include "truth_log.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 64,
    MAX_NAMES = 512,
    RING = 8,
    POOL = 48,
    STACK = 64,
    GENERATIONS = 6,
    CALLS_A_NAP = 8,
    MAPPED_SHARE = 8, // calls that map blocks are slow, so the mode makes fewer
};

// A block contains its number, which the next owner reads.
struct block {
    uint64_t number;
};

struct thread {
    uint32_t name;
    unsigned position; // index among the running threads
    uint64_t seed, blocks;
    bool maps;                // allocates blocks that glibc maps
    struct truth_call *calls; // the array is mapped, not allocated
    size_t n, capacity;
};

struct ring {
    struct block *_Atomic at[RING];
};

static struct thread threads[MAX_NAMES];
static unsigned n_names = 1; // number of names so far; name 0 is the main thread
static unsigned n_threads, calls_each;
static struct ring rings[MAX_THREADS];
static struct block *_Atomic pool[POOL];
static struct block *stack[STACK];
static unsigned n_stack;
static pthread_mutex_t stack_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static void (*modes[8])(struct thread *);
static unsigned n_modes;
static bool slow, small;

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        fail("mmap");
    return at;
}

static uint64_t pick(struct thread *t, uint64_t below)
{
    t->seed ^= t->seed << 13;
    t->seed ^= t->seed >> 7;
    t->seed ^= t->seed << 17;
    return t->seed % below;
}

static void write_down(struct thread *t, unsigned kind, uint64_t block, uint64_t size)
{
    if (t->n == t->capacity)
        fail("log");
    t->calls[t->n++] = (struct truth_call){t->name, kind, block, size};
    if (slow && t->n % CALLS_A_NAP == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static struct block *number(struct thread *t, unsigned kind, void *at, uint64_t size)
{
    struct block *b = at;
    if (!b)
        fail("no memory");
    b->number = (uint64_t)t->name << 32 | ++t->blocks;
    write_down(t, kind, b->number, size);
    return b;
}

static uint64_t pick_size(struct thread *t)
{
    if (t->maps)
        return TRUTH_MAPPED_MIN_SIZE + pick(t, TRUTH_SIZES);
    return small ? TRUTH_SMALL_MIN_SIZE + pick(t, TRUTH_SMALL_SIZES)
                 : TRUTH_MIN_SIZE + pick(t, TRUTH_SIZES);
}

static struct block *take(struct thread *t)
{
    uint64_t size = pick_size(t);
    switch (pick(t, 8)) {
    case 0:
        return number(t, HT_CALLOC, calloc(1, size), size);
    case 1:
        return number(t, HT_REALLOC, realloc(NULL, size), size);
    }
    return number(t, HT_MALLOC, malloc(size), size);
}

static void give(struct thread *t, struct block *b)
{
    if (!b)
        return;
    write_down(t, HT_FREE, b->number, 0);
    free(b);
}

// Resizes the block to the other size class, which moves it.
static struct block *resize(struct thread *t, struct block *b)
{
    unsigned grown = t->maps ? TRUTH_GROWN_MIN_SIZE : TRUTH_BIG_MIN_SIZE;
    uint64_t size = pick(t, 2) ? pick_size(t) : grown + pick(t, TRUTH_SIZES);
    write_down(t, HT_REALLOC, b->number, size);
    b = realloc(b, size);
    if (!b)
        fail("no memory");
    return b;
}

static void mode_ring(struct thread *t)
{
    struct ring *to = &rings[t->position],
                *from = &rings[(t->position + n_threads - 1) % n_threads];
    struct block *mine = NULL;
    for (unsigned i = 0; i < calls_each / 2; i++) {
        struct block *empty = NULL;
        if (!mine)
            mine = take(t);
        if (atomic_compare_exchange_strong(&to->at[pick(t, RING)], &empty, mine))
            mine = NULL;
        give(t, atomic_exchange(&from->at[pick(t, RING)], NULL));
    }
    give(t, mine);
}

static void mode_lock(struct thread *t)
{
    for (unsigned i = 0; i < calls_each; i++) {
        struct block *b = pick(t, 2) ? take(t) : NULL;
        pthread_mutex_lock(&stack_lock);
        if (b && n_stack < STACK) {
            stack[n_stack++] = b;
            b = NULL;
        } else if (!b && n_stack) {
            b = stack[--n_stack];
        }
        pthread_mutex_unlock(&stack_lock);
        give(t, b);
    }
}

static void mode_pool(struct thread *t)
{
    for (unsigned i = 0; i < calls_each / 2; i++)
        give(t, atomic_exchange(&pool[pick(t, POOL)], take(t)));
}

static void swap_resized(struct thread *t, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        struct block *b = atomic_exchange(&pool[pick(t, POOL)], pick(t, 4) ? NULL : take(t));
        if (b)
            give(t, atomic_exchange(&pool[pick(t, POOL)], resize(t, b)));
    }
}

static void mode_realloc(struct thread *t)
{
    swap_resized(t, calls_each / 3);
}

static void mode_mremap(struct thread *t)
{
    t->maps = true;
    swap_resized(t, calls_each / MAPPED_SHARE / 3);
    t->maps = false;
}

static void begin(struct thread *t, unsigned position)
{
    t->position = position;
    t->seed = 0x9e3779b97f4a7c15u * (t->name + 1);
    t->capacity = 8u * calls_each * (n_modes + 1) + 4096;
    t->calls = map(t->capacity * sizeof *t->calls);
    struct block *name =
        number(t, HT_MALLOC, malloc(TRUTH_NAME_SIZE + t->name), TRUTH_NAME_SIZE + t->name);
    give(t, name);
}

static void *short_life(void *arg)
{
    begin(arg, 0);
    mode_pool(arg);
    return NULL;
}

static void start(pthread_t *id, void *(*run)(void *))
{
    if (n_names == MAX_NAMES)
        fail("names");
    struct thread *t = &threads[n_names];
    t->name = n_names++;
    if (pthread_create(id, NULL, run, t))
        fail("pthread_create");
}

// Starts generations of threads. Joins all threads of a generation but one before the next
// generation starts. The remaining thread continues into the next generation.
static void births(void)
{
    pthread_t id[MAX_THREADS], old = 0;
    unsigned all = calls_each;
    calls_each = calls_each / GENERATIONS + 1;
    for (unsigned g = 0; g < GENERATIONS; g++) {
        for (unsigned i = 0; i < n_threads; i++)
            start(&id[i], short_life);
        for (unsigned i = 0; i + 1 < n_threads; i++)
            pthread_join(id[i], NULL);
        if (old)
            pthread_join(old, NULL);
        old = id[n_threads - 1];
    }
    pthread_join(old, NULL);
    calls_each = all;
}

static void *run(void *arg)
{
    static atomic_uint position;
    begin(arg, atomic_fetch_add(&position, 1));
    for (unsigned i = 0; i < n_modes; i++) {
        pthread_barrier_wait(&barrier);
        modes[i](arg);
    }
    return NULL;
}

static void give_rest(struct thread *t)
{
    for (unsigned i = 0; i < MAX_THREADS; i++) {
        for (unsigned k = 0; k < RING; k++)
            give(t, atomic_exchange(&rings[i].at[k], NULL));
    }
    for (unsigned i = 0; i < POOL; i++)
        give(t, atomic_exchange(&pool[i], NULL));
    while (n_stack)
        give(t, stack[--n_stack]);
}

static void write_log(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        fail(path);
    for (unsigned i = 0; i < n_names; i++) {
        const char *at = (const char *)threads[i].calls,
                   *end = (const char *)(threads[i].calls + threads[i].n);
        while (at < end) {
            ssize_t n = write(fd, at, (size_t)(end - at));
            if (n <= 0)
                fail(path);
            at += n;
        }
    }
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*mode)(struct thread *);
    } all[] = {
        {"ring", mode_ring},       {"lock", mode_lock},     {"pool", mode_pool},
        {"realloc", mode_realloc}, {"mremap", mode_mremap},
    };
    pthread_t id[MAX_THREADS];
    bool with_births = argc == 4;
    if (argc < 4 || (n_threads = (unsigned)atoi(argv[1])) < 1 || n_threads > MAX_THREADS)
        return 2;
    calls_each = (unsigned)atoi(argv[2]) / n_threads + 1;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        bool wanted = argc == 4 && all[i].mode != mode_mremap;
        for (int k = 4; k < argc; k++)
            wanted |= strcmp(argv[k], all[i].name) == 0;
        if (wanted)
            modes[n_modes++] = all[i].mode;
    }
    for (int k = 4; k < argc; k++) {
        with_births |= strcmp(argv[k], "birth") == 0;
        slow |= strcmp(argv[k], "slow") == 0;
        small |= strcmp(argv[k], "small") == 0;
    }
    // Otherwise, glibc raises the limit at the first free of a mapped block.
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    begin(&threads[0], 0);
    pthread_barrier_init(&barrier, NULL, n_threads);
    for (unsigned i = 0; i < n_threads; i++)
        start(&id[i], run);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(id[i], NULL);
    if (with_births)
        births();
    give_rest(&threads[0]);
    write_log(argv[3]);
    return 0;
}
