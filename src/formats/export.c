#include "formats/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

// Substitutes for kinds that a format lacks. If a substitute is not listed here, substitute()
// derives it from the kind's fields.
static const uint8_t special_substitutes[HT_KIND_LIMIT] = {
    [HT_ALIGNED_ALLOC] = HT_MEMALIGN,   [HT_POSIX_MEMALIGN] = HT_MEMALIGN,
    [HT_VALLOC] = HT_MEMALIGN,          [HT_PVALLOC] = HT_VALLOC,
    [HT_FREE_SIZED] = HT_FREE,          [HT_FREE_ALIGNED_SIZED] = HT_FREE_SIZED,
    [HT_MALLOC_INFO] = HT_MALLOC_STATS, [HT_MALLINFO] = HT_MALLOC_STATS,
    [HT_MALLINFO2] = HT_MALLOC_STATS,
};

// Returns the substitute for a kind that a format lacks, or 0.
static unsigned substitute(unsigned kind)
{
    unsigned fields = event_infos[kind].fields, class = event_infos[kind].class;
    unsigned special = special_substitutes[kind];
    if (special || kind == HT_MALLOC || kind == HT_MEMALIGN || kind == HT_FREE ||
        kind == HT_REALLOC)
        return special;
    if (class == HT_CLASS_ALLOC)
        return fields & HT_F_ALIGN ? HT_ALIGNED_ALLOC : HT_MALLOC;
    if (class == HT_CLASS_FREE && fields & HT_F_SIZE)
        return fields & HT_F_ALIGN ? HT_FREE_ALIGNED_SIZED : HT_FREE_SIZED;
    return class == HT_CLASS_FREE ? HT_FREE : class == HT_CLASS_RESIZE ? HT_REALLOC : 0;
}

static bool has_kind(const struct format_export *f, unsigned kind)
{
    if (!f->kinds)
        return event_counts(kind) || event_defines_sites(kind) || kind == HT_RESIDENCY;
    for (const uint8_t *k = f->kinds; *k; k++) {
        if (*k == kind)
            return true;
    }
    return false;
}

int export_open(struct export *x, struct output *out, struct err *e)
{
    const struct format_export *f = &x->format->export;
    x->e = e;
    for (unsigned kind = 1; kind < HT_KIND_LIMIT; kind++) {
        unsigned as = event_infos[kind].name ? kind : 0;
        while (as && !has_kind(f, as))
            as = substitute(as);
        x->as[kind] = (uint8_t)as;
    }
    int rc = export_buffer_init(&x->out, out, e);
    x->state = calloc(1, f->state_bytes + 1);
    if (rc == 0 && !x->state)
        rc = err_no_memory(e, out->name);
    return rc == 0 && f->begin ? f->begin(x) : rc;
}

// Converts an event to kind `as`.
static void change_kind(struct event *ev, unsigned as)
{
    unsigned fields = event_infos[as].fields;
    if (event_infos[ev->kind].fields & HT_F_COUNT && !(fields & HT_F_COUNT))
        ev->size = event_requested(ev->kind, ev->size, ev->count);
    if (ev->kind == HT_PVALLOC && as != HT_PVALLOC && ev->size <= UINT64_MAX - PAGE_BYTES)
        ev->size = (ev->size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if ((ev->kind == HT_PVALLOC || ev->kind == HT_VALLOC) && fields & HT_F_ALIGN)
        ev->align = PAGE_BYTES;
    ev->kind = (uint8_t)as;
}

// If the format has a call's kind but cannot store the call's properties, drops or changes the
// call. Returns 1 if the call is dropped, else 0.
static int leave_out(struct export *x, struct export_call *c)
{
    unsigned class = event_infos[c->ev.kind].class;
    unsigned holds = x->format->export.holds;
    if (c->failed && !(holds & FORMAT_HOLDS_FAILED)) {
        x->losses[EXPORT_FAILED]++;
        return 1;
    }
    if (class == HT_CLASS_FREE && !c->ev.ptr && !(holds & FORMAT_HOLDS_NULL)) {
        x->losses[EXPORT_NULL_FREES]++;
        return 1;
    }
    if (c->earlier && !(holds & FORMAT_HOLDS_EARLIER)) {
        c->ev.ptr = 0;
        x->losses[c->ev.result ? EXPORT_EARLIER_REALLOCS : EXPORT_EARLIER_FREES]++;
        return !c->ev.result;
    }
    if (class == HT_CLASS_RESIZE && !c->ev.result && !c->failed && !(holds & FORMAT_HOLDS_FREED)) {
        x->losses[EXPORT_FREED_BY_REALLOC]++;
        c->ev.kind = x->as[HT_FREE];
    }
    return 0;
}

static inline bool loses_notes(const struct event *ev, unsigned held)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < HT_NOTES; i++)
        any |= held >> i & 1 ? 0 : ev->notes[i];
    return any;
}

