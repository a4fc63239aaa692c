#include "round_trip.h"

#include "base/buf.h"
#include "base/map.h"
#include "formats/export.h"
#include "formats/export_file.h"
#include "formats/import_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    KEEPS_REALLOC_OF_NULL = 1, // realloc(NULL, n) stays a realloc; otherwise it is written as
                               // malloc
    KEEPS_COUNTS = 2,          // the count of calloc; otherwise only the product is stored
    KEEPS_ALIGNMENTS = 4,      // exact alignments; otherwise they are rounded up to a power of two
    KEEPS_TEXTS = 8,           // names of threads and marks
    KEEPS_ORDER = 16,          // the order of calls of different threads; otherwise only the order
                               // that blocks require
    KEEPS_VALUES = 32,         // all other numbers of a call
    KEEPS_FREED = 64,          // reallocs that free; otherwise each is written as free
    KEEPS_PIDS = 128,          // process IDs; otherwise processes are numbered from 1, by first
                               // call
};

// What each format can contain, in addition to its `holds`, `kinds` and `notes`. See
// docs/reference/foreign-formats.md.
static const struct contents {
    const char *name;
    unsigned keeps;
    unsigned size_unit;   // sizes are rounded up
    unsigned resize_size; // size that is written for a realloc of 0 bytes that returned a block
    unsigned time_unit;   // times are rounded down to multiples of this unit; 0: the format has no
                          // times of calls
    uint64_t max_size;    // calls with a larger size are read as failed calls; 0: no limit
} all_contents[] = {
    {"mtrace", KEEPS_FREED | KEEPS_ALIGNMENTS | KEEPS_ORDER, 1, 0, 0, 0},
    {"wl", KEEPS_REALLOC_OF_NULL | KEEPS_ALIGNMENTS, 1, 0, 0, 0},
    {"tcmalloc", KEEPS_ORDER, 8, 8, 0, (1ull << 47) - 8},
    {"tcmalloc-replay", KEEPS_ORDER, 1, 1, 1024, 0},
    {"logalloc",
     KEEPS_FREED | KEEPS_REALLOC_OF_NULL | KEEPS_COUNTS | KEEPS_ALIGNMENTS | KEEPS_ORDER |
         KEEPS_PIDS,
     1, 0, 0, 0},
    {"logalloc-munged", KEEPS_REALLOC_OF_NULL | KEEPS_COUNTS | KEEPS_ALIGNMENTS | KEEPS_ORDER, 1, 0,
     0, 0},
    {"android", KEEPS_FREED | KEEPS_REALLOC_OF_NULL | KEEPS_COUNTS | KEEPS_ALIGNMENTS | KEEPS_ORDER,
     1, 0, 1, 0},
    {"json", ~0u, 1, 0, 1, 0},
    {0},
};

// A call of the output.
struct step {
    struct event ev; // ptr is the index of the call that allocated the block, plus 1; 0 if the
                     // block is NULL or unknown
    uint32_t thread; // number of the thread, in the order of first calls
    uint32_t index;  // number of the call in its thread
    bool failed;
    uint64_t text; // hash of the text
};

struct log {
    struct step *steps;
    size_t n, capacity;
    struct map threads, blocks; // `threads` maps a tid plus 1 to the number of the thread plus 1.
                                // `blocks` maps a block to the index of its step plus 1.
    struct map processes;       // maps a pid to the number of the process, from 1 in the order of
                                // first calls
    uint32_t pid, n_threads, n_processes;
    uint64_t last_ns;
    bool several_processes;
    bool huge;    // a size exceeds contents.max_size
    bool slots;   // the calls come from a workload
    bool rounded; // the times come from an import
};

static const struct contents *contents;
static const struct format *original;
static struct format recorded;
static struct log *writing;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint32_t thread_number(struct log *l, uint32_t tid)
{
    uint64_t number = map_get(&l->threads, tid + 1ull);
    if (!number) {
        number = ++l->n_threads;
        map_put(&l->threads, tid + 1ull, number);
    }
    return (uint32_t)number - 1;
}

