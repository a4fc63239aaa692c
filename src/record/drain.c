#include "record/drain_private.h"

#include "base/buf.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FIRST_CHUNKS = 64,      // mapped at once: what a process of some threads needs
    LEFT_LOOKS = 2,         // at another executable: between exec and its first event a program takes its time
    MAX_STREAMS = 1 << 17,  // two for each thread that can live at once
    MAX_TRIES = 1 << 20,    // to free a chunk, against programs that change the stack all the time
    MAX_COUNT_BITS = 48,    // no process counts further
    MAX_GAP_WORDS = 1 << 30 // nor are so many words lost at once
};
#define OVERWRITTEN "its spool was overwritten"
#define PENDING_NS  2000000u    // between looks at files that were not ready
#define STUCK_NS    5000000000u // from here on a wait for chunks that cannot come is no coincidence

static size_t map_bytes(const struct drain_spool *s)
{
    return SPOOL_HEADER_BYTES + (size_t)s->mapped_chunks * SPOOL_CHUNK_BYTES;
}

static void spool_free(struct drain_spool *s)
{
    guard_remove(&s->guard);
    if (s->header)
        munmap(s->header, map_bytes(s));
    if (s->pidfd >= 0)
        close(s->pidfd);
    if (s->fd >= 0)
        close(s->fd);
    free(s->changes);
    buf_release(&s->thread_names);
    code_names_release(&s->code);
    free(s->marks);
    free(s->streams);
    free(s);
}

// Maps the header of the spool, when it is ready, and the first chunks: the rest as they come into use, since address space
// is limited, too. `bytes` is what the file has room for. 0, -EAGAIN when it is not ready, or another negative errno.
static int spool_map(struct drain_spool *s, int fd, uint64_t offset, uint64_t bytes, uint32_t max_chunks)
{
    if (bytes < SPOOL_HEADER_BYTES)
        return -EAGAIN;
    uint64_t room = (bytes - SPOOL_HEADER_BYTES) / SPOOL_CHUNK_BYTES;
    if (room > max_chunks)
        room = max_chunks;
    s->mapped_chunks = room < FIRST_CHUNKS ? (uint32_t)room : FIRST_CHUNKS;
    void *p = mmap(NULL, map_bytes(s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
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

// Maps chunks [0, n), n ≤ max_chunks.
static int spool_map_more(struct drain_spool *s, uint32_t n)
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

static bool find_exe(const struct drain_spool *s, uint64_t *device, uint64_t *inode)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)s->visible_pid);
    if (s->visible_pid <= 0 || stat(path, &st) < 0)
        return false;
    *device = st.st_dev;
    *inode = st.st_ino;
    return true;
}

static int spool_identify(struct drain *c, struct drain_spool *s, int fd, uint64_t offset)
{
    s->pid = __atomic_load_n(&s->header->pid, __ATOMIC_RELAXED);
    s->first_state = __atomic_load_n(&s->header->control.first_state, __ATOMIC_RELAXED) & 3;
    s->began_late = s->first_state != SPOOL_RECORDING;
    int rc = lifetime_find(s, c->dir, fd, offset);
    s->exe_device = __atomic_load_n(&s->header->exe_device, __ATOMIC_RELAXED);
    s->exe_inode = __atomic_load_n(&s->header->exe_inode, __ATOMIC_RELAXED);
    if (s->exe_inode == 0)
        find_exe(s, &s->exe_device, &s->exe_inode);
    s->dead |= rc == 0 && lifetime_is_over(s);
    return rc;
}

