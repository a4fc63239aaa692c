#include "commands/dump_event.h"

#include "base/bytes.h"
#include "cli/command.h"
#include "formats/format_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_place(const struct dump_line *l, uint64_t place)
{
    if (!l->slots)
        printf(place ? "0x%" PRIx64 : "NULL", place);
    else if (place == DUMP_NO_SLOT)
        printf("NULL");
    else
        printf("#%" PRIu64, place);
}

static void print_comma(bool *more)
{
    if (*more)
        fputs(", ", stdout);
    *more = true;
}

// An argument that has a name of its own is printed with it.
static void print_argument(bool *more, unsigned kind, unsigned field, uint64_t v)
{
    const struct event_argument a = event_argument(kind, field);
    print_comma(more);
    if (field == HT_F_ALIGN || event_infos[kind].class > HT_CLASS_RESIZE)
        printf("%s=", a.name);
    if (kind == HT_THREAD_START && v == HT_NO_THREAD)
        fputs("none", stdout);
    else if (a.is_signed)
        printf("%" PRIi64, (int64_t)v);
    else
        printf("%" PRIu64, v);
}

static void print_quoted(const char *text, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    putchar('"');
}

// Does the call give a block up, and take one?
static bool has_ptr(unsigned kind)
{
    return event_infos[kind].fields & HT_F_PTR;
}

static bool has_result(unsigned kind)
{
    return event_infos[kind].fields & HT_F_RESULT;
}

// A call site's frames are its text.
static uint64_t frame_at(const struct dump_line *l, uint32_t i)
{
    return get_u64((const uint8_t *)l->text + 8 * (size_t)i);
}

// Without addresses those of mappings are unknown.
static bool has_places(const struct dump_line *l)
{
    return !l->slots || event_infos[l->kind].class <= HT_CLASS_RESIZE;
}

static void print_arguments(const struct dump_line *l)
{
    unsigned fields = event_infos[l->kind].fields;
    bool more = false;
    if (has_ptr(l->kind) && has_places(l)) {
        print_comma(&more);
        print_place(l, l->ptr);
    }
    if (fields & HT_F_ALIGN)
        print_argument(&more, l->kind, HT_F_ALIGN, l->align);
    if (fields & HT_F_COUNT)
        print_argument(&more, l->kind, HT_F_COUNT, l->count);
    if (fields & HT_F_SIZE)
        print_argument(&more, l->kind, HT_F_SIZE, l->size);
    if (fields & HT_F_VALUE)
        print_argument(&more, l->kind, HT_F_VALUE, l->value);
    if (l->kind == HT_STACK) {
        for (uint32_t i = 0; i < l->text_bytes / 8; i++)
            printf(", 0x%" PRIx64, frame_at(l, i));
    } else if (l->text_bytes) {
        print_comma(&more);
        print_quoted(l->text, l->text_bytes);
    }
}

void dump_text(const struct dump_line *l)
{
    printf("[%u %u] +%" PRIu64 ".%06" PRIu64 " %s(", l->pid, l->tid, l->stamp_ns / 1000000000,
           l->stamp_ns / 1000 % 1000000, event_infos[l->kind].name);
    print_arguments(l);
    putchar(')');
    if (has_result(l->kind) && has_places(l)) {
        fputs(" = ", stdout);
        print_place(l, l->result);
    }
    for (unsigned i = 0; l->notes && i < HT_NOTES; i++) {
        if (l->notes[i])
            printf(" %s=%" PRIu64, event_note_names[i], l->notes[i]);
    }
    if (l->error)
        printf(" (%s)", strerrorname_np(l->error) ? strerrorname_np(l->error) : "unknown error");
    for (uint32_t i = 0; i < l->n_dependencies; i++)
        printf("%s%u:%" PRIu64, i ? "," : " after ", l->dependencies[i].thread, l->dependencies[i].op);
    putchar('\n');
}

void dump_json(const struct dump_line *l)
{
    static struct buf line;
    struct export_call c = {
        .ev = {.stamp = l->stamp_ns,
               .size = l->size,
               .count = l->count,
               .align = l->align,
               .value = l->value,
               .ptr = l->slots ? l->ptr + 1 : l->ptr,
               .result = l->slots ? l->result + 1 : l->result,
               .text = l->text,
               .text_bytes = l->text_bytes,
               .kind = l->kind,
               .error = l->error},
        .pid = l->pid,
        .tid = l->tid,
        .thread = l->thread,
        .failed = l->failed,
        .dependencies = l->dependencies,
        .n_dependencies = l->n_dependencies,
    };
    if (l->notes)
        memcpy(c.ev.notes, l->notes, sizeof c.ev.notes);
    line.size = 0;
    if (format_json_put(&line, &c, l->slots) < 0)
        die(EXIT_FAILED, "out of memory");
    fwrite(line.data, 1, line.size, stdout);
}
