// Measures the private resident memory of the process, less the player's own.
#include "replay/player/player.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static uint64_t page_bytes;
static uint64_t shared_at_reset; // pages
static uint64_t own_bytes;       // of private_bytes the player's, libc's and the loader's

void player_memory_init(void)
{
    page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    player.statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (player.statm_fd < 0)
        player_fail(RESULTS_NO_SETUP, NULL, 0, 0, errno);
}

static const char *next_number(const char *text, uint64_t *n)
{
    while (*text == ' ' || *text == '\t')
        text++;
    for (*n = 0; *text >= '0' && *text <= '9'; text++)
        *n = *n * 10 + (uint64_t)(*text - '0');
    return text;
}

// The first three numbers of statm are size, resident and shared pages. Shared are those of files and of shared
// mappings; what is left is anonymous and private. False when it cannot be read.
static bool read_statm(uint64_t *size, uint64_t *resident, uint64_t *shared)
{
    char text[128];
    ssize_t n = pread(player.statm_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = 0;
    next_number(next_number(next_number(text, size), resident), shared);
    errno =
        EBADF; // unless this is what it should be: the allocator may have closed the file and opened another one
    return *size && *resident;
}

static uint64_t less_own(uint64_t private_bytes)
{
    return private_bytes > own_bytes ? private_bytes - own_bytes : 0;
}

struct player_memory player_memory(void)
{
    uint64_t size, resident, shared;
    if (!read_statm(&size, &resident, &shared))
        player_fail(RESULTS_NO_FIGURES, NULL, 0, 0, errno);
    uint64_t private_bytes = resident > shared ? (resident - shared) * page_bytes : 0;
    return (struct player_memory){less_own(private_bytes), size * page_bytes};
}

uint64_t player_private_bytes(void)
{
    return player_memory().private_bytes;
}

void player_reset_peak(void)
{
    uint64_t size, resident;
    if (!read_statm(&size, &resident, &shared_at_reset))
        player_fail(RESULTS_NO_FIGURES, NULL, 0, 0, errno);
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    // 5: the high-water mark becomes what is resident now (proc(5)).
    ssize_t n = write(fd, "5", 1);
    (void)n;
    close(fd);
}

// The kernel keeps the high-water mark of all resident memory. Shared memory grows during a replay, but for pages of a
// saved plan that the kernel takes back, so the mark less the shared memory at the end, or at the start if that was more,
// is at most the highest private memory: it catches the peaks between two samples, and is never too high.
uint64_t player_peak_private_bytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "\nVmHWM:");
    if (!line)
        return 0;
    uint64_t peak_kib, size, resident, shared;
    next_number(line + strlen("\nVmHWM:"), &peak_kib);
    if (!read_statm(&size, &resident, &shared))
        return 0;
    if (shared < shared_at_reset)
        shared = shared_at_reset;
    if (peak_kib * 1024 <= shared * page_bytes)
        return 0;
    return less_own(peak_kib * 1024 - shared * page_bytes);
}

static bool object_has(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_LOAD && address - (info->dlpi_addr + h->p_vaddr) < h->p_memsz)
            return true;
    }
    return false;
}

// The player itself, libc or the loader? Other objects, and their pages, are the allocator's.
static bool is_own_object(const struct dl_phdr_info *info)
{
    return object_has(info, (uintptr_t)&player) ||
           object_has(info, (uintptr_t)gnu_get_libc_version) ||
           (getauxval(AT_BASE) && object_has(info, getauxval(AT_BASE)));
}

// Writes to each page of the segment without changing it. Skips what the loader has made read-only, when it had written
// to it.
static void touch_segment(uintptr_t from, uintptr_t to, uintptr_t readonly_from,
                          uintptr_t readonly_to)
{
    for (uintptr_t at = from; at < to; at = (at & ~(page_bytes - 1)) + page_bytes) {
        own_bytes += page_bytes;
        if (at < readonly_from || at >= readonly_to)
            __atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
    }
}

// Makes the kernel copy an object's writable pages now, and not during the replay.
static int touch_object(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t readonly_from = 0, readonly_to = 0;
    (void)size;
    (void)unused;
    if (!is_own_object(info))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_GNU_RELRO) {
            readonly_from = (info->dlpi_addr + h->p_vaddr) & ~(page_bytes - 1);
            readonly_to = (info->dlpi_addr + h->p_vaddr + h->p_memsz) & ~(page_bytes - 1);
        }
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && (h->p_flags & PF_W))
            touch_segment(from, from + h->p_memsz, readonly_from, readonly_to);
    }
    return 0;
}

// Also the main thread's stack, which is private: pages that the allocator's deepest call is the first to use would
// count as the allocator's. The kernel put the program's name last on it.
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char stack[256 << 10];
    for (size_t i = 0; i < sizeof stack; i += 1024)
        stack[i] = 0;
    uintptr_t end = (getauxval(AT_EXECFN) | (page_bytes - 1)) + 1,
              from = (uintptr_t)stack & ~(page_bytes - 1);
    own_bytes += end > from ? end - from : 0;
}

void player_touch_own_pages(void)
{
    touch_stack();
    dl_iterate_phdr(touch_object, NULL);
}

static void note_peak(uint64_t live)
{
    uint64_t peak = atomic_load_explicit(&player.peak_live_bytes, memory_order_relaxed);
    while (live > peak &&
           !atomic_compare_exchange_weak_explicit(&player.peak_live_bytes, &peak, live,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

void player_sample(uint64_t events, uint64_t live_change, bool keep)
{
    struct results *r = player.results;
    uint64_t event =
        atomic_fetch_add_explicit(&player.events, events, memory_order_relaxed) + events;
    uint64_t live =
        atomic_fetch_add_explicit(&player.live_bytes, live_change, memory_order_relaxed) +
        live_change;
    // A thread that frees blocks of others may have been counted before them.
    if ((int64_t)live < 0)
        live = 0;
    note_peak(live);
    if (!keep)
        return;
    uint64_t at = atomic_fetch_add_explicit(&r->n_samples, 1, memory_order_relaxed);
    if (at >= r->max_samples)
        return;
    const struct player_memory now = player_memory();
    uint64_t virtual = now.virtual_bytes > player.virtual_at_start
                           ? now.virtual_bytes - player.virtual_at_start
                           : 0;
    r->samples[at] = (struct results_sample){event, clock_monotonic_ns() - player.start_ns,
                                             now.private_bytes, virtual, live};
}
