// Coupling keeps the threads of a replay as close together as they were when recorded.
//
// A workload contains the dependencies that arise from blocks, but not those that arise from the
// program's queues and locks. A producer that was held back by a bounded queue would therefore run
// ahead. To prevent this, the total order is cut into sections. No thread begins section n before
// all ops of section n - 2 are done. The thread with section n's first op waits for the ops of
// section n - 2, with one COUPLE for each thread that has such ops. The other threads wait for that
// first op.
//
// A section also ends at each sample of the recorded program's memory. Two samples between the same
// two ops produce an empty section, at which all threads meet.
//
// The first op after the exit of a thread waits until the thread has exited. In the program, most
// threads are joined when they exit. At an exit, allocators purge the memory of the thread, but not
// the blocks that other threads free afterwards.
//
// No thread waits forever: like a dependency, each COUPLE refers to an op that is earlier in the
// total order.
#include "base/buf.h"
#include "replay/plan/build.h"

static struct plan_section *section_at(struct plan *p, uint64_t number)
{
    return &p->coupling.sections[number % PLAN_SECTIONS];
}

static void end_section(struct plan *p)
{
    struct plan_coupling *c = &p->coupling;
    struct plan_section *ended = section_at(p, c->number);
    for (size_t i = 0; i < ended->n; i++)
        ended->members[i].last_op = ended->members[i].stream->ops - 1;
    c->number++;
    c->calls = c->bytes = 0;
    section_at(p, c->number)->n = 0;
}

// Ends a section for each sample before `op`, but does not create a third empty section in a row.
// Two empty sections are enough to wait for all earlier ops.
static void end_at_samples(struct plan *p, const struct workload_op *op)
{
    const struct plan_coupling *c = &p->coupling;
    for (size_t i = p->n_passed; i < p->n_recorded && p->recorded[i].sample.stamp < op->stamp;
         i++) {
        if (section_at(p, c->number)->n || section_at(p, c->number - 1)->n)
            end_section(p);
    }
}

static int wait_for_op(struct plan *p, struct plan_stream *s, const struct plan_stream *other,
                       uint64_t op, struct err *e)
{
    return other == s ? 0 : plan_put_couple(p, s, other->number, plan_stream_publish(other, op), e);
}

static int wait_for_first(struct plan *p, struct plan_stream *s, const struct plan_section *section,
                          struct err *e)
{
    return section->n ? wait_for_op(p, s, section->members[0].stream, section->first_op, e) : 0;
}

// Makes the current section's first op wait for all ops of section `number` - 2, and for the first
// op of section `number` - 1, which has already waited for all older sections.
static int begin_section(struct plan *p, struct plan_stream *s, struct err *e)
{
    const struct plan_section *old = section_at(p, p->coupling.number - 2);
    int rc = wait_for_first(p, s, section_at(p, p->coupling.number - 1), e);
    for (size_t i = 0; rc == 0 && i < old->n; i++)
        rc = wait_for_op(p, s, old->members[i].stream, old->members[i].last_op, e);
    return rc;
}

int plan_couple(struct plan *p, struct plan_stream *s, const struct workload_op *op, struct err *e)
{
    struct plan_coupling *c = &p->coupling;
    if (!c->number || plan_section_is_full(p, c->calls, c->bytes))
        end_section(p);
    end_at_samples(p, op);
    int rc = p->n_awaited == p->n_exited ? 0 : plan_put_couple(p, s, s->number, p->n_exited, e);
    p->n_awaited = p->n_exited;
    if (rc < 0 || s->section == c->number)
        return rc;
    struct plan_section *section = section_at(p, c->number);
    if (HT_GROW(&section->members, &section->capacity, section->n + 1) < 0)
        return err_no_memory(e, NULL);
    // Publish live bytes as often as the threads are coupled.
    rc = s->counted_events && p->n_streams > 1 ? plan_put_count(p, s, e) : 0;
    if (rc == 0)
        rc = section->n ? wait_for_first(p, s, section, e) : begin_section(p, s, e);
    if (!section->n)
        section->first_op = s->ops;
    section->members[section->n++].stream = s;
    s->section = c->number;
    return rc;
}
