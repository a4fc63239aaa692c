#include "trace/fields.h"

#include "base/tlv.h"
#include "base/varint.h"

#include <errno.h>
#include <stdlib.h>

void trace_session_release(struct trace_session *s)
{
    free(s->argv);
    free(s->host);
    free(s->kernel);
    free(s->cpu);
    free(s->heaptape);
    free(s->dumped);
    *s = (struct trace_session){0};
}

void trace_process_release(struct trace_process *p)
{
    free(p->exe);
    free(p->argv);
    free(p->allocator);
    free(p->allocator_build_id);
    free(p->off_reason);
    free(p->bypassed_by);
    free(p->deepbound);
    free(p->thread_names);
    free(p->whole);
    *p = (struct trace_process){0};
}

uint64_t trace_process_peak_rss(const struct trace_process *p)
{
    return p->attached || p->recorded_to ? 0 : p->peak_rss_bytes;
}

void trace_process_forget(struct trace_process *p)
{
    const struct trace_process kept = {.number = p->number,
                                       .pid = p->pid,
                                       .start_stamp = p->start_stamp,
                                       .ended = p->ended,
                                       .end_stamp = p->end_stamp};
    trace_process_release(p);
    *p = kept;
}

bool trace_process_uses_glibc(const struct trace_process *p)
{
    const char *name = p->allocator ? basename(p->allocator) : NULL;
    return name && (strcmp(name, "libc.so.6") == 0 || strncmp(name, "libc-2.", 7) == 0);
}

int trace_unrecorded_add(struct trace_unrecorded *u, const struct trace_missed *missed)
{
    if (HT_GROW(&u->items, &u->capacity, u->n + 1) < 0)
        return -ENOMEM;
    struct trace_missed *to = &u->items[u->n];
    *to = *missed;
    to->name = strdup(missed->name ? missed->name : "");
    to->why = strdup(missed->why ? missed->why : "");
    if (!to->name || !to->why) {
        free(to->name);
        free(to->why);
        return -ENOMEM;
    }
    u->n++;
    return 0;
}

void trace_unrecorded_release(struct trace_unrecorded *u)
{
    for (size_t i = 0; i < u->n; i++) {
        free(u->items[i].name);
        free(u->items[i].why);
    }
    free(u->items);
    *u = (struct trace_unrecorded){0};
}

struct number_field {
    unsigned tag;
    uint64_t value;
};

static int put_numbers(struct buf *b, const struct number_field *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tlv_put_u64(b, f[i].tag, f[i].value) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int put_argv(struct buf *b, const char *argv, uint32_t bytes)
{
    return argv ? tlv_put_bytes(b, TRACE_F_ARGV, argv, bytes) : 0;
}

#define N_OF(array) (sizeof(array) / sizeof *(array))

int fields_put_session(struct buf *b, const struct trace_session *s)
{
    const struct number_field numbers[] = {
        {TRACE_F_CLOCK_KIND, s->clock},          {TRACE_F_CLOCK_HZ, s->clock_hz},
        {TRACE_F_STAMP_SHIFT, s->stamp_shift},   {TRACE_F_START_STAMP, s->start_stamp},
        {TRACE_F_REALTIME_NS, s->realtime_ns},   {TRACE_F_CPUS, s->cpus},
        {TRACE_F_MEMORY_BYTES, s->memory_bytes},
    };
    int rc = put_numbers(b, numbers, N_OF(numbers));
    if (rc == 0 && s->order_only)
        rc = tlv_put_u64(b, TRACE_F_ORDER_ONLY, 1);
    if (rc == 0 && s->stack_sample_bytes)
        rc = tlv_put_u64(b, TRACE_F_STACK_SAMPLE_BYTES, s->stack_sample_bytes);
    if (rc == 0)
        rc = put_argv(b, s->argv, s->argv_bytes);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_HOST, s->host);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_KERNEL, s->kernel);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_CPU, s->cpu);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_HEAPTAPE, s->heaptape);
    if (rc == 0 && s->segment)
        rc = tlv_put_u64(b, TRACE_F_SEGMENT, s->segment);
    if (rc == 0 && s->segment)
        rc = tlv_put_u64(b, TRACE_F_RECORDING, s->recording_ns);
    return rc ? rc : tlv_put_string(b, TRACE_F_DUMPED, s->dumped);
}

