#include "capture/unwind.h"
#include "trace/codec.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Atomic uint32_t unwind_age = 1;

enum { SLOT_LOST = UNWIND_SLOT_LOST * WORD };

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

bool unwind_read_copy(struct unwind_window *w, uint64_t at, uint64_t *to)
{
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

// The caller's registers. False: there is none, or none that can be found.
static inline __attribute__((always_inline)) bool find_caller(const struct unwind_cursor *c, struct unwind_step step,
                                                              const struct unwind_registers *of,
                                                              struct unwind_registers *to)
{
    uint64_t number = (uint64_t)(int64_t)step.number, cfa;
    *to = (struct unwind_registers){.fp = step.slot == SLOT_LOST ? 0 : of->fp};
    switch ((enum unwind_way)step.way) {
    case WAY_SP:
        cfa = of->sp + number;
        break;
    case WAY_UNKNOWN:
        // Code made at run time, or without tables.
        if (of->fp < of->sp)
            return false;
        cfa = of->fp + number;
        break;
    case WAY_FP:
        cfa = of->fp + number;
        break;
    case WAY_ALIGNED:
        if (!unwind_read_word(c, of->fp + number, &cfa) || !unwind_read_word(c, of->fp, &to->fp))
            return false;
        break;
    case WAY_SIGNAL:
        return leave_signal(c, of->sp, to);
    case WAY_END:
    case WAY_BROKEN:
    case WAY_NOTHING:
    default:
        return false;
    }
    to->sp = cfa;
    if (cfa <= of->sp || !unwind_read_word(c, cfa - WORD, &to->pc) || to->pc < LOWEST_CODE)
        return false;
    return !step.slot || step.slot == SLOT_LOST || unwind_read_word(c, cfa - step.slot, &to->fp);
}

void unwind_forget_frames(struct unwind_memory *m)
{
    memset(m->frames, 0, sizeof m->frames);
}

void unwind_memory_init(struct unwind_memory *m)
{
    m->age = atomic_load_explicit(&unwind_age, memory_order_relaxed);
    // The word below its sp is not its pc.
    m->nobody = (struct unwind_frame){.sp = (uintptr_t)(&m->nobody.sp + 1)};
}

static void forget_all(struct unwind_memory *m)
{
    memset(m->rules, 0, sizeof m->rules);
    unwind_forget_frames(m);
    unwind_memory_init(m);
}

static struct unwind_frame *set_of(struct unwind_memory *m, uint64_t pc, uint64_t sp)
{
    _Static_assert(UNWIND_FRAMES == 1 << 10, "of 64 bits 9 are left, and one chooses in the set");
    return &m->frames[((pc + sp) * 0x9e3779b97f4a7c15u >> 55) * 2];
}

static __attribute__((noinline)) struct unwind_frame *make_frame(struct unwind_memory *m, uint64_t pc, uint64_t sp)
{
    struct unwind_frame *f = &set_of(m, pc, sp)[++m->made % 2];
    struct unwind_step step = unwind_step_of(rule_of(m, pc));
    // What is saved in the frame itself can be read.
    bool plain = step.way == WAY_SP && step.number > 0 && step.slot <= step.number && step.slot != SLOT_LOST;
    uint64_t cfa = plain ? sp + (uint64_t)step.number : 0;
    *f = (struct unwind_frame){.pc = pc, .sp = sp, .cfa = cfa, .caller = &m->nobody, .step = step};
    return f;
}

// The frame kept of that place, which is made if there is none.
static inline struct unwind_frame *keep(struct unwind_memory *m, uint64_t pc, uint64_t sp)
{
    struct unwind_frame *f = set_of(m, pc, sp);
    if (f->pc == pc && f->sp == sp)
        return f;
    f++;
    return f->pc == pc && f->sp == sp ? f : make_frame(m, pc, sp);
}

// The frame that called `f`, whose fp lies at `fp`, and its registers. NULL: there is none, or none that can be found.
static struct unwind_frame *other_caller(const struct unwind_cursor *c, struct unwind_frame *f, const uint64_t *fp,
                                         struct unwind_registers *to)
{
    struct unwind_registers r = {f->pc, f->sp, *fp};
    if (!find_caller(c, f->step, &r, to))
        return NULL;
    struct unwind_frame *p = keep(c->memory, to->pc, to->sp);
    bool by_fp = f->step.way == WAY_FP || f->step.way == WAY_UNKNOWN;
    if (by_fp && f->step.slot != SLOT_LOST && f != p) // f may have lost its place to p
        f->caller = p;
    return p;
}

// Returns what codec_site makes of all the frames: the sum of pc * CODEC_SITE_FACTOR to the power of the frame's number from
// inside. `codes`: NULL, or where the addresses go.
static inline __attribute__((always_inline)) uint64_t walk_kept(struct unwind_cursor *c, uint32_t max, uint64_t *codes,
                                                                uint32_t *frames)
{
    struct unwind_memory *m = c->memory;
    struct unwind_registers next;
    const uint64_t *fp = &c->from.fp; // where the frame's lies
    uint64_t hash = 0, power = 1, limit = c->high - WORD;
    uint32_t left = max;
    if (m->age != atomic_load_explicit(&unwind_age, memory_order_relaxed))
        forget_all(m);
    struct unwind_frame *f = keep(m, c->from.pc, c->from.sp), *p;
    for (;;) {
        if (codes)
            *codes++ = f->pc;
        hash += f->pc * power;
        power *= CODEC_SITE_FACTOR;
        if (--left == 0)
            break;
        uint64_t cfa = f->cfa, slot = f->step.slot;
        p = f->caller;
        if (cfa == 0) {
            // A guess has been right once, so the word below its stack pointer can be read.
            if (*fp + (uint64_t)(int64_t)f->step.number != p->sp || unwind_read(p->sp - WORD) != p->pc) {
                if (f->step.way == WAY_END || !(p = other_caller(c, f, fp, &next)))
                    break;
                f = p;
                fp = &next.fp;
                continue;
            }
            cfa = p->sp;
        } else if (cfa != p->sp || unwind_read(cfa - WORD) != p->pc) {
            if (cfa % WORD || cfa > limit || unwind_read(cfa - WORD) < LOWEST_CODE)
                break;
            p = keep(m, unwind_read(cfa - WORD), cfa);
            if (f != p) // f may have lost its place to p
                f->caller = p;
        }
        fp = slot ? (const uint64_t *)(cfa - slot) : fp;
        f = p;
    }
    *frames = max - left;
    return hash & codec_mask(CODEC_NOTE_BITS);
}

uint64_t unwind_walk_site(struct unwind_cursor *c, uint32_t max)
{
    uint32_t n;
    return walk_kept(c, max, NULL, &n);
}

void unwind_walk(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to)
{
    struct unwind_registers r = c->from, next;
    if (c->memory && !c->window) {
        (void)walk_kept(c, max, to->codes, &to->n);
    } else {
        if (c->memory && c->memory->age != atomic_load_explicit(&unwind_age, memory_order_relaxed))
            forget_all(c->memory);
        uint32_t n = 1;
        to->codes[0] = r.pc;
        while (n < max && find_caller(c, unwind_step_of(rule_of(c->memory, r.pc)), &r, &next)) {
            r = next;
            to->codes[n++] = r.pc;
        }
        to->n = n;
    }
    uint64_t site = 0;
    for (uint32_t i = to->n; i-- > 0;)
        to->sites[i] = site = codec_site(site, to->codes[i]);
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
