// Joins the session and creates the spool of the process image.
#include "capture/producer/producer_private.h"
#include "capture/unwind/unwind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    LEAST_CHUNKS = 8,
    RESERVE_WAIT_MS = 2000,
    MAX_NAMES = 10000,
    PATH_ROOM = PRODUCER_MAX_PATH + 64,
};

#define UNFINISHED_SUFFIX SPOOL_FILE_SUFFIX ".new"

// Uses the system call, because libc's open is a cancellation point, and malloc must not be a
// cancellation point.
static int open_raw(const char *path, int flags)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

static void close_raw(int fd)
{
    syscall(SYS_close, fd);
}

size_t producer_read_file(const char *path, char *to, size_t room)
{
    int fd = open_raw(path, O_RDONLY);
    long n = fd < 0 ? 0 : syscall(SYS_read, fd, to, room);
    if (fd >= 0)
        close_raw(fd);
    return n > 0 ? (size_t)n : 0;
}

static void parse_variable(struct producer_inherited *in, const char *entry)
{
    const char *dir = producer_env_value(entry, SPOOL_ENV_DIR),
               *stacks = producer_env_value(entry, SPOOL_ENV_STACKS);
    if (dir && dir[0] == '/' && !in->dir[0])
        producer_format(in->dir, sizeof in->dir, "%s", dir);
    // Ignore invalid values, so that the program still runs.
    if (stacks && !in->stacks.depth)
        spool_parse_stacks(stacks, &in->stacks);
}

// Finds the session directory in the environment. Does so only once, because the program may change
// its environment before it forks.
static void find_dir(struct producer_inherited *in)
{
    static char text[65536];
    char **known = producer_environment();
    for (char **e = known; e && *e; e++)
        parse_variable(in, *e);
    // An event may occur before the library's constructor has stored the environment.
    if (!known) {
        size_t n = producer_read_file("/proc/self/environ", text, sizeof text - 1);
        for (char *e = text; e < text + n; e += strlen(e) + 1)
            parse_variable(in, e);
    }
    in->dir_known = true;
}

static int open_shared(const char *dir, const char *name, int flags)
{
    char path[PATH_ROOM];
    return producer_format(path, sizeof path, "%s/%s", dir, name)
               ? open_raw(path, flags | O_NOFOLLOW)
               : -1;
}

// Copies the session and maps it for access to its futexes.
static bool read_session(struct producer_inherited *in)
{
    struct stat st;
    if (stat(in->dir, &st) < 0 || !spool_folder_is_safe(&st, geteuid()))
        return false;
    int fd = open_shared(in->dir, SPOOL_SESSION_FILE, O_RDONLY);
    if (fd < 0)
        return false;
    static struct spool_session copy;
    bool whole = syscall(SYS_pread64, fd, &copy, sizeof copy, 0l) == (long)sizeof copy &&
                 copy.magic == SPOOL_SESSION_MAGIC && copy.stamp_shift == CODEC_STAMP_SHIFT;
    const struct spool_session *futexes =
        producer_mmap(NULL, sizeof copy, PROT_READ, MAP_SHARED, fd, 0);
    close_raw(fd);
    if (futexes == MAP_FAILED)
        return false;
    if (!whole) {
        producer_munmap((void *)futexes, sizeof copy);
        return false;
    }
    copy.follow[SPOOL_MAX_FOLLOW - 1] = 0;
    copy.wrap.n = copy.wrap.n < SPOOL_WRAPPED ? copy.wrap.n : SPOOL_WRAPPED;
    for (unsigned i = 0; i < SPOOL_WRAPPED; i++)
        copy.wrap.items[i].name[SPOOL_WRAP_BYTES - 1] = 0;
    in->futexes = futexes;
    in->session = copy;
    return true;
}

// Sets the size of a new reserves file, within RLIMIT_FSIZE, and writes the magic. Allocates the
// first pages now, because a full file system would raise SIGBUS later.
static void fill_reserves(int fd)
{
    const uint64_t magic = SPOOL_RESERVES_MAGIC;
    struct rlimit limit;
    uint64_t bytes = spool_reserve_offset(SPOOL_RESERVES);
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < sizeof(struct spool_reserves))
        return;
    bytes = limit.rlim_cur < bytes ? sizeof(struct spool_reserves) : bytes;
    if (!syscall(SYS_fallocate, fd, 0, 0l, (long)sizeof(struct spool_reserves)) &&
        ftruncate(fd, (off_t)bytes) == 0)
        syscall(SYS_pwrite64, fd, &magic, sizeof magic, 0l);
}

