// Runs a program and measures the peak resident memory of its heap: real_rss PRELOAD.so COMMAND...
//
// Prints lines to stderr: heap_peak_bytes, anon_peak_bytes (all private memory), max_rss_bytes (by
// getrusage, of the largest process), wall_ns, cpu_ns, looks (number of samples). In a tree of
// processes, it measures the process of the program $REAL_RSS_PROGRAM, otherwise the process
// started last. LD_PRELOAD is set to PRELOAD.so, its previous value and, if set,
// $REAL_RSS_ALLOCATOR. REAL_RSS_LOOK=0 measures only times, without PRELOAD.so. The file
// $REAL_RSS_CURVE gets a line for each sample: calls of the allocator, CPU time in ns, heap bytes.
//
// Sampling every 2 ms misses growth between two samples: in a short program, a third of the peak.
// Therefore the kernel stops the program (seccomp_unotify(2)) before each call that can release
// memory (munmap, madvise, mremap, brk, exit_group) until a sample is taken. The kernel does not
// stop these calls until they can have released 64 KiB since the last sample. The measured peak is
// therefore too low by at most 64 KiB.
//
// The program is also stopped every 256 calls of the allocator, and less often later, because
// allocators release memory over time. Its clock excludes the time for which it is stopped.
//
// The heap consists of private resident pages in [heap] or in mappings without a name, minus
// mappings made by the program itself, minus its variables, and minus the heap before the first
// constructor, which belongs to the loader and the allocator.
#include "real_rss.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_MS = 2, LEAST_BYTES = 64 << 10 };

static struct real_rss *noted;
static uint64_t heap_peak, anon_peak, looks;
static struct {
    uint64_t calls, cpu_ns, heap_bytes;
} curve[1 << 18]; // later points are dropped
static size_t n_curve;
static uint64_t released, last_break; // Bytes released by the measured process since the last
                                      // sample, and its last program break.
static char maps[4 << 20];

static pid_t started;

static void forward(int signal)
{
    kill(started, signal);
}

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