// Opens a file of the session's directory. When no descriptor is left, by one of those that are kept for that.
static int open_file(struct drain *c, const char *name, int flags)
{
    int fd = openat(c->dir_fd, name, flags | O_CLOEXEC);
    for (unsigned i = 0; fd < 0 && (errno == EMFILE || errno == ENFILE) && i < DRAIN_SPARE_FDS; i++) {
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

// Tells the process that nobody will drain its spool, so that it does not wait for that, and forgets the file. By
// pwrite(2): there may be no address space to map it.
static void refuse(struct drain *c, int fd, const char *name, unsigned reserve)
{
    const uint32_t yes = 1;
    uint64_t at = (reserve ? spool_reserve_offset(reserve - 1) : 0) + offsetof(struct spool_header, refused);
    c->refused[c->n_refused % DRAIN_REFUSED] = reserve ? 0 : (uint32_t)strtoul(name, NULL, 10);
    c->n_refused += pwrite(fd, &yes, sizeof yes, (off_t)at) == (ssize_t)sizeof yes;
    if (!reserve)
        unlinkat(c->dir_fd, name, 0);
}

// Fills in the spool of an open file. 0, -EAGAIN when it is not ready, -EBADF when it is none, or what is not to be had:
// -ENOMEM, -EMFILE.
static int spool_fill(struct drain *c, struct drain_spool *s, int fd)
{
    struct stat st;
    uint64_t offset = s->reserve ? spool_reserve_offset(s->reserve - 1) : 0;
    // A link may be to a file of somebody else.
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1)
        return -EBADF;
    if (s->reserve && (uint64_t)st.st_size < offset + SPOOL_RESERVE_BYTES)
        return -EAGAIN;
    int rc = spool_map(s, fd, offset, s->reserve ? SPOOL_RESERVE_BYTES : (uint64_t)st.st_size,
                       c->flags & SPOOL_NO_RECORDER ? SPOOL_MAX_CHUNKS_ALONE : SPOOL_MAX_CHUNKS);
    // Nobody will go on with what nobody has.
    if (rc == -EAGAIN && !s->reserve && !c->attached && lifetime_nobody_has(fd))
        return -EBADF;
    if (rc < 0)
        return rc;
    s->session_number = __atomic_load_n(&s->header->number, __ATOMIC_RELAXED);
    rc = spool_identify(c, s, fd, offset);
    return rc == 0 && !drain_keep_spares(c) ? -EMFILE : rc;
}

// Removes what has a spool's name and is none: programs can put anything into the folder.
static void remove_other(struct drain *c, const char *name)
{
    if (!c->attached && unlinkat(c->dir_fd, name, 0) < 0)
        unlinkat(c->dir_fd, name, AT_REMOVEDIR);
}

// The spool in a file of the session's directory, its own or a reserve of the session's. NULL: it is not ready, or had to
// be refused.
bool drain_has_refused(const struct drain *c, uint32_t pid)
{
    for (uint32_t i = 0; i < c->n_refused && i < DRAIN_REFUSED; i++) {
        if (c->refused[i] == pid)
            return true;
    }
    return false;
}

static struct drain_spool *spool_open(struct drain *c, const char *name, unsigned reserve)
{
    int fd = open_file(c, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        c->pending |= errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR;
        if (errno == ELOOP || errno == EISDIR || errno == ENXIO)
            remove_other(c, name);
        return NULL;
    }
    struct drain_spool *s = calloc(1, sizeof *s);
    int rc = s ? 0 : -ENOMEM;
    if (s) {
        s->pidfd = s->fd = s->code.fd = -1;
        s->reserve = reserve;
        strcpy(s->name, name);
        rc = spool_fill(c, s, fd);
    }
    if (rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE)
        refuse(c, fd, name, reserve);
    else if (rc == -EBADF && !reserve)
        remove_other(c, name);
    else if (rc < 0)
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
    if (n <= suffix || n >= sizeof c->spools[0]->name || strcmp(name + n - suffix, SPOOL_FILE_SUFFIX) != 0)
        return false;
    for (size_t i = 0; i < c->n_spools; i++) {
        if (strcmp(c->spools[i]->name, name) == 0)
            return false;
    }
    return true;
}

// The image that called exec is over as soon as the next one has a spool. Two may be found at once, in any order. Only a
// process that is known to have the new one can have left the old one.
static void supersede(struct drain *c, struct drain_spool *found)
{
    for (size_t i = 0; i < c->n_spools; i++) {
        struct drain_spool *s = c->spools[i];
        if (!found->proven || s->visible_pid != found->visible_pid)
            continue;
        if (s->session_number > found->session_number) {
            found->dead = true;
            continue;
        }
        // It is recorded again, or has only been slow to begin.
        c->n_left -= s->other_exe >= LEFT_LOOKS;
        s->other_exe = 0;
        s->dead = true;
    }
}

static int discover_spool(struct drain *c, const char *name, unsigned reserve, struct err *e)
{
    if (HT_GROW(&c->spools, &c->spools_capacity, c->n_spools + 1) < 0)
        return err_set(e, -ENOMEM, "out of memory");
    struct drain_spool *s = spool_open(c, name, reserve);
    if (!s)
        return 0;
    supersede(c, s);
    c->spools[c->n_spools++] = s;
    return 1;
}

static int discover_reserves(struct drain *c, struct err *e)
{
    uint64_t new = atomic_load(&c->session->reserves_taken) & ~c->reserves_seen;
    int rc = 0, found = 0;
    for (; new &&rc >= 0; new &= new - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(new);
        uint32_t refused = c->n_refused;
        rc = discover_spool(c, SPOOL_SESSION_FILE, slot + 1, e);
        if (rc > 0 || c->n_refused > refused)
            c->reserves_seen |= 1ull << slot;
        found += rc > 0;
    }
    return rc < 0 ? rc : found;
}

static int by_session_number(const void *a, const void *b)
{
    const struct drain_spool *x = *(struct drain_spool *const *)a, *y = *(struct drain_spool *const *)b;
    return x->session_number < y->session_number ? -1 : x->session_number > y->session_number;
}

// Numbers the last `n` spools: a directory has no order, but parents come before their children.
static void number_found(struct drain *c, size_t n)
{
    struct drain_spool **found = c->spools + c->n_spools - n;
    if (n > 1)
        qsort(found, n, sizeof *found, by_session_number);
    for (size_t i = 0; i < n; i++)
        found[i]->number = c->n_made++;
}

// Programs have the session mapped: what is the recorder's in it is put right.
static void check_session(struct drain *c)
{
    struct spool_session *s = c->session;
    bool right = s->magic == SPOOL_SESSION_MAGIC && s->flags == c->flags &&
                 atomic_load(&s->recorder.owner) == c->owner && atomic_load(&s->recorder_gone) == c->stopped;
    if (c->attached || (right && !atomic_load(&c->guard->broken)))
        return;
    s->magic = SPOOL_SESSION_MAGIC;
    s->flags = c->flags;
    atomic_store(&s->recorder.owner, c->owner);
    atomic_store(&s->recorder_gone, c->stopped);
    c->session_broken = true;
}

int drain_discover(struct drain *c, struct err *e)
{
    check_session(c);
    uint32_t made = atomic_load(&c->session->spools_made);
    uint64_t now = clock_monotonic_ns();
    if (made == c->spools_seen && (!c->pending || now - c->pending_ns < PENDING_NS))
        return 0;
    int fd = open_file(c, ".", O_RDONLY | O_DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    c->pending = !d;
    c->pending_ns = now;
    // A program may have removed the folder: the other spools are recorded on.
    if (!d)
        return c->attached ? err_set_errno(e, "%s", c->dir) : 0;
    c->spools_seen = made;
    struct dirent *item;
    int rc = 0, found = 0;
    while (rc >= 0 && (item = readdir(d))) {
        if (!is_new_spool(c, item->d_name))
            continue;
        rc = discover_spool(c, item->d_name, 0, e);
        found += rc > 0;
    }
    closedir(d);
    drain_keep_spares(c);
    if (rc >= 0 && (rc = discover_reserves(c, e)) > 0)
        found += rc;
    number_found(c, (size_t)found);
    return rc < 0 ? rc : found;
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
            bool ended = !s->dead && (s->pidfd >= 0 ? polled[i].revents != 0 : lifetime_is_over(s));
            marked += ended;
            s->dead |= ended;
        }
    }
    return marked;
}

