#include "record/unrecorded/tree.h"

#include "base/thread.h"
#include "capture/spool/control.h"
#include "record/drain/drain_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    RECEIVE_BYTES = 4 << 20, // size of the receive buffer, if permitted
    STACK_BYTES = 256 << 10, // small, because address space may be limited
    UNNICE = 10,
    SETTLED = 2,          // number of tree_settle calls after which a spool must have been found
    MAX_IMAGES = 1 << 16, // images that were missed or are running
};

struct tree_member {
    pid_t pid;
    bool exiting; // the main thread of the process has exited; other threads may still be alive
    bool gone;
    bool forked;       // the process was forked and has not called exec since then
    uint64_t from, to; // stamps of start and end; `to` is 0 while the process is alive
    unsigned settled;  // value of tree.settled when the process was found to be gone
    struct tree_image *image;
};

// A spool whose process the kernel has not reported yet.
struct tree_spool {
    pid_t pid;
    bool visible; // `pid` is the pid that the recorder sees
    uint64_t stamp, device, inode;
    bool other_clock; // stamps of the process cannot be compared with the recorder's stamps
    unsigned settled;
};

struct tree {
    const struct unrecorded_how *how;
    enum clock_kind clock;
    struct clock_point started;
    // The recorder attached to a running program, so the recorder's own children do not belong to
    // the tree.
    bool is_attached;
    int socket, stop;
    pthread_t thread;
    pthread_mutex_t mutex; // protects the following fields
    bool has_gaps;
    bool handling;       // an event has been received but not processed yet
    unsigned settled;    // number of tree_settle calls with all events processed
    unsigned forks;      // forks of processes in the tree
    uint64_t entered_ns; // time of the last processed event, CLOCK_MONOTONIC
    struct tree_image **images;
    size_t n_images, images_capacity;
    struct tree_member *members; // in start order
    size_t n_members, members_capacity;
    struct tree_spool *spools;
    size_t n_spools, spools_capacity;
};

// Layout of a netlink message: header, struct cn_msg, then an event or the request for events.
enum {
    CONNECTOR_AT = NLMSG_HDRLEN,
    EVENT_AT = CONNECTOR_AT + (int)sizeof(struct cn_msg),
    EVENT_HEAD = (int)offsetof(struct proc_event, event_data),
};
union connector_message {
    struct nlmsghdr head;
    char bytes[EVENT_AT + sizeof(struct proc_event)];
};

// Receives the next event. Returns 1 if an event was received, 0 if no event is pending, -ENOBUFS
// if events were dropped, or another negative errno.
static int next_event(int fd, struct proc_event *event)
{
    union connector_message m;
    struct sockaddr_nl from = {0};
    struct cb_id id;
    for (;;) {
        socklen_t n_from = sizeof from;
        ssize_t n = recvfrom(fd, &m, sizeof m, MSG_DONTWAIT, (struct sockaddr *)&from, &n_from);
        if (n < 0)
            return errno == EAGAIN ? 0 : errno == EINTR ? -EAGAIN : -errno;
        // Accept only messages from the kernel, because any process may send to a netlink socket.
        if (from.nl_pid != 0 || n < EVENT_AT + EVENT_HEAD)
            continue;
        memcpy(&id, m.bytes + CONNECTOR_AT, sizeof id);
        if (id.idx != CN_IDX_PROC)
            continue;
        memset(m.bytes + n, 0, sizeof m - (size_t)n);
        memcpy(event, m.bytes + EVENT_AT, sizeof *event);
        return 1;
    }
}

