// verdicts CAUSE [SECONDS]: a service whose resident memory has one known cause. It prints "ready"
// once the memory is allocated or the growth begins, and exits SECONDS later.
//
//   leak      remember_session() adds sessions to a list and never removes them
//   exits     the same, beside a larger table; the list and the table are freed at exit
//   cache     entries are added to a table until it is full, then they replace each other
//   saw       each second, a batch of blocks is allocated and freed
//   pinned    a batch of small blocks is freed, except 1 block in 200
//   arenas    16 threads do this one after the other
//   mapping   mmap adds memory that malloc does not know
//   stacks    200 threads have used much of their stacks and sleep
//   reserve   large blocks are allocated, and 1 % of each is written
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void *get(size_t size)
{
    char *p = malloc(size);
    if (!p)
        exit(3);
    memset(p, 1, size);
    return p;
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

// Sleeps until `ms` after the previous call. After a delay, it does not sleep until the calls have
// caught up, so that memory grows at the same rate on a busy machine.
static void pace(int ms)
{
    static struct timespec next;
    if (!next.tv_sec)
        clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_nsec += ms * 1000000L;
    next.tv_sec += next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
}

static unsigned seconds; // 0: no limit

static void report_ready(void)
{
    alarm(seconds);
    puts("ready");
    fflush(stdout);
}

static void idle(void)
{
    report_ready();
    for (;; nap(5))
        free(get(2000));
}

struct session {
    struct session *next;
    char data[984];
};
static struct session *sessions;

__attribute__((noinline)) static void remember_session(void)
{
    struct session *s = get(sizeof *s);
    s->next = sessions;
    sessions = s;
}

static void leak(void)
{
    report_ready();
    for (;; pace(10)) {
        for (unsigned i = 0; i < 10; i++) {
            for (unsigned k = 0; k < 5; k++) // requests whose blocks are all freed
                free(get(500 + k));
            remember_session();
        }
    }
}

// Does not write to the blocks, so that this takes no time on a busy machine.
__attribute__((noinline)) static void **load_table(size_t n)
{
    void **table = get(n * sizeof *table);
    for (size_t i = 0; i < n; i++)
        table[i] = malloc(20000);
    return table;
}

static void exits(void)
{
    enum { ENTRIES = 1000 };
    void **table = load_table(ENTRIES);
    time_t end = time(NULL) + seconds;
    for (; time(NULL) < end; pace(10)) {
        for (unsigned i = 0; i < 40; i++)
            remember_session();
    }
    for (size_t i = 0; i < ENTRIES; i++)
        free(table[i]);
    free(table);
    for (struct session *s; (s = sessions); free(s))
        sessions = s->next;
    exit(0);
}

__attribute__((noinline)) static void cache(void)
{
    enum { ENTRIES = 16 << 10 };
    static void *entries[ENTRIES];
    unsigned seed = 1;
    report_ready();
    for (;; pace(10)) {
        for (unsigned i = 0; i < 40; i++) {
            size_t k = (size_t)rand_r(&seed) % ENTRIES;
            free(entries[k]);
            entries[k] = get(1000);
        }
    }
}

// Allocates blocks and frees all but 1 in `survivors`. If `survivors` is 0, frees all blocks.
static void batch(size_t total, size_t size, unsigned survivors)
{
    size_t n = total / size;
    void **blocks = get(n * sizeof *blocks);
    for (size_t i = 0; i < n; i++)
        blocks[i] = get(size);
    for (size_t i = 0; i < n; i++) {
        if (!survivors || i % survivors)
            free(blocks[i]);
    }
    free(blocks);
}

static void saw(void)
{
    report_ready();
    // Memory stays low for a second even if a batch takes longer than that. A batch has few blocks,
    // so that it also ends quickly on a busy machine.
    for (;; nap(1000))
        batch(20 << 20, 2000, 0);
}

static void pinned(void)
{
    batch(60 << 20, 128, 200);
    idle();
}

// Frees small blocks in a random order. glibc keeps them in fastbins until a large block follows.
static void small(void)
{
    enum { N = 1 << 20 };
    void **blocks = get(N * sizeof *blocks);
    setvbuf(stdout, NULL, _IONBF, 0); // a buffer of stdout would be a large block
    for (size_t i = 0; i < N; i++)
        blocks[i] = get(24);
    for (size_t i = N - 1, at; i > 0; i--) {
        at = i * 40503 % (i + 1);
        void *block = blocks[at];
        blocks[at] = blocks[i];
        blocks[i] = block;
    }
    for (size_t i = 0; i < N; i++)
        free(blocks[i]);
    report_ready();
    for (;; nap(5))
        free(get(200));
}

static unsigned used; // number of threads that have used their memory

static void *use_arena(void *arg)
{
    batch(4 << 20, 128, 500);
    __atomic_add_fetch(&used, 1, __ATOMIC_RELEASE);
    for (;; nap(1000))
        free(get(100));
    return arg;
}

// Starts `n` threads, `ms` apart, and waits until they have used their memory.
static void start_threads(unsigned n, void *(*run)(void *arg), int ms)
{
    pthread_t thread;
    for (unsigned i = 0; i < n; i++, nap(ms)) {
        if (pthread_create(&thread, NULL, run, NULL) != 0)
            exit(3);
    }
    while (__atomic_load_n(&used, __ATOMIC_ACQUIRE) < n)
        nap(1);
}

static void arenas(void)
{
    start_threads(16, use_arena, 50);
    report_ready();
    for (;;)
        nap(1000);
}

static void mapping(void)
{
    report_ready();
    for (;; pace(250)) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            exit(3);
        memset(p, 1, 1 << 20);
        free(get(2000));
    }
}

