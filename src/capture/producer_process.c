// The process image joins the session: maps its file, and makes a spool of its own.
#include "capture/producer_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;

struct producer_inherited producer_inherited;

enum {
    LEAST_CHUNKS = 8,
    RESERVE_WAIT_MS = 2000,
};

// open(2) and the like of libc are cancellation points, which malloc is not.
static int open_raw(const char *path, int flags)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

static void close_raw(int fd)
{
    syscall(SYS_close, fd);
}

// Reads up to `room` bytes of a small file. Returns how many, 0 on any trouble.
static size_t read_file(const char *path, char *to, size_t room)
{
    int fd = open_raw(path, O_RDONLY);
    size_t n = 0;
    while (fd >= 0 && n < room) {
        long got = syscall(SYS_read, fd, to + n, room - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (fd >= 0)
        close_raw(fd);
    return n;
}

// Appends to a text in a buffer of `room` bytes, always terminated. Returns the new end, NULL when it did not fit or
// `at` was NULL.
static char *append(char *at, const char *end, const char *text)
{
    while (at && *text) {
        if (at + 1 >= end)
            return NULL;
        *at++ = *text++;
    }
    if (at)
        *at = 0;
    return at;
}

static char *append_number(char *at, const char *end, uint64_t value)
{
    char digits[24], *d = digits + sizeof digits - 1;
    *d = 0;
    do
        *--d = (char)('0' + value % 10);
    while (value /= 10);
    return append(at, end, d);
}

static const char *env_value(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

static void take_variable(struct producer_inherited *in, const char *entry)
{
    const char *dir = env_value(entry, SPOOL_ENV_DIR), *stacks = env_value(entry, SPOOL_ENV_STACKS);
    if (dir && dir[0] == '/' && !in->dir[0])
        append(in->dir, in->dir + sizeof in->dir, dir);
    // What is not understood is as if it were not there: the program runs on.
    if (stacks && !in->stacks.depth)
        spool_parse_stacks(stacks, &in->stacks);
}

// Finds the session's directory in the environment, once: a program may change its environment before it forks.
static void find_dir(struct producer_inherited *in)
{
    static char text[65536];
    for (char **e = environ; e && *e; e++)
        take_variable(in, *e);
    // Events may come before the C library has set environ.
    if (!environ) {
        size_t n = read_file("/proc/self/environ", text, sizeof text - 1);
        for (char *e = text; e < text + n; e += strlen(e) + 1)
            take_variable(in, e);
    }
    in->dir_known = true;
}

static struct spool_session *map_session(const char *dir)
{
    char path[PRODUCER_MAX_PATH + 32], *end = path + sizeof path;
    if (!append(append(append(path, end, dir), end, "/"), end, SPOOL_SESSION_FILE))
        return NULL;
    struct stat st;
    if (stat(dir, &st) < 0 || !spool_folder_is_safe(&st, geteuid()))
        return NULL;
    int fd = open_raw(path, O_RDWR | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    struct spool_session *session = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size >= (off_t)sizeof *session)
        session = producer_mmap(NULL, sizeof *session, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close_raw(fd);
    if (session == MAP_FAILED)
        return NULL;
    if (session->magic != SPOOL_SESSION_MAGIC || session->stamp_shift != CODEC_STAMP_SHIFT) {
        producer_munmap(session, sizeof *session);
        return NULL;
    }
    return session;
}

// Fills in the session of a directory that has none: nobody records yet.
static bool fill_session(int fd)
{
    struct spool_session *s = MAP_FAILED;
    if (ftruncate(fd, sizeof *s) == 0 && !syscall(SYS_fallocate, fd, 0, 0l, (long)sizeof *s))
        s = producer_mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED)
        return false;
    s->flags = SPOOL_NO_RECORDER;
    s->depth = producer_inherited.stacks.depth;
    s->sample_bytes = producer_inherited.stacks.sample_bytes;
    s->clock_kind = clock_best();
    s->stamp_shift = CODEC_STAMP_SHIFT;
    s->realtime_ns = clock_ns(CLOCK_REALTIME);
    s->start_stamp = clock_ticks((enum clock_kind)s->clock_kind) >> CODEC_STAMP_SHIFT;
    s->magic = SPOOL_SESSION_MAGIC;
    producer_munmap(s, sizeof *s);
    return true;
}

// Makes the session file of a directory that exists, unless another process does so first: it appears whole.
static void make_session(const char *dir)
{
    char path[PRODUCER_MAX_PATH + 32], own[PRODUCER_MAX_PATH + 64], *end = own + sizeof own;
    struct stat st;
    if (stat(dir, &st) < 0 || !spool_folder_is_safe(&st, geteuid()))
        return;
    if (!append(append(append(path, path + sizeof path, dir), path + sizeof path, "/"), path + sizeof path,
                SPOOL_SESSION_FILE))
        return;
    char *at = append(append(append(own, end, dir), end, "/."), end, SPOOL_SESSION_FILE);
    if (!append_number(append(at, end, "-"), end, (uint64_t)syscall(SYS_getpid)))
        return;
    int fd = open_raw(own, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0)
        return;
    // A directory for everybody is for processes of several users.
    if (st.st_mode & S_IWOTH)
        fchmod(fd, 0666);
    if (fill_session(fd))
        syscall(SYS_linkat, AT_FDCWD, own, AT_FDCWD, path, 0);
    close_raw(fd);
    syscall(SYS_unlinkat, AT_FDCWD, own, 0);
}

// Chunks that the process's limits leave room for: ftruncate above RLIMIT_FSIZE would raise SIGXFSZ.
static uint32_t chunks_within_limits(uint32_t flags)
{
    uint32_t most = flags & SPOOL_NO_RECORDER ? SPOOL_MAX_CHUNKS_ALONE : SPOOL_MAX_CHUNKS;
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / SPOOL_CHUNK_BYTES > most)
        return most;
    return limit.rlim_cur / SPOOL_CHUNK_BYTES ? (uint32_t)(limit.rlim_cur / SPOOL_CHUNK_BYTES) - 1 : 0;
}

// Creates `<pid>-<n>.spool`. Returns the open file, or -1.
static int create_file(const struct producer_inherited *in, uint32_t number, char *path, size_t room)
{
    const char *end = path + room;
    char *at = append_number(append(append(path, end, in->dir), end, "/"), end, in->pid);
    if (!append(append_number(append(at, end, "-"), end, number), end, SPOOL_FILE_SUFFIX))
        return -1;
    return open_raw(path, O_RDWR | O_CREAT | O_EXCL);
}

// Gives the file its size, which is sparse. Returns the chunks that it has room for, 0 when they are too few.
static uint32_t size_file(int fd, uint32_t flags)
{
    for (uint32_t chunks = chunks_within_limits(flags); chunks >= LEAST_CHUNKS; chunks /= 4) {
        if (ftruncate(fd, (off_t)(SPOOL_HEADER_BYTES + (size_t)chunks * SPOOL_CHUNK_BYTES)) == 0)
            return chunks;
    }
    return 0;
}

// Makes the file and its mapping, and forgets the file descriptor. NULL on failure, with nothing left behind: *why is an
// errno.
static struct spool_header *make_file(struct producer_inherited *in, uint32_t number, uint32_t *n_chunks, uint32_t *why)
{
    char path[PRODUCER_MAX_PATH + 64];
    int fd = create_file(in, number, path, sizeof path);
    *why = (uint32_t)errno;
    if (fd < 0)
        return NULL;
    *n_chunks = size_file(fd, in->session->flags);
    // The header's pages now, for a full file system is a SIGBUS later.
    bool fits = *n_chunks && syscall(SYS_fallocate, fd, 0, 0l, (long)SPOOL_HEADER_BYTES) == 0;
    *why = !*n_chunks ? EFBIG : fits ? ENOMEM : (uint32_t)errno;
    if (fits)
        producer_map_first(in, fd);
    close_raw(fd);
    if (!in->spool)
        syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    return in->spool;
}

// A place in the session's file that nobody has. Returns its bit, 0 when there is none.
static uint64_t claim_reserve(struct spool_session *session)
{
    _Atomic uint64_t *taken = &session->reserves_taken;
    uint64_t now = atomic_load_explicit(taken, memory_order_relaxed), bit;
    do {
        bit = ~now & (now + 1); // the lowest that is free
        if (!bit || (unsigned)__builtin_ctzll(bit) >= session->reserves)
            return 0;
        // Pairs with the recorder's release: the place is empty again.
    } while (
        !atomic_compare_exchange_weak_explicit(taken, &now, now | bit, memory_order_acquire, memory_order_relaxed));
    return bit;
}

// Waits a while for the recorder to have finished with one of a process that has ended.
static struct spool_header *take_reserve(struct producer_inherited *in)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint32_t patience = in->session->reserves && !(in->session->flags & SPOOL_LOSSY) ? RESERVE_WAIT_MS : 0;
    uint64_t bit = claim_reserve(in->session);
    for (; !bit && patience && !atomic_load(&in->session->recorder_gone); patience--) {
        producer_wake_recorder();
        syscall(SYS_nanosleep, &pause, NULL);
        bit = claim_reserve(in->session);
    }
    struct spool_header *header = bit ? producer_map_reserve(in, (unsigned)__builtin_ctzll(bit)) : NULL;
    if (bit && !header)
        atomic_fetch_and_explicit(&in->session->reserves_taken, ~bit, memory_order_release);
    return header;
}

static struct spool_header *make_spool(struct producer_inherited *in, uint32_t *why)
{
    uint32_t number = atomic_fetch_add_explicit(&in->session->spool_number, 1, memory_order_relaxed);
    uint32_t n_chunks = SPOOL_RESERVE_CHUNKS;
    struct spool_header *header = make_file(in, number, &n_chunks, why);
    if (!header) {
        n_chunks = SPOOL_RESERVE_CHUNKS;
        header = take_reserve(in);
    }
    if (header) {
        header->number = number;
        header->max_chunks = n_chunks;
    }
    return header;
}

static void fill_header(struct spool_header *h, struct producer_process *p, uint32_t parent_pid)
{
    h->control.first_state = producer_inherited.recording;
    atomic_store_explicit(&h->control.state, h->control.first_state, memory_order_relaxed);
    h->pid = producer_inherited.pid;
    h->ppid = (uint32_t)syscall(SYS_getppid);
    h->start_stamp = clock_ticks(p->clock) >> CODEC_STAMP_SHIFT;
    struct stat exe;
    if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/exe", &exe, 0) == 0) {
        h->exe_device = exe.st_dev;
        h->exe_inode = exe.st_ino;
    }
    h->parent_spool_pid = parent_pid;
    append(h->allocator, h->allocator + sizeof h->allocator, producer_inherited.allocator);
    append(h->bypassed_by, h->bypassed_by + sizeof h->bypassed_by, producer_inherited.bypassed_by);
    long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", h->exe, sizeof h->exe - 1);
    if (n <= 0)
        h->exe[0] = 0;
    h->argv_bytes = (uint32_t)read_file("/proc/self/cmdline", h->argv, sizeof h->argv);
    atomic_store_explicit(&h->status, SPOOL_RUNNING, memory_order_relaxed);
    // Pairs with the recorder's acquire: what stands above is there.
    __atomic_store_n(&h->magic, SPOOL_MAGIC, __ATOMIC_RELEASE);
}