// Rounds a time like the format. Times that do not increase are raised, as an import does.
static uint64_t next_time(struct log *l, uint64_t ns)
{
    ns = l->rounded ? ns : ns / contents->time_unit * contents->time_unit;
    l->last_ns = l->n && ns <= l->last_ns ? l->last_ns + 1 : ns;
    return l->last_ns;
}

// Reduces a call to the data that the format can contain.
static void reduce(struct step *s, struct log *l, const struct export_call *c)
{
    const struct format_export *f = &original->export;
    struct event *ev = &s->ev;
    unsigned fields = event_infos[ev->kind].fields, keeps = contents->keeps;
    s->ev.stamp =
        f->holds & FORMAT_HOLDS_STAMPS && contents->time_unit ? next_time(l, ev->stamp) : 0;
    for (uint32_t i = 0; keeps & KEEPS_TEXTS && i < c->ev.text_bytes; i++)
        s->text = mix(s->text, (uint8_t)c->ev.text[i]);
    if (ev->kind == HT_REALLOC && !ev->result && !c->failed && !(keeps & KEEPS_FREED)) {
        ev->kind = HT_FREE;
        fields = event_infos[HT_FREE].fields;
    }
    ev->size = fields & HT_F_SIZE ? ev->size : 0;
    if (!(fields & HT_F_COUNT) || !(keeps & KEEPS_COUNTS)) {
        ev->size = event_requested(ev->kind, ev->size, ev->count);
        ev->count = 0;
    }
    ev->align = !(fields & HT_F_ALIGN)     ? 0
                : keeps & KEEPS_ALIGNMENTS ? ev->align
                                           : export_power_of_two(ev->align);
    ev->value = keeps & KEEPS_VALUES && fields & HT_F_VALUE ? ev->value : 0;
    if (ev->kind == HT_REALLOC && !c->ev.ptr && !(keeps & KEEPS_REALLOC_OF_NULL))
        ev->kind = HT_MALLOC;
    if (ev->kind == HT_REALLOC && ev->result && !ev->size)
        ev->size = contents->resize_size;
    l->huge |= contents->max_size && ev->size > contents->max_size;
    ev->size = (ev->size + contents->size_unit - 1) / contents->size_unit * contents->size_unit;
    for (unsigned i = 0; i < HT_NOTES; i++)
        ev->notes[i] = f->notes >> i & 1 ? ev->notes[i] : 0;
    ev->text = NULL;
    ev->text_bytes = 0;
}

static int put_step(struct export *x, const struct export_call *c)
{
    struct log *l = writing;
    const struct format_export *f = &original->export;
    const struct event_info *info = &event_infos[c->ev.kind];
    // An import derives a block of unknown size from its first use.
    if (c->ev.kind == HT_PREEXISTING && !c->ev.size)
        return f->put(x, c);
    if (HT_GROW(&l->steps, &l->capacity, l->n + 1) < 0)
        return -ENOMEM;
    struct step *s = &l->steps[l->n];
    *s = (struct step){.ev = c->ev, .failed = c->failed};
    s->thread = f->holds & FORMAT_HOLDS_TIDS ? thread_number(l, c->tid) : 0;
    s->ev.ptr = c->ev.ptr ? map_get(&l->blocks, c->ev.ptr) : 0;
    s->ev.result = c->ev.result != 0;
    reduce(s, l, c);
    // Later calls belong to a new thread with the same ID.
    if (s->ev.kind == HT_THREAD_END)
        map_remove(&l->threads, c->tid + 1ull);
    l->several_processes |= l->n && c->pid != l->pid;
    if (!map_get(&l->processes, c->pid) && map_put(&l->processes, c->pid, ++l->n_processes) < 0)
        return -ENOMEM;
    l->pid = c->pid;
    l->slots = x->facts.slots;
    l->n++;
    bool frees = info->class == HT_CLASS_FREE || (info->class == HT_CLASS_RESIZE && !c->failed);
    if (frees && c->ev.ptr)
        map_remove(&l->blocks, c->ev.ptr);
    if (c->ev.result && (info->class == HT_CLASS_ALLOC || info->class == HT_CLASS_RESIZE) &&
        map_put(&l->blocks, c->ev.result, l->n) < 0)
        return -ENOMEM;
    // The output does not contain calls that the format drops and reports.
    uint64_t dropped = x->losses[EXPORT_DROPPED];
    int rc = f->put(x, c);
    l->n -= x->losses[EXPORT_DROPPED] > dropped;
    return rc;
}

