// Raw traces of the branch wip-malloc-tracing of gperftools. A trace consists of buffers in the
// order in which they were flushed. Each buffer holds events of one thread. The format is described
// in docs/reference/foreign-formats.md, "tcmalloc".
#include "base/buf.h"
#include "base/bytes.h"
#include "base/varint.h"
#include "formats/export.h"
#include "formats/import.h"

#include <errno.h>
#include <stdlib.h>

#define TCMALLOC_MAGIC 0x6cbd63e4u

enum tcmalloc_type {
    TCMALLOC_MALLOC = 0,
    TCMALLOC_FREE = 1,
    TCMALLOC_TOKENS = 2,
    TCMALLOC_BUFFER = 3,
    TCMALLOC_FREE_SIZED = 4,
    TCMALLOC_LONG = 7, // the type is in the low 8 bits of the first number
    TCMALLOC_DEATH = 0x07,
    TCMALLOC_END = 0x0f,
    TCMALLOC_REALLOC = 0x17,
    TCMALLOC_MEMALIGN = 0x1f,
    TCMALLOC_BARRIER = 0x27,
    TCMALLOC_MISC = 0x2f,
};

enum {
    TCMALLOC_TYPE_BITS = 3,      // bits of the type in an item's first number
    TCMALLOC_LONG_TYPE_BITS = 8, // for types whose low bits are TCMALLOC_LONG
    TCMALLOC_NUMBER_BYTES = 9,   // maximum length of a varint
    TCMALLOC_CPU_BITS = 10,      // low bits of ts|cpu
    TCMALLOC_SIZE_UNIT = 8,
};

// Allocations of at least this size always fail, because addresses have 47 bits.
#define NO_SIZE (1ull << 47)

enum {
    // Maximum length of an event, or of the numbers that precede a buffer's events.
    ITEM_BYTES = 3 * TCMALLOC_NUMBER_BYTES,
    SLOTS_FIRST = 1, // so that token 0 does not become address 0
};

// State of a thread's deltas, which lasts from one buffer to the next.
struct tcmalloc_thread {
    uint64_t id;
    uint64_t size_units, freed; // values after the previous event
    unsigned lost_bits;         // number of unknown high bits in size_units
    uint64_t next_token;
    uint64_t flushed_ns; // time at which the thread's previous buffer was flushed
    bool has_tokens;
};

struct tcmalloc_import {
    struct import *im;
    struct map by_id; // maps a thread id to the thread's index plus 1
    struct tcmalloc_thread *threads;
    size_t n, capacity;
    // The current buffer.
    size_t thread;
    uint64_t begin_ns, end_ns, bytes, left;
};

// Parses a varint. The number of trailing zero bits in the first byte is the length minus one.
// Returns the number of bytes used, or 0 if the varint is truncated.
static inline size_t get_number(const uint8_t *at, size_t n, uint64_t *v)
{
    if (__builtin_expect(n >= TCMALLOC_NUMBER_BYTES, 1)) {
        uint64_t word = get_u64(at);
        if (__builtin_expect((word & 0xff) != 0, 1)) {
            unsigned bytes = (unsigned)__builtin_ctzll(word) + 1;
            *v = (word << (64 - 8 * bytes)) >> (64 - 7 * bytes);
            return bytes;
        }
        *v = get_u64(at + 1);
        return TCMALLOC_NUMBER_BYTES;
    }
    uint8_t padded[16] = {0};
    memcpy(padded, at, n);
    size_t bytes = n == 0      ? 1
                   : padded[0] ? (size_t)__builtin_ctz(padded[0]) + 1
                               : TCMALLOC_NUMBER_BYTES;
    return bytes > n ? 0 : get_number(padded, sizeof padded, v);
}

static int get_thread(struct tcmalloc_import *t, uint64_t id)
{
    struct tcmalloc_thread *s = MAP_ITEM(&t->by_id, id, &t->threads, &t->n, &t->capacity);
    if (!s)
        return import_no_memory(t->im);
    s->id = id;
    t->thread = (size_t)(s - t->threads);
    return 0;
}

// Estimates the time of the next event. Assumes that a buffer's events are spread evenly over the
// time between the previous flush and the flush of this buffer.
static uint64_t stamp_now(const struct tcmalloc_import *t)
{
    double part = (double)(t->bytes - t->left) / (double)t->bytes;
    return t->begin_ns + (uint64_t)(part * (double)(t->end_ns - t->begin_ns));
}

static uint64_t address(uint64_t token)
{
    return (token + SLOTS_FIRST) << 4;
}

