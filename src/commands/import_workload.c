#include "commands/import_workload.h"

#include "base/progress.h"
#include "cli/command.h"
#include "commands/import_trace.h"
#include "formats/import.h"

#include <errno.h>
#include <string.h>

enum { NO_PROCESS = 0xffffffff };

struct job {
    struct input *in;
    struct output *out;
    struct convert_settings convert;
    struct trace_session session;
    struct convert_process of;
    struct order *order;
    uint32_t process; // the number of the one that is wanted
    struct progress progress;
};

static int take_session(void *context, const struct trace_session *s, bool has_times)
{
    struct job *j = context;
    j->session = *s;
    j->convert.no_stamps |= !has_times;
    return 0;
}

static int take_process(void *context, const struct trace_process *p)
{
    struct job *j = context;
    if (j->process != NO_PROCESS || (j->convert.pid && j->convert.pid != p->pid))
        return 0;
    j->process = p->number;
    // Numbers of events, and times that only keep the file's order, are never early.
    bool is_ordered = j->session.order_only || j->convert.window_ns <= 1;
    struct order_options how = {.window = j->convert.window_ns, .skid = is_ordered ? 0 : CONVERT_SKID_NS};
    struct order_sink to = {.context = &j->of, .ops = convert_process_ops};
    j->order = order_new(&how, &to);
    return j->order ? convert_process_begin(&j->of, j->out, &j->session, p) : -ENOMEM;
}

// All up to the watermark has been fed, so that all of it can be put in order.
static int take_round(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    struct job *j = context;
    int rc = 0;
    progress_update(&j->progress, j->in->offset);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = segments[i].process == j->process ? order_feed(j->order, &segments[i]) : 0;
    return rc == 0 && j->order ? order_advance(j->order, watermark) : rc;
}

static int finish(struct job *j, struct err *e)
{
    if (!j->order)
        return err_set(e, -ENOENT, "%s: has no events of process %u", j->in->name, j->convert.pid);
    int rc = order_finish(j->order);
    struct order_counts counts = order_counts(j->order);
    return rc < 0 ? rc : convert_process_done(&j->of, &counts, order_sites(j->order));
}

int import_workload(struct input *in, struct output *out, const struct import_workload_options *o,
                    struct workload_summary *summary, struct err *e)
{
    struct job j = {.in = in, .out = out, .convert = o->convert, .process = NO_PROCESS};
    struct import im = {
        .format = o->format,
        .keep_going = o->keep_going,
        .name_skipped = import_name_skipped,
        .sink = {&j, take_session, take_process, take_round},
    };
    j.of = (struct convert_process){.settings = &j.convert, .source = in->name, .e = e};
    progress_init(&j.progress, "import", "B", in->size_bytes, cli_common.quiet);
    int rc = import_run(&im, in, e);
    if (rc == 0)
        rc = finish(&j, e);
    progress_clear(&j.progress);
    if (rc == 0)
        import_tell_skipped(&im);
    else
        err_set(e, rc, "%s: cannot import: %s", in->name, strerror(-rc));
    *summary = j.of.summary;
    order_free(j.order);
    convert_process_release(&j.of);
    import_release(&im);
    return rc;
}