static uint32_t reserves_within(uint64_t bytes)
{
    uint64_t n =
        bytes < SPOOL_RESERVES_BYTES ? 0 : (bytes - SPOOL_RESERVES_BYTES) / SPOOL_RESERVE_BYTES;
    return n < SPOOL_RESERVES ? (uint32_t)n : SPOOL_RESERVES;
}

// Maps the start of the user's reserves file, in case the process or a fork child cannot open files
// later. The user's first process creates the file. A file is used only if the user owns it and no
// other user can write to it. A file that another process is still creating counts as missing.
static void map_reserves(struct producer_inherited *in)
{
    char name[64];
    struct stat st;
    producer_format(name, sizeof name, SPOOL_RESERVES_FILE "%u", geteuid());
    int fd = open_shared(in->dir, name, O_RDWR | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        fd = open_shared(in->dir, name, O_RDWR | O_CREAT | O_EXCL);
        if (fd >= 0)
            fill_reserves(fd);
        else
            fd = open_shared(in->dir, name, O_RDWR | O_NONBLOCK);
    }
    uint64_t magic = 0;
    void *at = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_nlink == 1 && !(st.st_mode & (S_IRWXG | S_IRWXO)) &&
        (uint64_t)st.st_size >= sizeof *in->reserves &&
        syscall(SYS_pread64, fd, &magic, sizeof magic, 0l) == (long)sizeof magic &&
        magic == SPOOL_RESERVES_MAGIC)
        at = producer_mmap(NULL, sizeof *in->reserves, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close_raw(fd);
    in->reserves = at == MAP_FAILED ? NULL : at;
    in->n_reserves = in->reserves ? reserves_within((uint64_t)st.st_size) : 0;
}

// Fills in a new session without a recorder.
static bool fill_session(int fd)
{
    struct spool_session *s = MAP_FAILED;
    if (ftruncate(fd, sizeof *s) == 0 && !syscall(SYS_fallocate, fd, 0, 0l, (long)sizeof *s))
        s = producer_mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED)
        return false;
    s->flags = SPOOL_NO_RECORDER | SPOOL_RESIDENCY;
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

// Creates the session file in an existing directory, unless another process has created it. The
// file appears under its name only when it is complete.
static void make_session(const char *dir)
{
    char path[PATH_ROOM], own[PATH_ROOM];
    struct stat st;
    if (stat(dir, &st) < 0 || !spool_folder_is_safe(&st, geteuid()) ||
        !producer_format(path, sizeof path, "%s/" SPOOL_SESSION_FILE, dir) ||
        !producer_format(own, sizeof own, "%s/." SPOOL_SESSION_FILE "-%u", dir,
                         (unsigned)syscall(SYS_getpid)))
        return;
    int fd = open_raw(own, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0)
        return;
    // Processes of several users may use a world-writable directory, so they must be able to read
    // the session.
    if (st.st_mode & S_IWOTH)
        fchmod(fd, 0644);
    if (fill_session(fd))
        syscall(SYS_linkat, AT_FDCWD, own, AT_FDCWD, path, 0);
    close_raw(fd);
    syscall(SYS_unlinkat, AT_FDCWD, own, 0);
}

// Returns the number of chunks that the process's limits permit. ftruncate would raise SIGXFSZ
// above RLIMIT_FSIZE.
static uint32_t chunks_within_limits(uint32_t flags)
{
    uint32_t most = flags & SPOOL_NO_RECORDER ? SPOOL_MAX_CHUNKS_ALONE : SPOOL_MAX_CHUNKS;
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / SPOOL_CHUNK_BYTES > most)
        return most;
    return limit.rlim_cur / SPOOL_CHUNK_BYTES ? (uint32_t)(limit.rlim_cur / SPOOL_CHUNK_BYTES) - 1
                                              : 0;
}