// Applies the size delta in the high bits of `word`. If a call failed because of a huge size, the
// high bits of its delta are missing. Sizes are therefore computed modulo 2^60. After a huge size
// in an event with an 8-bit type, sizes are computed modulo 2^55 until the next size that is not
// huge.
static void read_size(struct tcmalloc_thread *s, uint64_t word, unsigned type_bits,
                      struct event *ev)
{
    unsigned lost = type_bits + 1 > s->lost_bits ? type_bits + 1 : s->lost_bits;
    s->size_units += (uint64_t)zigzag_get(word >> type_bits);
    s->size_units &= UINT64_MAX >> lost;
    s->lost_bits = s->size_units < NO_SIZE / TCMALLOC_SIZE_UNIT ? 0 : lost;
    ev->size = s->size_units * TCMALLOC_SIZE_UNIT;
    ev->result = address(s->next_token++);
    if (ev->size >= NO_SIZE)
        ev->result = 0;
}

static void free_token(struct tcmalloc_thread *s, uint64_t delta, struct event *ev)
{
    s->freed += (uint64_t)zigzag_get(delta);
    ev->ptr = address(s->freed);
}

// Decodes an event from its type and its two numbers. If the item is not an event, `kind` of the
// result is 0.
static struct event decode_event(struct tcmalloc_thread *s, unsigned type, uint64_t word,
                                 uint64_t more)
{
    struct event ev = {0};
    switch (type) {
    case TCMALLOC_MALLOC:
        ev.kind = HT_MALLOC;
        read_size(s, word, 3, &ev);
        break;
    case TCMALLOC_FREE:
    case TCMALLOC_FREE_SIZED: // the trace does not contain the size
        ev.kind = HT_FREE;
        free_token(s, word >> 3, &ev);
        break;
    case TCMALLOC_REALLOC:
        ev.kind = HT_REALLOC;
        free_token(s, more, &ev);
        read_size(s, word, 8, &ev);
        break;
    case TCMALLOC_MEMALIGN:
        ev.kind = HT_MEMALIGN;
        ev.align = more;
        read_size(s, word, 8, &ev);
        break;
    case TCMALLOC_TOKENS:
        s->next_token = word >> 3;
        s->has_tokens = true;
        break;
    }
    return ev;
}

// How many numbers an event in a buffer and an outer-level item contain; 0 for other types.
static const uint8_t event_numbers[256] = {
    [TCMALLOC_MALLOC] = 1, [TCMALLOC_FREE] = 1,    [TCMALLOC_FREE_SIZED] = 1,
    [TCMALLOC_TOKENS] = 2, [TCMALLOC_REALLOC] = 2, [TCMALLOC_MEMALIGN] = 2,
};
static const uint8_t item_numbers[256] = {
    [TCMALLOC_END] = 1,    [TCMALLOC_DEATH] = 2, [TCMALLOC_BARRIER] = 2,
    [TCMALLOC_BUFFER] = 3, [TCMALLOC_MISC] = 3,
};

// Reads one event from the buffer. Returns 0 or a negative errno. If the rest of the buffer cannot
// be decoded, sets *used to 0.
static inline int read_event(struct tcmalloc_import *t, const uint8_t *at, size_t n, size_t *used)
{
    struct import *im = t->im;
    struct tcmalloc_thread *s = &t->threads[t->thread];
    uint64_t word, more = 0;
    *used = 0;
    size_t first = get_number(at, n, &word), second = 0;
    unsigned type = (word & 7) == TCMALLOC_LONG ? word & 0xff : word & 7;
    bool has_two = event_numbers[type] == 2;
    if (first && !event_numbers[type])
        return import_bad(im, import_source_offset(&im->source),
                          "expected an event in a buffer, found type %u", type);
    if (first && has_two)
        second = get_number(at + first, n - first, &more);
    if (!first || (!second && has_two))
        return n < t->left
                   ? import_cut_off(im, import_source_offset(&im->source), "a buffer's event")
                   : import_bad(im, import_source_offset(&im->source),
                                "expected a complete event in a buffer");
    *used = first + second;
    bool allocates =
        type != TCMALLOC_FREE && type != TCMALLOC_FREE_SIZED && type != TCMALLOC_TOKENS;
    if (allocates && !s->has_tokens)
        return import_bad(im, import_source_offset(&im->source),
                          "expected the token range of thread %llu before its first allocation",
                          (unsigned long long)s->id);
    struct event ev = decode_event(s, type, word, more);
    if (!ev.kind)
        return 0;
    ev.stamp = stamp_now(t);
    return import_put(im, 1, s->id, &ev);
}

