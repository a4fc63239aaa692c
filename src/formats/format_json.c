// JSON lines, one object per event. In a workload, blocks are slots (numbers), and threads are
// numbered from 0. In a raw trace, blocks are addresses (hex strings), and threads have tids.
#include "formats/format_json.h"

#include "base/bytes.h"
#include "base/json.h"
#include "formats/import.h"
#include "formats/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    // Maximum length of a line without text and dependencies: 16 keys, and numbers of 20 digits.
    LINE_BYTES = 1024,
    DEPENDENCY_BYTES = 48,
    ESCAPED_BYTES = 6, // maximum length of an escaped byte of text
    FRAME_BYTES = 8,
};

// Inlined so that the key length is a constant.
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

// Writes the arguments that have other names in this kind than their fields have.
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
    // In a workload, the addresses of mappings are unknown.
    if (slots && info->class > HT_CLASS_RESIZE)
        return to;
    if (info->fields & HT_F_PTR)
        to = put_block(to, info->class == HT_CLASS_RESIZE ? ",\"old_ptr\":" : ",\"ptr\":", ev->ptr,
                       slots);
    if (info->fields & HT_F_RESULT)
        to = put_block(to, ",\"result\":", ev->result, slots);
    return to;
}

// Escapes strings with the general JSON writer, because they are rare.
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

// Writes the frames of a call site. The event's text holds their addresses.
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

static char *put_head(char *to, const struct export_call *c)
{
    const char *name = event_infos[c->ev.kind].name;
    to = TEXT_PUT(to, "{\"kind\":\"");
    to = text_put(to, name, strlen(name));
    to = put_number(to, "\",\"pid\":", c->pid);
    return put_number(to, ",\"tid\":", c->tid);
}

// Upper bound on the length of an object.
static size_t most_bytes(const struct export_call *c)
{
    return LINE_BYTES + (size_t)c->ev.text_bytes * ESCAPED_BYTES +
           (size_t)c->n_dependencies * DEPENDENCY_BYTES;
}