// Writes the n-th name of the process's spool to `path` (PATH_ROOM bytes).
static bool name_spool(const struct producer_inherited *in, uint32_t n, const char *suffix,
                       char *path)
{
    return producer_format(path, PATH_ROOM, "%s/%u-%u%s", in->dir, in->pid, n, suffix);
}

// Creates the spool file under a name that the recorder ignores. Other images of the process, and
// processes in other pid namespaces, may have the same pid. Therefore the name contains the first
// unused number. Returns the open file, or -1 with errno set.
static int create_file(const struct producer_inherited *in, char *path)
{
    int fd = -1;
    errno = EEXIST;
    for (uint32_t n = 0; fd < 0 && errno == EEXIST && n < MAX_NAMES; n++) {
        if (!name_spool(in, n, UNFINISHED_SUFFIX, path))
            return -1;
        fd = open_raw(path, O_RDWR | O_CREAT | O_EXCL);
    }
    return fd;
}

// Renames a complete spool to its final name.
static bool publish_file(const struct producer_inherited *in, const char *unfinished)
{
    char path[PATH_ROOM];
    long rc = -1;
    errno = EEXIST;
    for (uint32_t n = 0; rc && errno == EEXIST && n < MAX_NAMES; n++) {
        if (!name_spool(in, n, SPOOL_FILE_SUFFIX, path))
            return false;
        rc = syscall(SYS_renameat2, AT_FDCWD, unfinished, AT_FDCWD, path, RENAME_NOREPLACE);
        // Not every file system supports RENAME_NOREPLACE.
        if (rc && (errno == EINVAL || errno == ENOSYS) &&
            syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0)
            rc = syscall(SYS_renameat2, AT_FDCWD, unfinished, AT_FDCWD, path, 0);
    }
    return rc == 0;
}

// Sets the size of the sparse file. Returns the number of chunks that fit, or 0 if there are too
// few.
static uint32_t size_file(int fd, uint32_t flags)
{
    for (uint32_t chunks = chunks_within_limits(flags); chunks >= LEAST_CHUNKS; chunks /= 4) {
        if (ftruncate(fd, (off_t)(SPOOL_HEADER_BYTES + (size_t)chunks * SPOOL_CHUNK_BYTES)) == 0)
            return chunks;
    }
    return 0;
}

static uint32_t chunks_to_open(uint32_t n_chunks)
{
    return n_chunks < PRODUCER_STEP_CHUNKS ? n_chunks : PRODUCER_STEP_CHUNKS;
}

// Allocates the header's pages now, because a full file system would raise SIGBUS later. Skips the
// pages of argv: only read(2) writes to them, and it returns an error instead of raising SIGBUS.
// Returns 0 or a positive errno.
static uint32_t fetch_header(struct spool_header *header, int fd)
{
    const size_t bytes = offsetof(struct spool_header, argv);
    if (!madvise(header, bytes, MADV_POPULATE_WRITE))
        return 0;
    if (errno != EINVAL)
        return errno == EFAULT ? ENOSPC : (uint32_t)errno;
    return syscall(SYS_fallocate, fd, 0, 0l, (long)bytes) ? (uint32_t)errno : 0;
}

// Creates the file and its mapping, and closes the file descriptor. On failure, cleans up, sets
// *why to an errno and returns NULL.
static struct spool_header *make_file(struct producer_inherited *in, char *path, uint32_t *n_chunks,
                                      uint32_t *why)
{
    int fd = create_file(in, path);
    *why = (uint32_t)errno;
    if (fd < 0)
        return NULL;
    *n_chunks = size_file(fd, in->session.flags);
    struct spool_header *header =
        *n_chunks ? producer_map_first(in, fd, chunks_to_open(*n_chunks)) : NULL;
    *why = header ? fetch_header(header, fd) : *n_chunks ? ENOMEM : EFBIG;
    close_raw(fd);
    if (!*why)
        return header;
    if (header)
        producer_map_release(in);
    syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    return NULL;
}

