#include "record/attach/plans.h"

#include "capture/spool/attach.h"
#include "record/attach/status.h"
#include "record/entries/functions.h"
#include "record/entries/move.h"
#include "trace/event/event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    STACK_WORDS = 8192, // number of stack words that are searched for interrupted instructions
    NAME_BYTES = 4096,
};

// For each function that the library wraps, its address in the process, or 0.
struct plans_wanted {
    uint64_t at[ENTRIES_FUNCTION_LIMIT];
    // If the function only jumps to other code: the target of the jump, which a plan may redirect
    // instead. Otherwise 0.
    uint64_t target[ENTRIES_FUNCTION_LIMIT];
    const struct spool_wrap *wrap; // names of other functions, or NULL
};

static const char *wanted_symbol(unsigned function)
{
    const char *symbol = entries_symbol(function);
    return symbol && strncmp(symbol, "heaptape_", strlen("heaptape_")) != 0 ? symbol : NULL;
}

// Sets `missing` to the reason, unless `missing` already contains a reason.
static void note_missing(struct plans *p, const char *name, const char *why)
{
    if (!p->missing[0])
        snprintf(p->missing, sizeof p->missing, "%.60s: %s", name, why);
}

void plans_miss_object(struct plans *p, struct plans_object *o, const char *why)
{
    note_missing(p, entries_symbol(o->plan->entries[0].function), why);
    o->named = 0;
}

// Opens the file of an object, if the file is still accessible through the process.
static int open_object(const struct remote *r, const struct remote_object *o, char *path,
                       size_t room)
{
    if (!o->name[0])
        snprintf(path, room, "/proc/%ld/exe", (long)r->pid);
    else
        snprintf(path, room, "/proc/%ld/%s%s", (long)r->pid, o->name[0] == '/' ? "root" : "cwd/",
                 o->name);
    return strchr(o->name, '/') || !o->name[0] ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
}

static bool is_wanted(const struct plans_wanted *wanted, uint64_t at)
{
    unsigned f = 0;
    while (f < ENTRIES_FUNCTION_LIMIT && wanted->at[f] != at && wanted->target[f] != at)
        f++;
    return f < ENTRIES_FUNCTION_LIMIT;
}

// Returns true if an allocator function is recorded although no symbol of the program leads to it.
// In the executable, this applies to all allocator functions. In other objects, it applies only to
// functions with a prefix or special arguments: for the others, the program uses the definition in
// another object.
static bool is_own(const struct entries_entry *e, bool is_executable)
{
    return (is_executable || e->family != ENTRIES_FAMILY_LIBC || e->arguments[0]) &&
           entries_class(e->function) != HT_CLASS_NONE;
}

// Returns the families of functions that is_own selects but that cannot be redirected. These
// families are not recorded, because a recording of only some functions would be wrong.
static uint32_t find_partial(struct plans *p, const struct entries_result *result,
                             const struct plans_wanted *wanted, bool is_executable)
{
    uint32_t partial = 0;
    for (size_t i = 0; i < result->n_refused; i++) {
        const struct entries_refusal *f = &result->refused[i];
        if (f->reason == ENTRIES_REASON_ALIAS || is_wanted(wanted, result->base + f->at) ||
            (!is_executable && f->family == ENTRIES_FAMILY_LIBC))
            continue;
        snprintf(p->unrecorded, sizeof p->unrecorded, "%.60s: %s", f->name,
                 entries_reason_texts[f->reason]);
        partial |= 1u << f->family;
    }
    return partial;
}

// Keeps only the entries that is_own selects, and the functions that the program's symbols resolve
// to, because the wrappers call these. Returns the number of entries that remain.
static uint32_t filter_plan(struct plans *p, const struct entries_result *result,
                            const struct plans_wanted *wanted, bool is_executable)
{
    struct entries_plan *plan = result->plan;
    uint32_t n = 0, partial = find_partial(p, result, wanted, is_executable);
    for (uint32_t i = 0; plan && i < plan->n_entries; i++) {
        const struct entries_entry *e = &plan->entries[i];
        uint64_t at = result->base + e->at;
        bool is_first = e->family == ENTRIES_FAMILY_LIBC && !e->arguments[0] &&
                        (wanted->at[e->function] == at || wanted->target[e->function] == at);
        if (is_first ||
            (is_own(e, is_executable) && !is_wanted(wanted, at) && !(partial & 1u << e->family)))
            plan->entries[n++] = *e;
    }
    if (plan)
        plan->n_entries = n;
    return n;
}

