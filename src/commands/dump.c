#include "base/bytes.h"
#include "base/printable.h"
#include "cli/command.h"
#include "convert/walk.h"
#include "formats/export_file.h"
#include "formats/format_json.h"
#include "formats/text.h"
#include "workload/file.h"
#include "workload/workload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum dump_format { DUMP_TEXT, DUMP_JSON };

struct dump_options {
    enum dump_format format;
    uint64_t pid;
    struct option_list kinds;
};

#define AT(member) offsetof(struct dump_options, member)

static const struct option options[] = {
    {'F', "format", OPTION_CHOICE, "text|json", "text",
     "print lines of text, or one JSON object per line", AT(format)},
    {'p', "pid", OPTION_NUMBER, "PID", NULL,
     "print only this process of a trace (default: all processes)", AT(pid), .min = 1,
     .max = UINT32_MAX},
    {'k', "kind", OPTION_LIST, "KIND", NULL,
     "print only events of this kind, such as malloc or thread.start; may be repeated", AT(kinds)},
    {0},
};

struct dump_line {
    struct export_call call;
    bool slots; // the call comes from a workload
    bool timed; // the stamp of the call is valid
};

enum {
    LINE_BYTES = 1024, // maximum length of a line, not counting text and dependencies
    ESCAPED_BYTES = 4, // maximum length of an escaped byte of text
    DEPENDENCY_BYTES = 48,
    BUFFER_BYTES = 1 << 16,
};

static char *put_word(char *to, const char *word)
{
    return text_put(to, word, strlen(word));
}

static char *put_block(char *to, const struct dump_line *l, uint64_t block)
{
    if (!block)
        return TEXT_PUT(to, "NULL");
    return l->slots ? text_decimal(TEXT_PUT(to, "#"), block - 1)
                    : text_hex(TEXT_PUT(to, "0x"), block);
}

// Puts a comma before each argument except the first.
static char *put_comma(char *to)
{
    return to[-1] == '(' ? to : TEXT_PUT(to, ", ");
}

// Prints an argument. If the position does not make the argument's meaning clear, also prints its
// name.
static char *put_argument(char *to, unsigned kind, unsigned field, uint64_t v)
{
    const struct event_argument a = event_argument(kind, field);
    to = put_comma(to);
    if (field == HT_F_ALIGN || event_infos[kind].class > HT_CLASS_RESIZE)
        to = TEXT_PUT(put_word(to, a.name), "=");
    if (kind == HT_THREAD_START && v == HT_NO_THREAD)
        return TEXT_PUT(to, "none");
    if (a.is_signed && (int64_t)v < 0) {
        *to++ = '-';
        v = -v;
    }
    return text_decimal(to, v);
}

static char *put_quoted(char *to, const char *text, size_t n)
{
    *to++ = '"';
    for (size_t i = 0, length; i < n; i += length) {
        // Quotes and backslashes are escaped below.
        for (length = 0; i + length < n && text[i + length] != '"' && text[i + length] != '\\';)
            length++;
        to += printable_copy(to, ESCAPED_BYTES * length + 1, text + i, length);
        if (i + length < n)
            to = put_word(to, text[i + length++] == '"' ? "\\x22" : "\\x5c");
    }
    *to++ = '"';
    return to;
}

// Returns true if addresses or slots are known. They are unknown for the mappings of a workload.
static bool has_blocks(const struct dump_line *l)
{
    return !l->slots || event_infos[l->call.ev.kind].class <= HT_CLASS_RESIZE;
}

static char *put_arguments(char *to, const struct dump_line *l)
{
    const struct event *ev = &l->call.ev;
    unsigned fields = event_infos[ev->kind].fields;
    if (fields & HT_F_PTR && has_blocks(l))
        to = put_block(put_comma(to), l, ev->ptr);
    if (fields & HT_F_ALIGN)
        to = put_argument(to, ev->kind, HT_F_ALIGN, ev->align);
    if (fields & HT_F_COUNT)
        to = put_argument(to, ev->kind, HT_F_COUNT, ev->count);
    if (fields & HT_F_SIZE)
        to = put_argument(to, ev->kind, HT_F_SIZE, ev->size);
    if (fields & HT_F_VALUE)
        to = put_argument(to, ev->kind, HT_F_VALUE, ev->value);
    // The text of a call site is an array of addresses.
    for (size_t i = 0; event_has_frames(ev->kind) && i < ev->text_bytes / 8; i++)
        to = text_hex(TEXT_PUT(to, ", 0x"), get_u64((const uint8_t *)ev->text + 8 * i));
    if (!event_has_frames(ev->kind) && ev->text_bytes)
        to = put_quoted(put_comma(to), ev->text, ev->text_bytes);
    return to;
}