// Claims an unused reserve and returns its bit, or 0 if all are in use.
static uint64_t claim_reserve(const struct producer_inherited *in)
{
    _Atomic uint64_t *taken = &in->reserves->taken;
    uint64_t now = atomic_load_explicit(taken, memory_order_relaxed), bit;
    do {
        bit = ~now & (now + 1); // lowest free bit
        if (!bit || (unsigned)__builtin_ctzll(bit) >= in->n_reserves)
            return 0;
        // Pairs with the recorder's release. The recorder empties the reserve before that store.
    } while (!atomic_compare_exchange_weak_explicit(taken, &now, now | bit, memory_order_acquire,
                                                    memory_order_relaxed));
    return bit;
}

// Maps a reserve. If all reserves are in use, waits briefly for the recorder to release the reserve
// of a process that has ended.
static struct spool_header *map_reserve(struct producer_inherited *in)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    if (!in->n_reserves)
        return NULL;
    uint32_t patience = in->session.flags & SPOOL_LOSSY ? 0 : RESERVE_WAIT_MS;
    uint64_t bit = claim_reserve(in);
    for (; !bit && patience && control_recorder_lives(in->futexes, in->session.owner); patience--) {
        syscall(SYS_nanosleep, &pause, NULL);
        bit = claim_reserve(in);
    }
    struct spool_header *header =
        bit ? producer_map_reserve(in, (unsigned)__builtin_ctzll(bit)) : NULL;
    if (bit && !header)
        atomic_fetch_and_explicit(&in->reserves->taken, ~bit, memory_order_release);
    return header;
}

// Creates the spool in a file, and sets `path` to the file's temporary name. If that fails, creates
// the spool in a reserve and sets `path` to "".
static struct spool_header *make_spool(struct producer_inherited *in, char *path, uint32_t *why)
{
    uint32_t n_chunks = SPOOL_RESERVE_CHUNKS;
    struct spool_header *header = make_file(in, path, &n_chunks, why);
    if (!header) {
        path[0] = 0;
        n_chunks = SPOOL_RESERVE_CHUNKS;
        header = map_reserve(in);
    }
    if (header)
        header->max_chunks = n_chunks;
    return header;
}

static void set_allocator(struct spool_header *h)
{
    const char *path = producer_inherited.allocator;
    producer_format(h->allocator, sizeof h->allocator, "%s", *path ? path : h->exe);
}

// The process image from which a fork child was copied. All 0 if the process is not a fork child.
// Members are named as in the spool's header.
struct parent {
    uint32_t pid;
    uint64_t start_stamp, fork_stamp;
};

static void fill_header(struct spool_header *h, struct producer_process *p,
                        const struct parent *parent)
{
    h->control.first_state = producer_inherited.recording;
    atomic_store_explicit(&h->control.state, h->control.first_state, memory_order_relaxed);
    h->pid = producer_inherited.pid;
    h->ppid = (uint32_t)syscall(SYS_getppid);
    h->start_stamp = producer_inherited.start_stamp = clock_ticks(p->clock) >> CODEC_STAMP_SHIFT;
    h->start_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    bool exact = producer_inherited.session.flags & (SPOOL_EXACT_CLOCK | SPOOL_NO_RECORDER);
    atomic_store_explicit(&h->readings.sequence, exact ? SPOOL_READ_ALL : 0, memory_order_relaxed);
    h->readings.usual_ticks = producer_usual_ticks();
    producer_cost_measure(h, p->clock);
    struct stat exe;
    // The path that exec was called with, if /proc is not mounted.
    const char *path = (const char *)getauxval(AT_EXECFN);
    if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/exe", &exe, 0) == 0 ||
        (path && syscall(SYS_newfstatat, AT_FDCWD, path, &exe, 0) == 0)) {
        h->exe_device = exe.st_dev;
        h->exe_inode = exe.st_ino;
    }
    h->parent_spool_pid = parent->pid;
    h->parent_start_stamp = parent->start_stamp;
    h->fork_stamp = parent->fork_stamp;
    if (!parent->pid)
        producer_read_file("/proc/self/statm", h->statm, sizeof h->statm - 1);
    producer_format(h->bypassed_by, sizeof h->bypassed_by, "%s", producer_inherited.bypassed_by);
    long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", h->exe, sizeof h->exe - 1);
    if (n <= 0)
        h->exe[0] = 0;
    set_allocator(h);
    h->argv_bytes = (uint32_t)producer_read_file("/proc/self/cmdline", h->argv, sizeof h->argv);
    atomic_store_explicit(&h->status, SPOOL_RUNNING, memory_order_relaxed);
    // Pairs with the recorder's acquire. The members above are set before this store.
    __atomic_store_n(&h->magic, SPOOL_MAGIC, __ATOMIC_RELEASE);
}

