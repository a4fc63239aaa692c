#include "trace/reader.h"

#include "base/bytes.h"
#include "base/varint.h"
#include "trace/columns.h"
#include "trace/fields.h"
#include "trace/libraries.h"
#include "trace/pages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_frame(const struct trace_reader *r, const struct frame *f, const char *what,
                        struct err *e)
{
    // The checksum matched, so the frame is intact and contains the number that the writer stored.
    const char *writer = r->session.heaptape;
    if (writer && strverscmp(writer, HEAPTAPE_VERSION) > 0) {
        frame_newer(r->in->name, f->offset, writer, what, e);
        return -EBADMSG;
    }
    return err_set(e, -EBADMSG, "%s: %s, in the frame at byte %llu", r->in->name, what,
                   (unsigned long long)f->offset);
}

// Sets an error for a number that is unknown to this version. Returns -EPROTO.
static int refuse_unknown(const struct trace_reader *r, const struct frame *f, const char *what,
                          unsigned number, struct err *e)
{
    char text[64];
    snprintf(text, sizeof text, "%s %u is not known", what, number);
    return frame_newer(r->in->name, f->offset, r->session.heaptape, text, e);
}

// Sets the error for a failure of the field reader.
static int check_fields(const struct trace_reader *r, const struct frame *f, int rc, struct err *e)
{
    if (rc == -ENOMEM)
        return err_no_memory(e, r->in->name);
    return rc < 0 ? refuse_frame(r, f, "a field is invalid", e) : 0;
}

static int read_session(struct trace_reader *r, const struct frame *f, struct err *e)
{
    int rc = fields_get_session(f->data, f->size, &r->session);
    if (rc == -EPROTO)
        return refuse_unknown(r, f, "clock kind",
                              (unsigned)fields_number(f->data, f->size, TRACE_F_CLOCK_KIND, 0), e);
    return check_fields(r, f, rc, e);
}

