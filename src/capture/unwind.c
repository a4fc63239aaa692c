#include "capture/unwind.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Atomic uint32_t unwind_age = 1;

// Fills the window from `at` on, and with some of what lies before it on its page, where the words of the same frame are.
static bool fill_window(struct unwind_window *w, uint64_t at)
{
    enum { BEFORE = 512, PAGE = 4096 };
    uint64_t page = at & ~(uint64_t)(PAGE - 1), from = at - page < BEFORE ? page : at - BEFORE,
             cut = page + PAGE - from;
    // In pieces of a page: what cannot be read is left out whole.
    const struct iovec local = {w->words, sizeof w->words},
                       remote[] = {{(void *)from, cut}, {(void *)(page + PAGE), sizeof w->words - cut}};
    int saved_errno = errno;
    long n = w->fills++ < UNWIND_WINDOW_FILLS
                 ? syscall(SYS_process_vm_readv, w->pid, &local, 1ul, remote, cut < sizeof w->words ? 2ul : 1ul, 0ul)
                 : -1;
    errno = saved_errno;
    w->at = from;
    w->bytes = n > 0 ? (uint64_t)n : 0;
    return n > 0;
}

bool unwind_read_word(const struct unwind_cursor *c, uint64_t at, uint64_t *to)
{
    struct unwind_window *w = c->window;
    if (at % WORD)
        return false;
    if (!w) {
        if (at < c->low || at > c->high - WORD)
            return false;
        *to = unwind_read(at);
        return true;
    }
    if ((at < w->at || at - w->at + WORD > w->bytes) && (!fill_window(w, at) || at - w->at + WORD > w->bytes))
        return false;
    *to = w->words[(at - w->at) / WORD];
    return true;
}

#if defined __x86_64__

// Where the kernel's signal frame has them, from the stack pointer of the restorer on: struct ucontext.
enum { SIGNAL_FP = 120, SIGNAL_SP = 160, SIGNAL_PC = 168, SIGNAL_BYTES = 176 };

static bool leave_signal(const struct unwind_cursor *c, uint64_t at, struct unwind_registers *to)
{
    if (!unwind_read_word(c, at + SIGNAL_SP, &to->sp) || !unwind_read_word(c, at + SIGNAL_FP, &to->fp) ||
        !unwind_read_word(c, at + SIGNAL_PC, &to->pc) || (to->sp <= at && !c->window))
        return false;
    to->pc++; // as if it were the address behind a call
    return true;
}

#else

static bool leave_signal(const struct unwind_cursor *c, uint64_t at, struct unwind_registers *to)
{
    (void)c, (void)at, (void)to;
    return false;
}

#endif

// An entry is 35 bits of the address, of which the others are the place, and the rule: no rule is 0.
static uint32_t rule_of(struct unwind_memory *m, uint64_t pc)
{
    enum { ADDRESS_BITS = 47, TAG_BITS = 64 - UNWIND_RULE_BITS };
    _Static_assert(UNWIND_RULES == 1 << (ADDRESS_BITS - TAG_BITS), "place and tag are the address");
    if (pc < LOWEST_CODE)
        return unwind_make_rule(WAY_NOTHING, 0, 0);
    if (!m || pc >> ADDRESS_BITS)
        return unwind_find_rule(pc - 1);
    // Multiplication by an odd number is a bijection.
    uint64_t key = (pc * 0x9e3779b97f4a7c15u) & ((1ull << ADDRESS_BITS) - 1), tag = key & ((1ull << TAG_BITS) - 1);
    uint64_t *kept = &m->rules[key >> TAG_BITS];
    uint32_t rule = (uint32_t)*kept & ((1u << UNWIND_RULE_BITS) - 1);
    if (*kept >> UNWIND_RULE_BITS == tag && rule)
        return rule;
    rule = unwind_find_rule(pc - 1);
    *kept = tag << UNWIND_RULE_BITS | rule;
    return rule;
}

static bool uses_fp(uint32_t rule)
{
    return unwind_way_of(rule) == WAY_FP || unwind_way_of(rule) == WAY_UNKNOWN || unwind_way_of(rule) == WAY_ALIGNED;
}

