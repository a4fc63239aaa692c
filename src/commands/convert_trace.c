#include "commands/convert_trace.h"

#include "base/progress.h"
#include "cli/command.h"
#include "commands/convert_process.h"

struct job {
    struct trace_file *trace;
    struct output *out;
    uint32_t process;
    struct convert_process of;
    struct progress progress;
};

static int choose(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct job *j = context;
    if (p->number != j->process)
        return 0;
    *sink = (struct convert_sink){.ops = {.context = &j->of, .ops = convert_process_ops},
                                  .samples = convert_process_samples,
                                  .done = convert_process_done};
    int rc = convert_process_begin(&j->of, j->out, &j->trace->reader.session, p);
    return rc < 0 ? rc : 1;
}

static void show_progress(void *context, uint64_t offset)
{
    struct job *j = context;
    progress_update(&j->progress, offset);
}

static int choose_process(struct job *j, uint32_t pid, struct err *e)
{
    size_t of;
    int rc = trace_file_choose(j->trace, pid, &j->process, &of, e);
    return rc < 0 ? rc : of > 1;
}

int convert_trace(struct trace_file *t, struct output *out, const struct convert_trace_options *options,
                  struct workload_summary *summary, struct err *e)
{
    struct job j = {.trace = t, .out = out, .of = {.options = options, .trace = t->in.name, .e = e}};
    struct convert_options how = {
        .window_ns = options->window_ns, .choose = choose, .progress = show_progress, .context = &j};
    struct convert_result result;
    int several = choose_process(&j, options->pid, e);
    if (several < 0)
        return several;
    progress_init(&j.progress, "convert", "B", t->in.size_bytes, cli_common.quiet);
    int rc = convert_run(&t->reader, &how, &result, e);
    progress_clear(&j.progress);
    if (rc == 0 && several)
        convert_process_tell("converting", t->reader.processes[j.process]);
    if (rc == 0 && result.cut_off)
        note("%s; converted the events up to that point", result.cut.text);
    *summary = j.of.summary;
    convert_process_release(&j.of);
    return rc;
}
