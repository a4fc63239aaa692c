#include "commands/export_call.h"

#include "workload/format.h"

struct export_call export_call_from_walk(const struct trace_session *s, const struct walk_call *w)
{
    struct export_call c = {.ev = *w->event, .pid = w->process->pid, .tid = w->tid, .thread = w->thread};
    unsigned class = event_infos[c.ev.kind].class;
    c.ev.stamp = trace_stamp_ns(s, c.ev.stamp);
    c.failed = (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE) && !c.ev.result && c.ev.error;
    return c;
}

struct export_call export_call_from_op(const struct workload_header *h, uint32_t thread, const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    uint64_t since = h->has_stamps && op->stamp > h->start_stamp ? op->stamp - h->start_stamp : 0;
    uint64_t place = op->slot == WORKLOAD_NO_SLOT ? 0 : op->slot + 1ull;
    struct export_call c = {
        .ev = {.stamp = clock_to_ns(since << h->stamp_shift, h->clock_hz),
               .size = op->size,
               .count = op->count,
               .align = op->align,
               .value = op->value,
               .text = op->text,
               .text_bytes = op->text_bytes,
               .kind = op->kind,
               .error = op->error},
        .pid = h->pid,
        .tid = thread,
        .thread = thread,
        .flags = op->flags,
        .failed = op->flags & WORKLOAD_FAILED,
        .dependencies = op->dependencies,
        .n_dependencies = op->n_dependencies,
    };
    if (format_has_site(op->kind))
        c.ev.notes[HT_NOTE_SITE] = op->value;
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        c.ev.ptr = place;
    if (class == HT_CLASS_ALLOC || (class == HT_CLASS_RESIZE && !(op->flags & (WORKLOAD_FAILED | WORKLOAD_FREED))))
        c.ev.result = place;
    return c;
}
