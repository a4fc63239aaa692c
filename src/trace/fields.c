#include "trace/fields.h"

#include "base/tlv.h"
#include "base/varint.h"
#include "trace/libraries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SESSION(member) TLV_MEMBER(struct trace_session, member)
#define PROCESS(member) TLV_MEMBER(struct trace_process, member)
#define MISSED(member)  TLV_MEMBER(struct trace_missed, member)

static const struct tlv_row session_rows[] = {
    {TRACE_F_CLOCK_KIND, TLV_NUMBER, SESSION(clock)},
    {TRACE_F_CLOCK_HZ, TLV_NUMBER, SESSION(clock_hz)},
    {TRACE_F_STAMP_SHIFT, TLV_NUMBER, SESSION(stamp_shift)},
    {TRACE_F_START_STAMP, TLV_NUMBER, SESSION(start_stamp)},
    {TRACE_F_REALTIME_NS, TLV_NUMBER, SESSION(realtime_ns)},
    {TRACE_F_CPUS, TLV_NUMBER, SESSION(cpus)},
    {TRACE_F_MEMORY_BYTES, TLV_NUMBER, SESSION(memory_bytes)},
    {TRACE_F_ORDER_ONLY, TLV_FLAG, SESSION(order_only), SESSION(order_only)},
    {TRACE_F_STACK_SAMPLE_BYTES, TLV_NUMBER, SESSION(stack_sample_bytes),
     SESSION(stack_sample_bytes)},
    {TRACE_F_ARGV, TLV_BYTES, SESSION(argv), SESSION(argv), SESSION(argv_bytes)},
    {TRACE_F_HOST, TLV_STRING, SESSION(host)},
    {TRACE_F_KERNEL, TLV_STRING, SESSION(kernel)},
    {TRACE_F_CPU, TLV_STRING, SESSION(cpu)},
    {TRACE_F_HEAPTAPE, TLV_STRING, SESSION(heaptape)},
    {TRACE_F_SEGMENT, TLV_NUMBER, SESSION(segment), SESSION(segment)},
    {TRACE_F_RECORDING, TLV_NUMBER, SESSION(recording_ns), SESSION(segment)},
    {TRACE_F_DUMPED, TLV_STRING, SESSION(dumped)},
    {0},
};

// Fields of a PROCESS frame, except PROCESS, LISTED and the fields in allocator_rows.
static const struct tlv_row process_rows[] = {
    {TRACE_F_PID, TLV_NUMBER, PROCESS(pid)},
    {TRACE_F_PPID, TLV_NUMBER, PROCESS(ppid)},
    {TRACE_F_START_STAMP, TLV_NUMBER, PROCESS(start_stamp)},
    {TRACE_F_FORKED_FROM, TLV_NUMBER, PROCESS(forked_from), PROCESS(forked_from)},
    {TRACE_F_FORKED_FROM_START, TLV_NUMBER, PROCESS(forked_from_start), PROCESS(forked_from_start)},
    {TRACE_F_FORK_STAMP, TLV_NUMBER, PROCESS(fork_stamp), PROCESS(fork_stamp)},
    {TRACE_F_INHERITED_MODULES, TLV_NUMBER, PROCESS(inherited_modules), PROCESS(inherited_modules)},
    {TRACE_F_EXE, TLV_STRING, PROCESS(exe)},
    {TRACE_F_ARGV, TLV_BYTES, PROCESS(argv), PROCESS(argv), PROCESS(argv_bytes)},
    {0},
};

// Fields of a PROCESS frame, and of a PROCESS_END frame if the executable is the allocator.
static const struct tlv_row allocator_rows[] = {
    {TRACE_F_ALLOCATOR, TLV_STRING, PROCESS(allocator)},
    {TRACE_F_ALLOCATOR_BUILD_ID, TLV_STRING, PROCESS(allocator_build_id)},
    {0},
};

