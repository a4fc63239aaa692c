#include "record/drain/facts.h"

#include "base/buf.h"
#include "base/build_id.h"
#include "capture/spool/control.h"
#include "record/processes/proc_file.h"
#include "trace/codec.h"
#include "trace/libraries.h"

#include "base/varint.h"

#include <dirent.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAMES_NS 500000000u  // between reads of thread names
#define QUIET_NS 100000000u  // between memory samples of a process with few events
#define IDLE_NS  1000000000u // between memory samples of an idle process
// The interval for a process that uses no CPU time is the time since it last used any, divided by
// IDLE_PART, but at least IDLE_NS and at most ASLEEP_NS.
#define IDLE_PART  4
#define ASLEEP_NS  5000000000u
#define YOUNG_NS   2000000u   // minimum interval between samples
#define YOUNG_PART 8          // above this minimum, the interval is 1/YOUNG_PART of the age
#define PEAK_RSS   "\nVmHWM:" // line of /proc/PID/status

enum {
    MIN_TIMED_CALLS = 100, // a lower number of calls is not representative
    BUSY_WORDS = 256,      // a process that writes this many words is sampled often
};

static char *cpu_model(void)
{
    struct proc_file_lines l;
    proc_file_lines_open(&l, "/proc/cpuinfo");
    const char *rest = proc_file_lines_find(&l, "model name");
    char *model = strdup(rest ? rest + strspn(rest, "\t :") : "");
    proc_file_lines_close(&l);
    return model;
}

static int set_argv(struct trace_session *s, char *const *argv)
{
    struct buf b = {0};
    for (size_t i = 0; argv[i]; i++) {
        if (buf_put(&b, argv[i], strlen(argv[i]) + 1) < 0) {
            buf_release(&b);
            return -ENOMEM;
        }
    }
    s->argv = (char *)b.data;
    s->argv_bytes = (uint32_t)b.size;
    return 0;
}

int facts_session(struct trace_session *s, enum clock_kind clock, char *const *argv)
{
    struct utsname u;
    *s = (struct trace_session){.clock = clock, .stamp_shift = CODEC_STAMP_SHIFT};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
         page = sysconf(_SC_PAGESIZE);
    s->cpus = cpus > 0 ? (uint32_t)cpus : 0;
    s->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    if (uname(&u) == 0) {
        s->host = strdup(u.nodename);
        if (asprintf(&s->kernel, "%s %s", u.sysname, u.release) < 0)
            s->kernel = NULL;
    }
    s->cpu = cpu_model();
    s->heaptape = strdup(HEAPTAPE_VERSION);
    // Read the clock last, so that the time is close to the first event.
    int rc = set_argv(s, argv);
    s->realtime_ns = clock_ns(CLOCK_REALTIME);
    s->start_stamp = clock_ticks(clock) >> CODEC_STAMP_SHIFT;
    if (rc == 0 && s->host && s->kernel && s->cpu && s->heaptape)
        return 0;
    trace_session_release(s);
    return -ENOMEM;
}

// Returns the reason why recording stopped before the process ended, or NULL.
static char *copy_off_reason(const struct drain_spool *s)
{
    if (s->broken)
        return strdup(s->broken);
    if (atomic_load(&s->guard.broken))
        return strdup("its spool was truncated");
    // The process may have ended before it saw that its spool was refused.
    if (atomic_load(&s->header->status) != SPOOL_OFF)
        return s->cut ? strdup("the recorder could not map its spool") : NULL;
    char *text = strndup(s->header->reason, sizeof s->header->reason);
    for (char *at = text; at && *at; at++)
        *at = *at >= ' ' && *at <= '~' ? *at : '?';
    return text;
}

