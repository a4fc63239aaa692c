// Version 2 of DHAT's output: one JSON object with totals per call stack ("program point"), which
// Valgrind's dh_view.html and profiler.firefox.com read. Described in Valgrind's dhat/dh_main.c.
#include "base/json.h"
#include "base/map.h"
#include "base/printable.h"
#include "formats/heap_profile.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NS_PER_UNIT = 1000, // times are in µs
    // The viewer calls blocks short-lived if their average lifetime is at most SHORT_LIVED_US.
    SHORT_LIVED_US = 10,
    SHORT_LIVED_EVENTS = 16,
};

// A row of the table of frames: a function at a code address.
struct dhat_frame {
    const struct workload_frame *frame;
    size_t function; // index among the functions inlined at the address
};

struct dhat {
    struct heap_profile profile;
    struct json json;
    // Maps a code address to the number of its first row; row 0 is the root.
    struct map rows;
    struct dhat_frame *frames; // frames[i] is row i + 1
    size_t n, capacity;
};

static ssize_t write_text(void *cookie, const char *text, size_t n)
{
    struct export *x = cookie;
    export_buffer_put(&x->out, text, n);
    return (ssize_t)n;
}

// Converts a time to the unit of the file.
static uint64_t in_units(const struct export *x, double time)
{
    return (uint64_t)(x->facts.has_stamps ? time / NS_PER_UNIT : time);
}

static void put_command(struct json *j, const struct workload_header *h)
{
    char *command = malloc(h->argv_bytes + sizeof "...");
    if (command)
        printable_words(command, h->argv_bytes, h->argv, h->argv_bytes);
    json_put_string(j, "cmd", command && *command ? command : "unknown program");
    free(command);
}

static void put_head(struct json *j, const struct heap_profile *p)
{
    bool timed = p->x->facts.has_stamps;
    json_put_u64(j, "dhatFileVersion", 2);
    json_put_string(j, "mode", "heap");
    json_put_string(j, "verb", "Allocated");
    json_put_bool(j, "bklt", true);   // lifetimes of blocks are known
    json_put_bool(j, "bkacc", false); // accesses to blocks are unknown
    json_put_string(j, "tu", timed ? "µs" : "events");
    json_put_string(j, "Mtu", timed ? "s" : "Mevents");
    json_put_u64(j, "tuth", timed ? SHORT_LIVED_US : SHORT_LIVED_EVENTS);
    put_command(j, p->header);
    json_put_u64(j, "pid", p->header->pid);
    json_put_u64(j, "te", in_units(p->x, (double)p->now));
    json_put_u64(j, "tg", in_units(p->x, (double)p->peak_at));
}

// Appends the rows of a code address, the innermost function first. Sets *n to their number.
// Returns the number of the first row, or 0 when out of memory.
static uint64_t rows_of(struct dhat *d, const struct workload_frame *f, size_t *n)
{
    const struct symbol *found;
    uint64_t key = workload_sites_key(f), first = map_get(&d->rows, key);
    *n = symbols_of(d->profile.symbols, f, &found);
    if (first || !*n)
        return first;
    first = d->n + 1;
    if (HT_GROW(&d->frames, &d->capacity, d->n + *n) < 0 || map_put(&d->rows, key, first) < 0)
        return 0;
    for (size_t i = 0; i < *n; i++)
        d->frames[d->n++] = (struct dhat_frame){f, i};
    return first;
}

static int put_stack(struct dhat *d, uint32_t site)
{
    static const struct workload_frame unknown = {0};
    uint32_t n_frames;
    const struct workload_frame *frames = heap_profile_frames(&d->profile, site, &n_frames);
    json_put_array(&d->json, "fs");
    if (!n_frames)
        frames = &unknown, n_frames = 1;
    for (uint32_t i = 0; i < n_frames; i++) {
        size_t n;
        uint64_t row = rows_of(d, &frames[i], &n);
        if (!row)
            return export_no_memory(d->profile.x);
        for (size_t k = 0; k < n; k++)
            json_u64(&d->json, row + k);
    }
    json_end_array(&d->json);
    return 0;
}

