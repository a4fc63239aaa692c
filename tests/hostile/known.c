// Makes N calls of each kind with unique sizes, and prints the number of calls. Sizes: malloc 4999,
// calloc 7*713, realloc to 5003, memalign 64,5009, posix_memalign 64,5021, aligned_alloc 64,5056.
//   known threads N T | kill N | abort N | _exit N | fork N C | exec N | short N | sighandler N
// Before the first call, creates the file that KNOWN_STARTED names.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile sink;

static void burst(long n)
{
    for (long i = 0; i < n; i++) {
        void *a = malloc(4999), *b = calloc(7, 713), *c = memalign(64, 5009),
             *d = aligned_alloc(64, 5056), *e = 0;
        if (posix_memalign(&e, 64, 5021))
            abort();
        a = realloc(a, 5003);
        sink = a, sink = b, sink = c, sink = d, sink = e;
        free(a), free(b), free(c), free(d), free(e);
    }
}

static void *thread(void *n)
{
    burst((long)n);
    return 0;
}

static void say(long n)
{
    char s[64];
    int k = snprintf(s, sizeof s, "%ld\n", n);
    if (write(1, s, k) < 0)
        _exit(9);
}

static void handler(int s)
{
    (void)s;
    sink = malloc(4999);
    free(sink);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "threads";
    long n = argc > 2 ? atol(argv[2]) : 1000, m = argc > 3 ? atol(argv[3]) : 4;
    if (getenv("KNOWN_STARTED"))
        close(open(getenv("KNOWN_STARTED"), O_WRONLY | O_CREAT, 0600));
    if (!strcmp(mode, "threads") || !strcmp(mode, "short")) {
        int waves = !strcmp(mode, "short") ? m : 1;
        long per = !strcmp(mode, "short") ? 16 : m;
        pthread_t t[256];
        for (int w = 0; w < waves; w++) {
            for (long i = 0; i < per; i++)
                if (pthread_create(&t[i], 0, thread, (void *)n))
                    _exit(8);
            for (long i = 0; i < per; i++)
                pthread_join(t[i], 0);
        }
        say(n * per * waves);
    } else if (!strcmp(mode, "fork")) {
        burst(n);
        for (long i = 0; i < m; i++)
            if (!fork()) {
                burst(n);
                if (!fork()) {
                    burst(n);
                    _exit(0);
                }
                wait(0);
                i % 2 ? exit(0) : _exit(0);
            }
        while (wait(0) > 0)
            ;
        say(n + 2 * n * m);
    } else if (!strcmp(mode, "exec")) {
        burst(n);
        if (m > 1) {
            char a[32], b[32];
            snprintf(a, 32, "%ld", n), snprintf(b, 32, "%ld", m - 1);
            execlp(argv[0], argv[0], "exec", a, b, (char *)0);
        }
        say(n);
    } else if (!strcmp(mode, "sighandler")) {
        signal(SIGUSR1, handler);
        for (long i = 0; i < m; i++) {
            burst(n);
            raise(SIGUSR1);
        }
        say(n * m + m);
    } else {
        burst(n);
        say(n);
        if (!strcmp(mode, "kill"))
            kill(getpid(), SIGKILL);
        if (!strcmp(mode, "abort"))
            abort();
        if (!strcmp(mode, "_exit"))
            _exit(0);
    }
    return 0;
}
