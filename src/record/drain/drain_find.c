// Finds, opens, maps and drops the spools of a session. Also detects when their processes end, and
// counts the events that were not drained.
#include "record/drain/drain_private.h"

#include "base/buf.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FIRST_CHUNKS = 64,      // number of chunks mapped initially, enough for a few threads
    MAX_UNTRACED = 1 << 24, // bound for plausible counts
};
#define PENDING_NS 2000000u // between scans while a file is not ready
#define LAST_SCANS 25       // number of scans at the end of a recording

static size_t map_bytes(const struct drain_spool *s)
{
    return SPOOL_HEADER_BYTES + (size_t)s->mapped_chunks * SPOOL_CHUNK_BYTES;
}

uint64_t drain_resident_bytes(const struct drain_spool *s)
{
    unsigned char pages[4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), step = page * sizeof pages, bytes = map_bytes(s);
    uint64_t resident = 0;
    for (size_t at = 0; at < bytes; at += step) {
        size_t n = bytes - at < step ? bytes - at : step;
        if (mincore((char *)s->header + at, n, pages) < 0)
            return 0;
        for (size_t i = 0; i < n / page; i++)
            resident += (pages[i] & 1) * page;
    }
    return resident;
}

static void spool_free(struct drain_spool *s)
{
    guard_remove(&s->guard);
    if (s->header)
        munmap(s->header, map_bytes(s));
    proc_file_close(s->pidfd);
    proc_file_close(s->fd);
    free(s->changes);
    buf_release(&s->thread_names);
    code_names_release(&s->code);
    free(s->marks);
    free(s->streams);
    free(s);
}

// Maps the header and the first chunks. Because address space may be limited, drain_map_more maps
// the other chunks only as needed. `bytes` is the size of the spool in its file. Returns 0, -EAGAIN
// if the spool is not ready, or another negative errno.
static int spool_map(struct drain_spool *s, int fd, uint64_t offset, uint64_t bytes,
                     uint32_t max_chunks)
{
    if (bytes < SPOOL_HEADER_BYTES)
        return -EAGAIN;
    uint64_t room = (bytes - SPOOL_HEADER_BYTES) / SPOOL_CHUNK_BYTES;
    room = room < max_chunks ? room : max_chunks;
    s->mapped_chunks = room < FIRST_CHUNKS ? (uint32_t)room : FIRST_CHUNKS;
    void *p = mmap(NULL, map_bytes(s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
                   (off_t)offset);
    if (p == MAP_FAILED)
        return -errno;
    s->header = p;
    s->chunks = (struct spool_chunk *)((char *)p + SPOOL_HEADER_BYTES);
    guard_add(&s->guard, p, map_bytes(s));
    if (__atomic_load_n(&s->header->magic, __ATOMIC_ACQUIRE) != SPOOL_MAGIC)
        return -EAGAIN;
    uint32_t said = __atomic_load_n(&s->header->max_chunks, __ATOMIC_RELAXED);
    s->max_chunks = said < room ? said : (uint32_t)room;
    return 0;
}

int drain_map_more(struct drain_spool *s, uint32_t n)
{
    if (n <= s->mapped_chunks)
        return 0;
    uint32_t chunks = s->mapped_chunks;
    while (chunks < n)
        chunks = 2 * chunks < s->max_chunks ? 2 * chunks : s->max_chunks;
    size_t bytes = SPOOL_HEADER_BYTES + (size_t)chunks * SPOOL_CHUNK_BYTES;
    void *p = mremap(s->header, map_bytes(s), bytes, MREMAP_MAYMOVE);
    if (p == MAP_FAILED)
        return -errno;
    s->header = p;
    s->chunks = (struct spool_chunk *)((char *)p + SPOOL_HEADER_BYTES);
    s->mapped_chunks = chunks;
    s->guard.at = p;
    s->guard.bytes = bytes;
    return 0;
}

// Sets the executable of a process that did not report it.
static void find_exe(struct drain_spool *s)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)s->visible_pid);
    if (s->exe_inode || s->visible_pid <= 0 || stat(path, &st) < 0)
        return;
    s->exe_device = st.st_dev;
    s->exe_inode = st.st_ino;
}

