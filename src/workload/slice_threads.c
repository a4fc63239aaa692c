#include "workload/slice_private.h"

#include "base/buf.h"
#include "base/search.h"

#include <errno.h>

static bool is_wanted(const struct slice *s, uint32_t thread)
{
    for (size_t i = 0; i < s->options.n_threads; i++) {
        if (thread >= s->ranges[i].first && thread <= s->ranges[i].last)
            return true;
    }
    return !s->ranges;
}

struct slice_thread *slice_thread_get(struct slice *s, uint32_t thread)
{
    if (HT_EXTEND(&s->threads, &s->n_threads, &s->threads_capacity, (size_t)thread + 1) < 0)
        return NULL;
    struct slice_thread *t = &s->threads[thread];
    if (!t->known) {
        t->known = true;
        t->wanted = is_wanted(s, thread);
        t->number = SLICE_NO_NUMBER;
    }
    return t;
}

uint32_t slice_thread_number(struct slice *s, uint32_t thread)
{
    struct slice_thread *t = &s->threads[thread];
    if (t->number == SLICE_NO_NUMBER)
        t->number = s->next_thread++;
    return t->number;
}

static int shift_add(struct slice_thread *t, uint64_t from, uint64_t by)
{
    return HT_APPEND(&t->shifts, &t->n_shifts, &t->shifts_capacity, (struct slice_shift){from, by});
}

// Adds a shift that maps op `from` of the source to the thread's next op in the part. Returns 0 or
// -ENOMEM.
static int number_from(struct slice_thread *t, uint64_t from)
{
    uint64_t by = t->next_op - from;
    if (t->n_shifts && t->shifts[t->n_shifts - 1].by == by)
        return 0;
    if (t->n_shifts && t->shifts[t->n_shifts - 1].from == from) {
        t->shifts[t->n_shifts - 1].by = by;
        return 0;
    }
    return shift_add(t, from, by);
}

// Finds the number that op `op` of the source has in the part. If the op was dropped, finds the
// number of the thread's last op before it in the part. Returns false if the part has no such op.
static bool find_number(const struct slice_thread *t, uint64_t op, uint64_t *number)
{
    size_t below = HT_SEARCH(i, t->n_shifts, t->shifts[i].from > op);
    if (!below)
        return false;
    *number = op + t->shifts[below - 1].by;
    // A dropped op has no number in the part. The next op that is kept begins the next shift.
    if (below < t->n_shifts) {
        uint64_t next = t->shifts[below].from + t->shifts[below].by;
        if (*number >= next)
            *number = next - 1;
    }
    return *number < t->next_op;
}

// Returns the entry for the highest op of thread `on` on which the thread depends so far, or NULL
// if memory runs out. The op of a new entry is 0.
static struct workload_dependency *waited_row(struct slice_thread *t, uint32_t on, bool *added)
{
    *added = false;
    for (size_t i = 0; i < t->n_waited; i++) {
        if (t->waited[i].thread == on)
            return &t->waited[i];
    }
    if (HT_GROW(&t->waited, &t->waited_capacity, t->n_waited + 1) < 0)
        return NULL;
    *added = true;
    t->waited[t->n_waited] = (struct workload_dependency){.thread = on};
    return &t->waited[t->n_waited++];
}

int slice_depend(struct slice *s, uint32_t thread, uint32_t on, uint64_t op)
{
    if (s->has_gaps) {
        bool added;
        struct workload_dependency *row = waited_row(&s->threads[thread], on, &added);
        if (!row)
            return -ENOMEM;
        if (!added && row->op >= op)
            return 0;
        row->op = op;
    }
    return HT_APPEND(&s->dependencies, &s->n_dependencies, &s->dependencies_capacity,
                     (struct workload_dependency){on, op});
}

int slice_keep_dependencies(struct slice *s, uint32_t thread, const struct workload_op *op)
{
    for (uint32_t i = 0; i < op->n_dependencies; i++) {
        uint32_t on = op->dependencies[i].thread;
        uint64_t number;
        if (on >= s->n_threads || !s->threads[on].in_part ||
            !find_number(&s->threads[on], op->dependencies[i].op, &number))
            continue;
        int rc = slice_depend(s, thread, on, number);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int slice_drop(struct slice *s, uint32_t thread)
{
    struct slice_thread *t = &s->threads[thread];
    // A thread has no shifts until its first op in the part.
    return t->in_part ? number_from(t, t->read) : 0;
}

// Completes an op with its dependencies. Raises the op's stamp above the stamps of its
// dependencies.
static void complete_dependencies(struct slice *s, struct workload_op *op)
{
    for (size_t i = 0; i < s->n_dependencies; i++) {
        const struct slice_thread *on = &s->threads[s->dependencies[i].thread];
        if (op->stamp <= on->last_stamp)
            op->stamp = on->last_stamp + 1;
        s->dependencies[i].thread = on->number;
    }
    op->dependencies = s->dependencies;
    op->n_dependencies = (uint32_t)s->n_dependencies;
}

int slice_emit(struct slice *s, uint32_t thread, struct workload_op *op, bool extra)
{
    uint32_t number = slice_thread_number(s, thread);
    struct slice_thread *t = &s->threads[thread];
    int rc = extra || t->in_part ? 0 : number_from(t, t->read - 1);
    if (rc < 0)
        return rc;
    op->stamp = s->options.has_stamps ? op->stamp + s->rebase : s->ops_out;
    if (op->stamp < t->last_stamp)
        op->stamp = t->last_stamp;
    complete_dependencies(s, op);
    t->in_part = true;
    t->last_stamp = op->stamp;
    t->next_op++;
    s->ops_out++;
    s->some_thread = thread;
    s->n_dependencies = 0;
    // An inserted op changes the numbers of the current op and all later ops.
    if (extra && number_from(t, t->read - 1) < 0)
        return -ENOMEM;
    return s->sink.op(s->sink.context, number, op);
}