static int report_cut(struct tcmalloc_import *t, const char *what)
{
    return import_cut_off(t->im, import_source_offset(&t->im->source), what);
}

// Reads a buffer's t->left bytes of events. After an event that cannot be decoded, skips the rest
// of the buffer. Returns 0, 1 if the input ends within the buffer, or a negative errno.
static int read_events(struct tcmalloc_import *t)
{
    struct import_source *s = &t->im->source;
    bool lost = false;
    while (t->left) {
        ssize_t n = import_source_want(s, ITEM_BYTES, t->im->e);
        if (n <= 0)
            return n < 0 ? (int)n : lost ? 1 : report_cut(t, "a buffer") ?: 1;
        size_t use = (uint64_t)n < t->left ? (size_t)n : (size_t)t->left;
        int rc = 0;
        if (!lost) {
            size_t most = use;
            rc = read_event(t, s->data + s->at, most, &use);
            lost = use == 0;
        }
        if (rc < 0)
            return rc;
        s->at += use;
        t->left -= use;
    }
    return 0;
}

static int read_buffer(struct tcmalloc_import *t, uint64_t id, uint64_t ts, uint64_t bytes)
{
    int rc = get_thread(t, id);
    if (rc < 0)
        return rc;
    struct tcmalloc_thread *s = &t->threads[t->thread];
    t->end_ns = ts;
    t->begin_ns = s->flushed_ns > t->im->stamp ? s->flushed_ns : t->im->stamp;
    if (t->begin_ns > t->end_ns || !t->begin_ns)
        t->begin_ns = t->end_ns;
    t->bytes = t->left = bytes;
    s->flushed_ns = ts;
    return read_events(t);
}

static int skip_text(struct tcmalloc_import *t, uint64_t bytes)
{
    struct import_source *s = &t->im->source;
    while (bytes) {
        ssize_t n = import_source_want(s, 1, t->im->e);
        if (n <= 0)
            return n < 0 ? (int)n : report_cut(t, "a text") ?: 1;
        size_t use = (uint64_t)n < bytes ? (size_t)n : (size_t)bytes;
        s->at += use;
        bytes -= use;
    }
    return 0;
}

static int thread_dies(struct tcmalloc_import *t, uint64_t id, uint64_t ts)
{
    int rc = get_thread(t, id);
    struct event ev = {.kind = HT_THREAD_END, .stamp = ts};
    if (rc == 0)
        rc = import_put(t->im, 1, id, &ev);
    // The thread id may be reused.
    if (rc == 0)
        t->threads[t->thread] = (struct tcmalloc_thread){.id = id};
    return rc;
}

static int do_item(struct tcmalloc_import *t, unsigned type, const uint64_t v[3])
{
    uint64_t ts = v[1] >> TCMALLOC_CPU_BITS << TCMALLOC_CPU_BITS;
    if (type == TCMALLOC_BUFFER)
        return read_buffer(t, v[0] >> 3, ts, v[2]);
    if (type == TCMALLOC_DEATH)
        return thread_dies(t, v[0] >> 8, ts);
    return type == TCMALLOC_MISC ? skip_text(t, v[2]) : type == TCMALLOC_END;
}

// Reads one outer-level item. Returns 0, 1 at the end of the trace, or a negative errno.
static int read_item(struct tcmalloc_import *t)
{
    struct import_source *s = &t->im->source;
    uint64_t v[3] = {0};
    ssize_t n = import_source_want(s, ITEM_BYTES, t->im->e);
    if (n < 0)
        return (int)n;
    if (n == 0)
        return import_bad(t->im, import_source_offset(s),
                          "expected an end record, found the end of the file")
                   ?: 1;
    const uint8_t *at = s->data + s->at;
    size_t used = get_number(at, (size_t)n, &v[0]);
    unsigned type = (v[0] & 7) == TCMALLOC_LONG ? v[0] & 0xff : v[0] & 7;
    if (used && !item_numbers[type])
        return import_bad(
                   t->im, import_source_offset(s),
                   "expected a buffer, thread death, barrier, text or end record, found type %u",
                   type)
                   ?: 1;
    for (unsigned i = 1; used && i < item_numbers[type]; i++) {
        size_t more = get_number(at + used, (size_t)n - used, &v[i]);
        used = more ? used + more : 0;
    }
    if (!used)
        return report_cut(t, "an item") ?: 1;
    s->at += used;
    return do_item(t, type, v);
}