int export_put(struct export *x, const struct export_call *original)
{
    unsigned kind = original->ev.kind, as = x->as[kind];
    if (__builtin_expect(as != kind, 0))
        x->changed[kind]++;
    if (__builtin_expect(loses_notes(&original->ev, x->format->export.notes), 0))
        x->losses[EXPORT_NOTES]++;
    struct export_call c = *original;
    if (!as || leave_out(x, &c))
        return x->format->export.drop ? x->format->export.drop(x, original) : 0;
    if (as != kind && c.ev.kind == kind)
        change_kind(&c.ev, as);
    x->calls++;
    int rc = x->format->export.put(x, &c);
    return rc < 0 ? rc : x->out.failed;
}

int export_no_memory(struct export *x)
{
    return err_no_memory(x->e, x->out.out->name);
}

int export_drop(struct export *x, const char *text)
{
    x->losses[EXPORT_DROPPED]++;
    if (x->note)
        x->note(text);
    return 0;
}

int export_finish(struct export *x)
{
    int rc = x->format->export.end ? x->format->export.end(x) : 0;
    int flushed = export_buffer_flush(&x->out);
    return rc < 0 ? rc : flushed;
}

void export_release(struct export *x)
{
    if (x->state && x->format->export.release)
        x->format->export.release(x->state);
    free(x->state);
    x->state = NULL;
    export_buffer_release(&x->out);
}

void export_add_losses(struct export *sum, const struct export *x)
{
    sum->format = x->format;
    sum->facts = x->facts;
    sum->calls += x->calls;
    memcpy(sum->as, x->as, sizeof sum->as);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        sum->changed[kind] += x->changed[kind];
    for (unsigned i = 0; i < EXPORT_LOSSES; i++)
        sum->losses[i] += x->losses[i];
}

// Reports, on one line, the kinds whose calls were written as kind `as` or, if `as` is 0, dropped.
static void report_kinds(const struct export *x, unsigned as, void (*note)(const char *text))
{
    char text[1024];
    size_t n = 0;
    for (unsigned kind = 1; kind < HT_KIND_LIMIT; kind++) {
        if (!x->changed[kind] || x->as[kind] != as || n > sizeof text - 100)
            continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s (%llu)", n ? ", " : "",
                              event_infos[kind].name, (unsigned long long)x->changed[kind]);
    }
    if (n)
        err_note(note, "%s cannot store %s: %s%s", x->format->name, text,
                 as ? "written as " : "dropped", as ? event_infos[as].name : "");
}

static const struct {
    const char *what, *done;
} losses[EXPORT_LOSSES] = {
    [EXPORT_NOTES] = {"usable sizes, call sites, allocators and paths", "dropped"},
    [EXPORT_FAILED] = {"failed calls", "dropped"},
    [EXPORT_NULL_FREES] = {"frees of NULL", "dropped"},
    [EXPORT_EARLIER_FREES] = {"frees of blocks from before the recording", "dropped"},
    [EXPORT_EARLIER_REALLOCS] = {"reallocs of blocks from before the recording",
                                 "written without the old block"},
    [EXPORT_DROPPED] = {"calls on unknown blocks", "dropped"},
    [EXPORT_FREED_BY_REALLOC] = {"reallocs that free", "written as free"},
};

void export_report_losses(const struct export *x, void (*note)(const char *text))
{
    if (x->facts.has_stamps && !(x->format->export.holds & FORMAT_HOLDS_STAMPS))
        err_note(note, "%s cannot store timestamps: dropped", x->format->name);
    for (unsigned as = 0; as < HT_KIND_LIMIT; as++)
        report_kinds(x, as, note);
    for (unsigned i = 0; i < EXPORT_LOSSES; i++) {
        if (x->losses[i])
            err_note(note, "%s cannot store %s: %llu %s", x->format->name, losses[i].what,
                     (unsigned long long)x->losses[i], losses[i].done);
    }
}