static void *use_stack(void *arg)
{
    char deep[256 << 10];
    memset(deep, 1, sizeof deep);
    __asm__ volatile("" ::"r"(deep) : "memory");
    __atomic_add_fetch(&used, 1, __ATOMIC_RELEASE);
    for (;; nap(1000))
        __asm__ volatile("" ::"r"(deep) : "memory");
    return arg;
}

static void stacks(void)
{
    start_threads(200, use_stack, 1);
    idle();
}

static void *use_stack_once(void *tid)
{
    char deep[100 << 10];
    memset(deep, 1, sizeof deep);
    __asm__ volatile("" ::"r"(deep) : "memory");
    __atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_RELEASE);
    return NULL;
}

static void ended(void)
{
    static pid_t tids[900]; // glibc releases most of a stack when its thread ends
    pthread_t thread;
    for (unsigned i = 0; i < sizeof tids / sizeof *tids; i++) {
        if (pthread_create(&thread, NULL, use_stack_once, &tids[i]) != 0)
            exit(3);
        while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE) || tgkill(getpid(), tids[i], 0) == 0)
            nap(1);
    }
    idle();
}

static void enlarged(void)
{
    size_t size = 4 << 20;
    char *block = NULL;
    for (bool ready = false;; size += 4096) {
        block = realloc(block, size);
        if (!block)
            exit(3);
        memset(block + size - 4096, 1, 4096);
        if (!ready) {
            memset(block, 1, size);
            report_ready();
            ready = true;
        }
        nap(1);
    }
}

static void reserve(void)
{
    for (unsigned i = 0; i < 40; i++) {
        char *p = malloc(8 << 20);
        if (!p)
            exit(3);
        memset(p, 1, 80 << 10);
    }
    idle();
}

static void end(int unused)
{
    (void)unused;
    _exit(0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } causes[] = {{"leak", leak},     {"cache", cache},       {"saw", saw},
                  {"pinned", pinned}, {"arenas", arenas},     {"mapping", mapping},
                  {"stacks", stacks}, {"reserve", reserve},   {"small", small},
                  {"ended", ended},   {"enlarged", enlarged}, {"exits", exits}};
    signal(SIGALRM, end);
    seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        if (argc > 1 && strcmp(argv[1], causes[i].name) == 0)
            causes[i].run();
    }
    fprintf(stderr,
            "usage: verdicts "
            "leak|cache|saw|pinned|arenas|mapping|stacks|reserve|small|ended|enlarged [SECONDS]\n");
    return 2;
}
