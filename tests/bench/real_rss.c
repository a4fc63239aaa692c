// Runs a program and tells how much resident memory its heap has at most: real_rss PRELOAD.so COMMAND...
// Prints to stderr, a line each: heap_peak_bytes, anon_peak_bytes (all private memory), max_rss_bytes (getrusage's, of the
// biggest process), wall_ns, cpu_ns, looks.
// Of a tree of processes, the one counts whose program is
// called what REAL_RSS_PROGRAM says, else the one started last. The program's LD_PRELOAD is PRELOAD.so, what it was and, if
// REAL_RSS_ALLOCATOR is set, that library. With REAL_RSS_LOOK=0 nothing is looked at but times.
//
// Heap is what lies, private and present, in [heap] or a mapping without a name, but neither in one that the program made
// itself, nor its variables; less what of that there was before main.
#include "real_rss.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_NS = 2000000 };

static struct real_rss *noted;
static uint64_t heap_peak, anon_peak, high_water, looks;
static char maps[4 << 20];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t read_file(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    size_t n = 0;
    ssize_t got;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY);
    while (fd >= 0 && n + 1 < size && (got = read(fd, text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[n] = 0;
    return n;
}

// Of a line of /proc/PID/status, in kB.
static uint64_t bytes_of(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

// The page frame behind an address; 0: not known.
static uint64_t frame_of(const char *at)
{
    uint64_t entry = 0;
    int pagemap = open("/proc/self/pagemap", O_RDONLY);
    if (pagemap < 0 || pread(pagemap, &entry, 8, (off_t)((uintptr_t)at / REAL_RSS_PAGE * 8)) != 8)
        entry = 0;
    close(pagemap);
    return entry & ((1ull << 55) - 1);
}

// The kernel's zero pages, small and huge, by reading what was never written.
static void find_zeros(struct real_rss *r)
{
    enum { HUGE_BYTES = 2 << 20, HUGE_FRAMES = HUGE_BYTES / REAL_RSS_PAGE };
    char *at = mmap(NULL, 2 * HUGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    volatile char *small = at, *huge = (char *)(((uintptr_t)at + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
    madvise((char *)huge, HUGE_BYTES, MADV_HUGEPAGE);
    (void)huge[0], (void)huge[REAL_RSS_PAGE];
    uint64_t first = frame_of((char *)huge), second = frame_of((char *)huge + REAL_RSS_PAGE);
    if (first && second == first + 1)
        r->zeros[0] = (struct real_rss_range){first, first + HUGE_FRAMES};
    madvise(at, 2 * HUGE_BYTES, MADV_NOHUGEPAGE);
    madvise(at, 2 * HUGE_BYTES, MADV_DONTNEED);
    (void)small[0];
    first = frame_of((char *)small);
    r->zeros[1] = (struct real_rss_range){first, first + (first != 0)};
    munmap(at, 2 * HUGE_BYTES);
}

static void sample(pid_t pid)
{
    char path[64], status[4096];
    uint64_t between = 0;
    if (read_file(pid, "status", status, sizeof status)) {
        uint64_t high = bytes_of(status, "VmHWM:"), anon = bytes_of(status, "RssAnon:"),
                 shared = bytes_of(status, "RssFile:") + bytes_of(status, "RssShmem:");
        // A peak since the last look, of which the heap is taken to be what is gone again.
        if (high > high_water && high > shared + anon)
            between = high - shared - anon;
        high_water = high;
        anon_peak = anon + between > anon_peak ? anon + between : anon_peak;
    }
    read_file(pid, "maps", maps, sizeof maps);
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    int pagemap = open(path, O_RDONLY);
    if (pagemap < 0)
        return;
    uint64_t heap = real_rss_heap(noted, pagemap, maps);
    heap = heap + between > noted->heap_at_start ? heap + between - noted->heap_at_start : 0;
    close(pagemap);
    looks++;
    if (heap > heap_peak)
        heap_peak = heap;
}

static pid_t start(const char *preload, const char *file, char **argv)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    char all[8192];
    const char *first = getenv("LD_PRELOAD"), *more = getenv("REAL_RSS_ALLOCATOR");
    snprintf(all, sizeof all, "%s%s%s%s%s", preload, first ? ":" : "", first ? first : "", more ? ":" : "",
             more ? more : "");
    setenv("LD_PRELOAD", all, 1);
    setenv("REAL_RSS", file, 1);
    execvp(argv[0], argv);
    _exit(127);
}

static uint64_t time_ns(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

static void print(const char *name, uint64_t n)
{
    fprintf(stderr, "%s %llu\n", name, (unsigned long long)n);
}

int main(int argc, char **argv)
{
    char file[] = "/tmp/real_rss-XXXXXX";
    int status, fd = mkstemp(file);
    if (argc < 3 || fd < 0 || ftruncate(fd, sizeof *noted) < 0)
        return 2;
    noted = mmap(NULL, sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (noted == MAP_FAILED)
        return 2;
    find_zeros(noted);
    const char *preload = argv[1];
    unsetenv("REAL_RSS");
    uint64_t began = now_ns();
    pid_t pid = start(preload, file, argv + 2);
    uint32_t starts = 0;
    struct rusage usage;
    const char *look = getenv("REAL_RSS_LOOK");
    while (wait4(pid, &status, look && *look == '0' ? 0 : WNOHANG, &usage) == 0) {
        if (noted->starts != starts) {
            starts = noted->starts;
            heap_peak = anon_peak = high_water = 0;
        }
        if (noted->pid)
            sample(noted->pid);
        nanosleep(&(struct timespec){0, EVERY_NS}, NULL);
    }
    uint64_t wall = now_ns() - began;
    unlink(file);
    getrusage(RUSAGE_CHILDREN, &usage);
    print("heap_peak_bytes", heap_peak);
    print("anon_peak_bytes", anon_peak);
    print("max_rss_bytes", (uint64_t)usage.ru_maxrss * 1024);
    print("wall_ns", wall);
    print("cpu_ns", time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime));
    print("looks", looks);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