static int spool_identify(struct drain *c, struct drain_spool *s, int fd, uint64_t offset)
{
    s->pid = __atomic_load_n(&s->header->pid, __ATOMIC_RELAXED);
    s->first_state = __atomic_load_n(&s->header->control.first_state, __ATOMIC_RELAXED) & 3;
    s->began_late = s->first_state != SPOOL_RECORDING;
    int rc = lifetime_find(s, c->dir, fd, offset);
    s->exe_device = __atomic_load_n(&s->header->exe_device, __ATOMIC_RELAXED);
    s->exe_inode = __atomic_load_n(&s->header->exe_inode, __ATOMIC_RELAXED);
    find_exe(s);
    s->dead |= rc == 0 && lifetime_is_over(s);
    return rc;
}

// Opens a file in the session directory, using a spare descriptor if necessary. Returns -1 with
// errno set on failure.
static int open_file(struct drain *c, const char *name, int flags)
{
    int fd = openat(c->dir_fd, name, flags | O_CLOEXEC);
    for (unsigned i = 0; fd < 0 && (errno == EMFILE || errno == ENFILE) && i < DRAIN_SPARE_FDS;
         i++) {
        if (c->spare_fds[i] < 0)
            continue;
        close(c->spare_fds[i]);
        c->spare_fds[i] = -1;
        fd = openat(c->dir_fd, name, flags | O_CLOEXEC);
    }
    return fd;
}

bool drain_keep_spares(struct drain *c)
{
    bool all = true;
    for (unsigned i = 0; i < DRAIN_SPARE_FDS; i++) {
        if (c->spare_fds[i] < 0)
            c->spare_fds[i] = fcntl(c->dir_fd, F_DUPFD_CLOEXEC, 0);
        all &= c->spare_fds[i] >= 0;
    }
    return all;
}

// Returns the offset of a spool in its file. `reserve` is a number from 1, or 0 if the file
// contains a single spool.
static uint64_t spool_offset(unsigned reserve)
{
    return reserve ? spool_reserve_offset(reserve - 1) : 0;
}

static void keep_refused(struct drain *c, const char *name, unsigned reserve)
{
    struct drain_refused r = {.reserve = reserve};
    strcpy(r.name, name);
    c->refused_unknown |= HT_APPEND(&c->refused, &c->refused_kept, &c->refused_capacity, r) < 0;
}

// Sets the flag that makes the process stop writing instead of waiting for the recorder. Uses
// pwrite(2), because there may be no address space. drain_check_refused counts the events that the
// process writes until it sees the flag.
static void refuse_spool(struct drain *c, int fd, const char *name, unsigned reserve)
{
    const uint32_t yes = 1;
    uint64_t at = spool_offset(reserve) + offsetof(struct spool_header, refused);
    if (pwrite(fd, &yes, sizeof yes, (off_t)at) != (ssize_t)sizeof yes)
        return;
    c->refused_pids[c->n_refused++ % DRAIN_REFUSED] =
        reserve ? 0 : (uint32_t)strtoul(name, NULL, 10);
    keep_refused(c, name, reserve);
}

// Opens the spool in a file. Returns 0, -EAGAIN if the spool is not ready, -EBADF if the file is
// not a spool, or -ENOMEM, -EMFILE or -ENFILE.
static int spool_fill(struct drain *c, struct drain_spool *s, int fd)
{
    struct stat st;
    uint64_t offset = spool_offset(s->reserve);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -EBADF;
    // Ignore a hard link, which may refer to another user's file.
    if (st.st_nlink > 1) {
        c->n_unreadable++;
        return -EBADF;
    }
    if (s->reserve && (uint64_t)st.st_size < offset + SPOOL_RESERVE_BYTES)
        return -EAGAIN;
    int rc = spool_map(s, fd, offset, s->reserve ? SPOOL_RESERVE_BYTES : (uint64_t)st.st_size,
                       c->flags & SPOOL_NO_RECORDER ? SPOOL_MAX_CHUNKS_ALONE : SPOOL_MAX_CHUNKS);
    // A spool is complete before it gets its name. If it is incomplete and unused, it was truncated
    // or overwritten.
    if (rc == -EAGAIN && !s->reserve && (c->attached || lifetime_is_unused(fd))) {
        c->n_unreadable++;
        return -EBADF;
    }
    if (rc < 0)
        return rc;
    s->start_stamp = __atomic_load_n(&s->header->start_stamp, __ATOMIC_RELAXED);
    s->requested_ticks = s->start_stamp << CODEC_STAMP_SHIFT;
    rc = spool_identify(c, s, fd, offset);
    return rc == 0 && !drain_keep_spares(c) ? -EMFILE : rc;
}

