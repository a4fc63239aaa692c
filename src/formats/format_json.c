// JSON lines: an object an event. Events of a workload name slots (numbers) and threads from 0, those of a raw trace
// addresses (hex strings) and the system's thread numbers. Reading: format_json_import.c.
#include "formats/format_json.h"

#include "base/bytes.h"
#include "base/json.h"
#include "formats/text.h"

#include <errno.h>
#include <stdlib.h>

enum {
    LINE_BYTES =
        1024, // most of a line without its text and dependencies: 16 names and 20-digit numbers
    DEPENDENCY_BYTES = 48,
    ESCAPED_BYTES = 6, // most that a byte of text becomes
    FRAME_BYTES = 8,
};

// Inline, so that the length of a key is a constant.
static inline __attribute__((always_inline)) char *put_number(char *to, const char *key, uint64_t v)
{
    to = text_put(to, key, strlen(key));
    return text_decimal(to, v);
}

static inline __attribute__((always_inline)) char *put_block(char *to, const char *key,
                                                             uint64_t block, bool slots)
{
    to = text_put(to, key, strlen(key));
    if (slots)
        return block ? text_decimal(to, block - 1) : TEXT_PUT(to, "null");
    to = TEXT_PUT(to, "\"0x");
    to = text_hex(to, block);
    *to++ = '"';
    return to;
}

static char *put_argument(char *to, const struct event *ev, unsigned field, uint64_t v)
{
    const struct event_argument a = event_argument(ev->kind, field);
    to = TEXT_PUT(to, ",\"");
    to = text_put(to, a.name, strlen(a.name));
    to = TEXT_PUT(to, "\":");
    if (ev->kind == HT_THREAD_START && v == HT_NO_THREAD)
        return TEXT_PUT(to, "null");
    if (a.is_signed && (int64_t)v < 0) {
        *to++ = '-';
        v = -v;
    }
    return text_decimal(to, v);
}

// The kinds whose arguments have names of their own.
static char *put_arguments(char *to, const struct event *ev)
{
    const uint64_t values[] = {ev->ptr, ev->size, ev->count, ev->align, ev->result, ev->value};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        unsigned field = event_infos[ev->kind].fields & 1u << i;
        if (field & (HT_F_SIZE | HT_F_COUNT | HT_F_ALIGN | HT_F_VALUE))
            to = put_argument(to, ev, field, values[i]);
    }
    return to;
}

static char *put_numbers(char *to, const struct event *ev)
{
    unsigned fields = event_infos[ev->kind].fields;
    if (event_infos[ev->kind].class > HT_CLASS_RESIZE)
        return put_arguments(to, ev);
    if (fields & HT_F_SIZE)
        to = put_number(to, ",\"size\":", ev->size);
    if (fields & HT_F_COUNT)
        to = put_number(to, ",\"count\":", ev->count);
    if (fields & HT_F_ALIGN)
        to = put_number(to, ",\"align\":", ev->align);
    return to;
}

static char *put_blocks(char *to, const struct event *ev, bool slots)
{
    const struct event_info *info = &event_infos[ev->kind];
    // Without addresses those of mappings are unknown.
    if (slots && info->class > HT_CLASS_RESIZE)
        return to;
    if (info->fields & HT_F_PTR)
        to = put_block(to, info->class == HT_CLASS_RESIZE ? ",\"old_ptr\":" : ",\"ptr\":", ev->ptr,
                       slots);
    if (info->fields & HT_F_RESULT)
        to = put_block(to, ",\"result\":", ev->result, slots);
    return to;
}

// Texts are rare: the JSON writer knows what is to be escaped.
static char *put_text(char *to, const char *text, size_t n)
{
    char *quoted = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&quoted, &bytes);
    if (!memory)
        return NULL;
    json_string_n(&(struct json){.to = memory}, text, n);
    bool good = fclose(memory) == 0;
    if (good) {
        to = TEXT_PUT(to, ",\"text\":");
        to = text_put(to, quoted, bytes);
    }
    free(quoted);
    return good ? to : NULL;
}

// A call site's frames are its text.
static char *put_frames(char *to, const struct event *ev)
{
    to = TEXT_PUT(to, ",\"frames\":[");
    for (uint32_t i = 0; i + FRAME_BYTES <= ev->text_bytes; i += FRAME_BYTES)
        to = put_block(to, i ? "," : "", get_u64((const uint8_t *)ev->text + i), false);
    *to++ = ']';
    return to;
}

static char *put_notes(char *to, const struct event *ev)
{
    for (unsigned i = 0; i < HT_NOTES; i++) {
        if (!ev->notes[i])
            continue;
        to = TEXT_PUT(to, ",\"");
        to = text_put(to, event_note_names[i], strlen(event_note_names[i]));
        to = put_number(to, "\":", ev->notes[i]);
    }
    return to;
}