// Returns the end of the object, or NULL when out of memory.
static char *put_object(char *to, const struct export_call *c, unsigned calls)
{
    const struct event *ev = &c->ev;
    bool slots = (calls & FORMAT_JSON_SLOTS) && event_infos[ev->kind].class != HT_CLASS_META;
    to = put_head(to, c);
    if (calls & FORMAT_JSON_TIMES)
        to = put_number(to, ",\"time_ns\":", ev->stamp);
    to = put_numbers(to, ev);
    to = put_blocks(to, ev, slots);
    if (ev->error || c->failed)
        to = put_number(to, ",\"error\":", ev->error);
    // Writes both the thread's number and its tid. In a raw trace, other events contain only one of
    // the two.
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

int format_json_put(struct buf *b, const struct export_call *c, unsigned calls)
{
    if (buf_reserve(b, most_bytes(c)) < 0)
        return -ENOMEM;
    const char *end = put_object((char *)b->data + b->size, c, calls);
    if (!end)
        return -ENOMEM;
    b->size = (size_t)((const uint8_t *)end - b->data);
    return 0;
}

static int json_put(struct export *x, const struct export_call *c)
{
    struct buf *line = x->state;
    unsigned calls =
        (x->facts.slots ? FORMAT_JSON_SLOTS : 0) | (x->facts.has_stamps ? FORMAT_JSON_TIMES : 0);
    size_t most = most_bytes(c);
    line->size = 0;
    if (most <= EXPORT_BUFFER_MAX_PIECE) {
        const char *end = put_object((char *)export_buffer_reserve(&x->out, most), c, calls);
        if (end) {
            export_buffer_commit(&x->out, end);
            return 0;
        }
    } else if (format_json_put(line, c, calls) == 0) {
        export_buffer_put(&x->out, line->data, line->size);
        return 0;
    }
    return export_no_memory(x);
}

static void json_export_release(void *state)
{
    buf_release(state);
}

// A scanner for lines, eight times as fast as a general JSON parser.

// State of the scanner. Values end before `end`. `bad` describes the first expected item that was
// not found.
struct scan {
    const char *at, *end;
    const char *bad;
    char unknown[64]; // name of an event kind that is unknown to this version, or ""
};

// Keys of a line.
struct fields {
    struct event ev;
    uint64_t pid, tid;
    uint64_t thread;
    bool has_kind, has_pid, has_tid, has_stamp, has_error, has_thread;
};

// A thread that has been created but has not started.
struct created_thread {
    uint32_t pid;
    uint64_t number;
};

// Threads of a raw trace. thread.create contains the number of the new thread, thread.start
// contains the number and the tid, and other events contain the tid. The key of a new thread is
// derived from its number; thread.start maps the tid to that key.
struct json_import {
    bool begun, is_raw;
    struct created_thread *created;
    size_t n_created, created_capacity;
    struct map keys;                 // maps a pid and a tid to a key
    char text[CODEC_MAX_TEXT_BYTES]; // text of the current line
};

#define KEY_OF_NUMBER(number) (1ull << 33 | (number))

static void *set_expected(struct scan *s, const char *what)
{
    if (!s->bad)
        s->bad = what;
    return NULL;
}

static void skip_space(struct scan *s)
{
    while (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')
        s->at++;
}

static bool match_char(struct scan *s, char c)
{
    skip_space(s);
    return text_match(&s->at, c);
}

static bool expect_char(struct scan *s, char c, const char *what)
{
    return match_char(s, c) || set_expected(s, what);
}

// Finds the bytes between quotes, but does not decode escapes.
static bool scan_string(struct scan *s, const char **text, size_t *n)
{
    if (!expect_char(s, '"', "a string"))
        return false;
    *text = s->at;
    while (s->at < s->end && *s->at != '"')
        s->at += *s->at == '\\' ? 2 : 1;
    if (s->at >= s->end) {
        s->at = s->end;
        return set_expected(s, "the end of a string");
    }
    *n = (size_t)(s->at++ - *text);
    return true;
}

static uint64_t scan_number(struct scan *s)
{
    uint64_t v = 0;
    skip_space(s);
    if (!text_parse_number(&s->at, &v))
        set_expected(s, *s->at >= '0' && *s->at <= '9' ? "a number of 64 bits" : "a whole number");
    return v;
}

static uint64_t scan_signed(struct scan *s)
{
    skip_space(s);
    return text_match(&s->at, '-') ? -scan_number(s) : scan_number(s);
}

static uint64_t scan_address(struct scan *s)
{
    uint64_t v = 0;
    if (expect_char(s, '"', "an address, \"0x…\"") &&
        !(text_parse_address(&s->at, &v) && text_match(&s->at, '"')))
        set_expected(s, "an address, \"0x…\"");
    return v;
}

// Parses a block: an address, a slot, or null. A slot is converted to a unique address.
static uint64_t scan_block(struct scan *s)
{
    skip_space(s);
    if (*s->at == '"')
        return scan_address(s);
    if (TEXT_MATCH(&s->at, "null"))
        return 0;
    uint64_t slot = scan_number(s);
    if (slot >= WORKLOAD_NO_SLOT)
        set_expected(s, "a slot below 4294967295");
    return (slot + 1) << 4;
}

// Converts the four hex digits after \u to UTF-8. Surrogate pairs are not combined; heaptape does
// not write any.
static char *put_unicode(char *to, const char *digits, const char *end)
{
    unsigned v = 0;
    for (int i = 0; i < 4 && digits + i < end; i++)
        v = v << 4 | (text_hex_digit(digits[i]) & 15);
    if (v < 0x80) {
        *to++ = (char)v;
    } else if (v < 0x800) {
        *to++ = (char)(0xc0 | v >> 6);
        *to++ = (char)(0x80 | (v & 63));
    } else {
        *to++ = (char)(0xe0 | v >> 12);
        *to++ = (char)(0x80 | (v >> 6 & 63));
        *to++ = (char)(0x80 | (v & 63));
    }
    return to;
}

// Copies one character of a string to `to`. Returns the position of the next character.
static const char *unescape(char **to, const char *from, const char *end)
{
    static const char names[] = "nrtbf", values[] = "\n\r\t\b\f";
    if (*from != '\\' || from + 1 == end) {
        *(*to)++ = *from;
        return from + 1;
    }
    if (from[1] == 'u') {
        *to = put_unicode(*to, from + 2, end);
        return from + 6 < end ? from + 6 : end;
    }
    const char *name = strchr(names, from[1]);
    *(*to)++ = name && from[1] ? values[name - names] : from[1];
    return from + 2;
}

static void read_text(struct scan *s, struct event *ev, char text[CODEC_MAX_TEXT_BYTES])
{
    const char *from;
    size_t n;
    if (!scan_string(s, &from, &n))
        return;
    char *to = text;
    for (const char *end = from + n; from < end && to < text + CODEC_MAX_TEXT_BYTES - 3;)
        from = unescape(&to, from, end);
    ev->text = text;
    ev->text_bytes = (uint32_t)(to - text);
}

// Reads a call site's frames, each an address of 8 bytes.
static void read_frames(struct scan *s, struct event *ev, char text[CODEC_MAX_TEXT_BYTES])
{
    uint32_t n = 0;
    if (!expect_char(s, '[', "an array") || match_char(s, ']'))
        return;
    do {
        uint64_t frame = scan_address(s);
        if (n + sizeof frame <= CODEC_MAX_TEXT_BYTES)
            memcpy(text + n, &frame, sizeof frame);
        n += sizeof frame;
    } while (!s->bad && match_char(s, ','));
    if (!s->bad)
        expect_char(s, ']', "a comma or the end of the array");
    ev->text = text;
    ev->text_bytes = n < CODEC_MAX_TEXT_BYTES ? n : CODEC_MAX_TEXT_BYTES;
}

// Characters that occur in event kind names.
#define KIND_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_.,()[]"

static void read_kind(struct scan *s, struct fields *f)
{
    char name[64];
    const char *text;
    size_t n;
    if (!scan_string(s, &text, &n))
        return;
    int kind = -1;
    if (n < sizeof name) {
        memcpy(name, text, n);
        name[n] = 0;
        kind = event_kind_by_name(name);
    }
    if (kind < 0) {
        bool is_name = n && n < sizeof name && strspn(name, KIND_CHARACTERS) == n;
        memcpy(s->unknown, is_name ? name : "", is_name ? n + 1 : 1);
        set_expected(s, "a kind of event");
        return;
    }
    f->ev.kind = (uint8_t)kind;
    f->has_kind = true;
}

// Skips the value of an unknown key.
static void skip_value(struct scan *s)
{
    const char *text;
    size_t n;
    unsigned depth = 0;
    do {
        skip_space(s);
        if (s->at == s->end) {
            set_expected(s, "a value");
            return;
        }
        if (*s->at == '"') {
            if (!scan_string(s, &text, &n))
                return;
            continue;
        }
        depth += *s->at == '[' || *s->at == '{';
        if (*s->at == ']' || *s->at == '}') {
            if (!depth) {
                set_expected(s, "a value");
                return;
            }
            depth--;
        }
        s->at++;
    } while (s->at < s->end && (depth || (*s->at != ',' && *s->at != '}')));
}

static bool is_key(const char *key, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(key, name, n) == 0;
}

static bool read_note(struct scan *s, struct event *ev, const char *key, size_t n)
{
    for (unsigned i = 0; i < HT_NOTES; i++) {
        if (i == HT_NOTE_COUNT || !is_key(key, n, event_note_names[i]))
            continue;
        ev->notes[i] = scan_number(s);
        return true;
    }
    return false;
}

// Reads an argument that has another name in this kind than its field has.
static bool read_argument(struct scan *s, struct event *ev, const char *key, size_t n)
{
    const struct event_arguments *own = &event_arguments[ev->kind];
    const struct {
        const struct event_argument *argument;
        uint64_t *value;
    } all[] = {{&own->size, &ev->size},
               {&own->count, &ev->count},
               {&own->align, &ev->align},
               {&own->value, &ev->value}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].argument->name || !is_key(key, n, all[i].argument->name))
            continue;
        skip_space(s);
        if (TEXT_MATCH(&s->at, "null"))
            *all[i].value = HT_NO_THREAD;
        else
            *all[i].value = all[i].argument->is_signed ? scan_signed(s) : scan_number(s);
        return true;
    }
    return false;
}

