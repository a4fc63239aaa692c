#include "base/bytes.h"
#include "base/printable.h"
#include "cli/command.h"
#include "convert/walk.h"
#include "formats/format_json.h"
#include "formats/text.h"
#include "workload/file.h"
#include "workload/format.h"
#include "workload/workload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

extern const struct command cmd_dump;

enum dump_format { DUMP_TEXT, DUMP_JSON };

struct dump_options {
    enum dump_format format;
    uint64_t pid;
    struct option_list kinds;
};

static const struct option options[] = {
    {'F', "format", OPTION_CHOICE, "text|json", "text",
     "print lines of text, or one JSON object per line", offsetof(struct dump_options, format)},
    {'p', "pid", OPTION_NUMBER, "PID", NULL,
     "print only this process of a trace (default: all processes)",
     offsetof(struct dump_options, pid), .min = 1, .max = UINT32_MAX},
    {'k', "kind", OPTION_LIST, "KIND", NULL,
     "print only events of this kind, such as malloc or thread.start; may be repeated",
     offsetof(struct dump_options, kinds)},
    {0},
};

#define DUMP_NO_SLOT UINT64_MAX

struct dump_line {
    bool slots; // `ptr` and `result` are slots or DUMP_NO_SLOT, not addresses
    bool timed; // stamp_ns is valid
    uint32_t pid, tid;
    uint32_t thread;   // number within the process
    uint64_t stamp_ns; // time since the start of the recording or process
    uint8_t kind, error;
    bool failed;
    uint64_t size, count, align, value, ptr, result;
    const char *text; // not NUL-terminated
    uint32_t text_bytes;
    const uint64_t *notes; // HT_NOTES values, or NULL
    const struct workload_dependency *dependencies;
    uint32_t n_dependencies;
};

enum {
    LINE_BYTES = 1024, // maximum length of a line without text and dependencies
    ESCAPED_BYTES = 4, // maximum length of an escaped byte of text
    DEPENDENCY_BYTES = 48,
    BUFFER_BYTES = 1 << 16,
};

static char *put_word(char *to, const char *word)
{
    return text_put(to, word, strlen(word));
}

static char *put_place(char *to, const struct dump_line *l, uint64_t place)
{
    if (place == (l->slots ? DUMP_NO_SLOT : 0))
        return TEXT_PUT(to, "NULL");
    return l->slots ? text_decimal(TEXT_PUT(to, "#"), place) : text_hex(TEXT_PUT(to, "0x"), place);
}

// Puts a comma before each argument except the first.
static char *put_comma(char *to)
{
    return to[-1] == '(' ? to : TEXT_PUT(to, ", ");
}

// Prints an argument. Also prints its name if the position does not make its meaning clear.
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

static bool has_ptr(unsigned kind)
{
    return event_infos[kind].fields & HT_F_PTR;
}

static bool has_result(unsigned kind)
{
    return event_infos[kind].fields & HT_F_RESULT;
}

// Returns the address of frame `i` of a call site. The text of a call site is an array of
// addresses.
static uint64_t frame_at(const struct dump_line *l, uint32_t i)
{
    return get_u64((const uint8_t *)l->text + 8 * (size_t)i);
}

// Returns true if addresses or slots are known. They are unknown for the mappings of a workload.
static bool has_places(const struct dump_line *l)
{
    return !l->slots || event_infos[l->kind].class <= HT_CLASS_RESIZE;
}

static char *put_arguments(char *to, const struct dump_line *l)
{
    unsigned fields = event_infos[l->kind].fields;
    if (has_ptr(l->kind) && has_places(l))
        to = put_place(put_comma(to), l, l->ptr);
    if (fields & HT_F_ALIGN)
        to = put_argument(to, l->kind, HT_F_ALIGN, l->align);
    if (fields & HT_F_COUNT)
        to = put_argument(to, l->kind, HT_F_COUNT, l->count);
    if (fields & HT_F_SIZE)
        to = put_argument(to, l->kind, HT_F_SIZE, l->size);
    if (fields & HT_F_VALUE)
        to = put_argument(to, l->kind, HT_F_VALUE, l->value);
    for (uint32_t i = 0; event_has_frames(l->kind) && i < l->text_bytes / 8; i++)
        to = text_hex(TEXT_PUT(to, ", 0x"), frame_at(l, i));
    if (!event_has_frames(l->kind) && l->text_bytes)
        to = put_quoted(put_comma(to), l->text, l->text_bytes);
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
    // A leading 1 preserves the zeros. The point overwrites the 1.
    char *end = text_decimal(to, 1000000 + ns / 1000 % 1000000);
    *to = '.';
    return end;
}

// Prints notes and dependencies, which most lines do not have.
static char *put_rare(char *to, const struct dump_line *l)
{
    for (unsigned i = 0; l->notes && i < HT_NOTES; i++) {
        if (l->notes[i] && i == HT_NOTE_PATH)
            to = put_path(to, l->notes[i]);
        else if (l->notes[i])
            to = text_decimal(TEXT_PUT(put_word(TEXT_PUT(to, " "), event_note_names[i]), "="),
                              l->notes[i]);
    }
    if (l->error)
        to = TEXT_PUT(put_word(TEXT_PUT(to, " ("), strerrorname_np(l->error)
                                                       ? strerrorname_np(l->error)
                                                       : "unknown error"),
                      ")");
    for (uint32_t i = 0; i < l->n_dependencies; i++) {
        to = text_decimal(put_word(to, i ? "," : " after "), l->dependencies[i].thread);
        to = text_decimal(TEXT_PUT(to, ":"), l->dependencies[i].op);
    }
    return to;
}