// Sets the CPU time since the first event: the value that the process reported at exit, or the last
// sampled value. Also sets the estimated part of this time that was spent on recording.
static void add_cpu_time(struct trace_process *p, const struct drain_spool *s)
{
    const struct spool_header *h = s->header;
    uint64_t start = __atomic_load_n(&h->start_cpu_ns, __ATOMIC_RELAXED),
             end = atomic_load(&h->end_cpu_ns), slow = atomic_load(&h->slow_events);
    end = end ? end : s->sampled_cpu_ns;
    if (s->broken || !start || end <= start)
        return;
    uint64_t fast = s->events > slow ? s->events - slow : 0;
    uint64_t unread = atomic_load(&h->readings.unread_words);
    unread = unread < fast ? unread : fast;
    p->cpu_ns = end - start;
    p->recording_ticks =
        atomic_load(&h->slow_ticks) +
        (uint64_t)(((double)__atomic_load_n(&h->fast_ticks, __ATOMIC_RELAXED) *
                        (double)(fast - unread) +
                    (double)__atomic_load_n(&h->unread_ticks, __ATOMIC_RELAXED) * (double)unread) /
                   SPOOL_FAST_EVENTS);
    int64_t calls = (int64_t)atomic_load(&h->call_min_ticks);
    if (atomic_load(&h->timed_calls) < MIN_TIMED_CALLS)
        return;
    p->call_min_ticks = calls > 0 ? (uint64_t)calls : 0;
    p->call_max_ticks = atomic_load(&h->call_max_ticks);
}

// Sets error bounds for timestamps that reuse an earlier reading of the counter.
static void add_early_times(struct trace_process *p, const struct drain_spool *s)
{
    const struct spool_readings *r = &s->header->readings;
    uint64_t early = atomic_load(&r->early_words), unread = atomic_load(&r->unread_words),
             usual = __atomic_load_n(&r->usual_ticks, __ATOMIC_RELAXED);
    if (s->broken || !unread)
        return;
    p->early_events = early < s->events ? early : s->events;
    p->early_max_ticks = s->early_ticks;
    p->early_usual_ticks = usual < s->early_ticks ? usual : s->early_ticks;
}

// Returns a field of the text of /proc/PID/status, converted from KiB to bytes, or 0 if the field
// is missing. `name` includes the newline before the name and the colon.
static uint64_t status_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? 1024 * strtoull(line + strlen(name), NULL, 10) : 0;
}

// Copies the process's status at its exit, or "" if the status is unknown.
static void copy_end_status(const struct drain_spool *s,
                            char text[sizeof s->header->end_status + 1])
{
    snprintf(text, sizeof s->header->end_status + 1, "%.*s", (int)sizeof s->header->end_status,
             s->broken ? "" : s->header->end_status);
}

void facts_update_peak(struct drain_spool *s)
{
    char text[sizeof s->header->end_status];
    uint64_t bytes = proc_file_read(s->visible_pid, "status", text, sizeof text) < 0
                         ? 0
                         : status_bytes(text, PEAK_RSS);
    if (bytes <= s->peak_rss_bytes)
        return;
    s->peak_rss_bytes = bytes;
    s->peak_spool_bytes = drain_resident_bytes(s);
}

void facts_update_libraries(struct drain_spool *s)
{
    struct proc_file_lines maps;
    if (s->libraries & LIBRARIES_STDCXX)
        return;
    proc_file_lines_open(&maps, "/proc/%d/maps", s->visible_pid);
    for (const char *line; (line = proc_file_lines_next(&maps));)
        s->libraries |= libraries_bit(line);
    proc_file_lines_close(&maps);
}

// Sets the highest RSS: the value that the process reported at exit, or the last sampled value.
static void add_peak_rss(struct trace_process *p, const struct drain_spool *s)
{
    char text[sizeof s->header->end_status + 1];
    copy_end_status(s, text);
    uint64_t at_exit = status_bytes(text, PEAK_RSS), spool = s->peak_spool_bytes;
    p->peak_rss_bytes = s->peak_rss_bytes;
    if (at_exit > p->peak_rss_bytes) {
        p->peak_rss_bytes = at_exit;
        spool = drain_resident_bytes(s);
    }
    if (s->mapped_spool_bytes && spool > s->mapped_spool_bytes)
        p->recording_growth_bytes = spool - s->mapped_spool_bytes;
    // Page maps count heaptape's private mappings as the program's memory.
    if (s->mapped_spool_bytes && !s->broken)
        p->recording_growth_bytes += atomic_load(&s->header->end_private_bytes);
}