// Removes a file that has the name of a spool but is not a spool, because programs can create any
// file here.
static void remove_other(struct drain *c, const char *name)
{
    if (!c->attached && unlinkat(c->dir_fd, name, 0) < 0)
        unlinkat(c->dir_fd, name, AT_REMOVEDIR);
}

bool drain_has_refused(const struct drain *c, uint32_t pid)
{
    for (uint32_t i = 0; i < c->n_refused && i < DRAIN_REFUSED; i++) {
        if (c->refused_pids[i] == pid)
            return true;
    }
    return false;
}

// Opens a spool. Returns NULL if the spool is not ready or was refused.
static struct drain_spool *spool_open(struct drain *c, const char *name, unsigned reserve)
{
    int fd = open_file(c, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        bool later = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR ||
                     errno == EWOULDBLOCK; // another recorder checks whether the session is stale
        c->pending |= later;
        c->unopened += later;
        if (errno == ELOOP || errno == EISDIR || errno == ENXIO)
            remove_other(c, name);
        return NULL;
    }
    struct drain_spool *s = calloc(1, sizeof *s);
    int rc = -ENOMEM;
    if (s) {
        s->pidfd = s->fd = -1;
        code_names_init(&s->code);
        s->reserve = reserve;
        strcpy(s->name, name);
        rc = spool_fill(c, s, fd);
    }
    if (rc == 0)
        atomic_store_explicit(&s->header->adopted, 1, memory_order_relaxed);
    else if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
        refuse_spool(c, fd, name, reserve);
    else if (rc == -EBADF && !reserve)
        remove_other(c, name);
    else
        c->pending = true;
    if (s && rc < 0) {
        spool_free(s);
        s = NULL;
    }
    close(fd);
    return s;
}

static bool is_new_spool(const struct drain *c, const char *name)
{
    size_t n = strlen(name), suffix = strlen(SPOOL_FILE_SUFFIX);
    bool known = n <= suffix || n >= sizeof c->spools[0]->name ||
                 strcmp(name + n - suffix, SPOOL_FILE_SUFFIX) != 0;
    for (size_t i = 0; i < c->refused_kept && !known; i++)
        known = strcmp(c->refused[i].name, name) == 0;
    for (size_t i = 0; i < c->n_spools && !known; i++)
        known = strcmp(c->spools[i]->name, name) == 0;
    return !known;
}

// Ends the older images of the process that uses `found`, or `found` itself if it is older. Does
// nothing unless the process is known to have `found` mapped, because only then has the process
// left its other spool.
static void end_older_images(struct drain *c, struct drain_spool *found)
{
    for (size_t i = 0; i < c->n_spools && found->proven; i++) {
        struct drain_spool *s = c->spools[i];
        if (s != found && s->visible_pid == found->visible_pid)
            (s->start_stamp > found->start_stamp ? found : s)->dead = true;
    }
}

static int discover_spool(struct drain *c, const char *name, unsigned reserve, struct err *e)
{
    if (HT_GROW(&c->spools, &c->spools_capacity, c->n_spools + 1) < 0)
        return err_no_memory(e, NULL);
    struct drain_spool *s = spool_open(c, name, reserve);
    if (!s)
        return 0;
    c->spools[c->n_spools++] = s;
    end_older_images(c, s);
    return 1;
}

static struct drain_reserves *find_reserves(const struct drain *c, const char *name)
{
    for (size_t i = 0; i < c->n_reserves; i++) {
        if (strcmp(c->reserves[i]->name, name) == 0)
            return c->reserves[i];
    }
    return NULL;
}

static bool is_new_reserves(const struct drain *c, const char *name)
{
    return strncmp(name, SPOOL_RESERVES_FILE, strlen(SPOOL_RESERVES_FILE)) == 0 &&
           strlen(name) < sizeof c->reserves[0]->name && !find_reserves(c, name);
}