static void read_value(struct scan *s, struct fields *f, const char *key, size_t n, char *text)
{
    struct event *ev = &f->ev;
    if (event_infos[ev->kind].class > HT_CLASS_RESIZE && read_argument(s, ev, key, n))
        return;
    if (is_key(key, n, "kind")) {
        read_kind(s, f);
    } else if (is_key(key, n, "pid")) {
        f->pid = scan_number(s);
        f->has_pid = true;
    } else if (is_key(key, n, "tid")) {
        f->tid = scan_number(s);
        f->has_tid = true;
    } else if (is_key(key, n, "time_ns")) {
        ev->stamp = scan_number(s);
        f->has_stamp = true;
    } else if (is_key(key, n, "size")) {
        ev->size = scan_number(s);
    } else if (is_key(key, n, "count")) {
        ev->count = scan_number(s);
    } else if (is_key(key, n, "align")) {
        ev->align = scan_number(s);
    } else if (is_key(key, n, "ptr") || is_key(key, n, "old_ptr")) {
        ev->ptr = scan_block(s);
    } else if (is_key(key, n, "result")) {
        ev->result = scan_block(s);
    } else if (is_key(key, n, "error")) {
        ev->error = (uint8_t)scan_number(s);
        f->has_error = true;
    } else if (is_key(key, n, "text")) {
        read_text(s, ev, text);
    } else if (is_key(key, n, "frames")) {
        read_frames(s, ev, text);
    } else if (is_key(key, n, "thread")) {
        f->thread = scan_number(s);
        f->has_thread = true;
    } else if (!read_note(s, ev, key, n)) {
        skip_value(s);
    }
}