void drain_check_left(struct drain *c)
{
    for (size_t i = 0; i < c->n_spools; i++) {
        struct drain_spool *s = c->spools[i];
        uint64_t device, inode;
        if (s->dead || s->drain_words || s->other_exe >= LEFT_LOOKS || !find_exe(s, &device, &inode))
            continue;
        bool other = s->exe_inode && (device != s->exe_device || inode != s->exe_inode);
        s->other_exe = other ? s->other_exe + 1 : 0;
        c->n_left += s->other_exe == LEFT_LOOKS;
    }
}

static size_t stream_place(const struct drain_spool *s, uint32_t thread, uint32_t stream)
{
    uint64_t key = (uint64_t)thread << 32 | stream;
    size_t mask = s->streams_capacity - 1, i = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (s->streams[i].used && (s->streams[i].thread != thread || s->streams[i].stream != stream))
        i = (i + 1) & mask;
    return i;
}

// Makes room for one more; streams that are over are forgotten, so that memory follows the live threads. 0, -E2BIG when
// there are more than a process can have, or -ENOMEM.
static int streams_grow(struct drain_spool *s)
{
    size_t live = 0, capacity = 64, old_capacity = s->streams_capacity;
    struct drain_stream *old = s->streams;
    for (size_t i = 0; i < old_capacity; i++)
        live += old[i].used && !old[i].over;
    if (live >= MAX_STREAMS)
        return -E2BIG;
    while (capacity < 4 * (live + 1))
        capacity *= 2;
    struct drain_stream *streams = calloc(capacity, sizeof *streams);
    if (!streams)
        return -ENOMEM;
    s->streams = streams;
    s->streams_capacity = capacity;
    s->streams_used = live;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].used && !old[i].over)
            streams[stream_place(s, old[i].thread, old[i].stream)] = old[i];
    }
    free(old);
    return 0;
}

