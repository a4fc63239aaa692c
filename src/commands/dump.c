#include "base/bytes.h"
#include "base/printable.h"
#include "cli/command.h"
#include "convert/walk.h"
#include "formats/format_json.h"
#include "workload/file.h"
#include "workload/format.h"
#include "workload/workload.h"

#include <errno.h>
#include <inttypes.h>
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
    {'F', "format", OPTION_CHOICE, "text|json", "text", "print lines of text, or one JSON object per line",
     offsetof(struct dump_options, format)},
    {'p', "pid", OPTION_NUMBER, "PID", NULL, "print only this process of a trace (default: all processes)",
     offsetof(struct dump_options, pid), .min = 1, .max = UINT32_MAX},
    {'k', "kind", OPTION_LIST, "KIND", NULL,
     "print only events of this kind, such as malloc or thread.start; may be repeated",
     offsetof(struct dump_options, kinds)},
    {0},
};

#define DUMP_NO_SLOT UINT64_MAX

struct dump_line {
    bool slots; // `ptr` and `result` are slots, DUMP_NO_SLOT for none; else addresses
    bool timed; // stamp_ns is a time
    uint32_t pid, tid;
    uint32_t thread;   // number in its process
    uint64_t stamp_ns; // since the start of the recording or process
    uint8_t kind, error;
    bool failed;
    uint64_t size, count, align, value, ptr, result;
    const char *text; // not terminated
    uint32_t text_bytes;
    const uint64_t *notes; // HT_NOTES of them, or NULL
    const struct workload_dependency *dependencies;
    uint32_t n_dependencies;
};

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
    for (size_t i = 0, length; i < n; i += length) {
        // Up to a character that has a meaning in quotes.
        for (length = 0; i + length < n && text[i + length] != '"' && text[i + length] != '\\';)
            length++;
        printable_print(stdout, text + i, length);
        if (i + length < n)
            printf("\\x%02x", (unsigned char)text[i + length++]);
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

// " path=thread_cache|unsorted_add": the bits that have no name as one number.
static void print_path(uint64_t path)
{
    const char *before = " path=";
    for (unsigned i = 0; i < HT_PATHS; i++) {
        if (!(path >> i & 1))
            continue;
        printf("%s%s", before, event_path_names[i]);
        before = "|";
    }
    if (path >> HT_PATHS)
        printf("%s%#" PRIx64, before, path >> HT_PATHS << HT_PATHS);
}

// "[pid tid] +12.345678 malloc(32) = 0x55…" on stdout.
static void dump_text(const struct dump_line *l)
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
        if (l->notes[i] && i == HT_NOTE_PATH)
            print_path(l->notes[i]);
        else if (l->notes[i])
            printf(" %s=%" PRIu64, event_note_names[i], l->notes[i]);
    }
    if (l->error)
        printf(" (%s)", strerrorname_np(l->error) ? strerrorname_np(l->error) : "unknown error");
    for (uint32_t i = 0; i < l->n_dependencies; i++)
        printf("%s%u:%" PRIu64, i ? "," : " after ", l->dependencies[i].thread, l->dependencies[i].op);
    putchar('\n');
}

// A JSON object on a line of stdout.
static void dump_json(const struct dump_line *l)
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
    if (format_json_put(&line, &c, (l->slots ? FORMAT_JSON_SLOTS : 0) | (l->timed ? FORMAT_JSON_TIMES : 0)) < 0)
        die(EXIT_FAILED, "out of memory");
    fwrite(line.data, 1, line.size, stdout);
}

struct dump {
    const struct dump_options *options;
    const struct trace_session *session;
    bool kinds[HT_KIND_LIMIT];
    bool json;
};

// A reader that closes the pipe (head) ends the dump quietly.
static int check_output(void)
{
    return ferror(stdout) ? -EPIPE : 0;
}

static bool wants_process(void *context, const struct trace_process *p)
{
    const struct dump *d = context;
    return !d->options->pid || d->options->pid == p->pid;
}

static int dump_call(void *context, const struct walk_call *call)
{
    const struct dump *d = context;
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
    (d->json ? dump_json : dump_text)(&line);
    return check_output();
}

static int dump_trace(struct dump *d, struct trace_file *t, struct err *e)
{
    struct err cut;
    struct walk_options how = {.call = dump_call, .wants = wants_process, .context = d};
    d->session = &t->reader.session;
    int rc = walk_run(&t->reader, &how, &cut, e);
    if (rc == 0 && cut.text[0])
        note("%s", cut.text);
    return rc;
}

static void dump_op(const struct dump *d, const struct workload_header *h, uint32_t thread,
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
        line.notes = notes;
    }
    unsigned class = event_infos[op->kind].class;
    uint64_t slot = op->slot == WORKLOAD_NO_SLOT ? DUMP_NO_SLOT : op->slot;
    if (class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && !(op->flags & WORKLOAD_FROM_NULL)))
        line.ptr = slot;
    if (class == HT_CLASS_ALLOC || (class == HT_CLASS_RESIZE && !(op->flags & (WORKLOAD_FAILED | WORKLOAD_FREED))))
        line.result = slot;
    (d->json ? dump_json : dump_text)(&line);
}

static int dump_workload(const struct dump *d, struct workload_reader *r, struct err *e)
{
    uint32_t thread;
    const struct workload_op *op;
    int rc;
    while ((rc = workload_next_op(r, &thread, &op, e)) > 0) {
        if (d->kinds[op->kind])
            dump_op(d, workload_reader_header(r), thread, op);
        rc = check_output();
        if (rc < 0)
            return rc;
    }
    return rc;
}

// Kinds that are not calls of the program are printed on request only.
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

static int dump(struct dump *d, const char *path, struct err *e)
{
    struct file f;
    int rc = file_open(&f, path, FILE_TRACE | FILE_WORKLOAD, e);
    if (rc == 0)
        rc = f.kind == FILE_TRACE ? dump_trace(d, &f.trace, e) : dump_workload(d, f.workload.reader, e);
    file_close(&f);
    return rc;
}

static int run(const void *fields, int argc, char **argv)
{
    struct dump d = {.options = fields};
    struct err e = {0};
    (void)argc;
    d.json = d.options->format == DUMP_JSON;
    int usage = choose_kinds(&d);
    if (usage)
        return usage;
    int rc = dump(&d, argv[0], &e);
    if (rc == -EPIPE && ferror(stdout))
        return EXIT_FAILED;
    fflush(stdout);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (ferror(stdout))
        die(EXIT_FAILED, "(stdout): cannot write");
    return EXIT_DONE;
}

const struct command cmd_dump = {
    .name = "dump",
    .operands = "FILE|-",
    .summary = "Print the events of a trace or workload",
    .description =
        "Prints one line per call. The calls of a trace are printed as recorded, with addresses, for all "
        "processes and threads in the order of their timestamps. The calls of a workload are printed in an order "
        "in which they can be replayed, with slot numbers instead of addresses, thread numbers instead of thread "
        "IDs, and the calls of other threads that each call depends on.",
    .options = options,
    .options_bytes = sizeof(struct dump_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
