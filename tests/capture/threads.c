// Threads that count their own calls, in unique sizes.
//   threads MANY [N]  8 or N threads with MANY rounds each; a fifth of the blocks are freed by
//                    another thread
//   threads -s MANY   MANY short threads, a few at a time; each also calls malloc in a
//                    TLS destructor
#include "told.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST_THREADS = 256, SIZES = 40, AT_A_TIME = 16 };

static unsigned long rounds;
static int n_threads = 8;
static _Atomic unsigned long taken[SIZES], zeroed[SIZES], given[SIZES];

// Blocks that one thread passes to the next thread, which frees them.
static _Atomic(void *) handed[MOST_THREADS];

static void give(void *p, int kind)
{
    free(p);
    atomic_fetch_add(&given[kind], 1);
}

static void take_from(int neighbour)
{
    void *p = atomic_exchange(&handed[neighbour], NULL);
    if (p)
        give(p, *(int *)p);
}

static void *churn(void *arg)
{
    int self = (int)(intptr_t)arg;
    unsigned seed = (unsigned)self + 1;
    for (unsigned long i = 0; i < rounds; i++) {
        int kind = rand_r(&seed) % SIZES;
        int *p = kind % 2 ? calloc(1, TOLD_SIZE(kind)) : malloc(TOLD_SIZE(kind));
        atomic_fetch_add(kind % 2 ? &zeroed[kind] : &taken[kind], 1);
        *p = kind;
        void *empty = NULL;
        if (rand_r(&seed) % 5 || !atomic_compare_exchange_strong(&handed[self], &empty, p))
            give(p, kind);
        take_from((self + 1) % n_threads);
    }
    return NULL;
}

static void tell_counts(void)
{
    for (int kind = 0; kind < SIZES; kind++) {
        if (taken[kind])
            told_count("malloc", TOLD_SIZE(kind), taken[kind]);
        if (zeroed[kind])
            told_count("calloc", TOLD_SIZE(kind), zeroed[kind]);
        if (given[kind])
            told_count("free", TOLD_SIZE(kind), given[kind]);
    }
}

static void run_long(void)
{
    pthread_t threads[MOST_THREADS];
    for (intptr_t i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, churn, (void *)i);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n_threads; i++)
        take_from(i);
}

static pthread_key_t key;

// TLS destructor. It runs after the library's key was destroyed once, and requests another round of
// destructors.
static void at_end(void *value)
{
    int kind = *(int *)value;
    give(value, kind);
    if (kind > 2)
        return;
    int *p = malloc(TOLD_SIZE(kind + 1));
    atomic_fetch_add(&taken[kind + 1], 1);
    *p = kind + 1;
    pthread_setspecific(key, p);
}

static void *be_short(void *unused)
{
    (void)unused;
    int *p = malloc(TOLD_SIZE(0));
    atomic_fetch_add(&taken[0], 1);
    *p = 0;
    pthread_setspecific(key, p);
    return NULL;
}

static void run_short(unsigned long many)
{
    pthread_t threads[AT_A_TIME];
    pthread_key_create(&key, at_end);
    for (unsigned long i = 0; i < many; i += AT_A_TIME) {
        for (int k = 0; k < AT_A_TIME; k++)
            pthread_create(&threads[k], NULL, be_short, NULL);
        for (int k = 0; k < AT_A_TIME; k++)
            pthread_join(threads[k], NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2 && argv[1][0] != '-')
        n_threads = atoi(argv[2]);
    if (argc > 2 && argv[1][0] == '-') {
        run_short(strtoul(argv[2], NULL, 0));
    } else {
        rounds = strtoul(argv[1], NULL, 0);
        run_long();
    }
    tell_counts();
    return 0;
}
