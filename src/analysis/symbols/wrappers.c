#include "analysis/symbols/wrappers.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The constants are based on the measurements in docs/design/call-sites.md.
enum {
    ROUNDS = 8,     // maximum depth of wrappers that call wrappers
    MAX_PLACES = 3, // maximum number of calls in a wrapper, for example of malloc and realloc
    SMALL_BYTES = 200,
    LARGE_BYTES = 2048,
    FEW_CALLERS = 2,
    SOME_CALLERS = 4,
    MANY_CALLERS = 8,
    MAIN_SHARE = 2, // at least one in MAIN_SHARE stacks must contain a main wrapper
};

// A function of the program that calls the allocator, either directly or through folded functions
// (library functions and wrappers).
struct wrapping {
    uint64_t key;
    struct symbol function;
    struct workload_frame frame; // an address in the function
    size_t inlined;              // index among the functions of this frame
    size_t stacks;               // number of stacks where the function calls the allocator
    size_t outside;              // number of stacks where the function calls another candidate
    size_t callers;              // number of distinct callers
    size_t allocating_callers;   // number of callers whose names say that they allocate
    uint64_t caller;             // key of a caller
    // A caller is main, the start function of a thread, or a library function.
    bool has_outermost_caller;
    uint64_t places[MAX_PLACES];
    // Number of different calls in the function; MAX_PLACES + 1 if there are more.
    size_t n_places;
    bool around_tentative; // the function calls a tentative wrapper in some stack
    bool around_wrapper;   // the function calls a wrapper in some stack
};

// Reason for folding a function. A tentative wrapper has one caller, and is a wrapper if its caller
// is a wrapper.
enum fold { FOLD_NOT, FOLD_WRAPPER, FOLD_TENTATIVE };

struct wrapper_search {
    struct symbols *symbols;
    struct map folded; // maps the key of a function to enum fold
    struct wrapping *tentative;
    size_t n_tentative, tentative_capacity;
    struct wrapping *candidates; // functions found in this round
    size_t n, capacity;
    size_t stacks;     // number of stacks with a function of the program
    struct map by_key; // maps the key of a function to its index plus 1
    struct map pairs;  // set of pairs of a function and its caller
};

void wrappers_release(struct wrappers *w)
{
    free(w->list);
    map_release(&w->keys);
    *w = (struct wrappers){0};
}

static uint64_t hash_byte(uint64_t hash, char c)
{
    return (hash ^ (uint8_t)c) * 0x100000001b3u;
}

static uint64_t hash_start(uint64_t hash, const struct symbol *s)
{
    for (const char *c = s->module; *c; c++)
        hash = hash_byte(hash, *c);
    for (unsigned shift = 0; shift < 64; shift += 8)
        hash = hash_byte(hash, (char)(s->code_offset >> shift));
    return hash ? hash : 1;
}

uint64_t wrappers_key(const struct symbol *s)
{
    size_t n, i = 0;
    unsigned depth = 0;
    uint64_t hash = 0xcbf29ce484222325u;
    if (!s->known && s->code_offset)
        return hash_start(hash, s);
    const char *name = symbols_bare_name(s->function, &n);
    // All instances of a template are the same function. "<T as Trait>::f" begins with a type.
    for (; i < n && !(i > 0 && depth == 0 && strncmp(name + i, "operator", 8) == 0); i++) {
        depth += name[i] == '<' && i > 0;
        if (depth == 0)
            hash = hash_byte(hash, name[i]);
        depth -= depth && name[i] == '>' && name[i - 1] != '-';
    }
    for (; i < n; i++)
        hash = hash_byte(hash, name[i]);
    return hash ? hash : 1;
}

// The innermost function that is not folded, and its caller.
struct wrapping_call {
    bool has_function, has_caller, around_tentative, around_wrapper;
    bool has_outer; // another function of the program calls the caller
    struct symbol function, caller;
    struct workload_frame frame; // an address in the function
    size_t inlined;              // index among the functions of this frame
    uint64_t key, caller_key;
    uint64_t call; // identifies the call in the code of the function
};

static uint64_t call_in(const struct symbol *f, const struct workload_frame *frame)
{
    return f->file[0] && f->line > 0 ? (uint64_t)f->line : workload_sites_key(frame);
}

// Adds the next outer function. Returns true if *p is complete.
static bool add_function(struct wrapper_search *f, struct wrapping_call *p, const struct symbol *s,
                         const struct workload_frame *frame, size_t inlined)
{
    uint64_t key = wrappers_key(s);
    if (p->has_caller) {
        p->has_outer = !s->library;
        return key != p->caller_key;
    }
    if (p->has_function) {
        if (key == p->key)
            return false;
        p->has_caller = true;
        p->caller = *s;
        p->caller_key = key;
        return s->library;
    }
    uint64_t fold = s->library ? FOLD_NOT : map_get(&f->folded, key);
    p->around_tentative |= fold == FOLD_TENTATIVE;
    p->around_wrapper |= fold == FOLD_WRAPPER;
    if (fold || s->library)
        return false;
    p->has_function = true;
    p->function = *s;
    p->frame = *frame;
    p->inlined = inlined;
    p->key = key;
    p->call = call_in(s, frame);
    return false;
}