// The stream's state, made with `next` if it is new. NULL: *rc says why.
static struct drain_stream *stream_find(struct drain_spool *s, uint32_t thread, uint32_t stream, uint64_t next, int *rc)
{
    *rc = 2 * s->streams_used >= s->streams_capacity ? streams_grow(s) : 0;
    if (*rc < 0)
        return NULL;
    struct drain_stream *l = &s->streams[stream_place(s, thread, stream)];
    if (!l->used) {
        *l = (struct drain_stream){.thread = thread, .stream = stream, .next = next, .used = true};
        s->streams_used++;
    }
    l->over = false;
    return l;
}

void drain_wake(_Atomic uint32_t *futex)
{
    syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wake_waiters(struct spool_header *h)
{
    atomic_fetch_add(&h->free_sequence, 1);
    if (atomic_load(&h->waiters))
        drain_wake(&h->free_sequence);
}

// What stands in the spool is not the producer's: nothing more is taken from it, and its program, if it still writes
// there, is told so.
static void spool_break(struct drain *c, struct drain_spool *s, const char *why)
{
    if (s->broken)
        return;
    s->broken = atomic_load(&s->guard.broken) ? "its spool was truncated" : why;
    s->dead = true;
    if (c->attached)
        return;
    atomic_store(&s->header->refused, 1);
    wake_waiters(s->header);
}

void drain_stop(struct drain *c)
{
    c->stopped = true;
    atomic_store(&c->session->recorder_gone, 1);
    for (size_t i = 0; i < c->n_spools; i++)
        wake_waiters(c->spools[i]->header);
}

static void chunk_free(struct drain_spool *s, uint32_t index)
{
    struct spool_chunk *chunk = &s->chunks[index];
    s->marks[index] = (struct drain_chunk){0};
    chunk->drained_words = 0;
    atomic_store_explicit(&chunk->state, SPOOL_CHUNK_FREE, memory_order_relaxed);
    uint64_t top = atomic_load(&s->header->free_top), next;
    unsigned tries = 0;
    do {
        chunk->next_free = (uint32_t)top;
        next = ((top >> 32) + 1) << 32 | (index + 1);
    } while (!atomic_compare_exchange_weak(&s->header->free_top, &top, next) && ++tries < MAX_TRIES);
    wake_waiters(s->header);
}

static int by_place(const void *a, const void *b)
{
    const struct drain_candidate *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    return x->first_word < y->first_word ? -1 : x->first_word > y->first_word;
}

int64_t drain_scan(struct drain *c, struct drain_spool *s)
{
    uint32_t fresh = atomic_load_explicit(&s->header->fresh_chunks, memory_order_acquire);
    if (fresh > s->max_chunks)
        fresh = s->max_chunks;
    // Of one that could not be mapped as a whole the rest is not looked at.
    if (fresh < s->fresh_chunks)
        spool_break(c, s, OVERWRITTEN);
    s->fresh_chunks = fresh;
    if (spool_map_more(s, fresh) < 0) {
        // What lies there is lost, and nothing more of the process is recorded.
        s->lost_words += (uint64_t)(fresh - s->mapped_chunks) * SPOOL_CHUNK_WORDS;
        s->max_chunks = s->fresh_chunks = fresh = s->mapped_chunks;
        atomic_store(&s->header->refused, 1);
        wake_waiters(s->header);
        c->n_refused++;
    }
    size_t known = s->marks_capacity, n = 0;
    if (HT_GROW(&s->marks, &s->marks_capacity, fresh) < 0 ||
        HT_GROW(&c->candidates, &c->candidates_capacity, fresh) < 0)
        return -ENOMEM;
    if (s->marks_capacity > known)
        memset(s->marks + known, 0, (s->marks_capacity - known) * sizeof *s->marks);
    for (uint32_t i = 0; i < fresh; i++) {
        struct spool_chunk *chunk = &s->chunks[i];
        // The state comes first: words published before it became DONE are then in `used`.
        uint32_t state = atomic_load_explicit(&chunk->state, memory_order_acquire);
        if (state != SPOOL_CHUNK_OWNED && state != SPOOL_CHUNK_DONE)
            continue;
        struct drain_candidate *k = &c->candidates[n++];
        *k = (struct drain_candidate){
            .index = i,
            .thread = __atomic_load_n(&chunk->thread, __ATOMIC_RELAXED),
            .stream = __atomic_load_n(&chunk->stream, __ATOMIC_RELAXED),
            .tid = __atomic_load_n(&chunk->tid, __ATOMIC_RELAXED),
            .used = atomic_load_explicit(&chunk->used_words, memory_order_acquire),
            .done = state == SPOOL_CHUNK_DONE,
            .first_word = __atomic_load_n(&chunk->first_word, __ATOMIC_RELAXED),
            .epoch0 = __atomic_load_n(&chunk->epoch0, __ATOMIC_RELAXED),
            .base0 = __atomic_load_n(&chunk->base0, __ATOMIC_RELAXED),
        };
        if (k->used > SPOOL_CHUNK_WORDS || k->stream > 1 || k->first_word >> MAX_COUNT_BITS)
            spool_break(c, s, OVERWRITTEN);
        s->drain_done += state == SPOOL_CHUNK_DONE;
    }
    if (n > 1)
        qsort(c->candidates, n, sizeof *c->candidates, by_place);
    return (int64_t)n;
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
        uint32_t used = atomic_load_explicit(&chunk->used_words, memory_order_acquire), words = 1;
        used = used < SPOOL_CHUNK_WORDS ? used : SPOOL_CHUNK_WORDS;
        for (uint32_t at = mark.drained; at < used && words; at += words) {
            struct event ev = {0};
            words = codec_get(&mark.state, chunk->words + at, used - at, &ev);
            events += words && ev.kind && event_counts(ev.kind);
        }
    }
    return events;
}