// Opens a reserves file. Ignores a file that is invalid or not ready, because programs can create
// any file here.
static int open_reserves(struct drain *c, const char *name, struct err *e)
{
    int fd = open_file(c, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    uint64_t magic = 0;
    bool whole = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
                 (uint64_t)st.st_size >= sizeof(struct spool_reserves) &&
                 pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                 magic == SPOOL_RESERVES_MAGIC;
    struct drain_reserves *r = whole ? calloc(1, sizeof *r) : NULL;
    void *at = MAP_FAILED;
    if (r && HT_GROW(&c->reserves, &c->reserves_capacity, c->n_reserves + 1) == 0)
        at = mmap(NULL, sizeof *r->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    proc_file_close(fd);
    if (at == MAP_FAILED) {
        free(r);
        c->unopened += fd < 0;
        c->pending |= fd < 0 || (S_ISREG(st.st_mode) && st.st_nlink == 1);
        return whole && !r ? err_no_memory(e, NULL) : 0;
    }
    strcpy(r->name, name);
    r->shared = at;
    guard_add(&r->guard, at, sizeof *r->shared);
    c->reserves[c->n_reserves++] = r;
    return 0;
}

uint32_t drain_untraced(const struct drain_reserves *r)
{
    uint32_t n = atomic_load(&r->shared->untraced);
    return n > MAX_UNTRACED || atomic_load(&r->guard.broken) ? 0 : n;
}

void drain_close_reserves(struct drain *c)
{
    for (size_t i = 0; i < c->n_reserves; i++) {
        guard_remove(&c->reserves[i]->guard);
        munmap(c->reserves[i]->shared, sizeof *c->reserves[i]->shared);
        free(c->reserves[i]);
    }
    c->n_reserves = 0;
    free(c->reserves);
}

// Opens the new spools in a reserves file. Returns the number of new spools, or a negative errno.
static int discover_reserves(struct drain *c, struct drain_reserves *r, struct err *e)
{
    uint64_t new = atomic_load(&r->shared->taken) & ~r->seen;
    int rc = 0, found = 0;
    for (; new &&rc >= 0; new &= new - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(new);
        uint32_t refused = c->n_refused;
        rc = discover_spool(c, r->name, slot + 1, e);
        if (rc > 0 || c->n_refused > refused)
            r->seen |= 1ull << slot;
        found += rc > 0;
    }
    return rc < 0 ? rc : found;
}

static int by_start(const void *a, const void *b)
{
    const struct drain_spool *x = *(struct drain_spool *const *)a,
                             *y = *(struct drain_spool *const *)b;
    return x->start_stamp < y->start_stamp ? -1 : x->start_stamp > y->start_stamp;
}

// Numbers the last `n` spools in order of start time, so that parents precede children.
static void number_found(struct drain *c, size_t n)
{
    struct drain_spool **found = c->spools + c->n_spools - n;
    if (n > 1)
        qsort(found, n, sizeof *found, by_start);
    for (size_t i = 0; i < n; i++)
        found[i]->number = c->n_made++;
}

// Rewrites a truncated session file. This also repairs the mappings in processes.
static void restore_session(struct drain *c)
{
    struct spool_session s = c->kept;
    const int flags = MAP_SHARED | MAP_FIXED;
    atomic_store(&s.recorder.owner, c->owner | (c->stopped ? SPOOL_RECORDER_STOPPED : 0));
    if (pwrite(c->lock_fd, &s, sizeof s, 0) == (ssize_t)sizeof s &&
        mmap(c->session, sizeof s, PROT_READ | PROT_WRITE, flags, c->lock_fd, 0) != MAP_FAILED)
        atomic_store(&c->guard->broken, false);
    c->session_broken = true;
}

// Restores the members that only the recorder may write, because any program of the recorder's user
// can overwrite them.
static void check_session(struct drain *c)
{
    struct spool_session *s = c->session;
    uint32_t owner = c->owner | (c->stopped ? SPOOL_RECORDER_STOPPED : 0);
    bool right = s->magic == SPOOL_SESSION_MAGIC && s->flags == c->flags && s->owner == c->owner &&
                 atomic_load(&s->recorder.owner) == owner;
    if (!c->kept.magic)
        c->kept = *s;
    if (c->attached || (right && !atomic_load(&c->guard->broken)))
        return;
    if (atomic_load(&c->guard->broken))
        restore_session(c);
    s->magic = SPOOL_SESSION_MAGIC;
    s->flags = c->flags;
    s->owner = c->owner;
    atomic_store(&s->recorder.owner, owner);
    c->session_broken = true;
}

// Returns true if a file was created since the last scan, which set the directory's mtime to 0.
static bool has_changed(struct drain *c)
{
    const struct timespec zero[2] = {{0, UTIME_OMIT}, {0, 0}};
    struct stat st;
    bool changed = fstat(c->dir_fd, &st) < 0 || st.st_mtim.tv_sec || st.st_mtim.tv_nsec;
    return (changed && (c->attached || futimens(c->dir_fd, zero) == 0)) || c->pending;
}

// Opens the new spools in the directory. Returns the number of new spools, or a negative errno.
static int scan_directory(struct drain *c, struct err *e)
{
    int fd = open_file(c, ".", O_RDONLY | O_DIRECTORY), found = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *item;
    c->pending = !d;
    c->unopened = !d && errno != ENOENT;
    // A program may have removed the directory. Open spools are still recorded.
    int rc = !d && c->attached ? err_set_errno(e, "%s", c->dir) : 0;
    if (!d)
        proc_file_close(fd);
    while (d && rc >= 0 && (item = readdir(d))) {
        if (is_new_reserves(c, item->d_name))
            rc = open_reserves(c, item->d_name, e);
        else if (is_new_spool(c, item->d_name))
            rc = discover_spool(c, item->d_name, 0, e);
        else
            continue;
        found += rc > 0;
    }
    proc_file_close_folder(d);
    drain_keep_spares(c);
    return rc < 0 ? rc : found;
}

static int scan_session(struct drain *c, struct err *e)
{
    uint64_t now = clock_monotonic_ns();
    int rc = 0, found = 0;
    check_session(c);
    if ((!c->pending || now - c->pending_ns >= PENDING_NS) && has_changed(c)) {
        c->pending_ns = now;
        rc = found = scan_directory(c, e);
    }
    for (size_t i = 0; i < c->n_reserves && rc >= 0; i++) {
        rc = discover_reserves(c, c->reserves[i], e);
        found += rc > 0 ? rc : 0;
    }
    return rc < 0 ? rc : found;
}

int drain_discover(struct drain *c, struct err *e)
{
    int found = scan_session(c, e);
    // After the recorder has stopped, this is the last scan, so wait for files that are not ready.
    for (unsigned i = 0; found >= 0 && c->stopped && c->pending && i < LAST_SCANS; i++) {
        nanosleep(&(struct timespec){.tv_nsec = PENDING_NS}, NULL);
        int more = scan_session(c, e);
        found = more < 0 ? more : found + more;
    }
    if (found > 0)
        number_found(c, (size_t)found);
    return found;
}

int drain_check_ends(struct drain *c)
{
    struct pollfd polled[256];
    int marked = 0;
    for (size_t first = 0; first < c->n_spools; first += 256) {
        size_t n = c->n_spools - first < 256 ? c->n_spools - first : 256;
        for (size_t i = 0; i < n; i++)
            polled[i] = (struct pollfd){.fd = c->spools[first + i]->pidfd, .events = POLLIN};
        if (poll(polled, n, 0) < 0)
            return marked;
        for (size_t i = 0; i < n; i++) {
            struct drain_spool *s = c->spools[first + i];
            bool detached = !s->broken && atomic_load(&s->header->status) == SPOOL_CLOSED;
            bool ended =
                !s->dead &&
                (detached || (s->pidfd >= 0 ? polled[i].revents != 0 : lifetime_is_over(s)));
            marked += ended;
            s->dead |= ended;
        }
    }
    return marked;
}

// Clears a reserve for reuse. On failure, the reserve stays allocated.
static void clear_reserve(struct drain *c, const char *name, unsigned slot)
{
    struct drain_reserves *r = find_reserves(c, name);
    int fd = r ? open_file(c, name, O_RDWR | O_NOFOLLOW) : -1;
    if (fd < 0)
        return;
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)spool_reserve_offset(slot),
                  SPOOL_RESERVE_BYTES) == 0) {
        r->seen &= ~(1ull << slot);
        atomic_fetch_and(&r->shared->taken, ~(1ull << slot));
    }
    close(fd);
}