static int put_listed(struct buf *b, const struct trace_process *p)
{
    uint8_t bytes[3 * VARINT_MAX_BYTES];
    size_t n = varint_put(bytes, p->listed_from);
    n += varint_put(bytes + n, p->listed_from_start);
    n += varint_put(bytes + n, p->listed_fork_stamp);
    return tlv_put_bytes(b, TRACE_F_LISTED, bytes, n);
}

int fields_put_process(struct buf *b, const struct trace_process *p)
{
    const struct number_field numbers[] = {
        {TRACE_F_PROCESS, p->number},
        {TRACE_F_PID, p->pid},
        {TRACE_F_PPID, p->ppid},
        {TRACE_F_START_STAMP, p->start_stamp},
    };
    int rc = put_numbers(b, numbers, N_OF(numbers));
    if (rc == 0 && p->forked_from)
        rc = tlv_put_u64(b, TRACE_F_FORKED_FROM, p->forked_from);
    if (rc == 0 && p->forked_from_start)
        rc = tlv_put_u64(b, TRACE_F_FORKED_FROM_START, p->forked_from_start);
    if (rc == 0 && p->fork_stamp)
        rc = tlv_put_u64(b, TRACE_F_FORK_STAMP, p->fork_stamp);
    if (rc == 0 && p->inherited_modules)
        rc = tlv_put_u64(b, TRACE_F_INHERITED_MODULES, p->inherited_modules);
    if (rc == 0 && p->listed_from)
        rc = put_listed(b, p);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_EXE, p->exe);
    if (rc == 0)
        rc = put_argv(b, p->argv, p->argv_bytes);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_ALLOCATOR, p->allocator);
    return rc ? rc : tlv_put_string(b, TRACE_F_ALLOCATOR_BUILD_ID, p->allocator_build_id);
}

int fields_put_process_end(struct buf *b, const struct trace_process *p)
{
    const struct number_field numbers[] = {
        {TRACE_F_PROCESS, p->number},
        {TRACE_F_END_STAMP, p->end_stamp},
        {TRACE_F_LOST_RECORDS, p->lost_records},
        {TRACE_F_WAITS, p->waits},
        {TRACE_F_WAIT_NS, p->wait_ns},
        {TRACE_F_THREADS, p->threads},
    };
    int rc = put_numbers(b, numbers, N_OF(numbers));
    if (rc == 0 && p->cpu_ns)
        rc = tlv_put_u64(b, TRACE_F_CPU_NS, p->cpu_ns);
    if (rc == 0 && p->cpu_ns)
        rc = tlv_put_u64(b, TRACE_F_RECORDING_TICKS, p->recording_ticks);
    if (rc == 0 && p->call_max_ticks)
        rc = tlv_put_u64(b, TRACE_F_CALL_MIN_TICKS, p->call_min_ticks);
    if (rc == 0 && p->call_max_ticks)
        rc = tlv_put_u64(b, TRACE_F_CALL_MAX_TICKS, p->call_max_ticks);
    if (rc == 0 && p->early_max_ticks)
        rc = tlv_put_u64(b, TRACE_F_EARLY_MAX_TICKS, p->early_max_ticks);
    if (rc == 0 && p->early_max_ticks)
        rc = tlv_put_u64(b, TRACE_F_EARLY_USUAL_TICKS, p->early_usual_ticks);
    if (rc == 0 && p->early_events)
        rc = tlv_put_u64(b, TRACE_F_EARLY_EVENTS, p->early_events);
    if (rc == 0 && p->malloc_system_bytes)
        rc = tlv_put_u64(b, TRACE_F_MALLOC_IN_USE_BYTES, p->malloc_in_use_bytes);
    if (rc == 0 && p->malloc_system_bytes)
        rc = tlv_put_u64(b, TRACE_F_MALLOC_SYSTEM_BYTES, p->malloc_system_bytes);
    if (rc == 0 && p->peak_rss_bytes)
        rc = tlv_put_u64(b, TRACE_F_PEAK_RSS_BYTES, p->peak_rss_bytes);
    if (rc == 0 && p->recorded_to)
        rc = tlv_put_u64(b, TRACE_F_RECORDED_FROM, p->recorded_from);
    if (rc == 0 && p->recorded_to)
        rc = tlv_put_u64(b, TRACE_F_RECORDED_TO, p->recorded_to);
    if (rc == 0 && p->has_exit_status)
        rc = tlv_put_u64(b, TRACE_F_EXIT_STATUS, p->exit_status);
    if (rc == 0 && p->attached)
        rc = tlv_put_u64(b, TRACE_F_ATTACHED, 1);
    if (rc == 0 && p->thread_names_bytes)
        rc = tlv_put_bytes(b, TRACE_F_THREAD_NAMES, p->thread_names, p->thread_names_bytes);
    if (rc == 0 && p->whole_bytes)
        rc = tlv_put_bytes(b, TRACE_F_WHOLE, p->whole, p->whole_bytes);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_BYPASSED_BY, p->bypassed_by);
    if (rc == 0 && p->deepbound_bytes)
        rc = tlv_put_bytes(b, TRACE_F_DEEPBOUND, p->deepbound, p->deepbound_bytes);
    return rc ? rc : tlv_put_string(b, TRACE_F_OFF_REASON, p->off_reason);
}