static void note_refusals(struct plans *p, const struct entries_result *result,
                          const struct plans_wanted *wanted)
{
    for (size_t i = 0; i < result->n_refused; i++) {
        const struct entries_refusal *refused = &result->refused[i];
        if (is_wanted(wanted, result->base + refused->at) &&
            refused->reason != ENTRIES_REASON_ALIAS &&
            wanted->at[ENTRIES_LOADS] != result->base + refused->at)
            note_missing(p, refused->name, entries_reason_texts[refused->reason]);
    }
}

// Adds the plan of an object, if the process calls any of the object's functions. `uses_all` is
// true for the executable, and for the C library of another namespace.
static int plan_object(struct plans *p, const struct remote *r, const struct remote_object *o,
                       const struct plans_wanted *wanted, bool uses_all)
{
    char path[NAME_BYTES];
    struct err ignored = {0};
    struct entries_result result = {0};
    int file = open_object(r, o, path, sizeof path);
    const struct entries_object object = {path, file, r->memory, o->base};
    const struct entries_names names = {.wrap = wanted->wrap,
                                        .addresses = !o->name[0],
                                        .families = ENTRIES_RECORDED_FAMILIES,
                                        .reordered = true,
                                        .wrapped = true};
    int rc = entries_plan_object(&object, &names, &result, &ignored);
    if (rc == 0)
        note_refusals(p, &result, wanted);
    if (rc == 0 && filter_plan(p, &result, wanted, uses_all) && p->n < PLANS_MAX) {
        p->objects[p->n++] =
            (struct plans_object){.plan = result.plan, .base = o->base, .named = result.named};
        result.plan = NULL;
    }
    entries_result_release(&result);
    if (file >= 0)
        close(file);
    return rc == -ENOMEM ? rc : 0;
}

static bool is_planned(const struct plans *p, uint64_t at)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plans_object *o = &p->objects[i];
        for (uint32_t k = 0; k < o->plan->n_entries; k++) {
            if (o->base + o->plan->entries[k].at == at)
                return true;
        }
    }
    return false;
}

static bool wants_object(const struct plans_wanted *wanted, struct remote_range range)
{
    for (unsigned f = 0; f < ENTRIES_FUNCTION_LIMIT; f++) {
        if (wanted->at[f] >= range.start && wanted->at[f] < range.end)
            return true;
    }
    return false;
}

// Returns true if the object exports a malloc with a known prefix, exports a function that the user
// named, or may contain an allocator that it does not export.
static bool has_other_names(const struct remote *r, const struct remote_object *o,
                            const struct spool_wrap *wrap)
{
    if (strchr(o->name, '/') && !entries_is_system_library(o->name))
        return true;
    for (size_t i = 1; i < ENTRIES_PREFIXES; i++) {
        if (remote_defines(r, o, entries_malloc_names[i]))
            return true;
    }
    for (unsigned i = 0; wrap && i < wrap->n; i++) {
        if (remote_defines(r, o, wrap->items[i].name))
            return true;
    }
    return false;
}

// Removes functions that only a copy of the capture library defines.
static void drop_own_functions(const struct remote *r, struct plans_wanted *wanted)
{
    for (size_t i = 0; i < r->n_objects; i++) {
        struct remote_range range = remote_range_of(r, &r->objects[i]);
        bool own = remote_defines(r, &r->objects[i], "heaptape_attach");
        for (unsigned f = 0; own && f < ENTRIES_FUNCTION_LIMIT; f++) {
            if (wanted->at[f] >= range.start && wanted->at[f] < range.end)
                wanted->at[f] = wanted->target[f] = 0;
        }
    }
}

