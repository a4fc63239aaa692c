#include "capture/spool/control.h"

#include "base/clock.h"
#include "trace/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_NS 20000000u // between two checks that the recorder is alive
// If the recorder is alive, it repairs a truncated session within this many waits of WAIT_NS.
#define REPAIR_NAPS 50
// Timeout of the lock. The lock is held only for a few instructions, so after this time its holder
// is presumed dead.
#define LOCK_NS 1000000000u

bool control_is_gone(uint32_t pid)
{
    // kill(2) succeeds for zombies, but pidfd_open detects them. pidfd_open requires Linux 5.3 and
    // a free descriptor.
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return syscall(SYS_kill, pid, 0) != 0 && errno == ESRCH;
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    struct timespec now = {0};
    long n = syscall(SYS_ppoll, &ended, 1, &now, NULL, 0);
    syscall(SYS_close, fd);
    return n > 0;
}

uint32_t control_filters(void)
{
    char text[4096];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? 0 : syscall(SYS_read, fd, text, sizeof text - 1);
    if (fd >= 0)
        syscall(SYS_close, fd);
    text[n > 0 ? n : 0] = 0;
    const char *line = strstr(text, "\nSeccomp_filters:");
    uint32_t filters = 0;
    for (line = line ? line + 17 : ""; *line == '\t' || *line == ' '; line++)
        continue;
    for (; *line >= '0' && *line <= '9'; line++)
        filters = filters * 10 + (uint32_t)(*line - '0');
    return filters;
}

static void sleep_ns(uint64_t ns)
{
    const struct timespec t = {.tv_nsec = (long)ns};
    syscall(SYS_nanosleep, &t, NULL);
}

bool control_recorder_lives(const struct spool_session *futexes, uint32_t owner)
{
    // This operation only compares the word and requeues no waiters. If the kernel or a system call
    // filter does not support the operation, the recorder is assumed to be alive.
    const _Atomic uint32_t *word = &futexes->recorder.owner;
    long rc = -1;
    errno = EFAULT;
    for (unsigned i = 0; owner && rc < 0 && errno == EFAULT && i < REPAIR_NAPS; i++) {
        if (i > 0)
            sleep_ns(WAIT_NS);
        rc = syscall(SYS_futex, word, FUTEX_CMP_REQUEUE, 0, 0ul, word, owner);
    }
    return owner && (rc >= 0 || (errno != EAGAIN && errno != EFAULT));
}

void control_wake_recorder(struct spool_header *h, const struct spool_session *futexes)
{
    // Pairs with the recorder's read of `wakeups` before it sleeps. If a wake-up falls between the
    // read and the sleep, it is lost, and the recorder sleeps until the next wake-up or the end of
    // its short timeout.
    atomic_fetch_add(&h->wakeups, SPOOL_CHUNKS_A_WAKE);
    syscall(SYS_futex, &futexes->wakeups, FUTEX_WAKE, 1, NULL, NULL, 0);
}

// Returns 0, or a negative errno if the recorder will not answer, or has not answered in the time
// since `start_ns`.
static int reason_to_stop(const struct control *c, uint64_t start_ns)
{
    if (c->timeout_ns && clock_monotonic_ns() - start_ns >= c->timeout_ns)
        return -ETIMEDOUT;
    if (!control_recorder_lives(c->futexes, c->session->owner) || atomic_load(&c->header->refused))
        return -EPIPE;
    return c->process && control_is_gone(c->process) ? -ESRCH : 0;
}

// Blocks all signals and acquires the lock. A signal handler that needed the lock would deadlock.
// Returns the signal mask to restore.
static uint64_t lock(struct spool_control *k)
{
    uint64_t all = UINT64_MAX, mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof mask);
    uint64_t start = clock_monotonic_ns();
    uint32_t free_lock = 0;
    while (!atomic_compare_exchange_strong(&k->lock, &free_lock, 1) &&
           clock_monotonic_ns() - start < LOCK_NS) {
        free_lock = 0;
        sleep_ns(10000);
    }
    return mask;
}

