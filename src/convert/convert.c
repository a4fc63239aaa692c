#include "convert/convert.h"

#include "base/buf.h"
#include "base/search.h"
#include "convert/heap.h"
#include "trace/ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The fork that created a process.
struct fork {
    struct trace_fork of;
    bool taken; // true if the parent has been ordered up to the fork; `heap` is then complete
    struct heap heap;
};

// A process. A process that was not chosen is ordered without a sink, and only up to its last fork.
struct process {
    struct convert_sink sink;
    struct order *order;     // NULL if the process was skipped or is finished
    bool wanted, fed, ended; // `ended`: no more events will arrive
    bool emptied;            // true if the process has ended and all its events have been emitted
    uint64_t end_watermark;  // watermark when the process ended
    bool may_fork;           // true if forks that are not in `children` may follow
    struct fork *fork;       // NULL if no heap is inherited, or the heap has been restored
    struct fork **children;  // sorted by stamp; forks before next_fork have been passed
    size_t next_fork, forks, children_capacity;
    struct heap_notes notes;
};

struct converter {
    struct trace_reader *reader;
    struct trace_ahead *ahead; // decodes ahead in another thread, or NULL
    const struct convert_options *options;
    struct order_options order;
    struct process **processes; // NULL entries are finished processes
    size_t n, capacity;
    uint32_t *open; // unfinished processes, in order of appearance
    size_t n_open, open_capacity;
    uint32_t *due; // processes that have ended and must still be finished
    size_t n_due, due_capacity;
    struct fork *forks;      // options->forks, sorted by child
    struct fork **by_parent; // the same forks, sorted by parent and stamp
    size_t n_forks;
    struct trace_forks_finder finder; // used only with find_forks
    uint64_t watermark;               // watermark of the last complete batch
    uint64_t fork_stamps;             // options.fork_ns in stamps
    uint64_t limit;                   // all events up to this stamp have been emitted
    uint64_t end_stamp;               // from the END frame of the trace; 0 if not read yet
};

static int by_parent(const void *a, const void *b)
{
    const struct fork *x = *(struct fork *const *)a, *y = *(struct fork *const *)b;
    if (x->of.parent != y->of.parent)
        return x->of.parent < y->of.parent ? -1 : 1;
    if (x->of.stamp != y->of.stamp)
        return x->of.stamp < y->of.stamp ? -1 : 1;
    return x->of.child < y->of.child ? -1 : 1;
}

static int copy_forks(struct converter *c, const struct trace_forks *from)
{
    c->n_forks = from ? from->n : 0;
    c->forks = calloc(c->n_forks + 1, sizeof *c->forks);
    c->by_parent = calloc(c->n_forks + 1, sizeof(struct fork *));
    if (!c->forks || !c->by_parent)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_forks; i++) {
        c->forks[i].of = from->items[i];
        c->by_parent[i] = &c->forks[i];
    }
    qsort(c->by_parent, c->n_forks, sizeof *c->by_parent, by_parent);
    return 0;
}

static struct fork *fork_of(const struct converter *c, uint32_t child)
{
    size_t i = HT_SEARCH(at, c->n_forks, c->forks[at].of.child >= child);
    return i < c->n_forks && c->forks[i].of.child == child ? &c->forks[i] : NULL;
}

// Returns the index in by_parent of the first fork whose parent is numbered `parent` or higher.
static size_t first_fork(const struct converter *c, uint64_t parent)
{
    return HT_SEARCH(i, c->n_forks, c->by_parent[i]->of.parent >= parent);
}

static bool has_children(const struct process *p)
{
    return p->next_fork < p->forks || p->may_fork;
}

static int add_child(struct process *parent, struct fork *f)
{
    if (HT_GROW(&parent->children, &parent->children_capacity, parent->forks + 1) < 0)
        return -ENOMEM;
    size_t at = parent->forks++;
    for (; at > parent->next_fork && parent->children[at - 1]->of.stamp > f->of.stamp; at--)
        parent->children[at] = parent->children[at - 1];
    parent->children[at] = f;
    return 0;
}

