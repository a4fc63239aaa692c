// Runs a program and tells how much resident memory its heap has at most: real_rss PRELOAD.so COMMAND...
// Prints to stderr, a line each: heap_peak_bytes, anon_peak_bytes (all private memory), max_rss_bytes (getrusage's, of the
// biggest process), wall_ns, cpu_ns, looks.
// Of a tree of processes, the one counts whose program is
// called what REAL_RSS_PROGRAM says, else the one started last. The program's LD_PRELOAD is PRELOAD.so and, if
// REAL_RSS_ALLOCATOR is set, that library. With REAL_RSS_LOOK=0 nothing is looked at but times.
//
// Heap is what lies, private and present, in [heap] or a mapping without a name, but neither in one that was there before
// main, nor in one that the program made itself, nor behind a file's mapping (its bss).
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

enum { EVERY_NS = 2000000, MAX_RANGES = 70000, PAGE = 4096 };

static struct real_rss *noted;
static struct real_rss_range not_heap[MAX_RANGES];
static size_t n_not_heap;
static uint64_t heap_peak, anon_peak, looks;
static char maps[4 << 20];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct mapping {
    uintptr_t from, to;
    bool writable, named, heap;
};

// The next line of a maps text.
static bool next_mapping(const char **text, struct mapping *m)
{
    char flags[8], name[256] = "";
    unsigned long from, to;
    if (sscanf(*text, "%lx-%lx %7s %*s %*s %*s%255[^\n]", &from, &to, flags, name) < 3)
        return false;
    const char *end = strchr(*text, '\n');
    *text = end ? end + 1 : *text + strlen(*text);
    char *path = name + strspn(name, " ");
    *m = (struct mapping){from, to, flags[1] == 'w', *path != 0, strcmp(path, "[heap]") == 0};
    return true;
}

static void exclude(uintptr_t from, uintptr_t to)
{
    if (n_not_heap < MAX_RANGES)
        not_heap[n_not_heap++] = (struct real_rss_range){from, to};
}

static bool is_heap(uintptr_t page)
{
    for (size_t i = 0; i < n_not_heap; i++) {
        if (page >= not_heap[i].from && page < not_heap[i].to)
            return false;
    }
    return true;
}

// Present private pages of [from, to) that nothing excludes.
static uint64_t count(int pagemap, uintptr_t from, uintptr_t to)
{
    static uint64_t entries[65536];
    uint64_t bytes = 0;
    while (from < to) {
        size_t n = (to - from) / PAGE < 65536 ? (to - from) / PAGE : 65536;
        ssize_t got = pread(pagemap, entries, n * 8, (off_t)(from / PAGE * 8));
        if (got <= 0)
            break;
        for (size_t i = 0; i < (size_t)got / 8; i++) {
            bool present = entries[i] >> 63 & 1, of_file = entries[i] >> 61 & 1;
            if (present && !of_file && is_heap(from + i * PAGE))
                bytes += PAGE;
        }
        from += (size_t)got / 8 * PAGE;
    }
    return bytes;
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

static void find_excluded(void)
{
    const char *text = noted->maps_at_start;
    struct mapping m;
    n_not_heap = 0;
    while (next_mapping(&text, &m)) {
        if (!m.heap)
            exclude(m.from, m.to);
    }
    for (uint32_t i = 0; i < noted->n && i < REAL_RSS_RANGES; i++)
        exclude(noted->ranges[i].from, noted->ranges[i].to);
}

static void sample(pid_t pid)
{
    char path[64], statm[128];
    unsigned long resident, shared;
    if (read_file(pid, "statm", statm, sizeof statm) && sscanf(statm, "%*u %lu %lu", &resident, &shared) == 2 &&
        (resident - shared) * PAGE > anon_peak)
        anon_peak = (resident - shared) * PAGE;
    read_file(pid, "maps", maps, sizeof maps);
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    int pagemap = open(path, O_RDONLY);
    if (pagemap < 0)
        return;
    find_excluded();
    const char *text = maps;
    struct mapping m, before = {0};
    uint64_t heap = 0;
    while (next_mapping(&text, &m)) {
        bool is_bss = !m.named && before.named && before.to == m.from && !before.heap;
        if (m.heap || (!m.named && m.writable && !is_bss))
            heap += count(pagemap, m.from, m.to);
        before = m;
    }
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
    const char *more = getenv("REAL_RSS_ALLOCATOR");
    snprintf(all, sizeof all, "%s%s%s", preload, more ? ":" : "", more ? more : "");
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
            heap_peak = anon_peak = 0;
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
