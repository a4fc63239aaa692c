// Overwrites or unmaps the memory that it shares with the recorder: evil MODE SECONDS SEED. With 0
// seconds, its records fit into the spool, so that it does not wait for a stopped recorder.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static volatile int stop;
static unsigned most = -1;
static void *volatile sink;
static void *churn(void *a)
{
    unsigned i = 0;
    while (!stop && i < most) {
        void *p = malloc(10 + i++ % 5000);
        sink = p;
        free(p);
        if (!(i % 1000))
            usleep(200);
    }
    return 0;
}
static char path[4096], spath[4096];
static char *base;
static size_t len;
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static unsigned long rs = 88172645463325252ul;
static unsigned long rnd(void)
{
    rs ^= rs << 13;
    rs ^= rs >> 7;
    rs ^= rs << 17;
    return rs;
}
int main(int n, char **v)
{
    const char *mode = v[1];
    double secs = n > 2 ? atof(v[2]) : 2;
    rs ^= n > 3 ? atol(v[3]) * 7919 : 0;
    most = secs > 0 ? -1 : 20000;
    for (int i = 0; i < 20; i++)
        rnd();
    sink = malloc(100);
    pthread_t t;
    pthread_create(&t, 0, churn, 0);
    usleep(50000);
    FILE *f = fopen("/proc/self/maps", "r");
    char line[8192];
    char *seg[512];
    size_t sl[512];
    int ns = 0;
    while (fgets(line, sizeof line, f)) {
        unsigned long a, b;
        int at = 0;
        char perm[8];
        unsigned long off;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n", &a, &b, perm, &off, &at) < 4 || !at)
            continue;
        line[strcspn(line, "\n")] = 0;
        if (strstr(line + at, ".spool")) {
            strcpy(path, line + at);
            seg[ns] = (char *)a;
            sl[ns++] = b - a;
            if (!off)
                base = (char *)a;
            len += b - a;
        }
    }
    fclose(f);
    snprintf(spath, sizeof spath, "%s", path);
    char *s = strrchr(spath, '/');
    char dir[4096];
    snprintf(dir, sizeof dir, "%.*s", (int)(s - spath), spath);
    strcpy(s, "/session");
    int fd = open(path, O_RDWR), sfd = open(spath, O_RDWR);
    struct stat st;
    fstat(fd, &st);
    struct stat ss;
    fstat(sfd, &ss);
    fprintf(stderr, "evil %s: %s fd %d segs %d bytes %zu file %ld\n", mode, path, fd, ns, len,
            (long)st.st_size);
    char *S = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, sfd, 0);
    char *W = mmap(0, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    double end = now() + secs;
    if (!strcmp(mode, "trunc")) {
        stop = 1;
        ftruncate(fd, 0);
        usleep(secs * 1000000);
        _exit(0);
    }
    if (!strcmp(mode, "records")) { /* of each chunk, while the recorder is stopped */
        stop = 1;
        pthread_join(t, 0);
        for (int c = 0; c < 64; c++) {
            if (*(unsigned *)(W + 65536 * (1 + c) + 4))
                memset(W + 65536 * (1 + c) + 64 + 160, 0xff, 80);
        }
        _exit(0);
    }
    if (!strcmp(mode, "trunclive")) {
        for (int i = 0; i < secs * 100; i++) {
            ftruncate(fd, rnd() % 2 ? 0 : st.st_size);
            usleep(10000);
        }
        _exit(0);
    }
    if (!strcmp(mode, "truncsession")) {
        stop = 1;
        ftruncate(sfd, 0);
        usleep(secs * 1000000);
        _exit(0);
    }
    if (!strcmp(mode, "unlink")) {
        unlink(path);
        unlink(spath);
        usleep(secs * 1000000);
        _exit(0);
    }
    if (!strcmp(mode, "plant")) {
        stop = 1;
        chdir(dir);
        char nm[100];
        for (int i = 0; i < 4000; i++) {
            snprintf(nm, 100, "%d-%d.spool", i, i);
            if (i % 4 == 0)
                symlink("/etc/shadow", nm);
            else if (i % 4 == 1)
                mkfifo(nm, 0666);
            else if (i % 4 == 2)
                mkdir(nm, 0777);
            else {
                int q = open(nm, O_CREAT | O_RDWR, 0666);
                ftruncate(q, rnd() % 2 ? 10 : 1l << 30);
                if (rnd() % 2) {
                    lseek(q, 0, 0);
                    write(q, W, 4096);
                }
                close(q);
            }
        }
        (*(unsigned *)(S + 320 + 64 + 12))++;
        __atomic_fetch_add((unsigned *)(S + 384 + 12), 1, 5);
        usleep(secs * 1000000);
        _exit(0);
    }
    if (!strcmp(mode, "clone")) {
        stop = 1;
        chdir(dir);
        char nm[100]; /* 200 copies of its spool under other names */
        for (int i = 0; i < 200; i++) {
            snprintf(nm, 100, "1-%d.spool", i + 100);
            int q = open(nm, O_CREAT | O_RDWR, 0666);
            ftruncate(q, st.st_size);
            write(q, W, 65536 * 8);
            close(q);
        }
        for (int k = 0; k < 200; k++)
            for (unsigned o = 256; o < 512; o += 4)
                ;
        unsigned *sm = (unsigned *)S;
        for (int o = 0; o < 140; o++)
            ;
        __atomic_fetch_add((unsigned *)(S + 384 + 12), 1, 5);
        usleep(secs * 1000000);
        _exit(0);
    }
    while (now() < end) {
        int burst = !strcmp(mode, "slow") ? 1 : 200;
        for (int k = 0; k < burst; k++) {
            size_t o;
            if (!strcmp(mode, "header")) {
                o = rnd() % 12000 & ~7ul;
                *(volatile unsigned long *)(W + o) = rnd() % 3 ? rnd() : (rnd() % 2 ? 0 : ~0ul);
            } else if (!strcmp(mode, "chunkhead") || !strcmp(mode, "slow")) {
                o = 65536 + (rnd() % 64) * 65536 + (rnd() % 8) * 8;
                *(volatile unsigned long *)(W + o) =
                    rnd() % 2 ? rnd() : (rnd() % 4) | ((rnd() % 4) << 32);
                *(volatile unsigned *)(W + 65536 * (1 + rnd() % 64) + 4) = 1 + rnd() % 2;
            } else if (!strcmp(mode, "lanes")) {
                for (int c = 0; c < 64; c++) {
                    volatile unsigned *h = (void *)(W + 65536 * (1 + c));
                    h[2] = rnd();
                    h[3] = rnd();
                    h[4] = rnd() % 2;
                    *(volatile unsigned long *)(h + 6) = rnd();
                    h[0] = rnd() % 8000;
                    h[1] = 1;
                }
                *(volatile unsigned *)(W + 0) = *(unsigned *)(W + 0);
            } else if (!strcmp(mode, "words")) {
                o = 65536 + 64 + rnd() % (64 * 65536 - 4096);
                *(volatile unsigned long *)(W + (o & ~7ul)) = rnd();
            } else if (!strcmp(mode, "all")) {
                o = rnd() % (65 * 65536) & ~7ul;
                *(volatile unsigned long *)(W + o) = rnd();
            } else if (!strcmp(mode, "session")) {
                o = rnd() % 600 & ~3ul;
                *(volatile unsigned *)(S + o) = rnd() % 2 ? rnd() : rnd() % 4;
            } else if (!strcmp(mode, "fresh")) { /* enlarges the counters */
                for (o = 128; o < 448; o += 4)
                    if (rnd() % 2)
                        *(volatile unsigned *)(W + o) = rnd() % 2 ? 16384 : rnd();
            }
        }
        if (burst == 1)
            usleep(500);
    }
    _exit(0);
}
