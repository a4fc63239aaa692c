// A producer and a consumer with a bounded queue: queue ITEMS. Prints the peak of the process's
// private memory in bytes, minus the memory before the first item.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BOUND = 1024, SIZE = 16000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char *queue[BOUND];
static unsigned long first, n, longest, items;

static void *consume(void *unused)
{
    for (unsigned long i = 0; i < items; i++) {
        pthread_mutex_lock(&lock);
        while (!n)
            pthread_cond_wait(&changed, &lock);
        char *item = queue[first];
        first = (first + 1) % BOUND;
        n--;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        // This loop makes the consumer slower than the producer, so that the queue is usually full.
        for (int k = 0; k < 40; k++)
            memset(item, k, SIZE);
        free(item);
    }
    return unused;
}

static unsigned long private_bytes(void)
{
    static char buffer[4096];
    unsigned long resident = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    setvbuf(f, buffer, _IOFBF, sizeof buffer);
    if (fscanf(f, "%*u %lu %lu", &resident, &shared) != 2)
        resident = shared = 0;
    fclose(f);
    return (resident - shared) * (unsigned long)sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv)
{
    pthread_t consumer;
    items = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
    pthread_create(&consumer, NULL, consume, NULL);
    private_bytes();
    unsigned long before = private_bytes(), most = before;
    for (unsigned long i = 0; i < items; i++) {
        char *item = malloc(SIZE);
        if (!item)
            return 1;
        memset(item, 1, SIZE);
        pthread_mutex_lock(&lock);
        while (n == BOUND)
            pthread_cond_wait(&changed, &lock);
        queue[(first + n++) % BOUND] = item;
        bool longer = n > longest;
        longest = longer ? n : longest;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        // Reads the memory every 100 items, and whenever the queue reaches a new maximum, so that
        // no peak is missed.
        if (longer || i % 100 == 0) {
            unsigned long now = private_bytes();
            most = now > most ? now : most;
        }
    }
    pthread_join(consumer, NULL);
    printf("%lu\n", most - before);
    return 0;
}
