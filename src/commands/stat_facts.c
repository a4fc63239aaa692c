// What a trace records about its recording and its processes, besides their events.
#include "base/clock.h"
#include "base/json.h"
#include "commands/stat_gather.h"
#include "trace/fields.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void print_stat_session(struct json *j, const struct trace_session *s)
{
    json_key(j, "recorded");
    json_begin_object(j);
    json_put_string(j, "heaptape", s->heaptape);
    json_key(j, "argv");
    json_begin_array(j);
    for (uint32_t at = 0; at < s->argv_bytes; at += (uint32_t)strlen(s->argv + at) + 1)
        json_string(j, s->argv + at);
    json_end_array(j);
    json_put_string(j, "host", s->host);
    json_put_string(j, "kernel", s->kernel);
    json_put_string(j, "cpu", s->cpu);
    json_put_u64(j, "cpus", s->cpus);
    json_put_u64(j, "memory_bytes", s->memory_bytes);
    json_put_string(j, "clock", clock_kind_name(s->clock));
    json_put_u64(j, "clock_hz", s->clock_hz);
    json_put_u64(j, "timestamp_ticks", 1ull << s->stamp_shift);
    json_put_u64(j, "realtime_ns", s->realtime_ns);
    json_end_object(j);
}

static void put_allocator(struct json *j, const struct trace_process *p)
{
    json_key(j, "allocator");
    json_begin_object(j);
    json_put_string(j, "library", p->allocator);
    json_put_string(j, "build_id", p->allocator_build_id);
    json_end_object(j);
}

static void put_exit(struct json *j, uint64_t status)
{
    if (WIFSIGNALED(status))
        json_put_u64(j, "signal", (uint64_t)WTERMSIG(status));
    else
        json_put_u64(j, "exit_status", (uint64_t)WEXITSTATUS(status));
}

static void put_names(struct json *j, const struct trace_process *p)
{
    const uint8_t *at = p->thread_names, *end = at + p->thread_names_bytes;
    uint64_t tid;
    const char *name;
    size_t bytes;
    json_key(j, "thread_names");
    json_begin_array(j);
    while (at < end && fields_next_name(&at, end, &tid, &name, &bytes)) {
        json_begin_object(j);
        json_put_u64(j, "tid", tid);
        json_key(j, "name");
        json_string_n(j, name, bytes);
        json_end_object(j);
    }
    json_end_array(j);
}

void print_stat_facts(struct json *j, const struct trace_process *p)
{
    json_put_u64(j, "ppid", p->ppid);
    if (p->forked_from)
        json_put_u64(j, "forked_from", p->forked_from);
    put_allocator(j, p);
    if (p->has_exit_status)
        put_exit(j, p->exit_status);
    json_put_u64(j, "backpressure_waits", p->waits);
    json_put_u64(j, "backpressure_ns", p->wait_ns);
    if (p->off_reason)
        json_put_string(j, "off_reason", p->off_reason);
    if (p->thread_names_bytes)
        put_names(j, p);
}

void print_stat_recording(const struct trace_session *s)
{
    printf("%-22s %15s %s\n", "recorded by", "heaptape", s->heaptape ? s->heaptape : "");
    printf("%-22s %s, %s, %u CPUs\n", "recorded on", s->kernel ? s->kernel : "", s->cpu ? s->cpu : "", s->cpus);
    printf("%-22s %15s at %.3f MHz\n", "clock", clock_kind_name(s->clock), (double)s->clock_hz / 1e6);
}