void drain_drop(struct drain *c, size_t i)
{
    struct drain_spool *s = c->spools[i];
    c->gone_wakeups += atomic_load(&s->header->wakeups);
    // Prevent a process that still uses the spool from waiting for the recorder.
    if (!c->attached) {
        atomic_store(&s->header->refused, 1);
        drain_wake_waiters(s->header, INT_MAX);
    }
    // A process that is not visible in /proc may still write to its reserve and must see `refused`,
    // so keep the reserve.
    bool unseen = s->reserve && s->pidfd < 0 && !lifetime_sees_processes();
    if (unseen && !c->attached)
        c->n_refused += atomic_load(&s->header->status) != SPOOL_CLOSED;
    else if (s->reserve && !c->attached)
        clear_reserve(c, s->name, s->reserve - 1);
    else if (!c->attached)
        unlinkat(c->dir_fd, s->name, 0);
    spool_free(s);
    c->n_spools--;
    memmove(c->spools + i, c->spools + i + 1, (c->n_spools - i) * sizeof *c->spools);
}

// The functions below count undrained events in the rest of a dropped spool, and in chunks that
// could not be mapped. Such chunks are read from the file.

static uint64_t count_events(const uint64_t *words, uint32_t at, uint32_t used,
                             struct codec_state state)
{
    uint64_t events = 0;
    for (uint32_t n; at < used; at += n) {
        struct event ev = {0};
        n = codec_get(&state, words + at, used - at, &ev);
        if (!n)
            break;
        events += ev.kind && event_counts(ev.kind);
    }
    return events;
}