// Installs a filter that passes the acknowledgement and the forks, execs and exits of processes.
// Other events then do not wake the thread. BPF loads words in network byte order. Without the
// filter, handle_event drops the other events.
static void attach_filter(int fd)
{
    enum {
        WHAT = EVENT_AT + (int)offsetof(struct proc_event, what),
        DATA = EVENT_AT + EVENT_HEAD,
        CHILD = DATA + (int)offsetof(struct fork_proc_event, child_pid),
        CHILD_GROUP = DATA + (int)offsetof(struct fork_proc_event, child_tgid),
        EXITED = DATA + (int)offsetof(struct exit_proc_event, process_pid),
        EXITED_GROUP = DATA + (int)offsetof(struct exit_proc_event, process_tgid),
    };
#define LOAD(at)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define IF(what, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(what), yes, no)
    struct sock_filter code[] = {
        LOAD(WHAT),
        IF(PROC_EVENT_NONE, 11, 0),
        IF(PROC_EVENT_EXEC, 10, 0),
        IF(PROC_EVENT_EXIT, 5, 0),
        IF(PROC_EVENT_FORK, 0, 9),
        LOAD(CHILD),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        LOAD(CHILD_GROUP),
        BPF_STMT(BPF_JMP | BPF_JA, 3),
        LOAD(EXITED),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        LOAD(EXITED_GROUP),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX), // accept the whole message
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
#undef LOAD
#undef IF
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

// Subscribes to the events. The kernel answers during send(2) or not at all.
static bool subscribe(int fd)
{
    const struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    const enum proc_cn_mcast_op op = PROC_CN_MCAST_LISTEN;
    const struct cn_msg connector = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof op};
    union connector_message m = {
        .head = {.nlmsg_type = NLMSG_DONE, .nlmsg_len = EVENT_AT + sizeof op}};
    struct proc_event event;
    const int bytes = RECEIVE_BYTES;
    memcpy(m.bytes + CONNECTOR_AT, &connector, sizeof connector);
    memcpy(m.bytes + EVENT_AT, &op, sizeof op);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    attach_filter(fd);
    if (bind(fd, (const struct sockaddr *)&to, sizeof to) < 0 ||
        send(fd, &m, m.head.nlmsg_len, 0) < 0)
        return false;
    while (next_event(fd, &event) > 0) {
        if (event.what == PROC_EVENT_NONE)
            return event.event_data.ack.err == 0;
    }
    return false;
}

// Converts CLOCK_MONOTONIC to a stamp.
static uint64_t to_stamp(const struct tree *t, uint64_t ns)
{
    struct clock_point now = clock_point_take(t->clock);
    double since = (double)(now.ns - t->started.ns),
           rate = since > 0 ? (double)(now.ticks - t->started.ticks) / since : 1;
    double ago = now.ns > ns && now.ns - ns < now.ns - t->started.ns ? (double)(now.ns - ns) : 0;
    return (now.ticks - (uint64_t)(ago * rate)) >> CODEC_STAMP_SHIFT;
}

static struct tree_member *find_member(struct tree *t, pid_t pid)
{
    for (size_t i = t->n_members; i-- > 0;) {
        if (t->members[i].pid == pid && !t->members[i].gone)
            return &t->members[i];
    }
    return NULL;
}

static bool add_member(struct tree *t, pid_t pid, bool forked, uint64_t from,
                       struct tree_image *image)
{
    const struct tree_member m = {.pid = pid, .forked = forked, .from = from, .image = image};
    if (HT_APPEND(&t->members, &t->n_members, &t->members_capacity, m) < 0)
        return false;
    image->live++;
    image->ran++;
    return true;
}

static void mark_gone(struct tree *t, struct tree_member *m, uint64_t now)
{
    m->gone = true;
    m->to = m->to ? m->to : now;
    m->settled = m->image->settled = t->settled;
    if (--m->image->live == 0)
        m->image->to = m->to;
}

static struct tree_image *add_image(struct tree *t, const struct tree_image *image)
{
    struct tree_image *made = t->n_images < MAX_IMAGES ? malloc(sizeof *made) : NULL;
    if (!made || HT_GROW(&t->images, &t->images_capacity, t->n_images + 1) < 0) {
        free(made);
        t->has_gaps = true;
        return NULL;
    }
    *made = *image;
    t->images[t->n_images++] = made;
    return made;
}

static void handle_fork(struct tree *t, pid_t parent, pid_t child, uint64_t stamp)
{
    struct tree_member *of = find_member(t, parent), *before = find_member(t, child);
    if (before)
        mark_gone(t, before, stamp); // the pid was reused
    t->forks += of != NULL;
    // A child of the recorder runs heaptape's own code until it executes the program.
    if (!of && parent == getpid() && !t->is_attached) {
        struct tree_image *own =
            add_image(t, &(struct tree_image){.pid = child, .from = stamp, .recorded = true});
        t->has_gaps |= !own || !add_member(t, child, true, stamp, own);
    } else if (of) {
        t->has_gaps |= !add_member(t, child, true, stamp, of->image);
    }
}