// Hands words [drained, used) to the sink; a chunk that is DONE is given back before, as soon as it is copied.
static int drain_chunk(struct drain *c, struct drain_spool *s, struct drain_stream *l, const struct drain_candidate *k,
                       const struct drain_sink *sink, struct err *e)
{
    struct drain_chunk *mark = &s->marks[k->index], at = *mark;
    uint32_t n = k->used - at.drained;
    if (at.drained == 0)
        at.state = (struct codec_state){k->epoch0, k->base0};
    uint32_t whole = at.broken ? 0 : n;
    uint64_t *copy = whole && sink->room ? sink->room(sink->ctx, whole, e) : c->copy;
    if (!copy)
        return -ENOMEM;
    struct trace_segment g = {.process = s->number,
                              .thread = k->thread,
                              .tid = k->tid,
                              .stream = k->stream,
                              .first_word = k->first_word + at.drained,
                              .epoch0 = at.state.epoch,
                              .base0 = at.state.base,
                              .epoch_end = at.state.epoch,
                              .base_end = at.state.base,
                              .n_words = whole,
                              .words = copy};
    memcpy(copy, s->chunks[k->index].words + at.drained, whole * sizeof *copy);
    if (k->done && !c->attached) {
        chunk_free(s, k->index);
        // Its slot may be in use again already; the mark is of its next life.
        mark = &at;
    }
    s->words += n;
    s->drain_words += n;
    int rc = g.n_words ? drain_pass_recorded(s, l, &g, sink, e) : 0;
    if (g.n_words < n) {
        s->lost_words += n - g.n_words;
        mark->broken = true;
    }
    mark->drained = k->used;
    mark->state = (struct codec_state){g.epoch_end, g.base_end};
    return rc;
}