// Finds the function that the program's calls of function `f` reach.
static void find_wanted(const struct remote *r, struct plans_wanted *wanted, unsigned f)
{
    uint8_t code[MOVE_JUMP_BYTES];
    wanted->at[f] = wanted_symbol(f) ? remote_first_function(r, wanted_symbol(f)) : 0;
    if (wanted->at[f] && remote_read(r, wanted->at[f], code, sizeof code))
        wanted->target[f] = move_jump_target(code, wanted->at[f]);
}

bool plans_have_names(const struct plans *p, const struct spool_wrap *wrap)
{
    uint32_t named = 0;
    for (size_t i = 0; i < p->n; i++)
        named |= p->objects[i].named;
    for (unsigned i = 0; i < wrap->n; i++) {
        // heaptape only calls malloc_usable_size.
        if (wrap->items[i].function && !(named & 1u << i))
            return false;
    }
    return true;
}

int plans_find(struct plans *p, const struct remote *r, const struct spool_wrap *wrap,
               struct err *e)
{
    struct plans_wanted wanted = {.wrap = wrap};
    int rc = 0;
    *p = (struct plans){0};
    for (unsigned f = 0; f < ENTRIES_FUNCTION_LIMIT; f++)
        find_wanted(r, &wanted, f);
    drop_own_functions(r, &wanted);
    for (size_t i = 0; rc == 0 && i < r->n_objects; i++) {
        const struct remote_object *o = &r->objects[i];
        // The ELF header of an executable that is not position-independent is not at its base.
        if (!o->name[0] || wants_object(&wanted, remote_range_of(r, o)) ||
            has_other_names(r, o, wrap))
            rc = plan_object(p, r, o, &wanted, !o->name[0]);
    }
    struct remote_object libc;
    uint64_t space = r->r_debug;
    for (unsigned i = 0;
         rc == 0 && i < ENTRIES_NAMESPACES && (space = remote_next_space(r, space, &libc)); i++)
        rc = libc.base ? plan_object(p, r, &libc, &wanted, true) : 0;
    for (unsigned f = 0; f < ENTRIES_FUNCTION_LIMIT; f++) {
        if (wanted.at[f] && entries_class(f) != HT_CLASS_NONE && !is_planned(p, wanted.at[f]) &&
            !is_planned(p, wanted.target[f]))
            note_missing(p, wanted_symbol(f), "its object cannot be read");
    }
    return rc < 0 ? err_no_memory(e, NULL) : 0;
}

void plans_release(struct plans *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->objects[i].plan);
    p->n = 0;
}

// Returns true if the bytes of the entry are `expected`.
static bool holds(const struct plans_object *o, const struct entries_entry *e,
                  const struct remote *r, const uint8_t *expected)
{
    uint8_t now[ENTRIES_MAX_BYTES];
    return remote_read(r, o->base + e->at, now, e->bytes) && memcmp(now, expected, e->bytes) == 0;
}

bool plans_drop_redirected(struct plans_object *o, const struct remote *r)
{
    uint32_t n = 0, before = o->plan->n_entries;
    for (uint32_t i = 0; i < before; i++) {
        if (holds(o, &o->plan->entries[i], r, o->plan->entries[i].was))
            o->plan->entries[n++] = o->plan->entries[i];
    }
    o->plan->n_entries = n;
    return n && n < before;
}

static bool has_all_jumps(const struct plans_object *o, const struct remote *r)
{
    for (uint32_t i = 0; i < o->plan->n_entries; i++) {
        uint8_t jump[ENTRIES_MAX_BYTES];
        if (!entries_make_jump(&o->plan->entries[i], o->base, o->area, jump) ||
            !holds(o, &o->plan->entries[i], r, jump))
            return false;
    }
    return true;
}