static void handle_exec(struct tree *t, struct tree_image *image)
{
    struct tree_member *m = find_member(t, image->pid);
    struct tree_image *made = m ? add_image(t, image) : NULL;
    if (!made)
        return;
    m->image->ran -= m->forked;
    mark_gone(t, m, image->from);
    t->has_gaps |= !add_member(t, image->pid, false, image->from, made);
}

static void handle_exit(struct tree *t, pid_t pid, int status, uint64_t stamp)
{
    struct tree_member *m = find_member(t, pid);
    if (!m)
        return;
    m->exiting = true;
    m->to = stamp;
    if (m->image->pid == pid) {
        m->image->ended = true;
        m->image->status = status;
    }
}

static bool is_member(struct tree *t, pid_t pid)
{
    pthread_mutex_lock(&t->mutex);
    bool found = find_member(t, pid) != NULL;
    pthread_mutex_unlock(&t->mutex);
    return found;
}

static void handle_event(struct tree *t, const struct proc_event *event)
{
    const struct fork_proc_event *fork = &event->event_data.fork;
    const struct exit_proc_event *end = &event->event_data.exit;
    struct tree_image image = {0};
    bool is_fork = event->what == PROC_EVENT_FORK, is_exec = event->what == PROC_EVENT_EXEC,
         is_exit = event->what == PROC_EVENT_EXIT;
    pid_t pid = is_fork && fork->child_tgid == fork->child_pid ? fork->child_pid
                : is_exec                                      ? event->event_data.exec.process_tgid
                : is_exit && end->process_tgid == end->process_pid ? end->process_pid
                                                                   : 0;
    // Skip other events, because the kernel reports all processes and threads on the machine.
    if (!pid || (is_exec && !is_member(t, pid)))
        return;
    uint64_t stamp = to_stamp(t, event->timestamp_ns);
    // Inspect the program now, because it may end soon.
    if (is_exec) {
        image = (struct tree_image){.pid = pid, .from = stamp};
        unrecorded_inspect(&image.seen, pid, t->how);
        if (image.seen.followed && !image.seen.why[0])
            t->how->executed(t->how->context, pid);
    }
    pthread_mutex_lock(&t->mutex);
    if (is_fork)
        handle_fork(t, fork->parent_tgid, pid, stamp);
    else if (is_exec)
        handle_exec(t, &image);
    else
        handle_exit(t, pid, (int)end->exit_code, stamp);
    t->entered_ns = event->timestamp_ns;
    pthread_mutex_unlock(&t->mutex);
}

static int receive_event(struct tree *t, struct proc_event *event)
{
    pthread_mutex_lock(&t->mutex);
    int rc = next_event(t->socket, event);
    t->handling = rc > 0;
    pthread_mutex_unlock(&t->mutex);
    return rc;
}

static void *listen_to_kernel(void *arg)
{
    struct tree *t = arg;
    // Raise the priority, because programs may run for only a few hundred microseconds. Ignore
    // failure.
    if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - UNNICE) < 0)
        errno = 0;
    struct pollfd of[] = {{.fd = t->socket, .events = POLLIN}, {.fd = t->stop, .events = POLLIN}};
    struct proc_event event;
    for (;;) {
        poll(of, 2, -1);
        bool last = of[1].revents;
        int rc;
        while ((rc = receive_event(t, &event)) != 0) {
            if (rc > 0)
                handle_event(t, &event);
            else if (rc != -EAGAIN)
                t->has_gaps = true;
            if (rc < 0 && rc != -EAGAIN && rc != -ENOBUFS)
                return NULL;
        }
        if (last)
            return NULL;
    }
}

static bool add_root(struct tree *t, pid_t pid)
{
    struct tree_image *image =
        pid ? add_image(t, &(struct tree_image){.pid = pid, .recorded = true}) : NULL;
    return !pid || (image && add_member(t, pid, false, 0, image));
}