// Adds the forks that were known before the conversion.
static int add_known(const struct converter *c, struct process *p, uint32_t number)
{
    int rc = 0;
    p->fork = fork_of(c, number);
    for (size_t i = first_fork(c, number); rc == 0 && i < first_fork(c, number + 1ull); i++)
        rc = add_child(p, c->by_parent[i]);
    return rc;
}

// If the process's parent is being converted, finds the fork that created the process.
static int find_fork(struct converter *c, struct process *to, const struct trace_process *p)
{
    struct trace_fork found;
    int rc = trace_forks_finder_add(&c->finder, p, &found);
    struct process *parent = rc > 0 ? c->processes[found.parent] : NULL;
    if (rc < 0 || !parent || !parent->order)
        return rc < 0 ? rc : 0;
    to->fork = calloc(1, sizeof *to->fork);
    if (!to->fork)
        return -ENOMEM;
    to->fork->of = found;
    return add_child(parent, to->fork);
}

// Releases the child's fork. Call when the child has received its heap, or needs no heap.
static void fork_release(const struct converter *c, struct process *child)
{
    struct fork *f = child->fork;
    child->fork = NULL;
    if (!f)
        return;
    heap_release(&f->heap);
    if (c->options->find_forks)
        free(f);
}

static void process_release(const struct converter *c, struct process *p)
{
    order_free(p->order);
    heap_notes_release(&p->notes);
    fork_release(c, p);
    free(p->children);
    free(p);
}

static int note_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct process *p = context;
    int rc = has_children(p) ? heap_note_ops(&p->notes, ops, NULL, n) : 0;
    return rc < 0 || !p->wanted ? rc : p->sink.ops.ops(p->sink.ops.context, ops, n);
}

static int note_calls(void *context, const struct workload_thread_op *ops,
                      const struct order_call *calls, size_t n)
{
    struct process *p = context;
    const struct order_sink *to = &p->sink.ops;
    int rc = has_children(p) ? heap_note_ops(&p->notes, ops, p->may_fork ? calls : NULL, n) : 0;
    if (rc < 0 || !p->wanted)
        return rc;
    return to->calls ? to->calls(to->context, ops, calls, n) : to->ops(to->context, ops, n);
}

static int push_due(struct converter *c, uint32_t process)
{
    return HT_APPEND(&c->due, &c->n_due, &c->due_capacity, process);
}

// Copies the parent's heap for each child whose fork is not later than the watermark `limit`.
static int pass_forks(struct converter *c, struct process *p, uint64_t limit)
{
    int rc = 0;
    for (; rc == 0 && p->next_fork < p->forks; p->next_fork++) {
        struct fork *f = p->children[p->next_fork];
        if (limit < c->order.skid || f->of.stamp > limit - c->order.skid)
            break;
        rc = heap_copy(&f->heap, p->order, &p->notes, f->of.stamp);
        f->taken = true;
        const struct process *child = f->of.child < c->n ? c->processes[f->of.child] : NULL;
        // With find_forks, advance_all ends the child.
        if (rc == 0 && child && child->ended && !p->may_fork)
            rc = push_due(c, f->of.child);
    }
    return rc;
}

// Adds the inherited blocks to the process. Returns 1 if the process can be ordered, 0 if its
// parent has not reached the fork yet, or a negative errno. A process without events needs no heap
// and can always be ordered.
static int begin_heap(const struct converter *c, struct process *p)
{
    struct fork *f = p->fork;
    if (!f)
        return 1;
    if (!f->taken)
        return 0;
    if (!p->fed && !has_children(p))
        return 1;
    int rc = heap_restore(&f->heap, p->order);
    fork_release(c, p);
    return rc < 0 ? rc : 1;
}

// If a process is already past the fork, copies its heap for a child that has just appeared.
static int pass_parent(struct converter *c, struct process *parent)
{
    int rc = begin_heap(c, parent);
    return rc <= 0 ? rc : pass_forks(c, parent, parent->emptied ? UINT64_MAX : c->limit);
}