// Drops the parent's spool in a fork child, because the mapping would keep the memory in use after
// the parent has exited. If a signal handler forked the child in the middle of a record, keeps the
// mapping: the child completes that record when the handler returns.
static struct parent drop_parent(struct producer_inherited *in, bool fork_was_seen)
{
    struct parent parent = {0};
    if (in->spool)
        parent = (struct parent){in->pid, in->start_stamp, fork_was_seen ? in->fork_stamp : 0};
    if (in->spool && !fork_was_seen) {
        in->recording = atomic_load(&in->spool->control.state);
        in->forked = true;
    }
    in->fork_stamp = 0;
    if (in->spool && !(producer_tls.busy & PRODUCER_INTERRUPTING))
        producer_map_release(in);
    else
        producer_map_forget(in);
    return parent;
}

// Returns true if the time-stamp counter is disabled. A child inherits this setting from its
// parent.
static bool counter_is_forbidden(void)
{
    int how = 0;
    return syscall(SYS_prctl, PR_GET_TSC, &how, 0, 0, 0) == 0 && how == PR_TSC_SIGSEGV;
}

// Joins the session named in the environment. If the directory contains no session, creates a
// session. A fork child uses its parent's session.
static bool join_session(struct producer_inherited *in)
{
    if (in->session.magic)
        return true;
    if (!read_session(in)) {
        make_session(in->dir);
        if (!read_session(in))
            return false;
    }
    if (!(in->session.flags & SPOOL_NO_RECORDER))
        map_reserves(in);
    return true;
}

static bool create_spool(struct producer_process *p)
{
    struct producer_inherited *in = &producer_inherited;
    if (in->filtered || counter_is_forbidden())
        return producer_count_refused(p, in->reserves,
                                      in->filtered ? SPOOL_REFUSED_SECCOMP : SPOOL_REFUSED_COUNTER);
    producer_thread_make_key();
    struct parent parent = drop_parent(in, p->pid);
    if (!in->dir_known)
        find_dir(in);
    bool alone = !in->dir[0] && producer_alone_start(in);
    if (!in->dir[0])
        return false;
    if (!join_session(in) || (!alone && !in->attached && !producer_is_followed(&in->session)))
        return false;
    // After an attached recording has ended, events do not count as lost.
    if (!producer_has_recorder(p))
        return !in->attached && producer_count_refused(p, in->reserves, SPOOL_REFUSED_ENDED);
    if (!p->pid)
        p->pid = (uint32_t)syscall(SYS_getpid);
    in->pid = p->pid;
    if (!parent.pid && (in->session.flags & SPOOL_START_PAUSED))
        in->recording = SPOOL_PAUSED;
    p->flags = in->session.flags;
    p->clock = (enum clock_kind)in->session.clock_kind;
    p->slow = p->clock == CLOCK_KIND_MONOTONIC || (p->flags & SPOOL_USABLE);
    char path[PATH_ROOM];
    uint32_t why = 0;
    struct spool_header *header = make_spool(in, path, &why);
    if (!header)
        return producer_count_refused(p, in->reserves, why);
    fill_header(header, p, &parent);
    if (path[0] && !publish_file(in, path)) {
        why = (uint32_t)errno;
        syscall(SYS_unlinkat, AT_FDCWD, path, 0);
        producer_map_release(in);
        return producer_count_refused(p, in->reserves, why);
    }
    p->header = header;
    p->max_chunks =
        header->max_chunks < SPOOL_MAX_CHUNKS_ALONE ? header->max_chunks : SPOOL_MAX_CHUNKS_ALONE;
    atomic_store_explicit(&p->open_chunks, chunks_to_open(p->max_chunks), memory_order_relaxed);
    producer_sites_start(in->session.depth, in->session.sample_bytes);
    p->measures = (p->flags & SPOOL_RESIDENCY) && producer_residency_allowed(in->session.filters) &&
                  producer_residency_start();
    // The recorder searches for new spools every 20 ms (every 100 ms if all processes are idle), so
    // most processes need not wake it. Wake the recorder only in two cases. First, other processes
    // may be waiting for a reserve spool. Second, if this program started the recorder or was
    // started by it, the recorder reads the program's thread names and memory use.
    if (!path[0] || header->ppid == in->session.recorder_pid || in->session.attached == p->pid)
        producer_wake_recorder(p);
    return true;
}