// A fork child lets go of its parent's spool: mapped, it would keep the memory of a long dead process. Unless the child
// was forked by a signal handler in the middle of a record: that is finished when the handler returns.
static uint32_t leave_parent(struct producer_inherited *in, bool state_is_known)
{
    uint32_t parent = in->spool ? in->pid : 0;
    if (in->spool && !state_is_known)
        in->recording = atomic_load(&in->spool->control.state);
    if (in->spool && !(producer_tls.busy & PRODUCER_INTERRUPTING))
        producer_unmap(in);
    else
        producer_forget_map(in);
    return parent;
}

// Whoever sees the recorder's death tells all others, which then need not look.
static bool has_recorder(struct spool_session *session)
{
    if ((session->flags & SPOOL_NO_RECORDER) || spool_recorder_lives(session))
        return true;
    atomic_store_explicit(&session->recorder_gone, 1, memory_order_release);
    return false;
}

// Has a parent forbidden the time-stamp counter?
static bool counter_is_forbidden(void)
{
    int how = 0;
    return syscall(SYS_prctl, PR_GET_TSC, &how, 0, 0, 0) == 0 && how == PR_TSC_SIGSEGV;
}

// False: the process is not recorded, which the session counts, and with the first ones says why.
static bool refuse(struct producer_process *p, struct spool_session *session, uint32_t why)
{
    uint32_t i = session ? atomic_fetch_add_explicit(&session->untraced, 1, memory_order_relaxed) : SPOOL_UNTRACED;
    if (i >= SPOOL_UNTRACED)
        return false;
    struct spool_untraced *u = &session->untraced_of[i];
    u->pid = (uint32_t)syscall(SYS_getpid);
    syscall(SYS_prctl, PR_GET_NAME, u->name, 0, 0, 0);
    p->unrecorded = &u->count;
    p->counts = 1;
    // Pairs with the recorder's acquire: what stands above is there.
    atomic_store_explicit(&u->why, why, memory_order_release);
    return false;
}