static int process_begin(struct converter *c, const struct trace_process *p)
{
    struct process *to =
        HT_GROW(&c->processes, &c->capacity, c->n + 1) < 0 ? NULL : calloc(1, sizeof *to);
    if (!to)
        return -ENOMEM;
    uint32_t number = (uint32_t)c->n;
    c->processes[c->n++] = to;
    to->may_fork = c->options->find_forks;
    int rc = to->may_fork ? find_fork(c, to, p) : add_known(c, to, number);
    if (rc == 0)
        rc = c->options->choose(c->options->context, p, &to->sink);
    to->wanted = rc > 0;
    if (rc < 0 || (!to->wanted && !has_children(to)))
        return rc;
    const struct order_sink notes = {.context = to,
                                     .ops = note_ops,
                                     .calls =
                                         to->sink.ops.calls || to->may_fork ? note_calls : NULL};
    to->order = order_new(&c->order, has_children(to) ? &notes : &to->sink.ops);
    if (!to->order || HT_APPEND(&c->open, &c->n_open, &c->open_capacity, number) < 0)
        return -ENOMEM;
    return to->may_fork && to->fork ? pass_parent(c, c->processes[to->fork->of.parent]) : 0;
}

static int process_advance(struct converter *c, struct process *p)
{
    int rc = begin_heap(c, p);
    if (rc <= 0)
        return rc;
    rc = pass_forks(c, p, c->limit);
    if (rc == 0)
        rc = order_advance(p->order, c->limit);
    if (rc == 0 && !p->wanted && !has_children(p)) {
        order_free(p->order);
        p->order = NULL;
    }
    return rc;
}

static int process_finish(struct converter *c, struct process *p)
{
    int rc = begin_heap(c, p);
    if (rc <= 0)
        return rc;
    rc = pass_forks(c, p, UINT64_MAX);
    if (rc == 0)
        rc = order_finish(p->order);
    struct order_counts counts = order_counts(p->order);
    if (rc == 0 && p->wanted && p->sink.done)
        rc = p->sink.done(p->sink.ops.context, &counts, order_sites(p->order));
    order_free(p->order);
    p->order = NULL;
    heap_notes_release(&p->notes);
    return rc;
}

// Finishes the processes that have ended. If a process has to wait for its parent, it becomes due
// again when the parent has passed the fork.
static int finish_due(struct converter *c)
{
    int rc = 0;
    while (rc == 0 && c->n_due) {
        struct process **p = &c->processes[c->due[--c->n_due]];
        rc = *p && (*p)->order ? process_finish(c, *p) : 0;
        if (rc < 0 || !*p || (*p)->order)
            continue;
        process_release(c, *p);
        *p = NULL;
    }
    return rc;
}

// Finishes the process. Call after its last event.
static int process_finish_now(struct converter *c, uint32_t process)
{
    if (!c->processes[process])
        return 0;
    c->processes[process]->ended = true;
    int rc = push_due(c, process);
    return rc < 0 ? rc : finish_due(c);
}

// Emits the remaining events of a process that has ended. The process itself is kept for children
// that have not appeared yet.
static int process_empty(struct converter *c, uint32_t process)
{
    struct process *p = c->processes[process];
    int rc = begin_heap(c, p);
    if (rc <= 0)
        return rc;
    rc = pass_forks(c, p, UINT64_MAX);
    if (rc == 0)
        rc = order_advance(p->order, UINT64_MAX);
    if (rc == 0 && c->options->ended)
        rc = c->options->ended(c->options->context, process);
    p->emptied = true;
    return rc;
}

static int process_end(struct converter *c, uint32_t process)
{
    struct process *p = c->processes[process];
    if (!c->options->find_forks || !p || !p->order)
        return process_finish_now(c, process);
    if (p->emptied)
        return 0;
    p->ended = true;
    p->end_watermark = c->watermark;
    return process_empty(c, process);
}

static int call_so_far(struct converter *c)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_open; i++) {
        struct process *p = c->processes[c->open[i]];
        if (!p || !p->order || !p->wanted || !p->sink.so_far)
            continue;
        struct order_counts counts = order_counts(p->order);
        struct workload_sites sites = {0};
        rc = order_sites_so_far(p->order, &sites);
        if (rc == 0)
            rc = p->sink.so_far(p->sink.ops.context, &counts, &sites);
        workload_sites_release(&sites);
    }
    return rc;
}