// Starts counting the calls that cannot be recorded.
static void enable_counts(struct producer_process *p)
{
    p->unrecorded = p->header->unrecorded;
    p->counts = SPOOL_COUNTS;
}

static bool start_recording(struct producer_process *p)
{
    bool begun = create_spool(p);
    producer_map_unreserve(&producer_inherited);
    return begun;
}

// State of the process, followed by the states of the first threads. Most processes have no other
// threads.
struct image {
    struct producer_process process;
    struct producer_thread threads[PRODUCER_POOL_STEP];
};

// State after a recording has ended. The state is static, so that threads can read it at any time,
// even in fork children.
static struct producer_process idle = {.state = PRODUCER_OFF};

// State of an ended recording that threads may still use, or NULL.
static struct producer_process *retired;

static struct producer_process *process_mapping(void)
{
    if (producer_current() == &idle)
        return &idle;
    bool is_first = !atomic_load_explicit(&producer_inherited.process, memory_order_relaxed);
    struct image *i = producer_map_wiped((void *_Atomic *)&producer_inherited.process, sizeof *i);
    if (!i)
        return NULL;
    if (is_first)
        i->process.pid = (uint32_t)syscall(SYS_getpid);
    // Another thread may concurrently store the address, which is the same.
    if (!atomic_load_explicit(&producer_inherited.pool[0], memory_order_relaxed))
        atomic_store_explicit(&producer_inherited.pool[0], i->threads, memory_order_release);
    return &i->process;
}

static void save_fork_state(void)
{
    struct producer_inherited *in = &producer_inherited;
    const struct producer_process *p = producer_current();
    // If the process has recorded nothing, the state it inherited at its own fork is still valid.
    if (!p || !p->header)
        return;
    in->recording = atomic_load_explicit(&p->header->control.state, memory_order_acquire);
    // If the process is OFF, do not read the counter, because the process may have disabled it.
    bool reads = producer_has_state(p, PRODUCER_RUNNING);
    in->fork_stamp =
        reads && !producer_tls.thread->forbidden ? clock_ticks(p->clock) >> CODEC_STAMP_SHIFT : 0;
    // Later events must have later stamps than the fork.
    producer_request_readings(p->header);
}

void producer_before_fork(void)
{
    uint32_t was = producer_enter(PRODUCER_WRITING);
    save_fork_state();
    producer_leave(was);
}

void producer_after_fork(void)
{
    struct producer_inherited *in = &producer_inherited;
    struct producer_process *p = process_mapping();
    if (!p)
        return;
    p->pid = producer_process_id();
    in->forked |=
        !in->spool || atomic_load_explicit(&in->spool->threads_live, memory_order_relaxed) > 1;
}

// The state of a process that could not allocate memory for its own state. Fork children inherit
// it, and are not recorded either.
static struct producer_process without_memory;

// Turns recording off permanently, because each retry would make system calls. Returns the process
// image, whose state is OFF.
static struct producer_process *refuse_without_memory(void)
{
    struct producer_inherited *in = &producer_inherited;
    struct producer_process *none = NULL;
    atomic_store_explicit(&without_memory.state, PRODUCER_STARTING, memory_order_relaxed);
    if (!atomic_compare_exchange_strong(&in->process, &none, &without_memory))
        return none;
    if (!in->dir_known)
        find_dir(in);
    if (in->dir[0] && join_session(in) && producer_is_followed(&in->session) &&
        producer_has_recorder(&without_memory))
        producer_count_refused(&without_memory, in->reserves, ENOMEM);
    atomic_store_explicit(&without_memory.state, PRODUCER_OFF, memory_order_release);
    return &without_memory;
}