static bool start(struct producer_process *p)
{
    struct producer_inherited *in = &producer_inherited;
    if (in->filtered || counter_is_forbidden())
        return refuse(p, in->session, in->filtered ? SPOOL_REFUSED_SECCOMP : SPOOL_REFUSED_COUNTER);
    producer_thread_make_key();
    uint32_t parent = leave_parent(in, p->pid);
    if (!in->dir_known)
        find_dir(in);
    bool alone = !in->dir[0] && producer_alone_start(in);
    if (!in->dir[0])
        return false;
    if (!in->session)
        in->session = map_session(in->dir);
    if (!in->session) {
        make_session(in->dir);
        in->session = map_session(in->dir);
    }
    if (!in->session || (!alone && !producer_is_followed(in->session)))
        return false;
    if (!has_recorder(in->session))
        return refuse(p, in->session, SPOOL_REFUSED_ENDED);
    if (!p->pid)
        p->pid = (uint32_t)syscall(SYS_getpid);
    in->pid = p->pid;
    if (!parent && (in->session->flags & SPOOL_START_PAUSED))
        in->recording = SPOOL_PAUSED;
    uint32_t why = 0;
    struct spool_header *header = make_spool(in, &why);
    if (!header)
        return refuse(p, in->session, why);
    p->flags = in->session->flags;
    p->clock = (enum clock_kind)in->session->clock_kind;
    p->slow = p->clock == CLOCK_KIND_MONOTONIC || (p->flags & SPOOL_USABLE);
    p->header = header;
    p->max_chunks = header->max_chunks < SPOOL_MAX_CHUNKS_ALONE ? header->max_chunks : SPOOL_MAX_CHUNKS_ALONE;
    p->unrecorded = header->unrecorded;
    p->counts = SPOOL_COUNTS;
    producer_sites_start(in->session->depth, in->session->sample_bytes);
    fill_header(header, p, parent);
    atomic_fetch_add_explicit(&in->session->spools_made, 1, memory_order_release);
    producer_wake_recorder();
    return true;
}