static int put_point(struct dhat *d, uint32_t site)
{
    const struct by_site_totals *t = &d->profile.counts.sites[site];
    const struct heap_profile_site *more = &d->profile.more[site];
    if (!t->calls && !t->peak_blocks && !t->live_blocks)
        return 0;
    json_begin_object(&d->json);
    json_put_u64(&d->json, "tb", t->bytes);
    json_put_u64(&d->json, "tbk", t->calls);
    json_put_u64(&d->json, "tl", in_units(d->profile.x, more->lifetimes));
    json_put_u64(&d->json, "mb", more->max_bytes);
    json_put_u64(&d->json, "mbk", more->max_blocks);
    json_put_u64(&d->json, "gb", t->peak_bytes);
    json_put_u64(&d->json, "gbk", t->peak_blocks);
    json_put_u64(&d->json, "eb", t->live_bytes);
    json_put_u64(&d->json, "ebk", t->live_blocks);
    int rc = put_stack(d, site);
    json_end_object(&d->json);
    return rc;
}

// Writes a row as Valgrind does: "0x401136: main (a.c:5)", or "(in /lib/libc.so.6)" without a file.
static int put_row(struct dhat *d, const struct dhat_frame *row)
{
    const struct symbol *found;
    char *text = NULL;
    int n = 0;
    if (!row->frame->address) {
        json_string(&d->json, "(unknown)");
        return 0;
    }
    if (symbols_of(d->profile.symbols, row->frame, &found) <= row->function)
        return export_no_memory(d->profile.x);
    const struct symbol *s = &found[row->function];
    unsigned long long call = row->frame->address - 1; // the call precedes the return address
    if (*s->file && s->line)
        n = asprintf(&text, "0x%llX: %s (%s:%d)", call, s->function, s->file, s->line);
    else if (*s->module)
        n = asprintf(&text, "0x%llX: %s (in %s)", call, s->function, s->module);
    else
        n = asprintf(&text, "0x%llX: %s", call, s->function);
    if (n < 0)
        return export_no_memory(d->profile.x);
    json_string(&d->json, text);
    free(text);
    return 0;
}

static int put_all(struct dhat *d)
{
    int rc = 0;
    json_begin_object(&d->json);
    put_head(&d->json, &d->profile);
    json_put_array(&d->json, "pps");
    for (size_t i = 0; rc == 0 && i < d->profile.counts.n_sites; i++)
        rc = put_point(d, (uint32_t)i);
    json_end_array(&d->json);
    json_put_array(&d->json, "ftbl");
    json_string(&d->json, "[root]");
    for (size_t i = 0; rc == 0 && i < d->n; i++)
        rc = put_row(d, &d->frames[i]);
    json_end_array(&d->json);
    json_end_object(&d->json);
    return rc;
}

static int write_dhat(struct export *x, struct workload_reader *r)
{
    struct dhat d = {0};
    FILE *to = fopencookie(x, "w", (cookie_io_functions_t){.write = write_text});
    int rc = to ? heap_profile_open(&d.profile, x, r) : export_no_memory(x);
    while (rc == 0 && (rc = heap_profile_next(&d.profile)) > 0)
        rc = 0;
    if (rc == 0) {
        heap_profile_finish(&d.profile);
        d.json.to = to;
        rc = put_all(&d);
        fputc('\n', to);
    }
    if (to && fclose(to) != 0 && rc == 0)
        rc = export_no_memory(x);
    map_release(&d.rows);
    free(d.frames);
    heap_profile_release(&d.profile);
    return rc;
}

const struct format format_dhat = {
    .name = "dhat",
    .export =
        {
            .holds = FORMAT_HOLDS_STAMPS,
            .profile = write_dhat,
        },
};
