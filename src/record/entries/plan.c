#include "record/entries/plan.h"

#include "base/fio.h"
#include "record/entries/find.h"
#include "record/entries/move.h"
#include "record/processes/proc_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CELL_BYTES = MOVE_STUB_BYTES + MOVE_CODE_BYTES, // stub and trampoline of an entry
};

_Static_assert(ENTRIES_MAX *CELL_BYTES <= ENTRIES_MAX_CODE, "the code of all entries fits");
_Static_assert(ENTRIES_MAX * sizeof(uint64_t) <= ENTRIES_PAGE_BYTES, "one page has all slots");

void entries_result_release(struct entries_result *r)
{
    free(r->plan);
    free(r->refused);
    *r = (struct entries_result){0};
}

// The functions of an object for which a plan is made.
struct draft {
    struct entries_image image;
    struct find_list list;
    struct entries_plan *plan;
    bool shadow_stack;
    // Indexed by the entries of the plan before refused entries are removed.
    const struct find_function *functions[ENTRIES_MAX];
    struct move moves[ENTRIES_MAX];
    enum entries_reason reasons[ENTRIES_MAX];
    struct entries_result *result;
};

static void add_refusal(struct draft *d, const struct find_function *f, enum entries_reason reason)
{
    if (f->is_target)
        return; // the function that contains the jump is redirected instead
    struct entries_refusal *r = &d->result->refused[d->result->n_refused++];
    *r = (struct entries_refusal){
        .at = f->at, .family = f->family, .reason = reason, .is_dynamic = f->is_dynamic};
    strcpy(r->name, f->row->name);
}

// Reports the aliases whose event differs from the function's event: as recorded under another name
// if the function is redirected, and otherwise as refused for the same reason as the function.
static void add_aliases(struct draft *d, const struct find_function *f, enum entries_reason reason)
{
    const struct find_function *end = d->list.functions + d->list.n;
    for (const struct find_function *a = f + 1; a < end && a->is_alias; a++) {
        bool differs = a->row->function && a->row->function != f->row->function;
        d->result->named |= reason == ENTRIES_REASONS ? a->row->named : 0;
        if (differs && reason != ENTRIES_REASON_TOO_MANY)
            add_refusal(d, a, reason == ENTRIES_REASONS ? ENTRIES_REASON_ALIAS : reason);
    }
}

// Chooses the size of the area and its planned place: the pages below the object.
static void place_area(struct draft *d)
{
    struct entries_plan *p = d->plan;
    size_t cells = 0;
    for (size_t k = 0; k < d->list.n; k++)
        cells += !d->list.functions[k].is_alias && d->list.functions[k].row->function;
    p->magic = ENTRIES_MAGIC;
    p->code_bytes =
        cells * CELL_BYTES <= ENTRIES_UNIT_BYTES ? ENTRIES_UNIT_BYTES : ENTRIES_MAX_CODE;
    p->area_bytes =
        (p->code_bytes + ENTRIES_PAGE_BYTES - 1) / ENTRIES_PAGE_BYTES * ENTRIES_PAGE_BYTES +
        ENTRIES_PAGE_BYTES;
    p->span = move_reached_end(&d->image);
    p->place = (int64_t)(d->image.start & ~(uint64_t)(ENTRIES_PAGE_BYTES - 1)) - p->area_bytes;
    memset(p->code, ENTRIES_FILL, sizeof p->code);
}

// Adds an entry to the draft. If the function cannot be redirected, returns the reason.
static enum entries_reason add_entry(struct draft *d, const struct find_function *f)
{
    struct entries_plan *p = d->plan;
    uint32_t k = p->n_entries;
    if (k == ENTRIES_MAX)
        return ENTRIES_REASON_TOO_MANY;
    if (p->span >= ENTRIES_REACH)
        return ENTRIES_REASON_REACH;
    struct entries_entry *e = &p->entries[k];
    *e = (struct entries_entry){.stub = k * CELL_BYTES,
                                .trampoline = k * CELL_BYTES + MOVE_STUB_BYTES,
                                .slot = entries_slots(p) + k * (uint32_t)sizeof(uint64_t),
                                .function = f->row->function,
                                .family = (uint16_t)f->family,
                                .named = f->row->named != 0};
    memcpy(e->arguments, f->row->arguments, sizeof e->arguments);
    // The letters also show that the program does not call the function by libc's name.
    const char *letters = entries_letters(e->function);
    if (f->row->family != f->family && !f->is_target && !e->arguments[0])
        memcpy(e->arguments, letters, strlen(letters));
    d->moves[k] = (struct move){.entry = e,
                                .trampoline = (uint64_t)p->place + e->trampoline,
                                .keeps_returns = d->shadow_stack};
    d->functions[k] = f;
    d->reasons[k] = ENTRIES_REASONS;
    enum entries_reason reason =
        f->is_copy ? ENTRIES_REASON_COPY : move_function(&d->moves[k], &d->image, f);
    p->n_entries += reason == ENTRIES_REASONS;
    return reason;
}