// Advances a process that may fork. After such a process has ended, it is kept for fork_ns.
static int advance_parent(struct converter *c, uint32_t process)
{
    struct process *p = c->processes[process];
    int rc = p->emptied ? 0 : p->ended ? process_empty(c, process) : process_advance(c, p);
    heap_forget_freed(&p->notes, c->limit > c->fork_stamps ? c->limit - c->fork_stamps : 0);
    if (rc == 0 && p->emptied && c->limit >= p->end_watermark + c->fork_stamps)
        rc = push_due(c, process);
    return rc;
}

// Advances the open processes to c->limit.
static int advance_all(struct converter *c)
{
    size_t n = c->n_open;
    int rc = 0;
    c->n_open = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t number = c->open[i];
        struct process *p = c->processes[number];
        if (!p || !p->order)
            continue;
        c->open[c->n_open++] = number;
        if (rc == 0)
            rc = p->may_fork ? advance_parent(c, number) : process_advance(c, p);
    }
    return rc;
}

// Ends a batch. An event up to the previous watermark depends only on events that were published
// before it. They are in the previous batch or, if their stream was read before the event's stream,
// in this batch (docs/design/convert.md). Parents are advanced before their children.
static int batch_end(struct converter *c, uint64_t watermark)
{
    uint64_t until = c->watermark;
    int rc = 0;
    c->watermark = watermark > c->watermark ? watermark : c->watermark;
    do {
        c->limit = c->options->limit ? c->options->limit(c->options->context, until) : until;
        rc = advance_all(c);
        if (rc == 0)
            rc = finish_due(c);
        if (rc == 0 && c->options->advanced)
            rc = c->options->advanced(c->options->context, c->limit);
        if (rc > 0)
            rc = call_so_far(c);
    } while (rc == 0 && c->limit < until);
    return rc;
}

static int feed_events(struct converter *c, const struct trace_item *item)
{
    for (size_t i = 0; i < item->n_segments; i++) {
        struct process *p = c->processes[item->segments[i].process];
        int rc = !p || p->ended ? -EBADMSG
                 : p->order     ? order_feed(p->order, &item->segments[i])
                                : 0;
        if (rc < 0)
            return rc;
        p->fed = true;
    }
    return item->batch_ends ? batch_end(c, item->watermark) : 0;
}