// Appends a line such as "[pid tid] +12.345678 malloc(32) = 0x55...".
static int dump_text(struct buf *out, const struct dump_line *l)
{
    if (buf_reserve(out, LINE_BYTES + (size_t)l->text_bytes * ESCAPED_BYTES +
                             (size_t)l->n_dependencies * DEPENDENCY_BYTES) < 0)
        return -ENOMEM;
    char *to = (char *)out->data + out->size;
    to = text_decimal(TEXT_PUT(to, "["), l->pid);
    to = text_decimal(TEXT_PUT(to, " "), l->tid);
    to = put_time(TEXT_PUT(to, "] +"), l->stamp_ns);
    to = TEXT_PUT(put_word(TEXT_PUT(to, " "), event_infos[l->kind].name), "(");
    to = TEXT_PUT(put_arguments(to, l), ")");
    if (has_result(l->kind) && has_places(l))
        to = put_place(TEXT_PUT(to, " = "), l, l->result);
    if (l->notes || l->error || l->n_dependencies)
        to = put_rare(to, l);
    *to++ = '\n';
    out->size = (size_t)((uint8_t *)to - out->data);
    return 0;
}

// Appends a JSON object and a newline.
static int dump_json(struct buf *out, struct format_json_heads *heads, const struct dump_line *l)
{
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
    return format_json_put(out, heads, &c,
                           (l->slots ? FORMAT_JSON_SLOTS : 0) | (l->timed ? FORMAT_JSON_TIMES : 0));
}

struct dump {
    const struct dump_options *options;
    const struct trace_session *session;
    bool kinds[HT_KIND_LIMIT];
    bool json;
    struct format_json_heads heads;
    struct buf out; // not written yet
};

// Writes the buffered lines. If the reader has closed the pipe, returns -EPIPE, which ends the dump
// without a message.
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
    if ((d->json ? dump_json(&d->out, &d->heads, l) : dump_text(&d->out, l)) < 0)
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
    const struct event *ev = call->event;
    if (!d->kinds[ev->kind])
        return 0;
    struct dump_line line = {
        .pid = call->process->pid,
        .tid = call->tid,
        .thread = call->thread,
        .timed = !d->session->order_only,
        .stamp_ns = trace_stamp_ns(d->session, ev->stamp),
        .kind = ev->kind,
        .error = ev->error,
        .size = ev->size,
        .count = ev->count,
        .align = ev->align,
        .value = ev->value,
        .text = ev->text,
        .text_bytes = ev->text_bytes,
        .ptr = ev->ptr,
        .result = ev->result,
        .notes = ev->notes,
    };
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
        note("%s", cut.text);
    return rc;
}

static int dump_op(struct dump *d, const struct workload_header *h, uint32_t thread,
                   const struct workload_op *op)
{
    uint64_t since = h->has_stamps && op->stamp > h->start_stamp ? op->stamp - h->start_stamp : 0;
    uint64_t notes[HT_NOTES] = {0};
    struct dump_line line = {
        .slots = true,
        .pid = h->pid,
        .tid = thread,
        .timed = h->has_stamps,
        .stamp_ns = clock_to_ns(since << h->stamp_shift, h->clock_hz),
        .kind = op->kind,
        .error = op->error,
        .failed = op->flags & WORKLOAD_FAILED,
        .size = op->size,
        .count = op->count,
        .align = op->align,
        .value = op->value,
        .text = op->text,
        .text_bytes = op->text_bytes,
        .ptr = DUMP_NO_SLOT,
        .result = DUMP_NO_SLOT,
        .dependencies = op->dependencies,
        .n_dependencies = op->n_dependencies,
    };
    if (format_has_site(op->kind)) {
        notes[HT_NOTE_SITE] = op->value;
        line.notes = op->value ? notes : NULL;
    }
    unsigned class = event_infos[op->kind].class;
    uint64_t slot = op->slot == WORKLOAD_NO_SLOT ? DUMP_NO_SLOT : op->slot;
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        line.ptr = slot;
    if (class == HT_CLASS_ALLOC ||
        (class == HT_CLASS_RESIZE && !(op->flags & (WORKLOAD_FAILED | WORKLOAD_FREED))))
        line.result = slot;
    return put_line(d, &line);
}

static int dump_workload(struct dump *d, struct workload_reader *r, struct err *e)
{
    uint32_t thread;
    const struct workload_op *op;
    int rc;
    while ((rc = workload_next_op(r, &thread, &op, e)) > 0) {
        rc = d->kinds[op->kind] ? dump_op(d, workload_reader_header(r), thread, op) : 0;
        if (rc < 0)
            return rc;
    }
    return rc;
}

// Selects the kinds to print. Without --kind, selects the calls of the program.
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

static int run_dump(const void *fields, int argc, char **argv)
{
    struct dump d = {.options = fields};
    struct err e = {0};
    (void)argc;
    d.json = d.options->format == DUMP_JSON;
    int usage = choose_kinds(&d);
    if (usage)
        return usage;
    int rc = dump_file(&d, argv[0], &e);
    flush_lines(&d);
    buf_release(&d.out);
    fflush(stdout);
    if (ferror(stdout))
        die(EXIT_FAILED, "(stdout): cannot write");
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text);
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
             "heaptape dump --format json --kind calloc gcc.ht |\n    jq 'select(.size * .count > 1048576)'"},
        },
    .options = options,
    .options_bytes = sizeof(struct dump_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_dump,
};