struct tree *tree_new(const struct unrecorded_how *how, enum clock_kind clock, pid_t attached)
{
    struct tree *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    mallopt(M_ARENA_MAX, 1); // a second arena would reserve 64 MiB of address space
    *t = (struct tree){
        .how = how, .clock = clock, .started = clock_point_take(clock), .is_attached = attached};
    pthread_mutex_init(&t->mutex, NULL);
    t->socket = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
    t->stop = eventfd(0, EFD_CLOEXEC);
    if (t->socket >= 0 && t->stop >= 0 && add_root(t, attached) && subscribe(t->socket) &&
        thread_start(&t->thread, STACK_BYTES, listen_to_kernel, t) == 0)
        return t;
    proc_file_close(t->socket);
    t->socket = -1;
    tree_free(t);
    return NULL;
}

// Ways to match a spool with an image, the most reliable one first. The spool of a process that
// ended early has only the pid in the process's own namespace.
enum match {
    BY_PID,
    BY_FILE, // compares executables, if the own pid of the tree's process is unknown
    BY_TIME, // like BY_FILE, but the image ended before its executable was examined
    MATCHES
};

// Returns the pid of a process in its own namespace, or 0 if unknown. Only the process that called
// exec was inspected, not its forked children.
static pid_t find_own_pid(const struct tree_member *m)
{
    return m->forked || m->pid != m->image->pid ? 0 : (pid_t)m->image->seen.own_pid;
}

static bool matches_member(const struct tree_spool *s, const struct tree_member *m, enum match by)
{
    const struct tree_image *image = m->image;
    if (!s->other_clock && (s->stamp < m->from || (m->gone && s->stamp > m->to)))
        return false;
    pid_t own_pid = s->visible ? 0 : find_own_pid(m);
    if (by == BY_PID || own_pid)
        return s->pid == (own_pid ? own_pid : m->pid);
    if (s->visible || (by == BY_TIME && (image->seen.inode || image->recorded)))
        return false;
    return by == BY_TIME ||
           (s->inode && s->inode == image->seen.inode && s->device == image->seen.device);
}

// Marks the spool's image as recorded.
static bool match_spool(struct tree *t, const struct tree_spool *s)
{
    for (enum match by = BY_PID; by < MATCHES; by++) {
        for (size_t i = t->n_members; i-- > 0;) {
            if (matches_member(s, &t->members[i], by)) {
                t->members[i].image->recorded = true;
                return true;
            }
        }
    }
    return false;
}

void tree_spool(struct tree *t, const struct drain_spool *s)
{
    struct tree_spool spool = {
        .pid = s->visible_pid ? s->visible_pid : (pid_t)s->pid,
        .visible = s->visible_pid,
        .stamp = __atomic_load_n(&s->header->start_stamp, __ATOMIC_RELAXED),
        .device = s->exe_device,
        .inode = s->exe_inode,
    };
    // A process in a time namespace has a different CLOCK_MONOTONIC.
    spool.other_clock = spool.stamp > clock_ticks(t->clock) >> CODEC_STAMP_SHIFT ||
                        (!t->is_attached && spool.stamp < t->started.ticks >> CODEC_STAMP_SHIFT);
    pthread_mutex_lock(&t->mutex);
    spool.settled = t->settled;
    (void)HT_APPEND(&t->spools, &t->n_spools, &t->spools_capacity, spool);
    pthread_mutex_unlock(&t->mutex);
}

static void match_spools(struct tree *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_spools; i++) {
        if (!match_spool(t, &t->spools[i]) && t->settled - t->spools[i].settled < 2 * SETTLED)
            t->spools[n++] = t->spools[i];
    }
    t->n_spools = n;
}

static bool is_due(const struct tree *t, const struct tree_image *image)
{
    return image->live == 0 && t->settled - image->settled >= SETTLED;
}