int facts_process(struct trace_process *p, const struct drain_spool *s)
{
    struct spool_header *h = s->header;
    uint32_t argv_bytes = __atomic_load_n(&h->argv_bytes, __ATOMIC_RELAXED);
    uint64_t dropped = s->broken ? 0 : spool_unrecorded(h);
    // Strings in the header may lack a terminator.
    *p = (struct trace_process){
        .number = s->number,
        .pid = s->pid,
        .ppid = __atomic_load_n(&h->ppid, __ATOMIC_RELAXED),
        .forked_from = __atomic_load_n(&h->parent_spool_pid, __ATOMIC_RELAXED),
        .start_stamp = __atomic_load_n(&h->start_stamp, __ATOMIC_RELAXED),
        .forked_from_start = __atomic_load_n(&h->parent_start_stamp, __ATOMIC_RELAXED),
        .fork_stamp = __atomic_load_n(&h->fork_stamp, __ATOMIC_RELAXED),
        .exe = strndup(h->exe, sizeof h->exe),
        .allocator = strndup(h->allocator, sizeof h->allocator),
        .argv_bytes = argv_bytes < sizeof h->argv ? argv_bytes : (uint32_t)sizeof h->argv,
        .end_stamp = s->broken ? 0 : atomic_load(&h->end_stamp),
        .lost_records = dropped + s->lost_words,
        .waits = s->broken ? 0 : atomic_load(&h->waits),
        .wait_ns = s->broken ? 0 : atomic_load(&h->wait_ns),
        .threads = s->broken ? 0 : atomic_load(&h->threads_numbered),
        .off_reason = copy_off_reason(s),
    };
    add_cpu_time(p, s);
    add_early_times(p, s);
    add_peak_rss(p, s);
    p->libraries = s->libraries;
    p->without_units = !s->broken && atomic_load(&h->without_units);
    p->malloc_in_use_bytes = s->broken ? 0 : atomic_load(&h->malloc_in_use_bytes);
    p->malloc_system_bytes = s->broken ? 0 : atomic_load(&h->malloc_system_bytes);
    if (h->bypassed_by[0])
        p->bypassed_by = strndup(h->bypassed_by, sizeof h->bypassed_by);
    uint32_t deepbound_bytes = atomic_load_explicit(&h->deepbound_bytes, memory_order_acquire);
    if (deepbound_bytes && deepbound_bytes <= sizeof h->deepbound &&
        (p->deepbound = malloc(deepbound_bytes))) {
        memcpy(p->deepbound, h->deepbound, deepbound_bytes);
        p->deepbound[deepbound_bytes - 1] = 0;
        p->deepbound_bytes = deepbound_bytes;
    }
    p->allocator_build_id = p->allocator ? build_id_of(p->allocator) : NULL;
    p->argv = malloc(p->argv_bytes + 1u);
    if (p->argv)
        memcpy(p->argv, h->argv, p->argv_bytes);
    if (p->exe && p->allocator && p->argv)
        return 0;
    trace_process_release(p);
    return -ENOMEM;
}

void facts_add(struct record_result *result, const struct trace_process *p)
{
    result->waits += p->waits;
    result->wait_ns += p->wait_ns;
    trace_losses_add(&result->losses, p);
}

void facts_window(struct trace_process *p, const struct drain_spool *s)
{
    bool began_late = s->began_late;
    if (!began_late && !s->recorded_to && !s->recorded_from)
        return;
    p->recorded_to = s->recorded_to ? s->recorded_to : p->end_stamp;
    p->recorded_from = began_late ? s->recorded_from : p->start_stamp;
    if (!p->recorded_from) // recording was never started
        p->recorded_from = p->recorded_to;
}

enum { MOST_THREADS = 1024, NAME_BYTES = 64 };

// Reads a thread's name. Returns its length without the newline.
static size_t read_name(pid_t pid, pid_t tid, char name[NAME_BYTES])
{
    char file[32];
    snprintf(file, sizeof file, "task/%d/comm", tid);
    ssize_t n = proc_file_read(pid, file, name, NAME_BYTES);
    return n > 0 ? (size_t)n - (name[n - 1] == '\n') : 0;
}

static bool put_name(struct buf *names, unsigned long tid, const char *name, size_t n)
{
    return !(buf_put_varint(names, tid) || buf_put_varint(names, n) || buf_put(names, name, n));
}

static void read_thread_names(struct buf *names, pid_t pid)
{
    char name[NAME_BYTES];
    unsigned found = 0;
    DIR *tasks = proc_file_folder(pid, "task");
    for (pid_t tid; found < MOST_THREADS && (tid = proc_file_next(tasks));) {
        size_t n = read_name(pid, tid, name);
        if (n == 0)
            continue;
        if (found++ == 0)
            names->size = 0;
        if (!put_name(names, (unsigned long)tid, name, n))
            break;
    }
    proc_file_close_folder(tasks);
}