static int put_missed(struct buf *b, const struct trace_missed *m)
{
    int rc = tlv_put_u64(b, TRACE_F_MISSED_PID, m->pid);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_MISSED_NAME, m->name);
    if (rc == 0)
        rc = tlv_put_string(b, TRACE_F_MISSED_WHY, m->why);
    if (rc == 0 && m->forks)
        rc = tlv_put_u64(b, TRACE_F_MISSED_FORKS, m->forks);
    if (rc == 0 && m->calls != UINT64_MAX)
        rc = tlv_put_u64(b, TRACE_F_MISSED_CALLS, m->calls);
    return rc == 0 && m->ns != UINT64_MAX ? tlv_put_u64(b, TRACE_F_MISSED_NS, m->ns) : rc;
}

int fields_put_unrecorded(struct buf *b, const struct trace_unrecorded *u)
{
    const struct number_field numbers[] = {{TRACE_F_MISSED_BY, u->by},
                                           {TRACE_F_MISSED, u->processes}};
    const struct number_field balance[] = {
#define HT_X(name, tag, meaning) {tag, u->balance.name},
        TRACE_BALANCE(HT_X)
#undef HT_X
    };
    int rc = put_numbers(b, numbers, N_OF(numbers));
    for (size_t i = 0; i < N_OF(balance) && rc == 0; i++)
        rc = balance[i].value ? tlv_put_u64(b, balance[i].tag, balance[i].value) : 0;
    for (size_t i = 0; i < u->n && rc == 0; i++)
        rc = put_missed(b, &u->items[i]);
    return rc;
}

static int set_string(char **to, const struct tlv *field)
{
    char *text = tlv_string(field);
    if (!text)
        return -ENOMEM;
    free(*to);
    *to = text;
    return 0;
}

// Copies a list of strings, each terminated by NUL. Appends another NUL, so that *to is a C string
// even if the list in the file is empty or lacks the last NUL.
static int set_texts(char **to, uint32_t *bytes, const struct tlv *field)
{
    char *text = malloc(field->size + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, field->bytes, field->size);
    text[field->size] = 0;
    free(*to);
    *to = text;
    *bytes = (uint32_t)field->size;
    return 0;
}

static int set_session(void *to, const struct tlv *f)
{
    struct trace_session *s = to;
    switch (f->tag) {
    case TRACE_F_CLOCK_KIND:
        if (f->number <= CLOCK_KIND_CNTVCT)
            s->clock = (enum clock_kind)f->number;
        return 0;
    case TRACE_F_CLOCK_HZ:
        s->clock_hz = f->number;
        return 0;
    case TRACE_F_STAMP_SHIFT:
        s->stamp_shift = (unsigned)f->number;
        return f->number < 32 ? 0 : -EBADMSG;
    case TRACE_F_START_STAMP:
        s->start_stamp = f->number;
        return 0;
    case TRACE_F_REALTIME_NS:
        s->realtime_ns = f->number;
        return 0;
    case TRACE_F_CPUS:
        s->cpus = (uint32_t)f->number;
        return 0;
    case TRACE_F_MEMORY_BYTES:
        s->memory_bytes = f->number;
        return 0;
    case TRACE_F_STACK_SAMPLE_BYTES:
        s->stack_sample_bytes = f->number;
        return 0;
    case TRACE_F_ORDER_ONLY:
        s->order_only = f->number != 0;
        return 0;
    case TRACE_F_ARGV:
        return set_texts(&s->argv, &s->argv_bytes, f);
    case TRACE_F_HOST:
        return set_string(&s->host, f);
    case TRACE_F_KERNEL:
        return set_string(&s->kernel, f);
    case TRACE_F_CPU:
        return set_string(&s->cpu, f);
    case TRACE_F_HEAPTAPE:
        return set_string(&s->heaptape, f);
    case TRACE_F_SEGMENT:
        s->segment = f->number;
        return 0;
    case TRACE_F_RECORDING:
        s->recording_ns = f->number;
        return 0;
    case TRACE_F_DUMPED:
        return set_string(&s->dumped, f);
    }
    return 0;
}