static int find_place(struct wrapper_search *f, const struct workload_site *site,
                      struct wrapping_call *p)
{
    *p = (struct wrapping_call){0};
    for (uint32_t i = 0; i < site->n; i++) {
        const struct workload_frame *frame = symbols_frame(f->symbols, site, i);
        const struct symbol *found;
        size_t n = symbols_of(f->symbols, frame, &found);
        if (!n)
            return -ENOMEM;
        for (size_t k = 0; k < n; k++) {
            if (add_function(f, p, &found[k], frame, k))
                return 0;
        }
    }
    return 0;
}

// Returns true if the last part of the function's name contains a word for allocation, as in
// xmalloc, pool_alloc, os::AllocateHeap or xstrdup.
static bool names_allocation(const struct symbol *s)
{
    static const char *const words[] = {"alloc", "strdup", "strndup", "memdup"};
    size_t n;
    unsigned depth = 0;
    const char *name = symbols_bare_name(s->function, &n), *last = name;
    for (const char *at = name; at < name + n; at++) {
        depth += *at == '<';
        depth -= depth && *at == '>';
        last = depth == 0 && *at == ':' ? at + 1 : last;
    }
    // The names of script functions contain a path.
    for (; s->module[0] && last < name + n && *last != '<'; last++) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            size_t bytes = strlen(words[i]);
            if (strncasecmp(last, words[i], bytes) == 0 &&
                strncasecmp(last + bytes, "ator", 4) != 0)
                return true;
        }
    }
    return false;
}

static struct wrapping *candidate_of(struct wrapper_search *f, uint64_t key, const struct symbol *s)
{
    struct wrapping *c = MAP_ITEM(&f->by_key, key, &f->candidates, &f->n, &f->capacity);
    if (c && !c->key)
        *c = (struct wrapping){.key = key, .function = *s};
    return c;
}

static void add_place(struct wrapping *c, uint64_t call)
{
    for (size_t i = 0; i < c->n_places && i < MAX_PLACES; i++) {
        if (c->places[i] == call)
            return;
    }
    if (c->n_places < MAX_PLACES)
        c->places[c->n_places] = call;
    c->n_places += c->n_places <= MAX_PLACES;
}

static int count_stack(struct wrapper_search *f, const struct wrapping_call *p)
{
    struct wrapping *c = candidate_of(f, p->key, &p->function);
    if (!c)
        return -ENOMEM;
    c->stacks++;
    c->frame = p->frame;
    c->inlined = p->inlined;
    c->around_tentative |= p->around_tentative;
    c->around_wrapper |= p->around_wrapper;
    f->stacks++;
    add_place(c, p->call);
    if (!p->has_caller)
        return 0;
    uint64_t pair = p->key * 31 + p->caller_key;
    pair = pair ? pair : 1;
    if (!map_get(&f->pairs, pair)) {
        c->callers++;
        c->allocating_callers += !p->caller.library && names_allocation(&p->caller);
        c->caller = p->caller_key;
        if (map_put(&f->pairs, pair, 1) < 0)
            return -ENOMEM;
    }
    c->has_outermost_caller |= !p->has_outer;
    if (p->caller.library)
        return 0;
    c = candidate_of(f, p->caller_key, &p->caller);
    if (c)
        c->outside++;
    return c ? 0 : -ENOMEM;
}

// Returns true if few calls in the function make nearly all of its allocations, and if the result
// of the function can be the new block. The functions of a script are never folded.
static bool may_wrap(const struct wrapping *c)
{
    bool is_function = c->function.known || c->function.code_offset;
    return c->stacks && is_function && !c->function.script && c->n_places <= MAX_PLACES &&
           10 * c->outside <= c->stacks && c->function.result != SYMBOLS_RESULT_OTHER;
}

static bool is_small(const struct wrapping *c)
{
    return c->function.code_bytes <= SMALL_BYTES;
}

// Returns true if the function has a single caller that describes its allocations better. A
// thread's start function also returns a pointer to void, but its caller is a library. If the
// caller is main, the function describes its allocations better than main does.
static bool has_one_caller(const struct wrapping *c)
{
    return c->callers == 1 && !c->has_outermost_caller && !c->around_wrapper;
}

