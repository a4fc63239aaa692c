// Calls libheaptape-trace for the tests: read_library events|columns|ops|facts|misuse|first|again
// FILE. Prints CSV, or the error.
#include <heaptape/trace.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static heaptape_trace *t;

static int fail(int rc)
{
    printf("error %d\n", -rc);
    fprintf(stderr, "heaptape: %s\n", heaptape_trace_error(t));
    heaptape_trace_close(t);
    return 1;
}

static void number(uint32_t known, unsigned column, uint64_t value)
{
    if (known >> column & 1)
        printf("%" PRIu64, value);
    putchar(',');
}

// Prints events like `export -F csv -t events`. Texts must not need quotes.
static int events(void)
{
    const heaptape_event *e;
    int rc;
    while ((rc = heaptape_trace_next_event(t, &e)) > 0) {
        printf("%" PRIu32 ",%" PRIu64 ",", e->process, e->event);
        number(e->known, HEAPTAPE_COLUMN_TIME_NS, e->time_ns);
        printf("%" PRIu32 ",%s,", e->thread, heaptape_trace_operation_name(e->operation));
        number(e->known, HEAPTAPE_COLUMN_SIZE, e->size);
        number(e->known, HEAPTAPE_COLUMN_COUNT, e->count);
        number(e->known, HEAPTAPE_COLUMN_ALIGN, e->align);
        number(e->known, HEAPTAPE_COLUMN_USABLE_SIZE, e->usable_size);
        number(e->known, HEAPTAPE_COLUMN_ADDRESS, e->address);
        number(e->known, HEAPTAPE_COLUMN_FREED_ADDRESS, e->freed_address);
        number(e->known, HEAPTAPE_COLUMN_FREED_BLOCK, e->freed_block);
        number(e->known, HEAPTAPE_COLUMN_SITE, e->site);
        printf("%u,", e->failed);
        number(e->known, HEAPTAPE_COLUMN_ERROR, e->error);
        printf("%s\n", e->text ? e->text : "");
    }
    return rc;
}

// Prints sums of columns, with a batch size that differs from the library's batches.
static int columns(void)
{
    enum { ROWS = 777 };
    static uint64_t sizes[ROWS + 1], freed[ROWS];
    static uint32_t threads[ROWS];
    static uint8_t operations[ROWS];
    const heaptape_column wanted[] = {{HEAPTAPE_COLUMN_SIZE, 8, sizes},
                                      {HEAPTAPE_COLUMN_FREED_BLOCK, 8, freed},
                                      {HEAPTAPE_COLUMN_THREAD, 4, threads},
                                      {HEAPTAPE_COLUMN_OPERATION, 1, operations}};
    uint64_t rows = 0, size = 0, frees = 0, thread = 0, operation = 0;
    int64_t n;
    sizes[ROWS] = 12345;
    while ((n = heaptape_trace_read_columns(t, wanted, 4, ROWS)) > 0) {
        rows += (uint64_t)n;
        for (int64_t i = 0; i < n; i++) {
            size += sizes[i];
            frees += freed[i] != HEAPTAPE_NONE64;
            thread += threads[i];
            operation += operations[i];
        }
    }
    printf("%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", rows, size, frees,
           thread, operation);
    return sizes[ROWS] == 12345 ? (int)n : -EFAULT;
}

static int ops(void)
{
    const heaptape_op *o;
    int rc;
    while ((rc = heaptape_trace_next_op(t, &o)) > 0) {
        printf("%" PRIu32 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",%d,%u,%u", o->thread, o->op,
               heaptape_trace_operation_name(o->operation), o->size, o->align,
               o->slot == HEAPTAPE_NONE32 ? -1 : (int)o->slot, o->site, o->flags);
        for (uint32_t i = 0; i < o->n_dependencies; i++)
            printf(",%" PRIu32 ":%" PRIu64, o->dependencies[i].thread, o->dependencies[i].op);
        putchar('\n');
    }
    return rc;
}

static int facts(void)
{
    const heaptape_process *p;
    int64_t n = heaptape_trace_processes(t);
    int rc = n < 0 ? (int)n : 0;
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        rc = heaptape_trace_process(t, (size_t)i, &p);
        if (rc < 0)
            return rc;
        printf("process %u %u %" PRIu64 " %" PRIu64 " %s\n", p->process, p->pid, p->events,
               p->threads, p->command ? p->command : "");
        for (uint32_t thread = 0; thread < p->threads; thread++) {
            const heaptape_thread *of;
            if (heaptape_trace_thread(t, p->process, thread, &of) == 0)
                printf("thread %u %u\n", of->thread, of->tid);
        }
        for (uint32_t site = 1; site <= p->sites; site++) {
            const heaptape_frame *f;
            if (heaptape_trace_site(t, p->process, site, &f) > 0)
                printf("site %u %s\n", site, f->known ? f->function : "");
            for (size_t k = 0; (rc = heaptape_trace_frame(t, p->process, site, k, &f)) > 0; k++)
                printf("frame %u %zu %s\n", site, k, f->function);
            if (rc < 0)
                return rc;
        }
    }
    return rc;
}