// Passes consecutive samples of a process to its sink in one call.
static int feed_samples(struct converter *c, const struct trace_item *item)
{
    for (size_t i = 0, n; i < item->n_samples; i += n) {
        const struct trace_sample *s = &item->samples[i];
        const struct process *p = c->processes[s->process];
        for (n = 1; i + n < item->n_samples && s[n].process == s->process; n++)
            ;
        int rc = p && p->order && p->wanted && p->sink.samples
                     ? p->sink.samples(p->sink.ops.context, s, n)
                     : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int feed_names(struct process *p, const struct trace_item *item)
{
    return p && p->order ? order_names(p->order, item->names, item->names_bytes) : 0;
}

int convert_feed(struct converter *c, const struct trace_item *item)
{
    switch (item->type) {
    case TRACE_PROCESS:
        return process_begin(c, item->process);
    case TRACE_EVENTS:
        return feed_events(c, item);
    case TRACE_SAMPLES:
        return feed_samples(c, item);
    case TRACE_PROCESS_END:
        return process_end(c, item->process->number);
    case TRACE_NAMES:
        return feed_names(c->processes[item->process->number], item);
    case TRACE_END:
        c->end_stamp = item->end_stamp;
        break;
    case TRACE_SESSION:
    case TRACE_UNRECORDED:
    case TRACE_PAGES:
        break;
    }
    return 0;
}

static int next_item(struct converter *c, struct trace_item *item, struct err *e)
{
    return c->ahead ? trace_ahead_next(c->ahead, item, e) : trace_next(c->reader, item, e);
}

static int convert_items(struct converter *c, struct convert_result *result, struct err *e)
{
    struct trace_item item;
    int rc;
    while ((rc = next_item(c, &item, e)) > 0) {
        rc = convert_feed(c, &item);
        if (rc < 0)
            return rc;
        if (c->options->progress)
            c->options->progress(c->options->context, item.offset);
    }
    trace_ahead_stop(c->ahead);
    c->ahead = NULL;
    result->cut_off = rc == -ENODATA || (rc == 0 && !c->reader->saw_end);
    if (rc == 0 && result->cut_off)
        err_set(&result->cut, 0, "%s: the recording is cut off at byte %llu", c->reader->in->name,
                (unsigned long long)c->reader->in->offset);
    if (rc == -ENODATA) {
        result->cut = *e;
        *e = (struct err){0};
    }
    return rc == -ENODATA ? 0 : rc;
}

struct converter *convert_new(struct trace_reader *r, const struct convert_options *options)
{
    struct converter *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->reader = r;
    c->options = options;
    c->order.window =
        trace_stamps(&r->session, options->window_ns ? options->window_ns : CONVERT_WINDOW_NS);
    // Stamps that merely count events are never reordered.
    c->order.skid = r->session.order_only || options->no_early_frees
                        ? 0
                        : trace_stamps(&r->session, CONVERT_SKID_NS);
    c->order.no_early_frees = options->no_early_frees;
    c->order.keep_words = options->keep_words;
    c->order.only_allocator = options->only_allocator;
    c->fork_stamps = trace_stamps(&r->session, options->fork_ns);
    if (copy_forks(c, options->forks) == 0)
        return c;
    convert_free(c);
    return NULL;
}

void convert_free(struct converter *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        if (c->processes[i])
            process_release(c, c->processes[i]);
    }
    for (size_t i = 0; c->forks && i < c->n_forks; i++)
        heap_release(&c->forks[i].heap);
    trace_forks_finder_release(&c->finder);
    free(c->processes);
    free(c->open);
    free(c->due);
    free(c->forks);
    free(c->by_parent);
    free(c);
}

int convert_advance_to_end(struct converter *c)
{
    return batch_end(c, c->watermark);
}

uint64_t convert_watermark(const struct converter *c)
{
    return c->watermark;
}

uint64_t convert_passed(const struct converter *c)
{
    return c->limit;
}

int convert_visit_one(struct converter *c, uint32_t process,
                      int (*visit)(void *context, const struct convert_unfinished *p),
                      void *context)
{
    struct process *p = c->processes[process];
    if (!p || !p->order || p->emptied)
        return 0;
    int rc = p->fork && p->fork->taken ? begin_heap(c, p) : 0;
    const struct convert_unfinished of = {process, p->order, &p->notes, p->fork != NULL};
    return rc < 0 ? rc : visit(context, &of);
}

int convert_visit(struct converter *c,
                  int (*visit)(void *context, const struct convert_unfinished *p), void *context)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_open; i++)
        rc = convert_visit_one(c, c->open[i], visit, context);
    return rc;
}

// Finishes all processes. The trace may be truncated.
static int finish_all(struct converter *c, struct convert_result *result)
{
    int rc = 0;
    for (size_t i = 0; result->cut_off && i < c->n; i++) {
        if (c->processes[i] && c->processes[i]->order)
            order_cut_off(c->processes[i]->order);
    }
    for (size_t i = 0; rc == 0 && i < c->n; i++)
        rc = process_finish_now(c, (uint32_t)i);
    result->end_stamp = c->end_stamp ? c->end_stamp : c->watermark;
    return rc;
}

int convert_run(struct trace_reader *r, const struct convert_options *options,
                struct convert_result *result, struct err *e)
{
    struct converter *c = convert_new(r, options);
    *result = (struct convert_result){0};
    if (!c)
        return err_set(e, -ENOMEM, "%s: cannot convert: %s", r->in->name, strerror(ENOMEM));
    c->ahead = trace_ahead_start(r);
    int rc = convert_items(c, result, e);
    trace_ahead_stop(c->ahead);
    if (rc == 0)
        rc = finish_all(c, result);
    convert_free(c);
    return rc < 0 ? err_set(e, rc, "%s: cannot convert: %s", r->in->name, strerror(-rc)) : 0;
}