// Fields of a PROCESS_END frame, except PROCESS and the fields in allocator_rows.
static const struct tlv_row end_rows[] = {
    {TRACE_F_END_STAMP, TLV_NUMBER, PROCESS(end_stamp)},
    {TRACE_F_LOST_RECORDS, TLV_NUMBER, PROCESS(lost_records)},
    {TRACE_F_WAITS, TLV_NUMBER, PROCESS(waits)},
    {TRACE_F_WAIT_NS, TLV_NUMBER, PROCESS(wait_ns)},
    {TRACE_F_THREADS, TLV_NUMBER, PROCESS(threads)},
    {TRACE_F_CPU_NS, TLV_NUMBER, PROCESS(cpu_ns), PROCESS(cpu_ns)},
    {TRACE_F_RECORDING_TICKS, TLV_NUMBER, PROCESS(recording_ticks), PROCESS(cpu_ns)},
    {TRACE_F_CALL_MIN_TICKS, TLV_NUMBER, PROCESS(call_min_ticks), PROCESS(call_max_ticks)},
    {TRACE_F_CALL_MAX_TICKS, TLV_NUMBER, PROCESS(call_max_ticks), PROCESS(call_max_ticks)},
    {TRACE_F_EARLY_MAX_TICKS, TLV_NUMBER, PROCESS(early_max_ticks), PROCESS(early_max_ticks)},
    {TRACE_F_EARLY_USUAL_TICKS, TLV_NUMBER, PROCESS(early_usual_ticks), PROCESS(early_max_ticks)},
    {TRACE_F_EARLY_EVENTS, TLV_NUMBER, PROCESS(early_events), PROCESS(early_events)},
    {TRACE_F_MALLOC_IN_USE_BYTES, TLV_NUMBER, PROCESS(malloc_in_use_bytes),
     PROCESS(malloc_system_bytes)},
    {TRACE_F_MALLOC_SYSTEM_BYTES, TLV_NUMBER, PROCESS(malloc_system_bytes),
     PROCESS(malloc_system_bytes)},
    {TRACE_F_PEAK_RSS_BYTES, TLV_NUMBER, PROCESS(peak_rss_bytes), PROCESS(peak_rss_bytes)},
    {TRACE_F_LIBRARIES, TLV_NUMBER, PROCESS(libraries), PROCESS(libraries)},
    {TRACE_F_RECORDING_GROWTH_BYTES, TLV_NUMBER, PROCESS(recording_growth_bytes),
     PROCESS(recording_growth_bytes)},
    {TRACE_F_RECORDED_FROM, TLV_NUMBER, PROCESS(recorded_from), PROCESS(recorded_to)},
    {TRACE_F_RECORDED_TO, TLV_NUMBER, PROCESS(recorded_to), PROCESS(recorded_to)},
    {TRACE_F_EXIT_STATUS, TLV_NUMBER, PROCESS(exit_status), PROCESS(has_exit_status)},
    {TRACE_F_ATTACHED, TLV_FLAG, PROCESS(attached), PROCESS(attached)},
    {TRACE_F_WITHOUT_UNITS, TLV_FLAG, PROCESS(without_units), PROCESS(without_units)},
    {TRACE_F_THREAD_NAMES, TLV_BYTES, PROCESS(thread_names), PROCESS(thread_names_bytes),
     PROCESS(thread_names_bytes)},
    {TRACE_F_WHOLE, TLV_BYTES, PROCESS(whole), PROCESS(whole_bytes), PROCESS(whole_bytes)},
    {TRACE_F_BYPASSED_BY, TLV_STRING, PROCESS(bypassed_by)},
    {TRACE_F_DEEPBOUND, TLV_BYTES, PROCESS(deepbound), PROCESS(deepbound_bytes),
     PROCESS(deepbound_bytes)},
    {TRACE_F_OFF_REASON, TLV_STRING, PROCESS(off_reason)},
    {0},
};

// Fields after a MISSED_PID, except MISSED_CALLS and MISSED_NS.
static const struct tlv_row missed_rows[] = {
    {TRACE_F_MISSED_NAME, TLV_STRING, MISSED(name)},
    {TRACE_F_MISSED_WHY, TLV_STRING, MISSED(why)},
    {TRACE_F_MISSED_FORKS, TLV_NUMBER, MISSED(forks), MISSED(forks)},
    {0},
};

// Fields of an UNRECORDED frame before the first MISSED_PID.
#define UNRECORDED(member) TLV_MEMBER(struct trace_unrecorded, member)
static const struct tlv_row unrecorded_rows[] = {
    {TRACE_F_MISSED_BY, TLV_NUMBER, UNRECORDED(by)},
    {TRACE_F_MISSED, TLV_NUMBER, UNRECORDED(processes)},
#define HT_X(name, tag, meaning)                                                                   \
    {tag, TLV_NUMBER, UNRECORDED(balance.name), UNRECORDED(balance.name)},
    TRACE_BALANCE(HT_X)
#undef HT_X
        {0},
};

void trace_session_release(struct trace_session *s)
{
    tlv_release_rows(session_rows, s);
    *s = (struct trace_session){0};
}

void trace_process_release(struct trace_process *p)
{
    tlv_release_rows(process_rows, p);
    tlv_release_rows(allocator_rows, p);
    tlv_release_rows(end_rows, p);
    *p = (struct trace_process){0};
}

uint64_t trace_process_peak_rss(const struct trace_process *p)
{
    return p->attached || p->recorded_to ? 0 : p->peak_rss_bytes;
}