// Prints a path, such as " path=thread_cache|unsorted_add". Unknown bits are printed as one number.
static char *put_path(char *to, uint64_t path)
{
    const char *before = " path=";
    for (unsigned i = 0; i < HT_PATHS; i++) {
        if (!(path >> i & 1))
            continue;
        to = put_word(put_word(to, before), event_path_names[i]);
        before = "|";
    }
    if (path >> HT_PATHS)
        to = text_hex(put_word(put_word(to, before), "0x"), path >> HT_PATHS << HT_PATHS);
    return to;
}

static char *put_time(char *to, uint64_t ns)
{
    to = text_decimal(to, ns / 1000000000);
    // Adds 1,000,000 so that leading zeros are printed. The point overwrites the 1.
    char *end = text_decimal(to, 1000000 + ns / 1000 % 1000000);
    *to = '.';
    return end;
}

// Returns a name such as "ENOMEM". strerrorname_np needs glibc 2.32. On older versions, the error's
// description replaces the name.
static const char *name_error(int error)
{
    static const char *(*name)(int);
    if (!name)
        name = (const char *(*)(int))dlsym(RTLD_DEFAULT, "strerrorname_np");
    if (!name)
        return strerror(error);
    return name(error) ? name(error) : "unknown error";
}

// Prints the optional parts of a line: notes, an error and dependencies. Most lines have none.
static char *put_rare(char *to, const struct export_call *c)
{
    const struct event *ev = &c->ev;
    for (unsigned i = 0; i < HT_NOTES; i++) {
        if (ev->notes[i] && i == HT_NOTE_PATH)
            to = put_path(to, ev->notes[i]);
        else if (ev->notes[i])
            to = text_decimal(TEXT_PUT(put_word(TEXT_PUT(to, " "), event_note_names[i]), "="),
                              ev->notes[i]);
    }
    if (ev->error)
        to = TEXT_PUT(put_word(TEXT_PUT(to, " ("), name_error(ev->error)), ")");
    for (uint32_t i = 0; i < c->n_dependencies; i++) {
        to = text_decimal(put_word(to, i ? "," : " after "), c->dependencies[i].thread);
        to = text_decimal(TEXT_PUT(to, ":"), c->dependencies[i].op);
    }
    return to;
}

// Appends a line such as "[pid tid] +12.345678 malloc(32) = 0x55...".
static int dump_text(struct buf *out, const struct dump_line *l)
{
    const struct export_call *c = &l->call;
    if (buf_reserve(out, LINE_BYTES + (size_t)c->ev.text_bytes * ESCAPED_BYTES +
                             (size_t)c->n_dependencies * DEPENDENCY_BYTES) < 0)
        return -ENOMEM;
    char *to = (char *)out->data + out->size;
    to = text_decimal(TEXT_PUT(to, "["), c->pid);
    to = text_decimal(TEXT_PUT(to, " "), c->tid);
    to = put_time(TEXT_PUT(to, "] +"), c->ev.stamp);
    to = TEXT_PUT(put_word(TEXT_PUT(to, " "), event_infos[c->ev.kind].name), "(");
    to = TEXT_PUT(put_arguments(to, l), ")");
    if (event_infos[c->ev.kind].fields & HT_F_RESULT && has_blocks(l))
        to = put_block(TEXT_PUT(to, " = "), l, c->ev.result);
    to = put_rare(to, c);
    *to++ = '\n';
    out->size = (size_t)((uint8_t *)to - out->data);
    return 0;
}

struct dump {
    const struct dump_options *options;
    const struct trace_session *session;
    bool kinds[HT_KIND_LIMIT];
    bool json;
    struct buf out; // not written yet
};