// The caller's registers. False: there is none, or none that can be found.
static bool find_caller(const struct unwind_cursor *c, uint32_t rule, const struct unwind_registers *of,
                        struct unwind_registers *to)
{
    uint64_t cfa = 0, slot = rule >> UNWIND_WAY_BITS & UNWIND_SLOT_LOST;
    *to = (struct unwind_registers){.fp = slot == UNWIND_SLOT_LOST ? 0 : of->fp};
    switch (unwind_way_of(rule)) {
    case WAY_SP:
        cfa = of->sp + (uint64_t)unwind_number_of(rule);
        break;
    case WAY_UNKNOWN:
        // Code made at run time, or without tables.
        if (of->fp < of->sp)
            return false;
        cfa = of->fp + (uint64_t)unwind_number_of(rule);
        break;
    case WAY_FP:
        cfa = of->fp + (uint64_t)unwind_number_of(rule);
        break;
    case WAY_ALIGNED:
        if (!unwind_read_word(c, of->fp + (uint64_t)unwind_number_of(rule), &cfa) ||
            !unwind_read_word(c, of->fp, &to->fp))
            return false;
        break;
    case WAY_SIGNAL:
        return leave_signal(c, of->sp, to);
    case WAY_END:
    case WAY_BROKEN:
    case WAY_NOTHING:
        return false;
    }
    to->sp = cfa;
    if (cfa <= of->sp || !unwind_read_word(c, cfa - WORD, &to->pc))
        return false;
    return !slot || slot == UNWIND_SLOT_LOST || unwind_read_word(c, cfa - slot * WORD, &to->fp);
}

void unwind_forget_frames(struct unwind_memory *m)
{
    memset(m->frames, 0, sizeof m->frames);
}

void unwind_memory_init(struct unwind_memory *m)
{
    m->age = atomic_load_explicit(&unwind_age, memory_order_relaxed);
    m->tags = 1;
    // It is its own frame's caller: "the return address below sp" is its pc.
    m->root = (struct unwind_frame){.sp = (uintptr_t)(&m->root.pc + 1), .tag = 1};
}

// The place where a frame with these registers is kept, or is to be: not that of another one of this walk, if there is a
// choice.
static struct unwind_frame *place_of(struct unwind_memory *m, const struct unwind_registers *r)
{
    struct unwind_frame *set = &m->frames[unwind_place(r->pc, r->sp)];
    for (unsigned i = 0; i < 2; i++) {
        if (set[i].pc == r->pc && set[i].sp == r->sp)
            return &set[i];
    }
    bool second = set[0].walk == m->walk || (set[1].walk != m->walk && (set[1].tag < set[0].tag));
    return &set[second];
}

// Keeps the frame. It is not linked, unless it was kept before.
static struct unwind_frame *keep(struct unwind_memory *m, const struct unwind_registers *r)
{
    struct unwind_frame *f = place_of(m, r);
    bool same = f->pc == r->pc && f->sp == r->sp;
    if (!same || ((f->rule & UNWIND_NEEDS_FP) && f->fp != r->fp)) {
        uint32_t rule = same ? f->rule & ((1u << UNWIND_RULE_BITS) - 1) : rule_of(m, r->pc);
        *f = (struct unwind_frame){.pc = r->pc, .sp = r->sp, .parent = &m->root, .tag = ++m->tags};
        f->rule = rule | (uses_fp(rule) ? UNWIND_NEEDS_FP : 0);
    }
    f->fp = r->fp;
    f->walk = m->walk;
    return f;
}

// A walk: its frames, and how many of the innermost ones may have another caller than before.
struct unwind_path {
    struct unwind_frame *path[UNWIND_DEPTH];
    uint64_t sps[UNWIND_DEPTH];
    uint32_t n, changed;
    bool cut; // there are more frames
};

// Goes outwards, along links that still hold, and makes others anew.
static void go_out(struct unwind_cursor *c, uint32_t max, struct unwind_path *w, struct unwind_stack *to)
{
    struct unwind_memory *m = c->memory;
    struct unwind_registers r = c->from, next;
    struct unwind_frame *f = keep(m, &r), *root = &m->root;
    for (;;) {
        w->path[w->n] = f;
        w->sps[w->n] = r.sp;
        to->hashes[w->n] = f->hash;
        to->codes[w->n++] = r.pc;
        struct unwind_frame *p = f->parent;
        uint32_t slot = unwind_slot(f);
        if (unwind_is_linked(f)) {
            r.fp = slot == UNWIND_SLOT_LOST ? 0 : slot && p != root ? unwind_read(p->sp - slot * WORD) : r.fp;
            r.pc = p->pc;
            r.sp = p->sp;
        } else {
            w->changed = w->n;
            p = root;
            if (find_caller(c, f->rule, &r, &next)) {
                p = keep(m, &next);
                r = next;
            }
            f->parent = p;
        }
        w->cut = w->n == max;
        if (w->cut || p == root || unwind_way_of(p->rule) == WAY_NOTHING)
            return;
        f = p;
    }
}

// Can a later walk see whether the frame still has this caller, by the return address and the frame pointer's slot?
static bool is_comparable(const struct unwind_frame *f, const struct unwind_frame *parent,
                          const struct unwind_frame *root)
{
    enum unwind_way way = unwind_way_of(f->rule);
    return parent == root ? way == WAY_END || way == WAY_BROKEN : way != WAY_ALIGNED && way != WAY_SIGNAL;
}