struct producer_process *producer_process_ready(void)
{
    struct producer_process *p = process_mapping();
    p = p ? p : refuse_without_memory();
    for (;;) {
        uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);
        if (state == PRODUCER_RUNNING)
            return p;
        if (state == PRODUCER_OFF)
            return NULL;
        if (state == PRODUCER_STARTING) {
            syscall(SYS_sched_yield);
            continue;
        }
        if (!atomic_compare_exchange_strong(&p->state, &state, PRODUCER_STARTING))
            continue;
        bool begun = start_recording(p);
        if (begun)
            enable_counts(p);
        atomic_store_explicit(&p->state, begun ? PRODUCER_RUNNING : PRODUCER_OFF,
                              memory_order_release);
    }
}

// Returns the process, or NULL if it is not recorded.
static struct producer_process *recorded_process(void)
{
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_process_ready();
    producer_leave(was);
    producer_signals_restore(mask);
    return p;
}

void producer_start(void)
{
    recorded_process();
}

// Maps the state for another recording, with state OFF. Returns NULL if out of memory, or if
// threads may still use the memory of the last recording.
static struct producer_process *replace_idle(void)
{
    void *_Atomic at = NULL;
    struct image *i = retired ? NULL : producer_map_wiped(&at, sizeof *i);
    if (!i)
        return NULL;
    i->process.pid = (uint32_t)syscall(SYS_getpid);
    atomic_store_explicit(&i->process.state, PRODUCER_OFF, memory_order_relaxed);
    atomic_store_explicit(&producer_inherited.pool[0], i->threads, memory_order_release);
    atomic_store_explicit(&producer_inherited.process, &i->process, memory_order_release);
    return &i->process;
}

int producer_attach_prepare(void)
{
    uint32_t new = PRODUCER_NEW;
    struct producer_process *p = process_mapping();
    if (p == &idle)
        p = replace_idle();
    if (!p)
        return ENOMEM;
    // Another thread may already have searched for a session without finding one.
    atomic_compare_exchange_strong(&p->state, &new, PRODUCER_OFF);
    return atomic_load(&p->state) == PRODUCER_OFF ? 0 : EALREADY;
}

int producer_attach(const char *dir)
{
    struct producer_inherited *in = &producer_inherited;
    struct producer_process *p = atomic_load(&in->process);
    if (!producer_format(in->dir, sizeof in->dir, "%s", dir))
        return ENAMETOOLONG;
    in->dir_known = true;
    in->attached = true;
    producer_residency_hint_always();
    producer_freed_start();
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    bool begun = start_recording(p);
    // Until now, the other threads were not recorded.
    if (begun) {
        atomic_store_explicit(&p->state, PRODUCER_RUNNING, memory_order_release);
        enable_counts(p);
    }
    producer_leave(was);
    producer_signals_restore(mask);
    if (begun)
        return 0;
    producer_residency_forget();
    producer_freed_stop();
    return ENOENT;
}

bool producer_detach(void)
{
    const struct producer_inherited *in = &producer_inherited;
    struct producer_process *p = atomic_load(&in->process);
    uint32_t running = PRODUCER_RUNNING;
    producer_tls.thread = (struct producer_thread *)&producer_no_thread;
    if (!p || p == &idle)
        return retired;
    // The recorder drops records with later stamps, so the recording ends in all threads at the
    // same time.
    if (p->header && atomic_load(&p->state) == PRODUCER_RUNNING)
        control_execute(&(struct control){p->header, &in->session, in->futexes, 0}, CONTROL_PAUSE);
    // From now on, calls do not count as missing.
    p->unrecorded = NULL;
    if (atomic_compare_exchange_strong(&p->state, &running, PRODUCER_OFF))
        producer_end_waits(p);
    retired = p;
    // Pairs with the acquire in producer_current. After this store, no thread starts to use `p`.
    atomic_store(&producer_inherited.process, &idle);
    return true;
}

