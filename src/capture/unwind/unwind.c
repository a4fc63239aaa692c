#include "capture/unwind/unwind.h"
#include "trace/codec.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Atomic uint32_t unwind_age = 1, unwind_generation;
_Atomic uint64_t unwind_gone_start, unwind_gone_bytes;

enum {
    SLOT_LOST = UNWIND_SLOT_LOST * WORD,
    PATH_APART = 4, // if more than this many frames are not on the path, the walk replaces it
};

// Fills the window from `at` upwards. Also copies up to 512 bytes before `at` on the same page,
// which contain other words of the same frame.
static bool fill_window(struct unwind_window *w, uint64_t at)
{
    enum { BEFORE = 512, PAGE = 4096 };
    uint64_t page = at & ~(uint64_t)(PAGE - 1), from = at - page < BEFORE ? page : at - BEFORE,
             cut = page + PAGE - from;
    // Split the copy at a page boundary: if part of a piece is unreadable, the whole piece is
    // omitted.
    const struct iovec local = {w->words, sizeof w->words},
                       remote[] = {{(void *)from, cut},
                                   {(void *)(page + PAGE), sizeof w->words - cut}};
    int saved_errno = errno;
    long n = w->fills++ < UNWIND_WINDOW_FILLS
                 ? syscall(SYS_process_vm_readv, w->pid, &local, 1ul, remote,
                           cut < sizeof w->words ? 2ul : 1ul, 0ul)
                 : -1;
    errno = saved_errno;
    w->at = from;
    w->bytes = n > 0 ? (uint64_t)n : 0;
    return n > 0;
}

bool unwind_read_copy(struct unwind_window *w, uint64_t at, uint64_t *to)
{
    if ((at < w->at || at - w->at + WORD > w->bytes) &&
        (!fill_window(w, at) || at - w->at + WORD > w->bytes))
        return false;
    *to = w->words[(at - w->at) / WORD];
    return true;
}

#if defined __x86_64__

// Offsets of the registers in the kernel's signal frame (struct ucontext), relative to the stack
// pointer in the restorer.
enum { SIGNAL_FP = 120, SIGNAL_SP = 160, SIGNAL_PC = 168, SIGNAL_BYTES = 176 };

static bool leave_signal(const struct unwind_cursor *c, uint64_t at, struct unwind_registers *to)
{
    if (!unwind_read_word(c, at + SIGNAL_SP, &to->sp) ||
        !unwind_read_word(c, at + SIGNAL_FP, &to->fp) ||
        !unwind_read_word(c, at + SIGNAL_PC, &to->pc) || (to->sp <= at && !c->window))
        return false;
    to->pc++; // plus 1, like a return address, which follows its call
    return true;
}

static const uint64_t *signal_fp(uint64_t at)
{
    return (const uint64_t *)(at + SIGNAL_FP);
}

#else

static const uint64_t *signal_fp(uint64_t at)
{
    return (const uint64_t *)at;
}

static bool leave_signal(const struct unwind_cursor *c, uint64_t at, struct unwind_registers *to)
{
    (void)c, (void)at, (void)to;
    return false;
}

#endif

// An entry of the rule cache contains 37 bits of the address, the tag, and the low bits of the
// rule. The other bits of the address select the set. A rule is never 0. The first entry of a set
// is the most recently used entry.
enum { ADDRESS_BITS = 47, KEPT_BITS = 27, TAG_BITS = 64 - KEPT_BITS, RULES_A_SET = 4 };
_Static_assert(UNWIND_RULES / RULES_A_SET == 1 << (ADDRESS_BITS - TAG_BITS),
               "set and tag make up the address");

static inline uint32_t extend_rule(uint64_t kept)
{
    const int above = UNWIND_RULE_BITS - KEPT_BITS;
    return (uint32_t)((int32_t)((uint32_t)kept << above) >> above);
}

// Returns the rule of the entry, or 0 if the entry belongs to another address.
static inline uint32_t entry_rule(uint64_t entry, uint64_t tag)
{
    uint64_t rule = entry ^ tag << KEPT_BITS;
    return rule >> KEPT_BITS ? 0 : extend_rule(rule);
}