void plans_choose_place(struct plans_object *o, const struct remote *r)
{
    char path[64], *line = NULL;
    size_t room = 0;
    unsigned long long start, end, free_from = 0;
    const uint64_t above = o->base + o->plan->span, margin = 1 << 20;
    const uint64_t lowest = above > ENTRIES_REACH ? above - ENTRIES_REACH + margin : margin;
    int64_t place = 0; // relative to the base, like the plan's
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)r->pid);
    FILE *f = fopen(path, "re");
    while (f && getline(&line, &room, f) > 0 && sscanf(line, "%llx-%llx", &start, &end) == 2 &&
           start <= o->base) {
        uint64_t bytes = o->plan->area_bytes;
        if (start - free_from >= bytes && start - bytes >= lowest)
            place = (int64_t)(start - bytes - o->base);
        free_from = end;
    }
    free(line);
    if (f)
        fclose(f);
    if (place)
        entries_relocate(o->plan, place - o->plan->place);
}

int plans_write_code(struct plans_object *o, const struct remote *r, uint64_t area)
{
    o->area = area;
    if (!entries_relocate(o->plan, (int64_t)(area - (o->base + (uint64_t)o->plan->place))))
        return -ERANGE;
    // Do not write to an area that threads already use.
    if (has_all_jumps(o, r))
        return 0;
    if (!remote_write(r, area, o->plan->code, o->plan->code_bytes))
        return -EACCES;
    o->pending = true;
    return 0;
}

// Returns the plan of an object. Adds the object if it is new. Returns NULL if out of memory, or if
// there are already PLANS_MAX objects.
static struct plans_object *find_object(struct plans *p, uint64_t base, uint64_t area)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->objects[i].base == base && p->objects[i].area == area)
            return &p->objects[i];
    }
    struct entries_plan *plan = p->n < PLANS_MAX ? calloc(1, sizeof *plan) : NULL;
    if (!plan)
        return NULL;
    plan->span = UINT64_MAX;
    p->objects[p->n] = (struct plans_object){.plan = plan, .base = base, .area = area};
    return &p->objects[p->n++];
}

// Returns true if the area contains the stub and the trampoline of a function. Both begin with an
// instruction, which is not 0.
static bool has_code(const struct plans_object *o, const struct entries_entry *e,
                     const struct remote *r)
{
    uint32_t stub = 0, trampoline = 0;
    return remote_read(r, o->area + e->stub, &stub, sizeof stub) && stub &&
           remote_read(r, o->area + e->trampoline, &trampoline, sizeof trampoline) && trampoline;
}

bool plans_add_redirected(struct plans *p, const struct remote *r, uint64_t at, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct entries_redirected f;
        if (!remote_read(r, at + i * sizeof f, &f, sizeof f))
            return false;
        struct plans_object *o = f.entry.bytes ? find_object(p, f.base, f.area) : NULL;
        if (!o || o->plan->n_entries == ENTRIES_MAX || f.entry.bytes > ENTRIES_MAX_BYTES)
            continue;
        o->plan->entries[o->plan->n_entries++] = f.entry;
        o->pending |= holds(o, &f.entry, r, f.entry.was);
        o->is_empty |= !has_code(o, &f.entry, r);
    }
    for (size_t i = 0; i < p->n; i++)
        p->objects[i].pending &= !p->objects[i].is_empty;
    return true;
}

void plans_restore(const struct plans *p, const struct remote *r)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plans_object *o = &p->objects[i];
        for (uint32_t k = 0; k < o->plan->n_entries; k++) {
            const struct entries_entry *e = &o->plan->entries[k];
            uint8_t jump[ENTRIES_MAX_BYTES];
            if (entries_make_jump(e, o->base, o->area, jump) && holds(o, e, r, jump) &&
                !remote_write(r, o->base + e->at, e->was, e->bytes))
                return;
        }
    }
}

// Returns the address where a thread must continue: `pc` if the thread can stay, or 0 if no address
// is suitable.
static uint64_t moved_to(const struct plans *p, uint64_t pc)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plans_object *o = &p->objects[i];
        bool inside = o->pending && pc - o->base < o->plan->span;
        for (uint32_t k = 0; inside && k < o->plan->n_entries; k++) {
            uint64_t to = entries_move(&o->plan->entries[k], o->base, o->area, pc);
            if (to != pc)
                return to;
        }
    }
    return pc;
}