static int set_bytes(uint8_t **bytes, size_t *n, const struct tlv *field)
{
    free(*bytes);
    *n = 0;
    *bytes = malloc(field->size + 1);
    if (!*bytes)
        return -ENOMEM;
    memcpy(*bytes, field->bytes, field->size);
    *n = field->size;
    return 0;
}

static int set_listed(struct trace_process *p, const struct tlv *f)
{
    const uint8_t *at = f->bytes, *end = at + f->size;
    uint64_t *const numbers[] = {&p->listed_from, &p->listed_from_start, &p->listed_fork_stamp};
    for (unsigned i = 0; i < N_OF(numbers); i++) {
        size_t n = varint_get(at, end, numbers[i]);
        if (!n)
            return -EBADMSG;
        at += n;
    }
    return 0;
}

static int set_process(void *to, const struct tlv *f)
{
    struct trace_process *p = to;
    switch (f->tag) {
    case TRACE_F_PID:
        p->pid = (uint32_t)f->number;
        return 0;
    case TRACE_F_PPID:
        p->ppid = (uint32_t)f->number;
        return 0;
    case TRACE_F_START_STAMP:
        p->start_stamp = f->number;
        return 0;
    case TRACE_F_FORKED_FROM:
        p->forked_from = (uint32_t)f->number;
        return 0;
    case TRACE_F_FORKED_FROM_START:
        p->forked_from_start = f->number;
        return 0;
    case TRACE_F_FORK_STAMP:
        p->fork_stamp = f->number;
        return 0;
    case TRACE_F_EXE:
        return set_string(&p->exe, f);
    case TRACE_F_ARGV:
        return set_texts(&p->argv, &p->argv_bytes, f);
    case TRACE_F_ALLOCATOR:
        return set_string(&p->allocator, f);
    case TRACE_F_ALLOCATOR_BUILD_ID:
        return set_string(&p->allocator_build_id, f);
    case TRACE_F_THREAD_NAMES:
        return set_bytes(&p->thread_names, &p->thread_names_bytes, f);
    case TRACE_F_WHOLE:
        return set_bytes(&p->whole, &p->whole_bytes, f);
    case TRACE_F_INHERITED_MODULES:
        p->inherited_modules = (uint32_t)f->number;
        return 0;
    case TRACE_F_LISTED:
        return set_listed(p, f);
    case TRACE_F_END_STAMP:
        p->end_stamp = f->number;
        return 0;
    case TRACE_F_EXIT_STATUS:
        p->exit_status = f->number;
        p->has_exit_status = 1;
        return 0;
    case TRACE_F_ATTACHED:
        p->attached = f->number != 0;
        return 0;
    case TRACE_F_LOST_RECORDS:
        p->lost_records = f->number;
        return 0;
    case TRACE_F_WAITS:
        p->waits = f->number;
        return 0;
    case TRACE_F_RECORDED_FROM:
        p->recorded_from = f->number;
        return 0;
    case TRACE_F_RECORDED_TO:
        p->recorded_to = f->number;
        return 0;
    case TRACE_F_WAIT_NS:
        p->wait_ns = f->number;
        return 0;
    case TRACE_F_CPU_NS:
        p->cpu_ns = f->number;
        return 0;
    case TRACE_F_PEAK_RSS_BYTES:
        p->peak_rss_bytes = f->number;
        return 0;
    case TRACE_F_MALLOC_IN_USE_BYTES:
        p->malloc_in_use_bytes = f->number;
        return 0;
    case TRACE_F_MALLOC_SYSTEM_BYTES:
        p->malloc_system_bytes = f->number;
        return 0;
    case TRACE_F_RECORDING_TICKS:
        p->recording_ticks = f->number;
        return 0;
    case TRACE_F_CALL_MIN_TICKS:
        p->call_min_ticks = f->number;
        return 0;
    case TRACE_F_CALL_MAX_TICKS:
        p->call_max_ticks = f->number;
        return 0;
    case TRACE_F_EARLY_MAX_TICKS:
        p->early_max_ticks = f->number;
        return 0;
    case TRACE_F_EARLY_USUAL_TICKS:
        p->early_usual_ticks = f->number;
        return 0;
    case TRACE_F_EARLY_EVENTS:
        p->early_events = f->number;
        return 0;
    case TRACE_F_THREADS:
        p->threads = f->number;
        return 0;
    case TRACE_F_OFF_REASON:
        return set_string(&p->off_reason, f);
    case TRACE_F_BYPASSED_BY:
        return set_string(&p->bypassed_by, f);
    case TRACE_F_DEEPBOUND:
        return set_texts(&p->deepbound, &p->deepbound_bytes, f);
    }
    return 0;
}

