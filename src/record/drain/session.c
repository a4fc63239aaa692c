// Creates and removes the session directory and file.
#include "record/drain/drain_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Minimum free space, enough for a few processes. Writing to a full tmpfs would kill the program.
#define LEAST_TMPFS_BYTES (64ull << 20)
#define UNNAMED_SESSION   SPOOL_SESSION_FILE ".new" // name until the file is locked

static bool is_usable(const char *folder)
{
    struct statvfs fs;
    return access(folder, W_OK | X_OK) == 0 && statvfs(folder, &fs) == 0 &&
           (uint64_t)fs.f_bavail * fs.f_frsize >= LEAST_TMPFS_BYTES;
}

// Chooses a directory below `root` and writes its path to `path`, which has PATH_MAX bytes.
static void choose_folder(const char *root, char *path)
{
    const char *tmpdir = getenv("TMPDIR"),
               *folders[] = {"/dev/shm", tmpdir && *tmpdir == '/' && !*root ? tmpdir : "/tmp"};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, PATH_MAX, "%s%s", root, folders[i]);
        if (is_usable(path))
            return;
    }
    snprintf(path, PATH_MAX, "%s/tmp", root);
}

// Creates the directories of a session recorded as root. A program may drop root privileges and
// fork, and the child then creates its spool as another user. Therefore the session is in a
// world-writable directory with a random name. That directory is inside a directory that only root
// can list.
static int make_open_folder(struct drain *c, struct err *e)
{
    uint64_t name[2];
    if (getrandom(name, sizeof name, 0) != (ssize_t)sizeof name)
        return err_set_errno(e, "cannot read random bytes");
    if (asprintf(&c->dir, "%s/%016llx%016llx", c->outer, (unsigned long long)name[0],
                 (unsigned long long)name[1]) < 0)
        c->dir = NULL;
    if (!c->dir)
        return err_no_memory(e, NULL);
    if (chmod(c->outer, 0711) < 0 || mkdir(c->dir, 0700) < 0)
        return err_set_errno(e, "%s: cannot create", c->dir);
    if (chmod(c->dir, SPOOL_OPEN_MODE) < 0)
        return err_set_errno(e, "%s: cannot change its mode", c->dir);
    return 0;
}

static int make_folders(struct drain *c, const char *root, struct err *e)
{
    char folder[PATH_MAX + 32];
    choose_folder(root, folder);
    stale_sweep(folder);
    strcat(folder, "/" STALE_PREFIX "XXXXXX");
    if (!mkdtemp(folder))
        return err_set_errno(e, "%s: cannot create", folder);
    c->outer = strdup(folder);
    int rc = c->outer && geteuid() == 0 ? make_open_folder(c, e) : 0;
    if (rc == 0 && !c->dir)
        c->dir = strdup(folder);
    if (rc == 0 && (!c->outer || !c->dir))
        rc = err_no_memory(e, NULL);
    if (rc < 0)
        return rc;
    c->dir_fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return c->dir_fd < 0 ? err_set_errno(e, "%s", c->dir) : 0;
}

// Creates the reserves file of the recorder's user. If RLIMIT_FSIZE is too low, the file contains
// no spools. The first process of another user creates that user's file
// (src/capture/producer/producer_process.c).
static void make_reserves(const struct drain *c)
{
    const uint64_t magic = SPOOL_RESERVES_MAGIC;
    char name[64];
    struct rlimit limit;
    uint64_t end = spool_reserve_offset(SPOOL_RESERVES);
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < sizeof(struct spool_reserves))
        return;
    end = limit.rlim_cur < end ? sizeof(struct spool_reserves) : end;
    snprintf(name, sizeof name, SPOOL_RESERVES_FILE "%lu", (unsigned long)geteuid());
    int fd = openat(c->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    // Allocate the pages now, as for the session file.
    if (fallocate(fd, 0, 0, sizeof(struct spool_reserves)) < 0 || ftruncate(fd, (off_t)end) < 0 ||
        pwrite(fd, &magic, sizeof magic, 0) != (ssize_t)sizeof magic)
        unlinkat(c->dir_fd, name, 0);
    close(fd);
}

// Registers session->recorder in this thread's robust futex list (see struct spool_recorder). The
// list replaces glibc's list, which heaptape does not use.
static int register_recorder(struct drain *c, struct err *e)
{
    struct spool_session *s = c->session;
    static _Thread_local struct robust_list_head head;
    struct robust_list *entry = (struct robust_list *)&s->recorder.next;
    head.futex_offset =
        (long)(offsetof(struct spool_recorder, owner) - offsetof(struct spool_recorder, next));
    head.list_op_pending = NULL;
    head.list.next = entry;
    entry->next = &head.list;
    // QEMU's user-mode emulation does not implement set_robust_list. Programs then cannot detect
    // that the recorder was killed.
    if (syscall(SYS_set_robust_list, &head, sizeof head) < 0 && errno != ENOSYS)
        return err_set_errno(e, "cannot register the recorder");
    c->owner = (uint32_t)gettid();
    s->owner = c->owner;
    atomic_store_explicit(&s->recorder.owner, c->owner, memory_order_release);
    return 0;
}