int trace_reader_open(struct trace_reader *r, struct input *in, struct err *e)
{
    *r = (struct trace_reader){.in = in};
    frame_reader_init(&r->frames, in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    struct frame f;
    int rc = frame_next(&r->frames, &f, e);
    if (rc == 0)
        rc = err_set(e, -ENODATA, "%s: is empty", in->name);
    else if (rc > 0 && f.type != TRACE_SESSION)
        rc = refuse_frame(r, &f, "the first frame is not a session frame", e);
    else if (rc > 0)
        rc = read_session(r, &f, e);
    if (rc < 0)
        trace_reader_close(r);
    return rc;
}

void trace_reader_close(struct trace_reader *r)
{
    for (size_t i = 0; i < r->n_processes; i++) {
        trace_process_release(r->processes[i]);
        free(r->processes[i]);
    }
    free(r->processes);
    trace_session_release(&r->session);
    trace_unrecorded_release(&r->unrecorded);
    buf_release(&r->words);
    buf_release(&r->segments);
    buf_release(&r->samples);
    if (r->columns)
        columns_release(r->columns);
    free(r->columns);
    frame_reader_release(&r->frames);
    *r = (struct trace_reader){0};
}

int trace_reader_add_process(struct trace_reader *r, struct trace_process **process, struct err *e)
{
    if (HT_GROW(&r->processes, &r->processes_capacity, r->n_processes + 1) < 0)
        return err_no_memory(e, r->in->name);
    struct trace_process *p = calloc(1, sizeof *p);
    if (!p)
        return err_no_memory(e, r->in->name);
    p->number = (uint32_t)r->n_processes;
    r->processes[r->n_processes++] = p;
    *process = p;
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// Formats the pids in ascending order, each once: a process that calls exec is several processes
// with one pid. Long lists are truncated.
static void list_pids(const struct trace_reader *r, char *text, size_t size)
{
    uint32_t *pids = calloc(r->n_processes + 1, sizeof *pids);
    size_t used = 0, n = 0, more = 0;
    text[0] = 0;
    for (; pids && n < r->n_processes; n++)
        pids[n] = r->processes[n]->pid;
    if (pids)
        qsort(pids, n, sizeof *pids, by_pid);
    for (size_t i = 0; i < n; i++) {
        if (i && pids[i] == pids[i - 1])
            continue;
        if (used + 40 < size)
            used += (size_t)snprintf(text + used, size - used, "%s%u", used ? ", " : "", pids[i]);
        else
            more++;
    }
    if (more)
        snprintf(text + used, size - used, " and %zu more", more);
    free(pids);
}

int trace_reader_no_process(const struct trace_reader *r, uint32_t pid, struct err *e)
{
    char pids[200];
    list_pids(r, pids, sizeof pids);
    if (!pid || !pids[0])
        return err_set(e, -ENOENT, "%s: the trace contains no events", r->in->name);
    return err_set(e, -ENOENT,
                   "%s: the trace contains no events of process %u; it contains processes %s",
                   r->in->name, pid, pids);
}

int trace_reader_find_pid(const struct trace_reader *r, uint32_t pid, struct err *e)
{
    for (size_t i = 0; pid && i < r->n_processes; i++) {
        if (r->processes[i]->pid == pid)
            return 0;
    }
    return pid ? trace_reader_no_process(r, pid, e) : 0;
}

static int read_process(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                        struct err *e)
{
    if (fields_process_number(f->data, f->size) != r->n_processes)
        return refuse_frame(r, f, "a process number is out of order", e);
    int rc = trace_reader_add_process(r, &item->process, e);
    return rc < 0 ? rc : check_fields(r, f, fields_get_process(f->data, f->size, item->process), e);
}

static int read_process_end(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                            struct err *e)
{
    uint32_t number = fields_process_number(f->data, f->size);
    if (number >= r->n_processes)
        return refuse_frame(r, f, "a process end refers to an unknown process", e);
    item->process = r->processes[number];
    item->process->ended = 1;
    return check_fields(r, f, fields_get_process(f->data, f->size, item->process), e);
}

static int read_samples(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                        struct err *e)
{
    const uint8_t *at = f->data, *end = at + f->size;
    uint64_t n, stamp = 0, v[4];
    // A sample has at least four bytes.
    if (!varint_next(&at, end, &n) || n > (size_t)(end - at) / 4)
        return refuse_frame(r, f, "the number of samples is invalid", e);
    if (buf_resize(&r->samples, n * sizeof(struct trace_sample)) < 0)
        return err_no_memory(e, r->in->name);
    struct trace_sample *samples = (struct trace_sample *)(void *)r->samples.data;
    for (uint64_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < 4; k++) {
            if (!varint_next(&at, end, &v[k]))
                return refuse_frame(r, f, "a sample is cut off", e);
        }
        if (v[0] >= r->n_processes)
            return refuse_frame(r, f, "a sample refers to an unknown process", e);
        stamp += (uint64_t)zigzag_get(v[1]);
        samples[i] = (struct trace_sample){(uint32_t)v[0], stamp, v[2], v[3]};
    }
    if (at != end)
        return refuse_frame(r, f, "bytes follow the samples", e);
    item->samples = samples;
    item->n_samples = n;
    return 0;
}

// Reads the table of segments. Sets *words to their total number of words.
static int read_table(struct trace_reader *r, const struct frame *f, size_t n, uint64_t *words,
                      struct err *e)
{
    const uint8_t *row = f->data + EVENTS_HEADER_BYTES;
    if (n > (f->size - EVENTS_HEADER_BYTES) / EVENTS_SEGMENT_BYTES)
        return refuse_frame(r, f, "the number of segments is invalid", e);
    if (buf_resize(&r->segments, n * sizeof(struct trace_segment)) < 0)
        return err_no_memory(e, r->in->name);
    struct trace_segment *s = (struct trace_segment *)(void *)r->segments.data;
    *words = 0;
    for (size_t i = 0; i < n; i++, row += EVENTS_SEGMENT_BYTES) {
        s[i] = (struct trace_segment){
            .process = get_u32(row),
            .thread = get_u32(row + 4),
            .tid = get_u32(row + 8),
            .stream = get_u32(row + 12),
            .first_word = get_u64(row + 16),
            .epoch0 = get_u64(row + 24),
            .base0 = get_u64(row + 32),
            .n_words = get_u32(row + 40),
            .n_records = get_u32(row + 44),
        };
        *words += s[i].n_words;
        if (s[i].process >= r->n_processes)
            return refuse_frame(r, f, "a segment refers to an unknown process", e);
        if (s[i].n_records > s[i].n_words)
            return refuse_frame(r, f, "a segment has more records than words", e);
    }
    return 0;
}

static bool scan_words(const struct columns *c, const uint64_t *words, struct columns_records *r)
{
    uint32_t n = r->words, records = r->records;
    columns_scan(c, words, n, r);
    return r->words == n && r->records == records;
}

// Decodes the words of the segments; `body` follows the table. Returns false if the words
// contradict the table.
static bool read_words(struct trace_reader *r, enum columns_transform transform,
                       const uint8_t *body, size_t n, size_t n_segments)
{
    struct trace_segment *s = (struct trace_segment *)(void *)r->segments.data;
    uint64_t *words = (uint64_t *)(void *)r->words.data;
    struct columns_source source = {0};
    if (transform != EVENTS_WORDS && !columns_open(r->columns, &source, transform, body, n))
        return false;
    if (transform == EVENTS_WORDS && n != r->words.size)
        return false;
    if (transform == EVENTS_WORDS && n)
        memcpy(words, body, n);
    for (size_t i = 0; i < n_segments; i++) {
        struct columns_records rec = {{s[i].epoch0, s[i].base0}, s[i].n_words, s[i].n_records, 0};
        bool good = transform == EVENTS_WORDS ? scan_words(r->columns, words, &rec)
                                              : columns_get(r->columns, &source, &rec, words);
        if (!good)
            return false;
        s[i].epoch_end = rec.state.epoch;
        s[i].base_end = rec.state.base;
        s[i].words = words;
        words += s[i].n_words;
    }
    return columns_ended(&source);
}

static bool is_wanted(const struct trace_reader *r, size_t n_segments)
{
    const struct trace_segment *s = (const struct trace_segment *)(const void *)r->segments.data;
    bool wanted = !r->wants;
    for (size_t i = 0; !wanted && i < n_segments; i++)
        wanted = r->wants(r->wants_context, r->processes[s[i].process]);
    return wanted;
}

static int read_events(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                       struct err *e)
{
    if (f->size < EVENTS_HEADER_BYTES)
        return refuse_frame(r, f, "an events frame is too short", e);
    uint32_t flags = get_u32(f->data + 16);
    size_t n = get_u32(f->data + 20);
    unsigned transform = flags >> EVENTS_TRANSFORM_AT & 0xff;
    if (transform > EVENTS_COLUMNS)
        return refuse_unknown(r, f, "event transform", transform, e);
    uint64_t words = 0;
    int rc = read_table(r, f, n, &words, e);
    if (rc < 0)
        return rc;
    // A word needs at least seven bits, even in packed columns.
    if (words > EVENTS_MAX_WORDS || words / 2 > f->size)
        return refuse_frame(r, f, "an events frame holds too many words", e);
    item->batch = get_u64(f->data);
    item->watermark = get_u64(f->data + 8);
    item->batch_ends = flags & EVENTS_LAST_OF_BATCH;
    if (!is_wanted(r, n))
        return 0;
    if (!r->columns) {
        r->columns = malloc(sizeof *r->columns);
        if (!r->columns)
            return err_no_memory(e, r->in->name);
        columns_init(r->columns);
    }
    if (buf_resize(&r->words, words * 8) < 0 || columns_reserve(r->columns, (uint32_t)words) < 0)
        return err_no_memory(e, r->in->name);
    size_t head = EVENTS_HEADER_BYTES + n * EVENTS_SEGMENT_BYTES;
    if (!read_words(r, (enum columns_transform)transform, f->data + head, f->size - head, n)) {
        unsigned kind = columns_unknown_kind(r->columns, (enum columns_transform)transform,
                                             f->data + head, f->size - head);
        return kind ? refuse_unknown(r, f, "event kind", kind, e)
                    : refuse_frame(r, f, "the records are invalid", e);
    }
    item->segments = (const struct trace_segment *)(void *)r->segments.data;
    item->n_segments = n;
    return 0;
}

static int read_unrecorded(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                           struct err *e)
{
    (void)item;
    if (r->saw_unrecorded)
        return refuse_frame(r, f, "there is a second frame of unrecorded processes", e);
    r->saw_unrecorded = true;
    return check_fields(r, f, fields_get_unrecorded(f->data, f->size, &r->unrecorded), e);
}

static int read_names(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                      struct err *e)
{
    uint64_t number;
    if (!varint_get(f->data, f->data + f->size, &number) || number >= r->n_processes)
        return refuse_frame(r, f, "names of code refer to an unknown process", e);
    item->process = r->processes[number];
    item->names = f->data;
    item->names_bytes = f->size;
    return 0;
}

static int read_pages(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                      struct err *e)
{
    uint32_t number = fields_process_number(f->data, f->size);
    if (number >= r->n_processes)
        return refuse_frame(r, f, "a page map refers to an unknown process", e);
    item->process = r->processes[number];
    item->pages = f->data;
    item->pages_bytes = f->size;
    uint64_t bytes = trace_pages_recording_bytes(f->data, f->size);
    if (bytes > r->processes[number]->recording_rss_bytes)
        r->processes[number]->recording_rss_bytes = bytes;
    r->processes[number]->libraries |= fields_number(f->data, f->size, TRACE_F_LIBRARIES, 0);
    if (fields_number(f->data, f->size, TRACE_F_CXX_BYTES, 0))
        r->processes[number]->libraries |= LIBRARIES_CXX;
    return 0;
}

static int read_end(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                    struct err *e)
{
    (void)e;
    item->end_stamp = fields_number(f->data, f->size, TRACE_F_END_STAMP, 0);
    item->events = fields_number(f->data, f->size, TRACE_F_EVENTS, 0);
    item->clock_hz = fields_number(f->data, f->size, TRACE_F_CLOCK_HZ, 0);
    item->continues = fields_number(f->data, f->size, TRACE_F_CONTINUES, 0);
    r->saw_end = true;
    return 0;
}

int trace_read_frame(struct trace_reader *r, const struct frame *f, struct trace_item *item,
                     struct err *e)
{
    static int (*const readers[])(struct trace_reader * r, const struct frame *f,
                                  struct trace_item *item, struct err *e) = {
        [TRACE_PROCESS] = read_process, [TRACE_PROCESS_END] = read_process_end,
        [TRACE_EVENTS] = read_events,   [TRACE_SAMPLES] = read_samples,
        [TRACE_NAMES] = read_names,     [TRACE_PAGES] = read_pages,
        [TRACE_END] = read_end,         [TRACE_UNRECORDED] = read_unrecorded,
    };
    *item = (struct trace_item){.type = (enum trace_frame)f->type, .offset = f->offset};
    if (f->type == TRACE_SESSION)
        return refuse_frame(r, f, "there is a second session frame", e);
    if (f->type >= sizeof readers / sizeof *readers || !readers[f->type])
        return 0;
    int rc = readers[f->type](r, f, item, e);
    return rc < 0 ? rc : 1;
}

int trace_next(struct trace_reader *r, struct trace_item *item, struct err *e)
{
    struct frame f;
    int rc;
    do {
        rc = frame_next(&r->frames, &f, e);
        if (rc <= 0)
            return rc;
        if (r->saw_end)
            return refuse_frame(r, &f, "a frame follows the end frame", e);
        rc = trace_read_frame(r, &f, item, e);
    } while (rc == 0);
    return rc;
}