bool plans_have_code(const struct plans *p, uint64_t pc)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plans_object *o = &p->objects[i];
        if (o->area && pc - o->area < o->plan->code_bytes)
            return true;
    }
    return false;
}

uint64_t plans_skip_entry(const struct plans *p, uint64_t pc)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plans_object *o = &p->objects[i];
        for (uint32_t k = 0; o->area && k < o->plan->n_entries; k++) {
            const struct entries_entry *e = &o->plan->entries[k];
            if (pc == o->base + e->at && e->moved[e->keep] != ENTRIES_NO_INSTRUCTION)
                return o->area + e->trampoline + e->moved[e->keep];
        }
    }
    return pc;
}

// Returns true if a stack contains an address inside the bytes that will be replaced. A signal
// handler may have interrupted the thread there.
static bool is_interrupted_inside(const struct plans *p, pid_t pid, uint64_t sp)
{
    static uint64_t words[STACK_WORDS];
    struct iovec to = {words, sizeof words}, from = {(void *)(uintptr_t)(sp & ~7ull), sizeof words};
    ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    for (ssize_t i = 0; i < got / (ssize_t)sizeof *words; i++) {
        if (words[i] && moved_to(p, words[i]) != words[i])
            return true;
    }
    return false;
}

// Registers of a thread that must be moved.
struct plans_move {
    pid_t tid;
    struct machine_registers registers;
};

static bool find_moves(const struct plans *p, const struct tracees *t, pid_t tid,
                       struct plans_move *moves, size_t *n)
{
    pid_t pid = t->remote->pid;
    bool handles = status_number(pid, pid, "SigCgt", 16) != 0;
    for (size_t i = 0; i < t->n; i++) {
        struct machine_registers r;
        if (t->all[i].tid == tid || t->all[i].state == TRACEE_CHILD)
            continue;
        if (t->all[i].state != TRACEE_STOPPED || !machine_get(t->all[i].tid, &r))
            return false;
        uint64_t to = moved_to(p, r.pc);
        if (!to || (handles && is_interrupted_inside(p, pid, r.sp)))
            return false;
        if (to == r.pc)
            continue;
        r.pc = to;
        moves[(*n)++] = (struct plans_move){t->all[i].tid, r};
    }
    return true;
}

bool plans_move_threads(const struct plans *p, const struct tracees *t, pid_t tid, uint64_t *caller)
{
    struct plans_move *moves = calloc(t->n + 1, sizeof *moves);
    size_t n = 0;
    uint64_t to = moved_to(p, *caller);
    bool good = moves && to && find_moves(p, t, tid, moves, &n);
    for (size_t i = 0; good && i < n; i++)
        machine_set(moves[i].tid, &moves[i].registers);
    if (good)
        *caller = to;
    free(moves);
    return good;
}

// Writes each jump with a single write, so that the jump is complete even if this process is
// killed.
static bool store_object(const struct plans_object *o, const struct remote *r)
{
    for (uint32_t i = 0; i < o->plan->n_entries; i++) {
        uint8_t jump[ENTRIES_MAX_BYTES];
        if (!entries_make_jump(&o->plan->entries[i], o->base, o->area, jump) ||
            (!holds(o, &o->plan->entries[i], r, o->plan->entries[i].was) &&
             !holds(o, &o->plan->entries[i], r, jump)))
            return false;
    }
    for (uint32_t i = 0; i < o->plan->n_entries; i++) {
        const struct entries_entry *e = &o->plan->entries[i];
        uint8_t jump[ENTRIES_MAX_BYTES];
        entries_make_jump(e, o->base, o->area, jump);
        if (!remote_write(r, o->base + e->at, jump, e->bytes))
            return false;
    }
    return true;
}

void plans_store_jumps(struct plans *p, const struct remote *r)
{
    for (size_t i = 0; i < p->n; i++) {
        struct plans_object *o = &p->objects[i];
        if (o->pending && !store_object(o, r))
            plans_miss_object(p, o, "another tool has changed its first bytes");
        o->pending = false;
    }
}
