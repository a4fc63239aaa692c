// The output of `stat`.
#include "base/json.h"
#include "cli/command.h"
#include "commands/stat_gather.h"
#include "report/sites_json.h"
#include "report/usage_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double bytes_per_event(const struct file_stat *s)
{
    return s->total.events ? (double)s->file_bytes / (double)s->total.events : 0;
}

static void put_by_kind(struct json *j, const struct workload_summary *s)
{
    json_key(j, "by_kind");
    json_begin_object(j);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (s->by_kind[kind] && event_infos[kind].name)
            json_put_u64(j, event_infos[kind].name, s->by_kind[kind]);
    }
    json_end_object(j);
}

static void put_live(struct json *j, const struct workload_summary *s)
{
    json_put_u64(j, "requested_bytes", s->requested_bytes);
    if (s->usable_bytes) {
        json_put_u64(j, "usable_bytes", s->usable_bytes);
        json_put_u64(j, "usable_requested_bytes", s->usable_requested_bytes);
    }
    json_put_u64(j, "peak_live_bytes", s->peak_live_bytes);
    json_put_u64(j, "live_at_end_bytes", s->live_at_end_bytes);
    json_put_u64(j, "live_at_end_blocks", s->live_at_end_blocks);
    json_put_u64(j, "remote_frees", s->remote_frees);
    json_put_u64(j, "unmatched_frees", s->unmatched_frees);
}

static void put_argv(struct json *j, const struct process_stat *p)
{
    json_key(j, "argv");
    json_begin_array(j);
    for (uint32_t at = 0; at < p->argv_bytes; at += (uint32_t)strlen(p->argv + at) + 1)
        json_string(j, p->argv + at);
    json_end_array(j);
}

static void put_process(struct json *j, const struct process_stat *p, bool is_trace)
{
    json_begin_object(j);
    json_put_u64(j, "pid", p->pid);
    put_argv(j, p);
    json_put_string(j, "exe", p->exe);
    json_put_u64(j, "threads", p->summary.threads);
    json_put_u64(j, "events", p->summary.events);
    json_put_u64(j, "lost", p->summary.lost_records);
    put_live(j, &p->summary);
    if (is_trace)
        print_stat_facts(j, &p->facts);
    json_end_object(j);
}

void print_stat_object(struct json *j, const struct file_stat *s)
{
    json_begin_object(j);
    json_put_u64(j, "schema_version", 2);
    json_put_string(j, "kind", s->is_trace ? "trace" : "workload");
    json_put_u64(j, "events", s->total.events);
    put_by_kind(j, &s->total);
    json_put_u64(j, "threads", s->total.threads);
    json_key(j, "processes");
    json_begin_array(j);
    for (size_t i = 0; i < s->n_processes; i++)
        put_process(j, &s->processes[i], s->is_trace);
    json_end_array(j);
    json_put_u64(j, "duration_ns", s->duration_ns);
    put_live(j, &s->total);
    json_key(j, "order");
    json_begin_object(j);
    json_put_u64(j, "repaired", s->total.order_repaired);
    json_put_u64(j, "ambiguous", s->total.order_ambiguous);
    json_end_object(j);
    json_put_u64(j, "dependencies", s->total.dependencies);
    json_put_u64(j, "dependencies_needed", s->total.dependencies_needed);
    json_put_u64(j, "slots", s->total.slots);
    json_put_u64(j, "lost", s->total.lost_records);
    json_put_bool(j, "cut_off", s->cut.text[0]);
    json_put_u64(j, "file_bytes", s->file_bytes);
    json_put_double(j, "bytes_per_event", bytes_per_event(s));
    if (s->is_trace)
        print_stat_session(j, &s->session);
    if (s->sums) {
        uint32_t pid = s->n_processes ? s->processes[s->of_usage].pid : 0;
        print_usage_sums(j, s->sums, &s->usage);
        print_usage_process(j, &s->usage, pid);
        print_usage_timeline(j, &s->usage, pid, s->samples, s->n_samples);
        if (s->symbols)
            print_call_sites(j, &(struct named_sites){&s->by_site, &s->sites, s->symbols});
    }
    json_end_object(j);
}

void print_stat_json(const struct file_stat *s)
{
    struct json j = {.to = stdout, .pretty = true};
    print_stat_object(&j, s);
}

static void print_count(const char *what, uint64_t n)
{
    char text[32];
    printf("%-22s %15s\n", what, human_count(text, n));
}

static void print_bytes(const char *what, uint64_t n)
{
    char text[32];
    printf("%-22s %15s\n", what, human_bytes(text, n));
}

static void print_share(const char *what, uint64_t n, uint64_t of)
{
    char text[32];
    printf("  %-20s %15s  %5.1f %%\n", what, human_count(text, n), of ? 100.0 * (double)n / (double)of : 0.0);
}

// The beginning of the command line: arguments end with NUL.
static void print_command(const struct process_stat *p)
{
    enum { COMMAND_BYTES = 60 };
    uint32_t n = p->argv_bytes ? p->argv_bytes - 1 : 0;
    putchar(' ');
    for (uint32_t i = 0; i < n && i < COMMAND_BYTES; i++)
        putchar(p->argv[i] ? p->argv[i] : ' ');
    puts(n > COMMAND_BYTES ? "..." : "");
}

static void print_processes(const struct file_stat *s)
{
    char events[32], peak[32];
    printf("\n%10s %8s %15s %12s  %s\n", "pid", "threads", "events", "peak live", "command");
    for (size_t i = 0; i < s->n_processes; i++) {
        const struct process_stat *p = &s->processes[i];
        printf("%10u %8" PRIu64 " %15s %12s ", p->pid, p->summary.threads, human_count(events, p->summary.events),
               human_bytes(peak, p->summary.peak_live_bytes));
        print_command(p);
    }
}

// malloc_usable_size of the blocks, where it was recorded.
static void print_usable(const struct workload_summary *t)
{
    char text[32];
    if (!t->usable_bytes)
        return;
    double more = 100.0 * ((double)t->usable_bytes / (double)t->usable_requested_bytes - 1);
    printf("%-22s %15s  %5.1f %% over requested\n", "  usable size", human_bytes(text, t->usable_bytes), more);
}

static void print_order(const struct workload_summary *t)
{
    print_count("remote frees", t->remote_frees);
    print_count("thread dependencies", t->dependencies);
    print_count("events reordered", t->order_repaired);
    print_count("ambiguous order", t->order_ambiguous);
    print_count("unmatched frees", t->unmatched_frees);
    print_count("lost records", t->lost_records);
}

void print_stat_text(const struct file_stat *s)
{
    const struct workload_summary *t = &s->total;
    char text[32];
    printf("%s: %s\n\n", s->name, s->is_trace ? "trace" : "workload");
    print_count("events", t->events);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (t->by_kind[kind] && event_infos[kind].name)
            print_share(event_infos[kind].name, t->by_kind[kind], t->events);
    }
    print_count("threads", t->threads);
    print_count("processes", s->n_processes);
    printf("%-22s %15s\n", "duration", human_ns(text, (double)s->duration_ns));
    print_bytes("requested", t->requested_bytes);
    print_usable(t);
    print_bytes("peak live", t->peak_live_bytes);
    print_bytes("live at end", t->live_at_end_bytes);
    print_count("  blocks", t->live_at_end_blocks);
    print_order(t);
    print_bytes("file", s->file_bytes);
    printf("%-22s %15.2f\n", "bytes per event", bytes_per_event(s));
    if (s->is_trace)
        print_stat_recording(&s->session);
    print_processes(s);
    print_stat_usage(s);
}