uint64_t drain_undrained(const struct drain_spool *s)
{
    uint64_t events = 0;
    for (uint32_t i = 0; i < s->mapped_chunks; i++) {
        const struct spool_chunk *chunk = &s->chunks[i];
        struct drain_chunk mark = i < s->marks_capacity ? s->marks[i] : (struct drain_chunk){0};
        if (atomic_load_explicit(&chunk->state, memory_order_acquire) == SPOOL_CHUNK_FREE)
            continue;
        if (mark.drained == 0)
            mark.state = (struct codec_state){chunk->epoch0, chunk->base0};
        uint32_t used = spool_published(chunk);
        used = used < SPOOL_CHUNK_WORDS ? used : SPOOL_CHUNK_WORDS;
        events += count_events(chunk->words, mark.drained, used, mark.state);
    }
    return events;
}

static bool read_at(int fd, void *to, size_t n, uint64_t offset)
{
    return pread(fd, to, n, (off_t)offset) == (ssize_t)n;
}

// Counts the events in a chunk. A chunk that was never used is a hole in the file.
static uint64_t count_chunk(struct drain *c, int fd, uint64_t offset)
{
    struct spool_chunk head;
    const size_t head_bytes = offsetof(struct spool_chunk, words);
    if (!read_at(fd, &head, head_bytes, offset) || atomic_load(&head.state) == SPOOL_CHUNK_FREE)
        return 0;
    uint32_t used = spool_published(&head);
    if (used > SPOOL_CHUNK_WORDS ||
        !read_at(fd, c->copy, used * sizeof *c->copy, offset + head_bytes))
        return 0;
    return count_events(c->copy, 0, used, (struct codec_state){head.epoch0, head.base0});
}

// Counts the events in chunks [first, fresh_chunks) of the spool at `offset`.
static uint64_t count_chunks(struct drain *c, int fd, uint64_t offset, uint32_t first)
{
    uint32_t fresh = 0;
    uint64_t events = 0;
    if (!read_at(fd, &fresh, sizeof fresh, offset + offsetof(struct spool_header, fresh_chunks)))
        return 0;
    fresh = fresh < SPOOL_MAX_CHUNKS ? fresh : SPOOL_MAX_CHUNKS;
    for (uint32_t i = first; i < fresh; i++)
        events += count_chunk(c, fd, offset + SPOOL_HEADER_BYTES + (uint64_t)i * SPOOL_CHUNK_BYTES);
    return events;
}

void drain_count_unmapped(struct drain *c, struct drain_spool *s)
{
    int fd = s->unmapped ? open_file(c, s->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0)
        return;
    s->unmapped = false;
    s->lost_words += count_chunks(c, fd, spool_offset(s->reserve), s->mapped_chunks);
    close(fd);
}

// Counts the calls of a refused process if it has ended or at_end is set. Returns false if the
// process must be checked again.
static bool count_refused(struct drain *c, const struct drain_refused *r, bool at_end)
{
    int fd = open_file(c, r->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    uint64_t offset = spool_offset(r->reserve);
    struct spool_count dropped[SPOOL_COUNTS];
    if (fd < 0) {
        c->refused_unknown = true;
        return true;
    }
    // A reserves file is open in all processes of the user, so only a spool in a separate file
    // shows that its process has ended.
    bool over = !r->reserve && lifetime_is_unused(fd);
    c->refused_unknown |= at_end && !over;
    if (over || at_end) {
        c->refused_lost += count_chunks(c, fd, offset, 0);
        if (read_at(fd, dropped, sizeof dropped,
                    offset + offsetof(struct spool_header, unrecorded)))
            c->refused_lost += spool_sum(dropped);
    }
    if (over && !c->attached)
        unlinkat(c->dir_fd, r->name, 0);
    close(fd);
    return over || at_end;
}

void drain_check_refused(struct drain *c, bool at_end)
{
    size_t n = 0;
    for (size_t i = 0; i < c->refused_kept; i++) {
        if (!count_refused(c, &c->refused[i], at_end))
            c->refused[n++] = c->refused[i];
    }
    c->refused_kept = n;
}