static char *put_depends_on(char *to, const struct export_call *c)
{
    to = TEXT_PUT(to, ",\"depends_on\":[");
    for (uint32_t i = 0; i < c->n_dependencies; i++) {
        to = put_number(to, i ? ",[" : "[", c->dependencies[i].thread);
        to = put_number(to, ",", c->dependencies[i].op);
        *to++ = ']';
    }
    *to++ = ']';
    return to;
}

static char *put_head(char *to, struct format_json_heads *h, const struct export_call *c)
{
    enum { HEADS = sizeof h->heads / sizeof *h->heads };
    unsigned i = (c->ev.kind * 5u + (unsigned)c->tid) % HEADS;
    if (h->heads[i].n && h->heads[i].kind == c->ev.kind && h->heads[i].tid == c->tid &&
        h->heads[i].pid == c->pid) {
        memcpy(to, h->heads[i].text, sizeof h->heads[i].text);
        return to + h->heads[i].n;
    }
    const char *name = event_infos[c->ev.kind].name, *from = to;
    to = TEXT_PUT(to, "{\"kind\":\"");
    to = text_put(to, name, strlen(name));
    to = put_number(to, "\",\"pid\":", c->pid);
    to = put_number(to, ",\"tid\":", c->tid);
    h->heads[i].n = 0;
    if ((size_t)(to - from) > sizeof h->heads[i].text)
        return to;
    h->heads[i].kind = c->ev.kind;
    h->heads[i].pid = c->pid;
    h->heads[i].tid = c->tid;
    h->heads[i].n = (unsigned)(to - from);
    memcpy(h->heads[i].text, from, h->heads[i].n);
    return to;
}

// Bytes of the object at most.
static size_t most_bytes(const struct export_call *c)
{
    return LINE_BYTES + (size_t)c->ev.text_bytes * ESCAPED_BYTES +
           (size_t)c->n_dependencies * DEPENDENCY_BYTES;
}

// NULL when out of memory.
static char *put_object(char *to, struct format_json_heads *heads, const struct export_call *c,
                        unsigned calls)
{
    const struct event *ev = &c->ev;
    bool slots = (calls & FORMAT_JSON_SLOTS) && event_infos[ev->kind].class != HT_CLASS_META;
    to = put_head(to, heads, c);
    if (calls & FORMAT_JSON_TIMES)
        to = put_number(to, ",\"time_ns\":", ev->stamp);
    to = put_numbers(to, ev);
    to = put_blocks(to, ev, slots);
    if (ev->error || c->failed)
        to = put_number(to, ",\"error\":", ev->error);
    // Elsewhere in a raw trace threads go by numbers, and this is where a number meets its tid.
    if (!slots && ev->kind == HT_THREAD_START)
        to = put_number(to, ",\"thread\":", c->thread);
    to = put_notes(to, ev);
    if (event_has_frames(ev->kind))
        to = put_frames(to, ev);
    else if (ev->text_bytes)
        to = put_text(to, ev->text, ev->text_bytes);
    if (to && c->n_dependencies)
        to = put_depends_on(to, c);
    return to ? TEXT_PUT(to, "}\n") : NULL;
}

int format_json_put(struct buf *b, struct format_json_heads *heads, const struct export_call *c,
                    unsigned calls)
{
    if (buf_reserve(b, most_bytes(c)) < 0)
        return -ENOMEM;
    const char *end = put_object((char *)b->data + b->size, heads, c, calls);
    if (!end)
        return -ENOMEM;
    b->size = (size_t)((const uint8_t *)end - b->data);
    return 0;
}

struct json_export {
    struct buf line;
    struct format_json_heads heads;
};

static int json_put(struct export *x, const struct export_call *c)
{
    struct json_export *j = x->state;
    unsigned calls =
        (x->facts.slots ? FORMAT_JSON_SLOTS : 0) | (x->facts.has_stamps ? FORMAT_JSON_TIMES : 0);
    size_t most = most_bytes(c);
    j->line.size = 0;
    if (most <= EXPORT_BUFFER_MAX_PIECE) {
        const char *end =
            put_object((char *)export_buffer_reserve(&x->out, most), &j->heads, c, calls);
        if (end) {
            export_buffer_commit(&x->out, end);
            return 0;
        }
    } else if (format_json_put(&j->line, &j->heads, c, calls) == 0) {
        export_buffer_put(&x->out, j->line.data, j->line.size);
        return 0;
    }
    return err_set(x->e, -ENOMEM, "%s: out of memory", x->out.out->name);
}

static void json_release(struct export *x)
{
    struct json_export *j = x->state;
    buf_release(&j->line);
}

const struct format format_json = {
    .name = "json",
    .import =
        {
            .read = format_json_import,
            .several_processes = true,
            .window = 1000000,
        },
    .export =
        {
            .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_PIDS | FORMAT_HOLDS_TIDS |
                     FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED | FORMAT_HOLDS_NULL |
                     FORMAT_HOLDS_ADDRESSES | FORMAT_HOLDS_RESIDENCY,
            .notes = ~0u,
            .state_bytes = sizeof(struct json_export),
            .put = json_put,
            .release = json_release,
        },
};