int heaptape_clear(void)
{
    struct producer_inherited *in = &producer_inherited;
    struct producer_process *p = retired;
    if (!p)
        return 0;
    if (producer_thread_any_unstarted(p))
        return EAGAIN;
    if (p->header) {
        atomic_store_explicit(&p->header->status, SPOOL_CLOSED, memory_order_release);
        producer_wake_recorder(p);
    }
    producer_thread_drop_all(p);
    if (in->spool)
        producer_map_release(in);
    producer_map_unreserve(in);
    producer_sites_stop();
    producer_residency_forget();
    producer_freed_stop();
    producer_owners_stop();
    if (in->futexes)
        producer_munmap((void *)in->futexes, sizeof in->session);
    if (in->reserves)
        producer_munmap(in->reserves, sizeof *in->reserves);
    if (p != &without_memory)
        producer_unmap_private(p, sizeof(struct image));
    in->futexes = NULL;
    in->reserves = NULL;
    in->n_reserves = in->pid = in->recording = 0;
    in->session = (struct spool_session){0};
    in->dir[0] = 0;
    retired = NULL;
    return 0;
}

int producer_control(enum control_verb verb)
{
    int saved_errno = errno;
    const struct producer_inherited *in = &producer_inherited;
    const struct producer_process *p = recorded_process();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    int rc = p ? control_execute(&(struct control){p->header, &in->session, in->futexes, 0}, verb)
               : -ENOENT;
    producer_leave(was);
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

// Returns the header of the process that is being recorded, or NULL.
static struct spool_header *recorded_header(void)
{
    const struct producer_process *p = producer_current();
    return p ? p->header : NULL;
}

void producer_set_allocator(const char *path)
{
    struct spool_header *h = recorded_header();
    struct producer_inherited *in = &producer_inherited;
    producer_format(in->allocator, sizeof in->allocator, "%s", path);
    if (h)
        set_allocator(h);
}

void producer_set_bypass(const char *path)
{
    struct spool_header *h = recorded_header();
    struct producer_inherited *in = &producer_inherited;
    producer_format(in->bypassed_by, sizeof in->bypassed_by, "%s", path);
    if (h)
        producer_format(h->bypassed_by, sizeof h->bypassed_by, "%s", path);
}

static bool is_listed(const struct spool_header *h, uint32_t bytes, const char *path)
{
    for (uint32_t at = 0; at < bytes; at += (uint32_t)strlen(h->deepbound + at) + 1) {
        if (strcmp(h->deepbound + at, path) == 0)
            return true;
    }
    return false;
}

void producer_add_deepbound(const char *path)
{
    static _Atomic bool adding;
    struct spool_header *h = recorded_header();
    size_t n = strlen(path) + 1;
    // If another thread is adding paths, do nothing, because that thread finds the same paths.
    if (!h || atomic_exchange(&adding, true))
        return;
    uint32_t bytes = atomic_load_explicit(&h->deepbound_bytes, memory_order_relaxed);
    if (bytes < sizeof h->deepbound && n <= sizeof h->deepbound - bytes &&
        !is_listed(h, bytes, path)) {
        memcpy(h->deepbound + bytes, path, n);
        // Pairs with the recorder's acquire. The text is complete before this store.
        atomic_store_explicit(&h->deepbound_bytes, bytes + (uint32_t)n, memory_order_release);
    }
    atomic_store(&adding, false);
}

struct spool_header *producer_malloc_query_header(void)
{
    const struct producer_process *p = producer_current();
    return !producer_loader_may_be_locked() &&
                   atomic_load_explicit(&p->header->deepbound_bytes, memory_order_relaxed) &&
                   !producer_inherited.sandbox &&
                   syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 0 &&
                   syscall(SYS_getpid) == (long)producer_inherited.pid
               ? p->header
               : NULL;
}

bool producer_loader_may_be_locked(void)
{
    uint32_t was = producer_enter(PRODUCER_WRITING);
    bool ready = recorded_header();
    producer_leave(was);
    return producer_inherited.forked || !ready;
}

bool producer_may_open_files(void)
{
    return !producer_loader_may_be_locked() && !producer_inherited.sandbox &&
           (!producer_inherited.attached || syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 0);
}

void producer_set_library(const char *path, const char *heaptape)
{
    producer_inherited.heaptape = heaptape;
    producer_format(producer_inherited.library, sizeof producer_inherited.library, "%s", path);
}