uint64_t trace_process_recording_rss(const struct trace_process *p)
{
    return p->recording_rss_bytes ? p->recording_rss_bytes + p->recording_growth_bytes : 0;
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

bool trace_is_glibc(const char *allocator)
{
    const char *name = allocator ? basename(allocator) : "";
    return strcmp(name, "libc.so.6") == 0 || strncmp(name, "libc-2.", 7) == 0;
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
    for (size_t i = 0; i < u->n; i++)
        tlv_release_rows(missed_rows, &u->items[i]);
    free(u->items);
    *u = (struct trace_unrecorded){0};
}

int fields_put_session(struct buf *b, const struct trace_session *s)
{
    return tlv_put_rows(b, session_rows, s);
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
    int rc = tlv_put_u64(b, TRACE_F_PROCESS, p->number) ?: tlv_put_rows(b, process_rows, p);
    if (rc == 0)
        rc = tlv_put_rows(b, allocator_rows, p);
    return rc == 0 && p->listed_from ? put_listed(b, p) : rc;
}

int fields_put_process_end(struct buf *b, const struct trace_process *p)
{
    int rc = tlv_put_u64(b, TRACE_F_PROCESS, p->number) ?: tlv_put_rows(b, end_rows, p);
    // If the executable defines malloc, its calls may have been redirected only after the PROCESS
    // frame was written, so write the allocator again.
    return rc || !p->exe || !p->allocator || strcmp(p->exe, p->allocator) != 0
               ? rc
               : tlv_put_rows(b, allocator_rows, p);
}

static int put_missed(struct buf *b, const struct trace_missed *m)
{
    int rc = tlv_put_u64(b, TRACE_F_MISSED_PID, m->pid) ?: tlv_put_rows(b, missed_rows, m);
    if (rc == 0 && m->calls != UINT64_MAX)
        rc = tlv_put_u64(b, TRACE_F_MISSED_CALLS, m->calls);
    return rc == 0 && m->ns != UINT64_MAX ? tlv_put_u64(b, TRACE_F_MISSED_NS, m->ns) : rc;
}

int fields_put_unrecorded(struct buf *b, const struct trace_unrecorded *u)
{
    int rc = tlv_put_rows(b, unrecorded_rows, u);
    for (size_t i = 0; i < u->n && rc == 0; i++)
        rc = put_missed(b, &u->items[i]);
    return rc;
}

static int set_session(void *to, const struct tlv *f)
{
    if (f->tag == TRACE_F_CLOCK_KIND && f->number > CLOCK_KIND_CNTVCT)
        return 0;
    if (f->tag == TRACE_F_STAMP_SHIFT && f->number >= 32)
        return -EBADMSG;
    return tlv_set(session_rows, to, f);
}

static int set_listed(struct trace_process *p, const struct tlv *f)
{
    const uint8_t *at = f->bytes, *end = at + f->size;
    uint64_t *const numbers[] = {&p->listed_from, &p->listed_from_start, &p->listed_fork_stamp};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!varint_next(&at, end, numbers[i]))
            return -EBADMSG;
    }
    return 0;
}

static int set_process(void *to, const struct tlv *f)
{
    struct trace_process *p = to;
    if (f->tag == TRACE_F_LISTED)
        return set_listed(p, f);
    if (f->tag == TRACE_F_EXIT_STATUS)
        p->has_exit_status = 1;
    // PAGES frames may have added libraries before the PROCESS_END frame.
    if (f->tag == TRACE_F_LIBRARIES || f->tag == TRACE_F_CXX_BYTES) {
        p->libraries |= f->tag == TRACE_F_LIBRARIES ? f->number : f->number ? LIBRARIES_CXX : 0;
        return 0;
    }
    return tlv_set(process_rows, p, f) ?: tlv_set(allocator_rows, p, f) ?: tlv_set(end_rows, p, f);
}

static int set_unrecorded(void *to, const struct tlv *f)
{
    struct trace_unrecorded *u = to;
    struct trace_missed *last = u->n ? &u->items[u->n - 1] : NULL;
    if (f->tag == TRACE_F_MISSED_PID)
        return trace_unrecorded_add(u, &(struct trace_missed){.pid = (uint32_t)f->number,
                                                              .calls = UINT64_MAX,
                                                              .ns = UINT64_MAX});
    if (f->tag == TRACE_F_MISSED_BY && f->number > TRACE_MISSED_PROC)
        return 0;
    if (last && f->tag == TRACE_F_MISSED_CALLS)
        last->calls = f->number;
    if (last && f->tag == TRACE_F_MISSED_NS)
        last->ns = f->number;
    int rc = last ? tlv_set(missed_rows, last, f) : 0;
    return rc ? rc : tlv_set(unrecorded_rows, u, f);
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