static __attribute__((noinline)) uint32_t find_other_rule(struct unwind_memory *m, uint64_t *set,
                                                          uint64_t tag, uint64_t pc)
{
    unsigned i = 1;
    while (i < RULES_A_SET && !entry_rule(set[i], tag))
        i++;
    uint64_t entry = i < RULES_A_SET ? set[i] : 0;
    uint32_t rule = entry ? entry_rule(entry, tag) : unwind_find_rule(pc - 1);
    m->found_gone |= !entry && unwind_is_gone(pc);
    // The rule of a frame larger than 1 MiB does not fit in an entry.
    if (!entry && extend_rule(rule) != rule)
        return rule;
    for (i = i < RULES_A_SET ? i : RULES_A_SET - 1; i > 0; i--)
        set[i] = set[i - 1];
    set[0] = entry ? entry : tag << KEPT_BITS | (rule & ((1u << KEPT_BITS) - 1));
    return rule;
}

static inline uint32_t find_rule(struct unwind_memory *m, uint64_t pc)
{
    if (pc < LOWEST_CODE)
        return unwind_make_rule(WAY_NOTHING, 0, 0);
    if (!m || pc >> ADDRESS_BITS)
        return unwind_find_rule(pc - 1);
    // Multiplication by an odd number is a bijection, so no two addresses have the same key.
    uint64_t key = (pc * 0x9e3779b97f4a7c15u) & ((1ull << ADDRESS_BITS) - 1),
             tag = key & ((1ull << TAG_BITS) - 1);
    uint64_t *set = &m->rules[(key >> TAG_BITS) * RULES_A_SET];
    uint32_t rule = entry_rule(set[0], tag);
    return rule ? rule : find_other_rule(m, set, tag, pc);
}