static struct producer_process *process_mapping(void)
{
    bool is_first = !atomic_load_explicit(&producer_inherited.process, memory_order_relaxed);
    struct producer_process *p = producer_map_wiped((void *_Atomic *)&producer_inherited.process, sizeof *p);
    if (p && is_first)
        p->pid = (uint32_t)syscall(SYS_getpid);
    return p;
}

void producer_after_fork(void)
{
    struct producer_inherited *in = &producer_inherited;
    struct producer_process *p = process_mapping();
    if (!p)
        return;
    p->pid = (uint32_t)syscall(SYS_getpid);
    // The state of the fork; by the child's first event the parent's may be another.
    if (in->spool)
        in->recording = atomic_load_explicit(&in->spool->control.state, memory_order_acquire);
}

struct producer_process *producer_process_ready(void)
{
    struct producer_process *p = process_mapping();
    while (p) {
        uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);
        if (state == PRODUCER_RUNNING)
            return p;
        if (state == PRODUCER_OFF)
            return NULL;
        if (state == PRODUCER_STARTING) {
            syscall(SYS_sched_yield);
            continue;
        }
        if (atomic_compare_exchange_strong(&p->state, &state, PRODUCER_STARTING))
            atomic_store_explicit(&p->state, start(p) ? PRODUCER_RUNNING : PRODUCER_OFF, memory_order_release);
    }
    return NULL;
}