static int tcmalloc_import(struct import *im)
{
    struct tcmalloc_import t = {.im = im};
    ssize_t n = import_source_want(&im->source, 4, im->e);
    if (n < 0)
        return (int)n;
    if (n < 4 || get_u32(im->source.data + im->source.at) != TCMALLOC_MAGIC)
        return err_set(im->e, -EPROTO,
                       "%s: expected the magic number of a gperftools trace (0x6cbd63e4) at byte 0",
                       im->source.in->name);
    im->source.at += 4;
    im->has_times = true;
    int rc;
    do {
        rc = read_item(&t);
    } while (rc == 0);
    free(t.threads);
    map_release(&t.by_id);
    return rc < 0 ? rc : 0;
}

// Writing. Calls arrive in a total order, so each buffer holds one thread's calls up to the next
// call of another thread.

enum {
    TOKENS_A_RANGE = 1024,   // size of a thread's token range
    MAX_BUFFER_BYTES = 4096, // limit on a thread's pending events
    NO_TIME_STEP = 1,        // time between calls if there are no timestamps
};

// State of a thread's deltas.
struct tcmalloc_writer {
    uint64_t size_units, freed, next_token;
    unsigned tokens_left; // tokens left in the current range
};

struct tcmalloc_export {
    struct tcmalloc_writer *threads; // indexed by thread number
    size_t n, capacity;
    uint64_t *tokens; // indexed by slot + 1
    size_t n_tokens, tokens_capacity;
    uint64_t next_token; // where the next range starts
    uint32_t thread;     // thread of the current buffer
    uint64_t ts, calls;
    struct buf events; // events of the current buffer
};

// Writes a varint. The number of trailing zero bits in the first byte is the length minus one; a
// first byte of zero is followed by 8 bytes.
static uint8_t *put_number(uint8_t *to, uint64_t v)
{
    unsigned bytes = v ? ((unsigned)(63 - __builtin_clzll(v))) / 7 + 1 : 1;
    uint8_t word[8];
    if (bytes >= TCMALLOC_NUMBER_BYTES) {
        *to = 0;
        put_u64(to + 1, v);
        return to + TCMALLOC_NUMBER_BYTES;
    }
    put_u64(word, v << bytes | 1ull << (bytes - 1));
    memcpy(to, word, bytes);
    return to + bytes;
}

static uint64_t thread_id(uint32_t thread)
{
    return thread + 1ull;
}

static void flush_buffer(struct export *x)
{
    struct tcmalloc_export *t = x->state;
    if (!t->events.size)
        return;
    uint8_t *to = export_buffer_reserve(&x->out, 3 * (size_t)TCMALLOC_NUMBER_BYTES);
    to = put_number(to, thread_id(t->thread) << TCMALLOC_TYPE_BITS | TCMALLOC_BUFFER);
    to = put_number(to, t->ts);
    to = put_number(to, t->events.size);
    export_buffer_commit(&x->out, to);
    export_buffer_put(&x->out, t->events.data, t->events.size);
    t->events.size = 0;
}

// Appends an event with one number, or with two if `two` is set.
static int put_event(struct export *x, uint64_t first, bool two, uint64_t second)
{
    struct tcmalloc_export *t = x->state;
    if (buf_reserve(&t->events, 2 * (size_t)TCMALLOC_NUMBER_BYTES) < 0)
        return export_no_memory(x);
    uint8_t *to = put_number(t->events.data + t->events.size, first);
    to = two ? put_number(to, second) : to;
    t->events.size = (size_t)(to - t->events.data);
    return 0;
}

// Assigns the thread's next token to the block.
static int assign_token(struct export *x, struct tcmalloc_writer *w, uint64_t block)
{
    struct tcmalloc_export *t = x->state;
    int rc = 0;
    if (HT_EXTEND(&t->tokens, &t->n_tokens, &t->tokens_capacity, block + 1) < 0)
        return export_no_memory(x);
    if (!w->tokens_left) {
        w->next_token = t->next_token;
        w->tokens_left = TOKENS_A_RANGE;
        t->next_token += TOKENS_A_RANGE;
        rc = put_event(x, w->next_token << TCMALLOC_TYPE_BITS | TCMALLOC_TOKENS, true, t->ts);
    }
    t->tokens[block] = w->next_token++;
    w->tokens_left--;
    return rc;
}