// Is the chunk the next of its stream? If words are missing before it, they may have been published after the scan passed
// their chunk: the stream then waits for the next batch. By that one every chunk before has been seen, so that a gap that
// is still there is one.
static bool is_due(struct drain_spool *s, struct drain_stream *l, uint64_t place)
{
    if (place == l->next) {
        l->waits = false;
        return true;
    }
    if (place > l->next && !s->dead && !(l->waits && l->deferred == place)) {
        l->waits = true;
        l->deferred = place;
        return false;
    }
    if (place > l->next)
        s->lost_words += place - l->next;
    l->waits = false;
    return true;
}

int drain_take(struct drain *c, struct drain_spool *s, const struct drain_candidate *k, const struct drain_sink *sink,
               struct err *e)
{
    uint32_t drained = s->marks[k->index].drained;
    if (k->used < drained || (k->used == drained && !k->done && !s->dead))
        return 0;
    int rc;
    struct drain_stream *l = stream_find(s, k->thread, k->stream, k->first_word, &rc);
    if (rc == -ENOMEM)
        return err_set(e, -ENOMEM, "out of memory");
    if (rc < 0 || k->first_word + drained > l->next + MAX_GAP_WORDS) {
        spool_break(c, s, OVERWRITTEN);
        return 0;
    }
    if (!is_due(s, l, k->first_word + drained))
        return 1;
    rc = drain_chunk(c, s, l, k, sink, e);
    // A full chunk may have been seen, and its successor, before its owner said that it was done: next does not go back.
    if (k->first_word + k->used > l->next)
        l->next = k->first_word + k->used;
    l->over = k->done && k->used < SPOOL_CHUNK_WORDS - CODEC_MAX_RECORD_WORDS - 2;
    return rc;
}

// Do threads wait for chunks, although there is neither one to take nor one to drain? So it is where something else than
// the producer has written to the list of free chunks or to their states.
static bool is_stuck(struct drain_spool *s)
{
    uint64_t now = clock_monotonic_ns();
    if (s->drain_done || s->drain_words || !atomic_load(&s->header->waiters) ||
        (uint32_t)atomic_load(&s->header->free_top))
        s->stuck_ns = 0;
    else if (!s->stuck_ns)
        s->stuck_ns = now;
    return s->stuck_ns && now - s->stuck_ns > STUCK_NS;
}