// Writes the buffered lines. If the reader has closed the pipe, returns -EPIPE, which ends the dump
// silently.
static int flush_lines(void *context)
{
    struct dump *d = context;
    if (d->out.size)
        fwrite(d->out.data, 1, d->out.size, stdout);
    d->out.size = 0;
    return ferror(stdout) ? -EPIPE : 0;
}

static int put_line(struct dump *d, const struct dump_line *l)
{
    unsigned calls = (l->slots ? FORMAT_JSON_SLOTS : 0) | (l->timed ? FORMAT_JSON_TIMES : 0);
    if ((d->json ? format_json_put(&d->out, &l->call, calls) : dump_text(&d->out, l)) < 0)
        die(EXIT_FAILED, "out of memory");
    return d->out.size < BUFFER_BYTES ? 0 : flush_lines(d);
}

static bool wants_process(void *context, const struct trace_process *p)
{
    const struct dump *d = context;
    return !d->options->pid || d->options->pid == p->pid;
}

static int dump_call(void *context, const struct walk_call *call)
{
    struct dump *d = context;
    if (!d->kinds[call->event->kind])
        return 0;
    struct dump_line line = {.timed = !d->session->order_only};
    export_call_from_walk(d->session, call, &line.call);
    return put_line(d, &line);
}

static int dump_trace(struct dump *d, struct trace_file *t, struct err *e)
{
    struct err cut;
    struct walk_options how = {
        .call = dump_call, .wants = wants_process, .pause = flush_lines, .context = d};
    d->session = &t->reader.session;
    int rc = walk_run(&t->reader, &how, &cut, e);
    if (rc == 0 && cut.text[0])
        error_text(cut.text);
    return rc < 0 ? rc : trace_reader_find_pid(&t->reader, (uint32_t)d->options->pid, e);
}

static int dump_workload(struct dump *d, struct workload_reader *r, struct err *e)
{
    uint32_t thread;
    const struct workload_header *h = workload_reader_header(r);
    const struct workload_op *op;
    struct dump_line line = {.slots = true, .timed = h->has_stamps};
    int rc = workload_reader_find_pid(r, (uint32_t)d->options->pid, e);
    while (rc >= 0 && (rc = workload_next_op(r, &thread, &op, e)) > 0) {
        if (!d->kinds[op->kind])
            continue;
        export_call_from_op(h, thread, op, &line.call);
        rc = put_line(d, &line);
        if (rc < 0)
            return rc;
    }
    return rc;
}

// Selects the kinds to print. If --kind is not given, selects all kinds that count as events.
static int choose_kinds(struct dump *d)
{
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        d->kinds[kind] = d->options->kinds.n == 0 && event_counts(kind);
    for (size_t i = 0; i < d->options->kinds.n; i++) {
        int kind = event_kind_by_name(d->options->kinds.items[i]);
        if (kind < 0)
            return usage_error(&cmd_dump, "unknown kind of event '%s'", d->options->kinds.items[i]);
        d->kinds[kind] = true;
    }
    return 0;
}

static int dump_file(struct dump *d, const char *path, struct err *e)
{
    struct file f;
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
    if (rc == 0)
        rc = f.kind == FILE_TRACE ? dump_trace(d, &f.trace, e)
                                  : dump_workload(d, f.workload.reader, e);
    file_close(&f);
    return rc;
}

static int run_dump(const void *fields, char **argv)
{
    struct dump d = {.options = fields};
    struct err e = {0};
    d.json = d.options->format == DUMP_JSON;
    int usage = choose_kinds(&d);
    if (usage)
        return usage;
    int rc = dump_file(&d, argv[0], &e);
    flush_lines(&d);
    buf_release(&d.out);
    cli_flush();
    die_on_error(rc, EXIT_FAILED, &e);
    return EXIT_DONE;
}

const struct command cmd_dump = {
    .name = "dump",
    .operands = "FILE|-",
    .summary = "Print the events of a trace or workload",
    .examples =
        {
            {"Print all calls as text", "heaptape dump gcc.ht | less"},
            {"Print the calls of realloc of one process",
             "heaptape dump --pid 4711 --kind realloc gcc.ht"},
            {"Find blocks larger than one megabyte from calloc",
             "heaptape dump --format json --kind calloc gcc.ht |\n"
             "    jq 'select(.size * .count > 1048576)'"},
        },
    .options = options,
    .options_bytes = sizeof(struct dump_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_dump,
};