// Finds the caller's registers. Returns false if there is no caller or the caller cannot be found.
static inline __attribute__((always_inline)) bool find_caller(const struct unwind_cursor *c,
                                                              struct unwind_step step,
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
        // The code here was generated at run time, or its object has no tables.
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

void unwind_drop_frames(struct unwind_memory *m)
{
    memset(m->frames, 0, sizeof m->frames);
    memset(m->path, 0, sizeof m->path);
    m->path[0].site = m->generation;
    m->path_n = 0;
}

void unwind_memory_init(struct unwind_memory *m)
{
    m->age = atomic_load_explicit(&unwind_age, memory_order_acquire);
    m->generation = atomic_load_explicit(&unwind_generation, memory_order_relaxed);
    m->path[0].site = m->generation;
    // words[0] is a sentinel that never matches: its word differs from the word at its address.
    m->words[0] = (struct unwind_word){(const uint64_t *)&m->words[0].at, 0};
    // `nobody` is never the caller, because the word below its sp differs from its pc.
    struct unwind_frame *nobody = &m->frames[UNWIND_FRAMES];
    *nobody = (struct unwind_frame){.sp = (uintptr_t)(&nobody->sp + 1)};
}

static void reset_memory(struct unwind_memory *m)
{
    memset(m->rules, 0, sizeof m->rules);
    unwind_drop_frames(m);
    unwind_memory_init(m);
}

static inline struct unwind_frame *cached_caller(struct unwind_memory *m,
                                                 const struct unwind_frame *f)
{
    return (struct unwind_frame *)((char *)m->frames + f->caller);
}

static inline void set_caller(const struct unwind_memory *m, struct unwind_frame *f,
                              const struct unwind_frame *caller)
{
    _Static_assert(sizeof m->frames <= UINT16_MAX && sizeof m->path <= UINT16_MAX,
                   "16 bits hold an offset");
    f->caller = (uint16_t)((const char *)caller - (const char *)m->frames);
}

static inline struct unwind_place *path_place(struct unwind_memory *m, const struct unwind_frame *f)
{
    return (struct unwind_place *)((char *)m->path + f->place);
}

static struct unwind_frame *frame_set(struct unwind_memory *m, uint64_t pc, uint64_t sp)
{
    _Static_assert(UNWIND_FRAMES == 1 << 10, "9 hash bits select the set");
    return &m->frames[((pc + sp) * 0x9e3779b97f4a7c15u >> 55) * 2];
}

static __attribute__((noinline)) struct unwind_frame *make_frame(struct unwind_memory *m,
                                                                 uint64_t pc, uint64_t sp)
{
    struct unwind_frame *f = &frame_set(m, pc, sp)[++m->made % 2];
    struct unwind_step step = unwind_unpack_rule(find_rule(m, pc));
    // A plain frame contains the words that its rule reads, so they are readable.
    bool plain =
        step.way == WAY_SP && step.number > 0 && step.slot <= step.number && step.slot != SLOT_LOST;
    *f = (struct unwind_frame){.pc = pc,
                               .sp = sp,
                               .caller = UNWIND_FRAMES * sizeof *f,
                               .number = step.number,
                               .slot = step.slot,
                               .way = step.way,
                               .plain = plain};
    return f;
}

// Returns the cached frame with `pc` and `sp`, or NULL.
static inline struct unwind_frame *find_frame(struct unwind_memory *m, uint64_t pc, uint64_t sp)
{
    struct unwind_frame *f = frame_set(m, pc, sp);
    if (f->pc == pc && f->sp == sp)
        return f;
    f++;
    return f->pc == pc && f->sp == sp ? f : NULL;
}

// Like find_frame, but creates the frame if it is not cached.
static inline struct unwind_frame *find_or_make_frame(struct unwind_memory *m, uint64_t pc,
                                                      uint64_t sp)
{
    struct unwind_frame *f = find_frame(m, pc, sp);
    return f ? f : make_frame(m, pc, sp);
}

// Address where the frame pointer of `frame` is stored.
struct fp {
    const struct unwind_frame *frame;
    const uint64_t *at;
};

// Follows the cached callers from fp->frame to `f`, and updates the address where the frame pointer
// is stored.
static void follow_fp(struct unwind_memory *m, struct fp *fp, const struct unwind_frame *f)
{
    while (fp->frame != f) {
        const struct unwind_frame *caller = cached_caller(m, fp->frame);
        if (fp->frame->slot)
            fp->at = (const uint64_t *)(caller->sp - fp->frame->slot);
        fp->frame = caller;
    }
}

static bool uses_fp(unsigned way)
{
    return way == WAY_FP || way == WAY_UNKNOWN;
}

// Returns true if the CFA is far enough above the frame, as find_caller requires.
static bool is_above(uint64_t cfa, const struct unwind_frame *f)
{
    return cfa > f->sp + (f->way == WAY_UNKNOWN ? WORD : 0);
}

// Finds the caller of `f` after the cached caller has proved wrong. Returns NULL if there is no
// caller or the caller cannot be found.
static __attribute__((noinline)) struct unwind_frame *
find_other_caller(const struct unwind_cursor *c, struct unwind_frame *f, struct fp *fp)
{
    static const uint64_t lost_fp;
    follow_fp(c->memory, fp, f);
    struct unwind_registers r = {f->pc, f->sp, *fp->at}, to;
    const struct unwind_step step = {f->number, f->slot, f->way};
    bool kept = f->plain || (uses_fp(step.way) && step.slot != SLOT_LOST);
    if (!find_caller(c, step, &r, &to))
        return NULL;
    struct unwind_frame *p = find_or_make_frame(c->memory, to.pc, to.sp);
    if (kept && f != p) // f may have been replaced by p
        set_caller(c->memory, f, p);
    if (step.way == WAY_SIGNAL)
        fp->at = signal_fp(r.sp);
    else if (step.way == WAY_ALIGNED)
        fp->at = (const uint64_t *)r.fp;
    else if (step.slot)
        fp->at = step.slot == SLOT_LOST ? &lost_fp : (const uint64_t *)(to.sp - step.slot);
    fp->frame = p;
    return p;
}

// Returns true if the stack from `at` outwards has not changed since it was cached. *same is the
// index of a word that is known to differ. Words with a lower index have not been checked.
static inline bool is_unchanged(const struct unwind_memory *m, const struct unwind_place *at,
                                uint32_t *same)
{
    const struct unwind_word *w = m->words + at->n_words;
    if (at->n_words >= *same)
        return false;
    while (*w->at == w->word) // words[0] always differs
        w--;
    if (w == m->words)
        return true;
    *same = (uint32_t)(w - m->words);
    return false;
}

static inline void add_word(struct unwind_memory *m, uint32_t *n, uint64_t at, uint64_t word)
{
    m->words[++*n] = (struct unwind_word){(const uint64_t *)at, word};
}

// A walk, which consists of n innermost frames and the outermost `known` frames of the path.
struct path_walk {
    uint32_t n, known;
    bool ended; // reading further up the stack would not extend the walk
};

// Replaces the path with the frames of the walk.
static __attribute__((noinline)) void replace_path(struct unwind_memory *m,
                                                   const struct path_walk *walk)
{
    struct unwind_place *at = &m->path[walk->known];
    for (uint32_t n = walk->n; n-- > 0;) {
        const struct unwind_walked *w = &m->walked[n];
        struct unwind_frame *f = w->frame;
        bool own = f->pc == w->pc && f->sp == w->sp;
        struct unwind_step step = own ? (struct unwind_step){f->number, f->slot, f->way}
                                      : unwind_unpack_rule(find_rule(m, w->pc));
        // This frame cannot be on the path: its caller depends on words that the path does not
        // check.
        if (step.way == WAY_ALIGNED || step.way == WAY_SIGNAL)
            break;
        struct unwind_place *outer = at++;
        bool needs_fp = false;
        *at = (struct unwind_place){
            .frame = f, .pc = w->pc, .sp = w->sp, .fp = *w->fp, .n_words = outer->n_words};
        at->n_frames = outer->n_frames + 1;
        if (outer > m->path) {
            add_word(m, &at->n_words, outer->sp - WORD, outer->pc);
            needs_fp = outer->needs_fp && !step.slot;
            if (outer->needs_fp && step.slot && step.slot != SLOT_LOST)
                add_word(m, &at->n_words, outer->sp - step.slot, outer->fp);
        }
        at->needs_fp = needs_fp || uses_fp(step.way);
        at->site = outer->site * CODEC_SITE_FACTOR + w->pc;
        if (own)
            f->place = (uint16_t)((char *)at - (char *)m->path);
    }
    uint32_t before = m->path_n;
    m->path_n = at->n_frames;
    while (before > m->path_n)
        m->path[before--].frame = NULL;
}

// Returns the hash of all frames, as codec_site computes it: the sum of pc * CODEC_SITE_FACTOR to
// the power of the frame's index, where the innermost frame has index 0. If `notes` is true, stores
// the frames in `walked`, for keep_path.
static inline __attribute__((always_inline)) uint64_t
walk_frames(struct unwind_cursor *c, uint32_t max, bool notes, struct path_walk *walk)
{
    struct unwind_memory *m = c->memory;
    uint64_t hash = 0, power = 1, limit = c->high - WORD;
    uint32_t left = max, same = UINT32_MAX;
    if (m->age != atomic_load_explicit(&unwind_age, memory_order_relaxed))
        reset_memory(m);
    struct unwind_frame *f = find_or_make_frame(m, c->from.pc, c->from.sp);
    struct fp fp = {f, &c->from.fp};
    *walk = (struct path_walk){0};
    for (;;) {
        const struct unwind_place *place = path_place(m, f);
        if (place->frame == f && left >= place->n_frames && is_unchanged(m, place, &same)) {
            if (place->needs_fp)
                follow_fp(m, &fp, f);
            if (!place->needs_fp || *fp.at == place->fp) {
                walk->known = place->n_frames;
                hash += place->site * power;
                break;
            }
        }
        if (notes) {
            follow_fp(m, &fp, f);
            m->walked[max - left] = (struct unwind_walked){f, f->pc, f->sp, fp.at};
        }
        hash += f->pc * power;
        power *= CODEC_SITE_FACTOR;
        if (--left == 0)
            break;
        struct unwind_frame *p = cached_caller(m, f);
        if (f->plain) {
            uint64_t cfa = f->sp + (uint64_t)(int64_t)f->number;
            if (cfa != p->sp || unwind_read(cfa - WORD) != p->pc) {
                bool readable = cfa <= limit && cfa % WORD == 0;
                p = readable ? find_frame(m, unwind_read(cfa - WORD), cfa) : NULL;
                if (p)
                    set_caller(m, f, p);
                else
                    p = find_other_caller(c, f, &fp);
            }
        } else if (f->way == WAY_END) {
            break;
        } else {
            follow_fp(m, &fp, f);
            // The word below p->sp is readable, even if another frame has replaced the cached
            // caller.
            uint64_t cfa = *fp.at + (uint64_t)(int64_t)f->number;
            if (cfa != p->sp || !is_above(cfa, f) || unwind_read(cfa - WORD) != p->pc)
                p = find_other_caller(c, f, &fp);
        }
        if (!p)
            break;
        f = p;
    }
    if (!walk->known)
        hash += m->generation * power;
    walk->n = max - left;
    walk->ended = walk->known || f->way == WAY_END || f->way == WAY_BROKEN;
    return hash & codec_mask(CODEC_NOTE_BITS);
}
static bool is_far(const struct path_walk *walk)
{
    return walk->ended && walk->n > PATH_APART;
}

uint64_t unwind_walk_site(struct unwind_cursor *c, uint32_t max)
{
    struct path_walk walk;
    uint64_t site;
    if (!c->memory->far) {
        site = walk_frames(c, max, false, &walk);
        c->memory->far = is_far(&walk);
    } else {
        site = walk_frames(c, max, true, &walk);
        c->memory->far = false;
        if (is_far(&walk))
            replace_path(c->memory, &walk);
    }
    return site;
}

static void walk_cached(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to)
{
    struct unwind_memory *m = c->memory;
    struct path_walk walk;
    (void)walk_frames(c, max, true, &walk);
    to->n = 0;
    while (to->n < walk.n) {
        to->codes[to->n] = m->walked[to->n].pc;
        m->sps[to->n] = m->walked[to->n].sp;
        to->n++;
    }
    for (uint32_t i = walk.known; i > 0; i--) {
        m->sps[to->n] = m->path[i].sp;
        to->codes[to->n++] = m->path[i].pc;
    }
    if (is_far(&walk))
        replace_path(m, &walk);
}

void unwind_walk(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to)
{
    struct unwind_registers r = c->from, next;
    if (c->memory && !c->window) {
        walk_cached(c, max, to);
    } else {
        if (c->memory && c->memory->age != atomic_load_explicit(&unwind_age, memory_order_relaxed))
            reset_memory(c->memory);
        uint32_t n = 1;
        to->codes[0] = r.pc;
        while (n < max &&
               find_caller(c, unwind_unpack_rule(find_rule(c->memory, r.pc)), &r, &next)) {
            r = next;
            to->codes[n++] = r.pc;
        }
        to->n = n;
    }
    to->generation = c->memory ? c->memory->generation
                               : atomic_load_explicit(&unwind_generation, memory_order_relaxed);
    uint64_t site = to->generation;
    for (uint32_t i = to->n; i-- > 0;)
        to->sites[i] = site = codec_site(site, to->codes[i]);
}

// Numbers of objects that have been loaded and unloaded so far.
struct loads {
    unsigned long long loaded, unloaded;
};

static int count_loads(struct dl_phdr_info *info, size_t size, void *data)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(struct loads *)data = (struct loads){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

bool unwind_check_unloaded(void)
{
    static _Atomic unsigned long long loaded, unloaded;
    struct loads now = {0};
    dl_iterate_phdr(count_loads, &now);
    if (atomic_exchange(&unloaded, now.unloaded) != now.unloaded)
        atomic_fetch_add(&unwind_age, 1);
    return atomic_exchange(&loaded, now.loaded) != now.loaded;
}