static void read_object(struct scan *s, struct fields *f, char *text)
{
    const char *key;
    size_t n;
    if (!expect_char(s, '{', "an object, {…}") || match_char(s, '}'))
        return;
    do {
        if (!scan_string(s, &key, &n) || !expect_char(s, ':', "a colon"))
            return;
        read_value(s, f, key, n, text);
    } while (!s->bad && match_char(s, ','));
    if (!s->bad && expect_char(s, '}', "a comma or the end of the object")) {
        skip_space(s);
        if (s->at < s->end)
            set_expected(s, "the end of the line");
    }
}

static bool written_block(const char **at, uint64_t *block)
{
    uint64_t slot;
    if (TEXT_MATCH(at, "\"0x"))
        return text_parse_hex(at, block) && text_match(at, '"');
    if (!text_parse_number(at, &slot) || slot >= WORKLOAD_NO_SLOT)
        return false;
    *block = (slot + 1) << 4;
    return true;
}

// Reads an allocation or free in exactly the form that heaptape writes, in a third of the time of a
// general scan. Returns false for any other line, whether valid or not; the caller must read that
// line key by key.
static bool read_written(const struct scan *s, struct fields *f)
{
    const char *p = s->at, **at = &p;
    struct event *ev = &f->ev;
    bool good = TEXT_MATCH(at, "{\"kind\":\"");
    if (TEXT_MATCH(at, "malloc\",\"pid\":"))
        ev->kind = HT_MALLOC;
    else if (TEXT_MATCH(at, "free\",\"pid\":"))
        ev->kind = HT_FREE;
    else if (TEXT_MATCH(at, "calloc\",\"pid\":"))
        ev->kind = HT_CALLOC;
    else
        return false;
    good = good && text_parse_number(at, &f->pid) && TEXT_MATCH(at, ",\"tid\":") &&
           text_parse_number(at, &f->tid);
    f->has_kind = f->has_pid = f->has_tid = true;
    if (TEXT_MATCH(at, ",\"time_ns\":"))
        good = f->has_stamp = good && text_parse_number(at, &ev->stamp);
    if (TEXT_MATCH(at, ",\"size\":"))
        good = good && text_parse_number(at, &ev->size);
    if (TEXT_MATCH(at, ",\"count\":"))
        good = good && text_parse_number(at, &ev->count);
    if (TEXT_MATCH(at, ",\"ptr\":"))
        good = good && written_block(at, &ev->ptr);
    if (TEXT_MATCH(at, ",\"result\":"))
        good = good && written_block(at, &ev->result);
    return good && text_match(at, '}') && p == s->end;
}

static const char *missing(const struct fields *f)
{
    if (!f->has_kind)
        return "the key kind";
    if (!f->has_pid || f->pid > UINT32_MAX)
        return "the key pid, a number of 32 bits";
    if (!f->has_tid || f->tid > UINT32_MAX)
        return "the key tid, a number of 32 bits";
    return NULL;
}

static uint64_t tid_key(const struct fields *f)
{
    return f->pid << 32 | f->tid;
}