void producer_process_off(struct producer_process *p, const char *reason)
{
    uint32_t running = PRODUCER_RUNNING;
    if (!atomic_compare_exchange_strong(&p->state, &running, PRODUCER_OFF))
        return;
    append(p->header->reason, p->header->reason + sizeof p->header->reason, reason);
    atomic_store_explicit(&p->header->status, SPOOL_OFF, memory_order_release);
    producer_wake_recorder();
}

// NULL when the process is not recorded.
static struct producer_process *recorded_process(void)
{
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_process_ready();
    producer_leave(was);
    producer_signals_restore(mask);
    return p;
}

int producer_control(enum control_verb verb)
{
    int saved_errno = errno;
    const struct producer_process *p = recorded_process();
    int rc = p ? control_do(&(struct control){p->header, producer_inherited.session, 0}, verb) : -ENOENT;
    errno = saved_errno;
    return rc;
}

int producer_control_state(void)
{
    int saved_errno = errno;
    const struct producer_process *p = recorded_process();
    errno = saved_errno;
    return p ? (int)atomic_load_explicit(&p->header->control.state, memory_order_acquire) : -ENOENT;
}

void producer_set_allocator(const char *path)
{
    append(producer_inherited.allocator, producer_inherited.allocator + sizeof producer_inherited.allocator, path);
}

void producer_set_bypass(const char *path)
{
    char *to = producer_inherited.bypassed_by;
    append(to, to + sizeof producer_inherited.bypassed_by, path);
}

void producer_set_library(const char *path, const char *heaptape)
{
    producer_inherited.heaptape = heaptape;
    append(producer_inherited.library, producer_inherited.library + sizeof producer_inherited.library, path);
}

void producer_before_sandbox(bool now)
{
    int saved_errno = errno;
    struct producer_process *p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    if (p && atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_RUNNING &&
        !atomic_load_explicit(&p->sandboxed, memory_order_relaxed))
        producer_chunks_fetch(p);
    producer_inherited.filtered |= now;
    errno = saved_errno;
}

void producer_forbid(bool process)
{
    int saved_errno = errno;
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    struct producer_thread *t = was & PRODUCER_WRITING ? NULL : producer_thread_ready(p);
    if (t) {
        producer_stream_close(&t->streams[0]);
        producer_stream_close(&t->streams[1]);
        t->forbidden = 1;
        if (process)
            producer_process_off(producer_inherited.process, "the program has forbidden itself the time-stamp counter");
    }
    producer_leave(was);
    producer_signals_restore(mask);
    errno = saved_errno;
}

void producer_allow(void)
{
    if (producer_tls.thread->live)
        producer_tls.thread->forbidden = 0;
}