static int set_missed(struct trace_missed *m, const struct tlv *f)
{
    switch (f->tag) {
    case TRACE_F_MISSED_NAME:
        return set_string(&m->name, f);
    case TRACE_F_MISSED_WHY:
        return set_string(&m->why, f);
    case TRACE_F_MISSED_FORKS:
        m->forks = f->number;
        return 0;
    case TRACE_F_MISSED_CALLS:
        m->calls = f->number;
        return 0;
    case TRACE_F_MISSED_NS:
        m->ns = f->number;
        return 0;
    }
    return 0;
}

static int set_unrecorded(void *to, const struct tlv *f)
{
    struct trace_unrecorded *u = to;
    switch (f->tag) {
    case TRACE_F_MISSED_BY:
        u->by =
            f->number <= TRACE_MISSED_PROC ? (enum trace_missed_by)f->number : TRACE_MISSED_UNKNOWN;
        return 0;
    case TRACE_F_MISSED:
        u->processes = f->number;
        return 0;
#define HT_X(name, tag, meaning)                                                                   \
    case TRACE_F_##name:                                                                           \
        u->balance.name = f->number;                                                               \
        return 0;
        TRACE_BALANCE(HT_X)
#undef HT_X
    case TRACE_F_MISSED_PID:
        return trace_unrecorded_add(u, &(struct trace_missed){.pid = (uint32_t)f->number,
                                                              .calls = UINT64_MAX,
                                                              .ns = UINT64_MAX});
    }
    return u->n ? set_missed(&u->items[u->n - 1], f) : 0;
}

int fields_get_session(const uint8_t *at, size_t n, struct trace_session *s)
{
    int rc = tlv_read(at, n, set_session, s);
    bool known = fields_number(at, n, TRACE_F_CLOCK_KIND, 0) <= CLOCK_KIND_CNTVCT;
    return rc == 0 && !known ? -EPROTO : rc;
}

int fields_get_process(const uint8_t *at, size_t n, struct trace_process *p)
{
    return tlv_read(at, n, set_process, p);
}

int fields_get_unrecorded(const uint8_t *at, size_t n, struct trace_unrecorded *u)
{
    return tlv_read(at, n, set_unrecorded, u);
}

uint64_t fields_number(const uint8_t *at, size_t n, unsigned tag, uint64_t fallback)
{
    const uint8_t *end = at + n;
    struct tlv f;
    while (tlv_next(&at, end, &f) > 0) {
        if (f.tag == tag)
            return f.number;
    }
    return fallback;
}

uint32_t fields_process_number(const uint8_t *at, size_t n)
{
    uint64_t number = fields_number(at, n, TRACE_F_PROCESS, UINT32_MAX);
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

bool fields_next_name(const uint8_t **at, const uint8_t *end, uint64_t *tid, const char **name,
                      size_t *bytes)
{
    uint64_t length;
    size_t n = varint_get(*at, end, tid), m = n ? varint_get(*at + n, end, &length) : 0;
    if (!m || length > (size_t)(end - *at) - n - m)
        return false;
    *name = (const char *)*at + n + m;
    *bytes = (size_t)length;
    *at += n + m + length;
    return true;
}