static int name_created(struct import *im, struct json_import *j, struct fields *f)
{
    if (HT_APPEND(&j->created, &j->n_created, &j->created_capacity,
                  (struct created_thread){(uint32_t)f->pid, f->ev.value}) < 0)
        return import_no_memory(im);
    f->ev.value = KEY_OF_NUMBER(f->ev.value);
    return 0;
}

// Starts the thread whose number is on the line or, if there is no number, the first created thread
// that has not started.
static int start_thread(struct import *im, struct json_import *j, const struct fields *f)
{
    size_t i = 0;
    while (i < j->n_created &&
           (j->created[i].pid != f->pid || (f->has_thread && j->created[i].number != f->thread)))
        i++;
    if (i == j->n_created)
        return 0;
    uint64_t key = KEY_OF_NUMBER(j->created[i].number);
    memmove(j->created + i, j->created + i + 1, (--j->n_created - i) * sizeof *j->created);
    if (map_put(&j->keys, tid_key(f), key) < 0)
        return import_no_memory(im);
    return import_name_thread(im, (uint32_t)f->pid, key, (uint32_t)f->tid);
}

// Finds the key of the event's thread.
static int find_key(struct import *im, struct json_import *j, struct fields *f, uint64_t *key)
{
    int rc = 0;
    *key = f->tid;
    // In a workload, threads are numbered from 0, and the first event belongs to thread 0. In a raw
    // trace, no tid is 0.
    if (!j->begun)
        j->is_raw = f->tid != 0;
    // The events of a workload are in call order.
    im->no_early_frees = !j->is_raw;
    j->begun = true;
    if (!j->is_raw)
        return 0;
    if (f->ev.kind == HT_THREAD_CREATE)
        rc = f->ev.value >> 32 ? 0 : name_created(im, j, f);
    if (f->ev.kind == HT_THREAD_START)
        rc = start_thread(im, j, f);
    uint64_t named = map_get(&j->keys, tid_key(f));
    *key = named ? named : f->tid;
    return rc;
}

static int put_fields(struct import *im, struct json_import *j, struct fields *f)
{
    struct event *ev = &f->ev;
    uint64_t key;
    unsigned class = event_infos[ev->kind].class;
    // Skip the halves of a realloc, because the realloc's own event includes them. Also skip
    // preexisting blocks of unknown size, because they can be derived from their frees.
    if (class == HT_CLASS_HALF || (ev->kind == HT_PREEXISTING && !ev->size))
        return 0;
    if (f->has_error && !ev->error && (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE))
        ev->error = ENOMEM;
    if (!im->events)
        im->has_times = im->from_start = f->has_stamp;
    int rc = find_key(im, j, f, &key);
    return rc < 0 ? rc : import_put(im, (uint32_t)f->pid, key, ev);
}

static int read_line(struct import *im, struct text_line *line)
{
    struct json_import *j = im->state;
    struct scan s = {.at = line->at, .end = line->end};
    struct fields f = {0};
    skip_space(&s);
    if (s.at == s.end)
        return 0;
    if (!read_written(&s, &f)) {
        f = (struct fields){0};
        read_object(&s, &f, j->text);
    }
    if (*s.unknown)
        return import_bad(im, IMPORT_LINE,
                          "event kind %s is not known: written by a newer heaptape?", s.unknown);
    if (!s.bad)
        s.bad = missing(&f);
    if (s.bad)
        return import_bad(im, IMPORT_LINE, "expected %s at character %zu", s.bad,
                          (size_t)(s.at - line->at) + 1);
    return put_fields(im, j, &f);
}

static void json_import_release(void *state)
{
    struct json_import *j = state;
    free(j->created);
    map_release(&j->keys);
}

const struct format format_json = {
    .name = "json",
    .import =
        {
            .line = read_line,
            .keeps_blanks = true,
            .state_bytes = sizeof(struct json_import),
            .release = json_import_release,
            .several_processes = true,
            .window = 1000000,
        },
    .export =
        {
            .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_PIDS | FORMAT_HOLDS_TIDS |
                     FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED | FORMAT_HOLDS_NULL |
                     FORMAT_HOLDS_ADDRESSES | FORMAT_HOLDS_RESIDENCY,
            .notes = ~0u,
            .state_bytes = sizeof(struct buf),
            .put = json_put,
            .release = json_export_release,
        },
};