// Exports to a file in memory and records the calls. Returns its descriptor, or a negative errno.
static int export_calls(const char *from, const struct format *f, bool stamps, struct log *l,
                        struct err *e)
{
    original = f;
    recorded = *f;
    recorded.export.put = put_step;
    writing = l;
    int fd = memfd_create("exported", MFD_CLOEXEC);
    // export_file closes its descriptor.
    struct export_settings s = {.format = &recorded, .output = "exported", .stamps = stamps};
    s.fd = fd < 0 ? fd : dup(fd);
    int rc = s.fd < 0 ? -errno : export_file(from, &s, e);
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

// Imports the process `pid`, or the process with the highest peak if `pid` is 0.
static int import_back(int fd, const struct format *f, uint32_t pid, struct output *out,
                       struct err *e)
{
    const struct import_settings s = {.format = f, .convert = {.pid = pid, .level = 1}};
    struct workload_summary summary;
    off_t size = lseek(fd, 0, SEEK_END);
    struct input in = {.fd = fd, .owns_fd = true, .name = "exported", .size_bytes = (uint64_t)size};
    lseek(fd, 0, SEEK_SET);
    int rc = import_one(&in, out, &s, &summary, e);
    input_close(&in);
    return rc;
}

static int differ(struct err *e, const struct format *f, size_t i, const struct log *a,
                  const struct log *b)
{
    char text[2][200] = {"the end", "the end"};
    const struct log *const logs[] = {a, b};
    for (unsigned k = 0; k < 2; k++) {
        const struct step *s = i < logs[k]->n ? &logs[k]->steps[i] : NULL;
        if (s)
            snprintf(text[k], sizeof text[k],
                     "%s thread %u size %llu count %llu align %llu value %llu block %llu result "
                     "%llu failed %d time %llu",
                     event_infos[s->ev.kind].name, s->thread, (unsigned long long)s->ev.size,
                     (unsigned long long)s->ev.count, (unsigned long long)s->ev.align,
                     (unsigned long long)s->ev.value, (unsigned long long)s->ev.ptr,
                     (unsigned long long)s->ev.result, s->failed, (unsigned long long)s->ev.stamp);
    }
    err_set(e, 0, "%s: call %zu of %zu is %s, but %s of %zu after an import", f->name, i, a->n,
            text[0], text[1], b->n);
    return 1;
}

static bool is_equal(const struct step *x, const struct step *y, const struct log *a,
                     const struct log *b)
{
    const struct event *p = &x->ev, *q = &y->ev;
    return p->kind == q->kind && x->thread == y->thread && p->size == q->size &&
           p->count == q->count && p->align == q->align && p->ptr == q->ptr &&
           p->result == q->result && x->failed == y->failed && x->text == y->text &&
           memcmp(p->notes, q->notes, sizeof p->notes) == 0 &&
           p->stamp - a->steps->ev.stamp == q->stamp - b->steps->ev.stamp;
}

// Sets hashes[i] to a hash of the calls of thread i. The hash identifies a block by the position of
// its allocation in the thread.
static void hash_threads(const struct log *l, uint64_t *hashes, uint32_t *calls, size_t n)
{
    memset(hashes, 0, n * sizeof *hashes);
    memset(calls, 0, n * sizeof *calls);
    for (size_t i = 0; i < l->n; i++) {
        struct step *s = &l->steps[i];
        const struct step *from = s->ev.ptr ? &l->steps[s->ev.ptr - 1] : NULL;
        const uint64_t numbers[] = {s->ev.kind,
                                    s->ev.size,
                                    s->ev.align,
                                    s->ev.result,
                                    s->failed,
                                    from ? from->index + 1 : 0,
                                    from ? from->ev.size : 0};
        s->index = calls[s->thread]++;
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            hashes[s->thread] = mix(hashes[s->thread], numbers[k]);
    }
}

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

// Compares the calls of each thread, but not their order between threads.
static int compare_threads(struct err *e, const struct format *f, const struct log *a,
                           const struct log *b)
{
    size_t n = a->n_threads;
    if (a->n != b->n || n != b->n_threads)
        return differ(e, f, a->n < b->n ? a->n : b->n, a, b);
    uint64_t *hashes = calloc(2 * n + 1, sizeof *hashes);
    uint32_t *calls = calloc(n + 1, sizeof *calls);
    if (!hashes || !calls)
        abort();
    hash_threads(a, hashes, calls, n);
    hash_threads(b, hashes + n, calls, n);
    qsort(hashes, n, sizeof *hashes, by_number);
    qsort(hashes + n, n, sizeof *hashes, by_number);
    bool equal = memcmp(hashes, hashes + n, n * sizeof *hashes) == 0;
    free(hashes);
    free(calls);
    if (!equal)
        err_set(e, 0, "%s: the calls of a thread differ after an import", f->name);
    return !equal;
}

static int compare(struct err *e, const struct format *f, const struct log *a, const struct log *b)
{
    int rc = 0;
    // An import of several processes writes the workload of only one process. A trace may contain
    // frees of unknown blocks; a workload lists such blocks first.
    if (a->several_processes || !a->slots || a->huge)
        return 0;
    if (!(contents->keeps & KEEPS_ORDER))
        return compare_threads(e, f, a, b);
    for (size_t i = 0; rc == 0 && (i < a->n || i < b->n); i++) {
        if (i >= a->n || i >= b->n || !is_equal(&a->steps[i], &b->steps[i], a, b))
            rc = differ(e, f, i, a, b);
    }
    return rc;
}

static void release_log(struct log *l)
{
    free(l->steps);
    map_release(&l->threads);
    map_release(&l->blocks);
    map_release(&l->processes);
}

// Returns 0 if the format has a row.
static int find_contents(const struct format *f, struct err *e)
{
    for (contents = all_contents; contents->name && strcmp(contents->name, f->name) != 0;)
        contents++;
    return contents->name
               ? 0
               : err_set(e, -ENOENT, "%s: has no row in tests/fuzz/round_trip.c", f->name);
}

// Imports the file, exports the workload, and compares the calls with `a`. Closes `fd`.
static int compare_import(int fd, const struct format *f, uint32_t pid, const struct log *a,
                          bool stamps, struct err *e)
{
    struct log b = {.rounded = true};
    struct output out = {.fd = memfd_create("imported", MFD_CLOEXEC), .name = "imported"};
    char path[32];
    int rc = import_back(fd, f, pid, &out, e);
    // A file may hold no events.
    rc = rc < 0 && rc != -ENODATA && rc != -ENOMEM ? 1 : rc;
    snprintf(path, sizeof path, "/proc/self/fd/%d", out.fd);
    fd = rc == 0 ? export_calls(path, f, stamps, &b, e) : -1;
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = fd < 0 ? 1 : compare(e, f, a, &b);
    close(out.fd);
    release_log(&b);
    return rc;
}

int round_trip(const char *from, const struct format *f, bool stamps, struct err *e)
{
    struct log a = {0};
    int rc = find_contents(f, e);
    if (rc < 0)
        return rc;
    int fd = export_calls(from, f, stamps, &a, e);
    rc = fd < 0 ? fd : a.n ? 0 : -ENODATA;
    if (rc == 0)
        rc = compare_import(fd, f, 0, &a, stamps, e);
    else if (fd >= 0)
        close(fd);
    release_log(&a);
    return rc;
}

int round_trip_process(const char *trace, const char *workload, uint32_t pid,
                       const struct format *f, struct err *e)
{
    struct log all = {0}, a = {0};
    int rc = find_contents(f, e), fd = -1;
    if (rc == 0)
        rc = fd = export_calls(workload, f, true, &a, e);
    if (fd >= 0)
        close(fd);
    if (rc >= 0)
        rc = fd = export_calls(trace, f, true, &all, e);
    uint32_t number = contents->keeps & KEEPS_PIDS ? pid : (uint32_t)map_get(&all.processes, pid);
    if (rc >= 0)
        rc = all.several_processes ? compare_import(fd, f, number, &a, true, e) : -ENOTSUP;
    release_log(&all);
    release_log(&a);
    return rc;
}