static void check_spool(struct drain *c, struct drain_spool *s)
{
    const struct spool_header *h = s->header;
    if (__atomic_load_n(&h->magic, __ATOMIC_RELAXED) != SPOOL_MAGIC ||
        __atomic_load_n(&h->pid, __ATOMIC_RELAXED) != s->pid || spool_unrecorded(h) >> MAX_COUNT_BITS ||
        atomic_load(&h->wait_ns) >> MAX_COUNT_BITS || is_stuck(s) || atomic_load(&s->guard.broken))
        spool_break(c, s, OVERWRITTEN);
}

static void look_at_requests(struct drain_spool *s)
{
    struct spool_control *k = &s->header->control;
    for (unsigned what = 0; what < SPOOL_REQUESTS; what++) {
        uint32_t asked = atomic_load_explicit(&k->asked[what], memory_order_acquire);
        if (what != SPOOL_RESET || atomic_load(&k->reset_proof) == asked * SPOOL_RESET_STEP)
            s->asked[what] = asked;
    }
}

static int drain_spool(struct drain *c, struct drain_spool *s, const struct drain_sink *sink, struct err *e)
{
    if (s->broken)
        return 0;
    look_at_requests(s);
    int64_t n = drain_scan(c, s);
    int rc = n < 0 ? (int)n : drain_take_changes(s);
    if (rc == -EBADMSG)
        spool_break(c, s, OVERWRITTEN);
    else if (rc < 0)
        return err_set(e, rc, "out of memory");
    rc = 0;
    for (int64_t i = 0; i < n && rc == 0 && !s->broken; i++) {
        const struct drain_candidate *k = &c->candidates[i];
        rc = drain_take(c, s, k, sink, e);
        if (rc <= 0)
            continue;
        rc = 0;
        c->streams_waiting++;
        // Later chunks of the stream wait, too.
        while (i + 1 < n && c->candidates[i + 1].thread == k->thread && c->candidates[i + 1].stream == k->stream)
            i++;
    }
    check_spool(c, s);
    return rc;
}

int drain_drain(struct drain *c, const struct drain_sink *sink, struct err *e)
{
    c->chunks_done = c->streams_waiting = 0;
    int rc = 0;
    for (size_t i = 0; i < c->n_spools && rc == 0; i++) {
        struct drain_spool *s = c->spools[i];
        s->drain_words = s->drain_done = 0;
        rc = drain_spool(c, s, sink, e);
        atomic_store_explicit(&s->header->control.events, s->events, memory_order_relaxed);
        drain_forget_changes(s, c->streams_waiting == 0);
        c->chunks_done += s->drain_done;
    }
    return rc;
}

// Empties a reserve, for the next process to find it as it was. One that cannot be emptied stays taken.
static void give_back(struct drain *c, unsigned slot)
{
    int fd = openat(c->dir_fd, SPOOL_SESSION_FILE, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)spool_reserve_offset(slot),
                  SPOOL_RESERVE_BYTES) == 0) {
        c->reserves_seen &= ~(1ull << slot);
        atomic_fetch_and(&c->session->reserves_taken, ~(1ull << slot));
    }
    close(fd);
}

void drain_drop(struct drain *c, size_t i)
{
    struct drain_spool *s = c->spools[i];
    // Whoever still has it must not wait for what will not come.
    if (!c->attached) {
        atomic_store(&s->header->refused, 1);
        wake_waiters(s->header);
    }
    // A process that cannot be seen may write there still, and must find itself refused: the reserve stays as it is.
    bool unseen = s->reserve && s->pidfd < 0 && !lifetime_sees_processes();
    if (unseen && !c->attached)
        c->n_refused += atomic_load(&s->header->status) != SPOOL_CLOSED;
    else if (s->reserve && !c->attached)
        give_back(c, s->reserve - 1);
    else if (!c->attached)
        unlinkat(c->dir_fd, s->name, 0);
    spool_free(s);
    c->n_spools--;
    memmove(c->spools + i, c->spools + i + 1, (c->n_spools - i) * sizeof *c->spools);
}