// Links a frame to its caller, which is NULL when it is not kept, and gives it its hash.
static void link_frame(struct unwind_memory *m, struct unwind_frame *f, const struct unwind_frame *parent,
                       uint64_t hash)
{
    uint32_t slot = unwind_slot(f), rule = f->rule & ~(uint32_t)UNWIND_NEEDS_FP, compares = 0;
    rule |= uses_fp(rule) ? UNWIND_NEEDS_FP : 0;
    if (parent && (parent->rule & UNWIND_NEEDS_FP) && slot != UNWIND_SLOT_LOST) {
        rule |= slot ? 0 : UNWIND_NEEDS_FP;
        compares = slot ? UNWIND_COMPARES_FP : 0;
    }
    if (f->hash != hash || f->rule != rule)
        f->tag = ++m->tags;
    f->hash = hash;
    f->rule = rule;
    f->depth = parent && parent->depth < UINT16_MAX ? parent->depth + 1 : UINT16_MAX;
    f->parent_tag = parent && is_comparable(f, parent, &m->root) ? parent->tag | compares : 0;
}

// Comes back inwards, and gives new hashes to frames that have another stack than before.
static void come_in(struct unwind_memory *m, struct unwind_path *w, struct unwind_stack *to)
{
    uint32_t last = w->n - 1;
    // The outermost frame of those that were asked for is as if there were none beyond it.
    if (w->cut && to->hashes[last] != unwind_hash(0, to->codes[last]))
        w->changed = w->n;
    const struct unwind_frame *parent = w->changed <= last ? w->path[w->changed]
                                        : w->cut           ? NULL
                                                           : w->path[last]->parent;
    uint64_t hash = w->changed <= last ? to->hashes[w->changed] : 0;
    for (uint32_t i = w->changed; i-- > 0;) {
        struct unwind_frame *f = w->path[i];
        to->hashes[i] = hash = unwind_hash(hash, to->codes[i]);
        // A walk may need more frames than have place in a set.
        bool kept = f->pc == to->codes[i] && f->sp == w->sps[i];
        if (kept)
            link_frame(m, f, parent, hash);
        parent = kept ? f : NULL;
    }
}

static void forget_all(struct unwind_memory *m)
{
    memset(m->rules, 0, sizeof m->rules);
    unwind_forget_frames(m);
    unwind_memory_init(m);
}

static void forget_older(struct unwind_memory *m)
{
    uint32_t age = atomic_load_explicit(&unwind_age, memory_order_relaxed);
    if (m->age != age || m->tags > INT32_MAX - 4 * UNWIND_DEPTH)
        forget_all(m);
}

static void walk_with_memory(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to)
{
    struct unwind_memory *m = c->memory;
    struct unwind_path w;
    w.n = w.changed = 0;
    m->walk++;
    go_out(c, max, &w, to);
    come_in(m, &w, to);
    to->n = w.n;
}

const struct unwind_frame *unwind_other_caller(struct unwind_memory *m, const struct unwind_frame *f)
{
    enum { RELINKED = 256 }; // of so many, one takes the linked caller's place, which may have gone for good
    enum unwind_way way = unwind_way_of(f->rule);
    if (!f->parent_tag || (way != WAY_SP && way != WAY_FP) || ++m->turns % RELINKED == 0)
        return NULL;
    uint64_t cfa = (way == WAY_SP ? f->sp : f->fp) + (uint64_t)unwind_number_of(f->rule);
    const struct unwind_frame *p = unwind_find(m, unwind_read(cfa - WORD), cfa);
    // An fp is not known here.
    return p && !(p->rule & UNWIND_NEEDS_FP) ? p : NULL;
}

void unwind_walk(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to)
{
    struct unwind_registers r = c->from, next;
    if (c->memory)
        forget_older(c->memory);
    if (c->memory && !c->window) {
        walk_with_memory(c, max, to);
        return;
    }
    uint32_t n = 1;
    to->codes[0] = r.pc;
    while (n < max && find_caller(c, rule_of(c->memory, r.pc), &r, &next) && next.pc >= LOWEST_CODE) {
        r = next;
        to->codes[n++] = r.pc;
    }
    uint64_t hash = 0;
    for (uint32_t i = n; i-- > 0;)
        to->hashes[i] = hash = unwind_hash(hash, to->codes[i]);
    to->n = n;
}

static int count_unloaded(struct dl_phdr_info *info, size_t size, void *data)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(unsigned long long *)data = info->dlpi_subs;
    return 1;
}

void unwind_watch(void)
{
    static _Atomic unsigned long long seen;
    unsigned long long now = 0;
    dl_iterate_phdr(count_unloaded, &now);
    if (atomic_exchange(&seen, now) != now)
        atomic_fetch_add(&unwind_age, 1);
}