void facts_update_thread_names(struct drain_spool *s, uint64_t now)
{
    if (s->named_ns && now - s->named_ns < NAMES_NS && s->thread_names.size)
        return;
    read_thread_names(&s->thread_names, s->visible_pid);
    s->named_ns = now;
}

uint64_t facts_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t facts_sample_ns(uint64_t age_ns, uint64_t most)
{
    uint64_t ns = age_ns / YOUNG_PART;
    return ns < YOUNG_NS ? YOUNG_NS : ns < most ? ns : most;
}

bool facts_is_sample_due(struct drain_spool *s, uint64_t now, uint64_t age_ns,
                         uint64_t least_cpu_ns)
{
    uint64_t words = s->words - s->sampled_words, quiet_ns = facts_sample_ns(age_ns, QUIET_NS);
    bool due = words >= BUSY_WORDS || (words && now - s->sampled_ns >= quiet_ns);
    if (!due && now < s->cpu_due_ns)
        return false;
    uint64_t cpu_ns = facts_cpu_ns(s->visible_pid), used_ns = cpu_ns - s->seen_cpu_ns;
    if (used_ns || !s->active_ns)
        s->active_ns = now;
    uint64_t idle_ns = (now - s->active_ns) / IDLE_PART;
    idle_ns = idle_ns < IDLE_NS ? IDLE_NS : idle_ns < ASLEEP_NS ? idle_ns : ASLEEP_NS;
    s->cpu_due_ns = now + (used_ns >= least_cpu_ns / 2 ? 0 : used_ns ? quiet_ns : 5 * quiet_ns);
    s->seen_cpu_ns = cpu_ns;
    // Also sample idle programs, because the allocator may return memory in the background.
    if (!due && cpu_ns - s->sampled_cpu_ns < least_cpu_ns && now - s->sampled_ns < idle_ns)
        return false;
    s->sampled_ns = now;
    s->sampled_words = s->words;
    s->sampled_cpu_ns = cpu_ns;
    return true;
}

// Parses the contents of statm. Fails for a zombie, which has no memory.
static bool read_statm(struct trace_sample *sample, const char *text)
{
    unsigned long long total, resident, shared, page = (unsigned long long)sysconf(_SC_PAGESIZE);
    if (sscanf(text, "%llu %llu %llu", &total, &resident, &shared) != 3 || total == 0)
        return false;
    sample->rss_bytes = resident * page;
    sample->anon_bytes = resident > shared ? (resident - shared) * page : 0;
    return true;
}

bool facts_start_memory(struct trace_sample *sample, const struct drain_spool *s)
{
    char text[sizeof s->header->statm + 1];
    snprintf(text, sizeof text, "%.*s", (int)sizeof s->header->statm, s->header->statm);
    return !s->broken && read_statm(sample, text);
}

bool facts_end_memory(struct trace_sample *sample, const struct drain_spool *s)
{
    char text[sizeof s->header->end_status + 1];
    copy_end_status(s, text);
    sample->rss_bytes = status_bytes(text, "\nVmRSS:");
    sample->anon_bytes = status_bytes(text, "\nRssAnon:");
    return sample->rss_bytes != 0;
}

bool facts_memory(struct trace_sample *sample, pid_t pid)
{
    char text[128];
    return proc_file_read(pid, "statm", text, sizeof text) >= 0 && read_statm(sample, text);
}

// In a container, the process has the same seccomp filters as the recorder. Tests in a child
// whether the filters permit measuring residency, because a filter may kill the caller.
uint32_t facts_passable_filters(void)
{
    unsigned char resident;
    uint32_t filters = prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER ? control_filters() : 0;
    pid_t child = filters ? fork() : -1;
    if (child == 0) {
        char from = 0, to = 1;
        struct iovec a = {&to, 1}, b = {&from, 1};
        uintptr_t page = (uintptr_t)&from & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
        _exit(mincore((void *)page, 1, &resident) ||
              process_vm_readv(getpid(), &a, 1, &b, 1, 0) != 1 || to);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? filters : 0;
}