static void unlock(struct spool_control *k, uint64_t mask)
{
    atomic_store(&k->lock, 0);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

// Returns true if the state was set, or false if the ring of changes is full.
static bool try_set_state(const struct control *c, enum spool_recording to)
{
    struct spool_control *k = &c->header->control;
    uint64_t mask = lock(k);
    uint64_t made = atomic_load(&k->changes_made);
    bool same = atomic_load(&k->state) == (uint32_t)to;
    bool room = made - atomic_load(&k->changes_taken) < SPOOL_STATE_CHANGES;
    if (!same && room) {
        uint64_t stamp = clock_ticks((enum clock_kind)c->session->clock_kind) >> CODEC_STAMP_SHIFT;
        atomic_store(&k->changes[made % SPOOL_STATE_CHANGES], stamp << 2 | (uint64_t)to);
        atomic_store(&k->changes_made, made + 1);
        atomic_store(&k->state, to);
        // Later calls must have later stamps.
        atomic_fetch_add(&c->header->readings.sequence, SPOOL_READ_STEP);
    }
    unlock(k, mask);
    return same || room;
}

// Sets the state. If the ring of changes is full, waits for the recorder, which frees entries of
// the ring in each batch.
static int set_state(const struct control *c, enum spool_recording to, uint64_t start_ns)
{
    while (!try_set_state(c, to)) {
        if (c->session->flags & SPOOL_NO_RECORDER)
            return -ENOSPC;
        int rc = reason_to_stop(c, start_ns);
        if (rc)
            return rc;
        control_wake_recorder(c->header, c->futexes);
        sleep_ns(100000);
    }
    return 0;
}

// Sends a request to the recorder and waits until it is acknowledged.
static int send_request(const struct control *c, enum spool_request what, uint64_t start_ns)
{
    struct spool_control *k = &c->header->control;
    const struct timespec timeout = {.tv_nsec = WAIT_NS};
    if (what == SPOOL_RESET)
        atomic_fetch_add(&k->reset_proof, SPOOL_RESET_STEP);
    uint32_t number = atomic_fetch_add(&k->asked[what], 1) + 1;
    for (;;) {
        control_wake_recorder(c->header, c->futexes);
        uint32_t done = atomic_load(&k->done[what]);
        if ((int32_t)(done - number) >= 0)
            return 0;
        int rc = reason_to_stop(c, start_ns);
        if (rc)
            return rc;
        syscall(SYS_futex, &k->done[what], FUTEX_WAIT, done, &timeout, NULL, 0);
    }
}

static int reset_trace(const struct control *c, uint64_t start_ns)
{
    if (c->session->flags & SPOOL_NO_RECORDER)
        return -ENOTSUP;
    int rc = send_request(c, SPOOL_RESET, start_ns);
    return rc ? rc : -(int)atomic_load(&c->header->control.reset_error);
}

// If there is no recorder, does not wait, because the spool is itself the recording.
static int sync_all(const struct control *c, uint64_t start_ns)
{
    return c->session->flags & SPOOL_NO_RECORDER ? 0 : send_request(c, SPOOL_SYNC, start_ns);
}

int control_execute(const struct control *c, enum control_verb verb)
{
    struct spool_control *k = &c->header->control;
    uint32_t state = atomic_load(&k->state);
    uint64_t start_ns = clock_monotonic_ns();
    int rc = 0;
    if (atomic_load(&c->header->status) == SPOOL_OFF)
        return -ENODATA;
    switch (verb) {
    case CONTROL_START:
        return set_state(c, SPOOL_RECORDING, start_ns);
    case CONTROL_STOP:
        rc = set_state(c, SPOOL_STOPPED, start_ns);
        return rc ? rc : sync_all(c, start_ns);
    case CONTROL_PAUSE:
        return state == SPOOL_STOPPED ? 0 : set_state(c, SPOOL_PAUSED, start_ns);
    case CONTROL_RESUME:
        return state == SPOOL_STOPPED ? -EPERM : set_state(c, SPOOL_RECORDING, start_ns);
    case CONTROL_SYNC:
        return sync_all(c, start_ns);
    case CONTROL_RESET:
        return reset_trace(c, start_ns);
    }
    return -EINVAL;
}