static void expect(const char *what, int64_t rc, int want)
{
    printf("%s %s\n", what, rc == want ? "ok" : "NOT AS EXPECTED");
}

// Checks that a call failed with this message.
static void expect_error(const char *text, int64_t rc, int want)
{
    bool good = rc == want && strstr(heaptape_trace_error(t), text);
    printf("%s %s\n", text, good ? "ok" : heaptape_trace_error(t));
}

// Calls functions with a handle that was opened without a path.
static void use_without_path(void)
{
    heaptape_trace *before = t;
    expect_error("no path to open", heaptape_trace_open(&t, NULL), -EINVAL);
    expect_error("no path to open", heaptape_trace_rewind(t), -EINVAL);
    expect_error("no path to open", heaptape_trace_processes(t), -EINVAL);
    heaptape_trace_close(t);
    t = before;
}

// Makes calls that the contract forbids, and calls that it allows at any time. Prints a line for
// each call.
static int misuse(void)
{
    uint64_t items[2];
    heaptape_column c[2] = {{HEAPTAPE_COLUMN_SIZE, 4, items}, {HEAPTAPE_COLUMN_SIZE, 8, items}};
    const heaptape_event *e;
    const heaptape_op *o;
    const heaptape_process *p;
    const heaptape_thread *th;
    const heaptape_frame *f;
    expect_error("has items of 8 bytes, not 4", heaptape_trace_read_columns(t, c, 1, 2), -EINVAL);
    c[0].item_bytes = 8;
    expect_error("is given twice", heaptape_trace_read_columns(t, c, 2, 1), -EINVAL);
    expect_error("no column to read", heaptape_trace_read_columns(t, c, 0, 1), -EINVAL);
    c[0].items = NULL;
    expect_error("has no items", heaptape_trace_read_columns(t, c, 1, 1), -EINVAL);
    c[0].items = items;
    c[0].id = HEAPTAPE_COLUMN_TEXT;
    expect_error("cannot be read", heaptape_trace_read_columns(t, c, 1, 1), -EINVAL);
    c[0].id = 99;
    expect("unknown column", heaptape_trace_read_columns(t, c, 1, 1), -EINVAL);
    expect("event", heaptape_trace_next_event(t, &e), 1);
    expect_error(": is already being read by another function: rewind it first",
                 heaptape_trace_read_columns(t, c + 1, 1, 1), -EBUSY);
    expect_error(": is already being read by another function: rewind it first",
                 heaptape_trace_next_op(t, &o), -EBUSY);
    expect("facts on the way", heaptape_trace_process(t, 0, &p), 0);
    expect_error(": has ", heaptape_trace_process(t, 1000, &p), -EINVAL);
    expect_error(": has no process 1000", heaptape_trace_thread(t, 1000, 0, &th), -EINVAL);
    expect_error(": no facts about thread 1000000 of process 0",
                 heaptape_trace_thread(t, 0, 1000000, &th), -EINVAL);
    expect("no site", heaptape_trace_site(t, 0, 1000000, &f), -EINVAL);
    expect("site 0", heaptape_trace_site(t, 0, 0, &f), -EINVAL);
    expect("event", heaptape_trace_next_event(t, &e), 1);
    expect("number", (int64_t)e->event, 1);
    expect("rewind", heaptape_trace_rewind(t), 0);
    expect("columns", heaptape_trace_read_columns(t, c + 1, 1, 2), 2);
    c[1].id = HEAPTAPE_COLUMN_ADDRESS;
    expect_error(": the columns differ from the previous call",
                 heaptape_trace_read_columns(t, c + 1, 1, 2), -EINVAL);
    expect("rewind", heaptape_trace_rewind(t), 0);
    use_without_path();
    while (heaptape_trace_next_event(t, &e) > 0)
        ;
    expect("end", heaptape_trace_next_event(t, &e), 0);
    expect("no name",
           heaptape_trace_operation_name(255) == NULL &&
               heaptape_trace_operation_name(1000) == NULL,
           1);
    return 0;
}

static int first(void)
{
    const heaptape_event *e;
    int rc = heaptape_trace_next_event(t, &e);
    return rc < 0 ? rc : 0; // the trace is closed while a thread still reads it
}

static int again(void)
{
    int rc = first();
    return rc < 0 ? rc : heaptape_trace_rewind(t);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } uses[] = {{"events", events}, {"columns", columns}, {"ops", ops},    {"again", again},
                {"facts", facts},   {"misuse", misuse},   {"first", first}};
    if (argc != 3)
        return 2;
    int rc = heaptape_trace_open(&t, argv[2]);
    if (rc < 0)
        return fail(rc);
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        if (strcmp(argv[1], uses[i].name) == 0)
            rc = uses[i].run();
    }
    if (rc < 0)
        return fail(rc);
    heaptape_trace_close(t);
    return 0;
}