static void forget_settled(struct tree *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_members; i++) {
        struct tree_member *m = &t->members[i];
        // Other threads may still be alive after the main thread has exited.
        if (m->exiting && !m->gone && control_is_gone((uint32_t)m->pid))
            mark_gone(t, m, m->to);
    }
    match_spools(t);
    for (size_t i = 0; i < t->n_members; i++) {
        if (!t->members[i].gone || t->settled - t->members[i].settled < SETTLED)
            t->members[n++] = t->members[i];
    }
    t->n_members = n;
    n = 0;
    for (size_t i = 0; i < t->n_images; i++) {
        if (is_due(t, t->images[i]) && t->images[i]->recorded)
            free(t->images[i]);
        else
            t->images[n++] = t->images[i];
    }
    t->n_images = n;
}

// Returns true if events may be pending. If the event of a later exec is still pending, a spool
// cannot be matched with an image yet.
static bool is_behind(const struct tree *t)
{
    struct pollfd of = {.fd = t->socket, .events = POLLIN};
    return t->handling || poll(&of, 1, 0) != 0;
}

void tree_settle(struct tree *t)
{
    pthread_mutex_lock(&t->mutex);
    if (!is_behind(t)) {
        t->settled++;
        forget_settled(t);
    }
    pthread_mutex_unlock(&t->mutex);
}

// Waits for at most 10 ms until all events so far have been processed. Does not wait for later
// events, because other processes may fork continuously. Returns with the mutex held.
static bool catch_up(struct tree *t)
{
    enum { MAX_NAPS = 200 };
    const struct timespec nap = {.tv_nsec = 50000};
    uint64_t until_ns = clock_monotonic_ns();
    pthread_mutex_lock(&t->mutex);
    for (int naps = 0; naps < MAX_NAPS && is_behind(t) && t->entered_ns <= until_ns; naps++) {
        pthread_mutex_unlock(&t->mutex);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&t->mutex);
    }
    return t->entered_ns > until_ns || !is_behind(t);
}

// Lists the live processes. The caller must free *live. Returns 0, or a negative errno.
static int list_live(struct tree *t, pid_t **live, size_t *n, unsigned *forks)
{
    size_t capacity = 0;
    int rc = catch_up(t) && !t->has_gaps ? 0 : -EAGAIN;
    *live = NULL;
    *n = 0;
    *forks = t->forks;
    for (size_t i = 0; rc == 0 && i < t->n_members; i++) {
        if (!t->members[i].gone)
            rc = HT_APPEND(live, n, &capacity, t->members[i].pid);
    }
    pthread_mutex_unlock(&t->mutex);
    return rc;
}

int tree_has_survivor(struct tree *t)
{
    enum { MAX_SEARCHES = 8 };
    for (int searches = 0; searches < MAX_SEARCHES; searches++) {
        pid_t *live;
        size_t n;
        unsigned forks, forks_now;
        int rc = list_live(t, &live, &n, &forks), found = 0;
        for (size_t i = 0; rc == 0 && !found && i < n; i++)
            found = lifetime_has_session(live[i], t->how->dir);
        free(live);
        if (rc < 0 || found || n == 0)
            return rc < 0 ? rc : found;
        // Catch up again, because a process may have forked and ended before it was inspected.
        rc = catch_up(t) ? 0 : -EAGAIN;
        forks_now = t->forks;
        pthread_mutex_unlock(&t->mutex);
        if (rc < 0 || forks_now == forks)
            return rc;
    }
    return -EAGAIN;
}

static void stop_thread(struct tree *t)
{
    const uint64_t one = 1;
    if (t->socket < 0)
        return;
    if (write(t->stop, &one, sizeof one) == (ssize_t)sizeof one)
        pthread_join(t->thread, NULL);
    close(t->socket);
    t->socket = -1;
}

bool tree_finish(struct tree *t)
{
    stop_thread(t);
    forget_settled(t);
    return !t->has_gaps;
}

struct tree_image *tree_next_missed(struct tree *t, size_t *at)
{
    while (*at < t->n_images) {
        struct tree_image *image = t->images[(*at)++];
        if (!image->recorded)
            return image;
    }
    return NULL;
}

void tree_free(struct tree *t)
{
    if (!t)
        return;
    stop_thread(t);
    for (size_t i = 0; i < t->n_images; i++)
        free(t->images[i]);
    proc_file_close(t->stop);
    free(t->images);
    free(t->members);
    free(t->spools);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}