static void add_entries(struct draft *d)
{
    for (size_t k = 0; k < d->list.n; k++) {
        const struct find_function *f = &d->list.functions[k];
        if (!f->row->function) {
            d->result->usable_size[f->family] = f->at;
        } else if (!f->is_alias) {
            enum entries_reason reason = add_entry(d, f);
            if (reason == ENTRIES_REASONS)
                continue;
            add_refusal(d, f, reason);
            add_aliases(d, f, reason);
        }
    }
}

static int find_jumps(struct draft *d)
{
    uint64_t bytes[ENTRIES_MAX];
    for (uint32_t k = 0; k < d->plan->n_entries; k++)
        bytes[k] = d->functions[k]->bytes;
    return move_find_jumps(&d->image, d->plan->entries, d->plan->n_entries, bytes, d->reasons);
}

// Returns true if the function only jumps to code that is redirected.
static bool is_redirected_at_target(const struct draft *d, const struct find_function *f)
{
    for (uint32_t k = 0; f->target && k < d->plan->n_entries; k++) {
        const struct find_function *code = d->functions[k];
        if (code->is_target && code->at == f->target)
            return d->reasons[k] == ENTRIES_REASONS;
    }
    return false;
}

static void write_code(struct draft *d)
{
    struct entries_plan *p = d->plan;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_entries; k++) {
        const struct move *m = &d->moves[k];
        enum entries_reason reason = d->reasons[k];
        if (reason == ENTRIES_REASONS && p->n_fixups + m->n_fixups > ENTRIES_MAX_FIXUPS)
            reason = ENTRIES_REASON_TOO_MANY;
        if (reason != ENTRIES_REASONS)
            add_refusal(d, d->functions[k], reason);
        add_aliases(d, d->functions[k], reason);
        if (reason != ENTRIES_REASONS || is_redirected_at_target(d, d->functions[k]))
            continue;
        struct entries_entry *e = &p->entries[n++];
        *e = p->entries[k];
        d->result->named |= d->functions[k]->row->named;
        move_write_stub(p->code + e->stub, e);
        memcpy(p->code + e->trampoline, m->code, m->code_bytes);
        for (unsigned f = 0; f < m->n_fixups; f++)
            p->fixups[p->n_fixups++] = e->trampoline + m->fixups[f];
    }
    p->n_entries = n;
}

static int make_plan(struct draft *d)
{
    struct entries_result *r = d->result;
    r->refused = calloc(d->list.n, sizeof *r->refused);
    d->plan = r->plan = calloc(1, sizeof *d->plan);
    if (!r->refused || !r->plan)
        return -ENOMEM;
    place_area(d);
    add_entries(d);
    int rc = d->plan->n_entries ? find_jumps(d) : 0;
    if (rc == 0)
        write_code(d);
    if (rc < 0 || !d->plan->n_entries) {
        free(r->plan);
        r->plan = NULL;
    }
    return rc;
}

int entries_plan_object(const struct entries_object *object, const struct entries_names *names,
                        struct entries_result *to, struct err *e)
{
    struct functions functions = {0};
    struct draft *d = calloc(1, sizeof *d);
    if (!d)
        return err_no_memory(e, object->path);
    d->result = to;
    d->shadow_stack = names->shadow_stack;
    int rc = image_open(&d->image, object, e);
    to->base = d->image.base;
    rc = rc ?: functions_init(&functions, names) ?: find_functions(&d->image, &functions, &d->list);
    if (rc == 0 && d->list.n)
        rc = make_plan(d);
    functions_release(&functions);
    free(d);
    return rc == -ENOMEM ? err_no_memory(e, object->path) : rc;
}

bool entries_have_symbols(const char *path)
{
    struct stat file;
    struct entries_image i;
    struct image_symbols symbols = {0};
    struct err ignored;
    int fd = input_regular_fd(path, &file);
    const struct entries_object object = {.path = path, .file = fd, .memory = -1};
    bool found = fd < 0 || image_open(&i, &object, &ignored) < 0 ||
                 image_read_static(fd, &symbols) < 0 || symbols.symbols.size;
    int debug = found ? -1 : image_open_debug(&i);
    image_symbols_release(&symbols);
    proc_file_close(debug);
    proc_file_close(fd);
    return found || debug >= 0;
}