// Returns the size delta. The high bits that do not fit above the type are dropped.
static uint64_t size_change(struct tcmalloc_writer *w, uint64_t bytes)
{
    uint64_t units = bytes / TCMALLOC_SIZE_UNIT + (bytes % TCMALLOC_SIZE_UNIT != 0);
    uint64_t change = zigzag_put((int64_t)(units - w->size_units));
    w->size_units = units;
    return change;
}

static uint64_t freed_change(const struct export *x, struct tcmalloc_writer *w, uint64_t block)
{
    const struct tcmalloc_export *t = x->state;
    uint64_t token = block < t->n_tokens ? t->tokens[block] : 0;
    uint64_t change = zigzag_put((int64_t)(token - w->freed));
    w->freed = token;
    return change;
}

static int put_call(struct export *x, struct tcmalloc_writer *w, const struct event *ev)
{
    uint64_t freed = ev->ptr ? freed_change(x, w, ev->ptr) : 0;
    if (ev->kind == HT_FREE)
        return put_event(x, freed << TCMALLOC_TYPE_BITS | TCMALLOC_FREE, false, 0);
    int rc = assign_token(x, w, ev->result);
    if (rc < 0)
        return rc;
    // A realloc to 0 bytes would only free the block, so write a size of 1.
    uint64_t size = size_change(w, ev->kind == HT_REALLOC && ev->ptr && !ev->size ? 1 : ev->size);
    if (ev->kind == HT_REALLOC && ev->ptr)
        return put_event(x, size << TCMALLOC_LONG_TYPE_BITS | TCMALLOC_REALLOC, true, freed);
    if (ev->kind == HT_MEMALIGN)
        return put_event(x, size << TCMALLOC_LONG_TYPE_BITS | TCMALLOC_MEMALIGN, true,
                         export_power_of_two(ev->align));
    return put_event(x, size << TCMALLOC_TYPE_BITS | TCMALLOC_MALLOC, false, 0);
}

static void put_death(struct export *x, uint32_t thread)
{
    struct tcmalloc_export *t = x->state;
    flush_buffer(x);
    uint8_t *to = export_buffer_reserve(&x->out, 2 * (size_t)TCMALLOC_NUMBER_BYTES);
    to = put_number(to, thread_id(thread) << TCMALLOC_LONG_TYPE_BITS | TCMALLOC_DEATH);
    to = put_number(to, t->ts);
    export_buffer_commit(&x->out, to);
    t->threads[thread] = (struct tcmalloc_writer){0};
}

static int tcmalloc_begin(struct export *x)
{
    uint8_t *to = export_buffer_reserve(&x->out, 4);
    put_u32(to, TCMALLOC_MAGIC);
    export_buffer_commit(&x->out, to + 4);
    return 0;
}

static int tcmalloc_put(struct export *x, const struct export_call *c)
{
    struct tcmalloc_export *t = x->state;
    if (HT_EXTEND(&t->threads, &t->n, &t->capacity, c->thread + 1ull) < 0)
        return export_no_memory(x);
    if (t->thread != c->thread || t->events.size >= MAX_BUFFER_BYTES)
        flush_buffer(x);
    t->thread = c->thread;
    t->calls += NO_TIME_STEP;
    t->ts = (x->facts.has_stamps ? c->ev.stamp >> TCMALLOC_CPU_BITS : t->calls)
            << TCMALLOC_CPU_BITS;
    if (c->ev.kind != HT_THREAD_END)
        return put_call(x, &t->threads[c->thread], &c->ev);
    put_death(x, c->thread);
    return 0;
}

static int tcmalloc_end(struct export *x)
{
    flush_buffer(x);
    uint8_t *to = export_buffer_reserve(&x->out, TCMALLOC_NUMBER_BYTES);
    export_buffer_commit(&x->out, put_number(to, TCMALLOC_END));
    return 0;
}

static void tcmalloc_release(void *state)
{
    struct tcmalloc_export *t = state;
    free(t->threads);
    free(t->tokens);
    buf_release(&t->events);
}

static const uint8_t kinds[] = {HT_MALLOC, HT_FREE, HT_REALLOC, HT_MEMALIGN, HT_THREAD_END, 0};

const struct format format_tcmalloc = {
    .name = "tcmalloc",
    .import =
        {
            .read = tcmalloc_import,
            // An allocation's buffer may be flushed long after the buffer with another thread's
            // free of the block.
            .window = 10000000000u,
        },
    .export =
        {
            .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_TIDS,
            .kinds = kinds,
            .state_bytes = sizeof(struct tcmalloc_export),
            .begin = tcmalloc_begin,
            .put = tcmalloc_put,
            .end = tcmalloc_end,
            .release = tcmalloc_release,
        },
};