// Returns the value of a line of /proc/PID/status, converted from kB to bytes.
static uint64_t bytes_of(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

// Returns the page frame of an address, or 0 if it is unknown.
static uint64_t frame_of(const char *at)
{
    uint64_t entry = 0;
    int pagemap = open("/proc/self/pagemap", O_RDONLY);
    if (pagemap < 0 || pread(pagemap, &entry, 8, (off_t)((uintptr_t)at / REAL_RSS_PAGE * 8)) != 8)
        entry = 0;
    close(pagemap);
    return entry & ((1ull << 55) - 1);
}

// Finds the kernel's zero pages, small and huge, by reading untouched memory.
static void find_zeros(struct real_rss *r)
{
    enum { HUGE_BYTES = 2 << 20, HUGE_FRAMES = HUGE_BYTES / REAL_RSS_PAGE };
    char *at = mmap(NULL, 2 * HUGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    volatile char *small = at,
                  *huge = (char *)(((uintptr_t)at + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
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

static void put_point(pid_t pid, uint64_t calls, uint64_t heap_bytes)
{
    clockid_t clock;
    struct timespec t;
    if (n_curve == sizeof curve / sizeof *curve || clock_getcpuclockid(pid, &clock) != 0 ||
        clock_gettime(clock, &t) < 0)
        return;
    curve[n_curve].calls = calls;
    curve[n_curve].cpu_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    curve[n_curve++].heap_bytes = heap_bytes;
}

static void sample(pid_t pid)
{
    char path[64], status[4096];
    uint64_t calls = __atomic_load_n(&noted->calls, __ATOMIC_RELAXED);
    if (read_file(pid, "status", status, sizeof status)) {
        uint64_t high = bytes_of(status, "VmHWM:"), anon = bytes_of(status, "RssAnon:"),
                 shared = bytes_of(status, "RssFile:") + bytes_of(status, "RssShmem:");
        // The high-water mark shows a peak since the last sample.
        if (high > shared + anon)
            anon = high - shared;
        anon_peak = anon > anon_peak ? anon : anon_peak;
    }
    read_file(pid, "maps", maps, sizeof maps);
    snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
    int pagemap = open(path, O_RDONLY);
    if (pagemap < 0)
        return;
    uint64_t heap = real_rss_heap(noted, pagemap, maps);
    heap = heap > noted->heap_at_start ? heap - noted->heap_at_start : 0;
    close(pagemap);
    looks++;
    released = 0;
    put_point(pid, calls, heap);
    if (heap > heap_peak)
        heap_peak = heap;
}

// Returns the maximum number of bytes that the call can release.
static uint64_t bytes_released(const struct seccomp_data *call)
{
    uint64_t bytes = 0;
    switch (call->nr) {
    case SYS_munmap:
        // Otherwise, the preloaded library requests a sample.
        return call->args[0] ? call->args[1] : LEAST_BYTES;
    case SYS_madvise:
        return call->args[2] == MADV_DONTNEED || call->args[2] == MADV_FREE ? call->args[1] : 0;
    case SYS_mremap:
        return call->args[1] > call->args[2] ? call->args[1] - call->args[2] : 0;
    case SYS_brk:
        bytes = call->args[0] && call->args[0] < last_break ? last_break - call->args[0] : 0;
        last_break = call->args[0] ? call->args[0] : last_break;
        return bytes;
    default:
        return LEAST_BYTES;
    }
}

static bool is_of(pid_t thread, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", pid, thread);
    return access(path, F_OK) == 0;
}

// Waits for a call and takes a sample before the call runs.
static void look(int listener)
{
    struct pollfd event = {.fd = listener, .events = POLLIN};
    struct seccomp_notif call = {0};
    if (poll(&event, 1, EVERY_MS) <= 0 || !(event.revents & POLLIN)) {
        // No process is left.
        if (event.revents)
            nanosleep(&(struct timespec){0, EVERY_MS * 1000000}, NULL);
        if (noted->pid)
            sample(noted->pid);
        return;
    }
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return;
    uint64_t began = now_ns();
    if (noted->pid && is_of((pid_t)call.pid, noted->pid)) {
        released += bytes_released(&call.data);
        if (released >= LEAST_BYTES)
            sample(noted->pid);
        // For requests of the preloaded library, the library measures the time.
        if (call.data.nr != SYS_munmap || call.data.args[0])
            __atomic_fetch_add(&noted->stopped_ns, now_ns() - began, __ATOMIC_RELAXED);
    }
    struct seccomp_notif_resp go_on = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on); // fails if the call was interrupted
}

// Runs in the measured process. Returns a descriptor for its calls.
static int install_filter(void)
{
#define CALL(name)                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        CALL(munmap),
        CALL(madvise),
        CALL(mremap),
        CALL(brk),
        CALL(exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

// Starts the program. Sets *listener to a descriptor that receives its calls, or to -1 if only
// times are measured.
static pid_t start(const char *preload, const char *file, char **argv, int *listener)
{
    int number = -1, ends[2], got[2];
    const char *looks_at = getenv("REAL_RSS_LOOK");
    bool is_looked_at = !looks_at || *looks_at != '0';
    if (pipe2(ends, O_CLOEXEC) < 0 || pipe2(got, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    *listener = -1;
    if (pid) {
        close(ends[1]);
        if (pid > 0 && read(ends[0], &number, sizeof number) == sizeof number && number >= 0) {
            int process = (int)syscall(SYS_pidfd_open, pid, 0);
            *listener = (int)syscall(SYS_pidfd_getfd, process, number, 0);
            close(process);
        }
        close(ends[0]);
        close(got[0]);
        close(got[1]);
        return is_looked_at && *listener < 0 ? -1 : pid;
    }
    char all[8192];
    const char *first = getenv("LD_PRELOAD"), *more = getenv("REAL_RSS_ALLOCATOR");
    snprintf(all, sizeof all, "%s%s%s%s%s", is_looked_at ? preload : "", first ? ":" : "",
             first ? first : "", more ? ":" : "", more ? more : "");
    setenv("LD_PRELOAD", all, 1);
    setenv("REAL_RSS", file, 1);
    if (is_looked_at) {
        number = install_filter();
        close(got[1]);
        if (write(ends[1], &number, sizeof number) != sizeof number || number < 0)
            _exit(126);
        // execvp closes the listener, so wait until the parent has copied the descriptor.
        char none;
        (void)!read(got[0], &none, 1);
    }
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

static void print_curve(const char *path)
{
    FILE *f = path ? fopen(path, "w") : NULL;
    for (size_t i = 0; f && i < n_curve; i++)
        fprintf(f, "%llu %llu %llu\n", (unsigned long long)curve[i].calls,
                (unsigned long long)curve[i].cpu_ns, (unsigned long long)curve[i].heap_bytes);
    if (f && fclose(f) != 0)
        perror(path);
}

int main(int argc, char **argv)
{
    char file[] = "/tmp/real_rss-XXXXXX";
    int status, fd = mkstemp(file);
    // The program may run as another user.
    if (argc < 3 || fd < 0 || fchmod(fd, 0666) < 0 || ftruncate(fd, sizeof *noted) < 0)
        return 2;
    noted = mmap(NULL, sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (noted == MAP_FAILED)
        return 2;
    find_zeros(noted);
    const char *preload = argv[1];
    unsetenv("REAL_RSS");
    uint64_t began = now_ns();
    int listener;
    pid_t pid = start(preload, file, argv + 2, &listener);
    if (pid < 0) {
        fprintf(stderr, "real_rss: the program's calls cannot be looked at\n");
        unlink(file);
        return 2;
    }
    // Recipes end servers by SIGTERM.
    started = pid;
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = forward, .sa_flags = SA_RESTART}, NULL);
    uint32_t starts = 0;
    struct rusage usage;
    while (wait4(pid, &status, listener < 0 ? 0 : WNOHANG, &usage) == 0) {
        if (noted->starts != starts) {
            starts = noted->starts;
            heap_peak = anon_peak = last_break = n_curve = 0;
        }
        look(listener);
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
    print_curve(getenv("REAL_RSS_CURVE"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