// Returns true if names show that the function allocates for its callers. Considers the function's
// own name and the names of all its callers. Returns false for functions whose result is known.
static bool is_named_wrapper(const struct wrapping *c)
{
    bool is_own_name =
        names_allocation(&c->function) && (c->callers >= FEW_CALLERS || !c->has_outermost_caller);
    return c->function.result == SYMBOLS_RESULT_UNKNOWN && c->callers &&
           c->function.code_bytes <= LARGE_BYTES &&
           (is_own_name || c->allocating_callers == c->callers);
}

static bool is_wrapper(const struct wrapper_search *f, const struct wrapping *c)
{
    bool many = c->callers >= MANY_CALLERS,
         is_main = c->callers >= SOME_CALLERS && MAIN_SHARE * c->stacks >= f->stacks;
    if (may_wrap(c) && is_named_wrapper(c))
        return true;
    if (!may_wrap(c) || c->callers < c->n_places)
        return false;
    bool is_void = c->function.result == SYMBOLS_RESULT_VOID;
    if (is_void || c->function.result == SYMBOLS_RESULT_BYTES)
        return is_small(c) ? c->callers >= FEW_CALLERS || (is_void && has_one_caller(c))
                           : many && c->function.code_bytes <= LARGE_BYTES;
    // A function that calls a wrapper may also keep the block instead of returning it.
    if (c->function.result == SYMBOLS_RESULT_UNKNOWN && c->around_wrapper)
        return false;
    return is_small(c) && (many || is_main);
}

static bool is_tentative(const struct wrapping *c)
{
    return may_wrap(c) && is_small(c) && c->callers == 1 && !c->around_tentative &&
           c->function.result != SYMBOLS_RESULT_OBJECT;
}

static int add_wrapper(struct wrappers *w, const struct wrapping *c)
{
    if (HT_GROW(&w->list, &w->capacity, w->n + 1) < 0 || map_put(&w->keys, c->key, 1) < 0)
        return -ENOMEM;
    struct wrapper *to = &w->list[w->n++];
    *to = (struct wrapper){c->key, c->function, c->callers, c->stacks};
    to->function.wrapper = true;
    return 0;
}

static int add_tentative(struct wrapper_search *f, const struct wrapping *c)
{
    return HT_APPEND(&f->tentative, &f->n_tentative, &f->tentative_capacity, *c);
}

static void clear_round(struct wrapper_search *f)
{
    map_release(&f->by_key);
    map_release(&f->pairs);
    f->n = f->stacks = 0;
}

static int count_stacks(struct wrapper_search *f)
{
    clear_round(f);
    int rc = 0;
    for (size_t i = 1; rc == 0 && i <= symbols_sites(f->symbols)->n_sites; i++) {
        struct wrapping_call p;
        rc = find_place(f, symbols_site(f->symbols, i), &p);
        if (rc == 0 && p.has_function)
            rc = count_stack(f, &p);
    }
    return rc;
}

// If the program's file exists, reads the function's code size and result type from it. Names that
// are stored in the recording include neither the size nor the type.
static void complete_function(struct wrapper_search *f, struct wrapping *c)
{
    if (may_wrap(c) && c->function.result == SYMBOLS_RESULT_UNKNOWN && !c->function.code_bytes)
        symbols_complete(f->symbols, &c->frame, c->inlined, &c->function);
}

// Folds the candidates that are wrappers or tentative wrappers. Sets *any if there are such
// candidates.
static int fold_candidates(struct wrapper_search *f, struct wrappers *w, bool *any)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        struct wrapping *c = &f->candidates[i];
        complete_function(f, c);
        enum fold fold = is_wrapper(f, c)  ? FOLD_WRAPPER
                         : is_tentative(c) ? FOLD_TENTATIVE
                                           : FOLD_NOT;
        if (!fold)
            continue;
        *any = true;
        rc = map_put(&f->folded, c->key, fold);
        if (rc == 0 && fold == FOLD_WRAPPER)
            rc = add_wrapper(w, c);
        if (rc == 0 && fold == FOLD_TENTATIVE)
            rc = add_tentative(f, c);
    }
    return rc;
}

static int add_inner_wrappers(const struct wrapper_search *f, struct wrappers *w)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n_tentative; i++) {
        if (map_get(&w->keys, f->tentative[i].caller))
            rc = add_wrapper(w, &f->tentative[i]);
    }
    return rc;
}

int wrappers_find(struct wrappers *w, struct symbols *s)
{
    struct wrapper_search f = {.symbols = s};
    bool any = true;
    int rc = 0;
    for (unsigned round = 0; rc == 0 && any && round < ROUNDS; round++) {
        any = false;
        rc = count_stacks(&f) ?: fold_candidates(&f, w, &any);
    }
    if (rc == 0)
        rc = add_inner_wrappers(&f, w);
    clear_round(&f);
    map_release(&f.folded);
    free(f.tentative);
    free(f.candidates);
    return rc;
}
