// Measures the process's private resident memory, excluding the player's own.
#include "replay/player/player.h"
#include "trace/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10 };

static uint64_t page_bytes;
static uint64_t shared_at_reset; // in pages
static uint64_t own_bytes;       // private memory of the player, libc and the loader

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

// Reads the first three numbers in statm: size, resident pages and shared pages. File pages and
// shared mappings count as shared; other resident pages are anonymous and private. Returns false
// with errno set if statm cannot be read.
static bool read_statm(uint64_t *size, uint64_t *resident, uint64_t *shared)
{
    char text[128];
    ssize_t n = pread(player.statm_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = 0;
    next_number(next_number(next_number(text, size), resident), shared);
    errno = EBADF; // the allocator may have closed the file and opened another file
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
    // 5 resets the high-water mark to the current size (proc(5)).
    ssize_t n = write(fd, "5", 1);
    (void)n;
    close(fd);
}

// Returns a lower bound on the peak of private memory that includes peaks between samples. The
// kernel's high-water mark covers all resident memory. Shared memory usually grows during a replay,
// but the kernel may drop pages of a saved plan. The function subtracts the shared memory at the
// start or at the end, whichever is larger. Therefore the result never exceeds the true peak.
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

// Returns true for the player, libc and the loader. Pages of any other object count as the
// allocator's.
static bool is_own_object(const struct dl_phdr_info *info)
{
    return object_has(info, (uintptr_t)&player) ||
           object_has(info, (uintptr_t)gnu_get_libc_version) ||
           (getauxval(AT_BASE) && object_has(info, getauxval(AT_BASE)));
}

// Returns true for a library that the recorded program has loaded, so that its memory is part of
// the process on every allocator.
static bool is_of_program(const struct dl_phdr_info *info)
{
    return libraries_bit(info->dlpi_name) & player.results->task.libraries;
}

// Writes to each page of the segment without changing the contents. Skips pages that the loader has
// made read-only.
static void touch_segment(uintptr_t from, uintptr_t to, uintptr_t readonly_from,
                          uintptr_t readonly_to)
{
    for (uintptr_t at = from; at < to; at = (at & ~(page_bytes - 1)) + page_bytes) {
        own_bytes += page_bytes;
        if (at < readonly_from || at >= readonly_to)
            __atomic_fetch_or((char *)at, 0, __ATOMIC_RELAXED);
    }
}

// Makes the kernel copy an object's writable pages before the replay. Sets *is_linked if the object
// is an allocator that the program has loaded.
static int touch_object(struct dl_phdr_info *info, size_t size, void *is_linked)
{
    uintptr_t readonly_from = 0, readonly_to = 0;
    (void)size;
    if (!is_own_object(info) && !is_of_program(info))
        return 0;
    if (libraries_bit(info->dlpi_name) & LIBRARIES_ALLOCATORS) {
        *(bool *)is_linked = true;
        return 0;
    }
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

// Touches the main thread's stack. Otherwise pages first used by the allocator's deepest call would
// count as the allocator's. Counts the pages up to the string at AT_EXECFN, which is at the far end
// of the stack.
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char stack[STACK_BYTES];
    for (size_t i = 0; i < sizeof stack; i += 1024)
        stack[i] = 0;
    uintptr_t end = (getauxval(AT_EXECFN) | (page_bytes - 1)) + 1,
              from = (uintptr_t)stack & ~(page_bytes - 1);
    own_bytes += end > from ? end - from : 0;
}

void player_release_cxx_pool(void)
{
    void (*release)(void);
    *(void **)&release = dlsym(RTLD_DEFAULT, "_ZN9__gnu_cxx9__freeresEv");
    if (release && player.results->task.libraries & LIBRARIES_STDCXX)
        release();
}

void player_touch_own_pages(void)
{
    struct rlimit limit;
    bool is_linked = false;
    if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= 2ul * STACK_BYTES)
        touch_stack();
    dl_iterate_phdr(touch_object, &is_linked);
    // The program has the allocator's memory at load on every allocator.
    if (is_linked)
        own_bytes += player_private_bytes();
}

struct library_count {
    int pagemap_fd;
    bool is_unknown;
    uint64_t pages;
};

// Counts the resident pages of a segment that belong to its file.
static void count_file_pages(struct library_count *c, uintptr_t from, uintptr_t to)
{
    const uint64_t present = 1ull << 63, of_file = 1ull << 61; // proc_pid_pagemap(5)
    uint64_t entries[64];
    for (uint64_t page = from / page_bytes, end = (to + page_bytes - 1) / page_bytes; page < end;) {
        uint64_t n = end - page < 64 ? end - page : 64;
        ssize_t got =
            pread(c->pagemap_fd, entries, n * sizeof *entries, (off_t)(page * sizeof *entries));
        c->is_unknown |= got != (ssize_t)(n * sizeof *entries);
        if (c->is_unknown)
            return;
        for (uint64_t i = 0; i < n; i++)
            c->pages += entries[i] & present && entries[i] & of_file;
        page += n;
    }
}

static int count_library(struct dl_phdr_info *info, size_t size, void *context)
{
    struct library_count *c = context;
    (void)size;
    // The kernel's own object (vdso) has no path.
    if (is_own_object(info) || is_of_program(info) || !strchr(info->dlpi_name, '/'))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD)
            count_file_pages(c, from, from + h->p_memsz);
    }
    return 0;
}

uint64_t player_library_bytes(void)
{
    struct library_count c = {open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), false, 0};
    if (c.pagemap_fd < 0)
        return RESULTS_UNKNOWN;
    dl_iterate_phdr(count_library, &c);
    close(c.pagemap_fd);
    return c.is_unknown ? RESULTS_UNKNOWN : c.pages * page_bytes;
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
    // The sum may be negative for a short time: a thread that frees blocks of other threads may be
    // counted before those threads.
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