// Raises RLIMIT_FSIZE, because the user's limit is meant for the trace and not for the session.
// Returns true if the caller must restore *was.
static bool raise_file_size(struct rlimit *was)
{
    return getrlimit(RLIMIT_FSIZE, was) == 0 && was->rlim_cur != was->rlim_max &&
           setrlimit(RLIMIT_FSIZE, &(struct rlimit){was->rlim_max, was->rlim_max}) == 0;
}

static int make_session(struct drain *c, uint32_t flags, enum clock_kind clock, struct err *e)
{
    // Programs started as root also read the session after dropping their privileges.
    mode_t mode = geteuid() == 0 ? 0644 : 0600;
    int fd = openat(c->dir_fd, UNNAMED_SESSION, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set_errno(e, "%s/%s: cannot create", c->dir, SPOOL_SESSION_FILE);
    void *p = MAP_FAILED;
    struct rlimit was;
    bool raised = raise_file_size(&was);
    // Allocate the pages now. Otherwise a full file system causes SIGBUS later.
    if (fchmod(fd, mode) == 0 &&
        (fallocate(fd, 0, 0, sizeof(struct spool_session)) == 0 ||
         (errno == EOPNOTSUPP && ftruncate(fd, sizeof(struct spool_session)) == 0)))
        p = mmap(NULL, sizeof(struct spool_session), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int rc = p == MAP_FAILED ? err_set_errno(e, "%s/%s", c->dir, SPOOL_SESSION_FILE) : 0;
    if (rc == 0)
        make_reserves(c);
    if (raised)
        setrlimit(RLIMIT_FSIZE, &was);
    c->lock_fd = fd;
    stale_lock(fd); // ignore failure: some file systems do not support locks
    // The lock shows other recorders that this recorder is alive (see stale.c).
    if (rc == 0 && renameat(c->dir_fd, UNNAMED_SESSION, c->dir_fd, SPOOL_SESSION_FILE) < 0)
        rc = err_set_errno(e, "%s/%s: cannot create", c->dir, SPOOL_SESSION_FILE);
    if (rc < 0)
        return rc;
    c->session = p;
    c->flags = flags;
    c->guard = guard_new(p, sizeof *c->session);
    c->session->recorder_pid = (uint32_t)getpid();
    c->session->flags = flags;
    c->session->clock_kind = clock;
    c->session->stamp_shift = CODEC_STAMP_SHIFT;
    rc = c->guard ? register_recorder(c, e) : err_no_memory(e, NULL);
    __atomic_store_n(&c->session->magic, SPOOL_SESSION_MAGIC, __ATOMIC_RELEASE);
    return rc;
}

int drain_open(struct drain *c, uint32_t flags, enum clock_kind clock, const char *root,
               struct err *e)
{
    *c = (struct drain){
        .dir_fd = -1, .lock_fd = -1, .spare_fds = {-1, -1}, .root_bytes = strlen(root)};
    guard_install();
    int rc = make_folders(c, root, e) ?: make_session(c, flags, clock, e);
    drain_keep_spares(c);
    c->copy = malloc(sizeof(uint64_t) * SPOOL_CHUNK_WORDS);
    if (rc == 0 && !c->copy)
        rc = err_no_memory(e, NULL);
    if (rc < 0)
        drain_close(c);
    return rc;
}

// Renames the directory before removing it. Otherwise a program that starts at this moment could
// begin a session that has no recorder.
static void remove_session(const char *dir)
{
    char *gone = NULL;
    bool renamed = asprintf(&gone, "%s.gone", dir) >= 0 && rename(dir, gone) == 0;
    stale_remove(renamed ? gone : dir);
    free(gone);
}

void drain_close(struct drain *c)
{
    if (c->session && !c->attached)
        drain_stop(c);
    while (c->n_spools)
        drain_drop(c, c->n_spools - 1);
    if (c->dir && !c->attached)
        remove_session(c->dir);
    if (c->outer)
        rmdir(c->outer);
    for (unsigned i = 0; i < DRAIN_SPARE_FDS; i++)
        proc_file_close(c->spare_fds[i]);
    proc_file_close(c->dir_fd);
    proc_file_close(c->lock_fd);
    guard_free(c->guard);
    if (c->session)
        munmap(c->session, sizeof *c->session);
    drain_close_reserves(c);
    free(c->refused);
    free(c->outer);
    free(c->dir);
    free(c->spools);
    free(c->candidates);
    free(c->copy);
    *c = (struct drain){.dir_fd = -1, .lock_fd = -1, .spare_fds = {-1, -1}};
}

void drain_sleep(struct drain *c, uint32_t seen, uint64_t timeout_ns)
{
    struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    // The recorder's signal handler changes the futex word. Processes only wake the recorder.
    uint32_t own = atomic_load(&c->session->wakeups);
    if (drain_wakeups(c) - seen < SPOOL_CHUNKS_A_WAKE)
        syscall(SYS_futex, &c->session->wakeups, FUTEX_WAIT, own, &t, NULL, 0);
}

uint32_t drain_wakeups(const struct drain *c)
{
    uint32_t n = atomic_load(&c->session->wakeups) + c->gone_wakeups;
    for (size_t i = 0; i < c->n_spools; i++)
        n += atomic_load(&c->spools[i]->header->wakeups);
    return n;
}
