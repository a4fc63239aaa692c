#include "capture/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

_Atomic uint32_t unwind_age = 1;

// A rule in 32 bits: the way to the CFA (the stack pointer before the call), the slot of the caller's frame pointer in words
// below the CFA (0: it is unchanged), and a number in words that the way needs. The return address lies right below the CFA.
enum way {
    WAY_UNKNOWN, // no table: along the frame pointer, if it looks like one
    WAY_SP,      // the CFA is sp + number
    WAY_FP,      // fp + number
    WAY_PLT,     // sp + 8, and 8 more from instruction `number` of the 16 bytes on
    WAY_ALIGNED, // in memory at fp + number: the function has realigned its stack, and *fp is the caller's fp
    WAY_SIGNAL,  // the registers are in the kernel's frame at sp
    WAY_END,     // the outermost frame
    WAY_BROKEN,  // a table that is not understood
};

enum {
    WAY_BITS = 3,
    SLOT_BITS = 8,
    NUMBER_SHIFT = WAY_BITS + SLOT_BITS,
    SLOT_LOST = (1 << SLOT_BITS) - 1, // the frame pointer is somewhere else
    WORD = 8,
};

// Word by word: a wider load of words that were just written would wait until they have left the store buffer.
static inline void copy(struct unwind_frame *to, const struct unwind_frame *from)
{
    to->pc = *(const volatile uint64_t *)&from->pc;
    to->sp = *(const volatile uint64_t *)&from->sp;
    to->fp = *(const volatile uint64_t *)&from->fp;
    to->fp_at = *(const volatile uint64_t *)&from->fp_at;
}

static bool read_word(const struct unwind_cursor *c, uint64_t at, uint64_t *to)
{
    if (at < c->low || at > c->high - WORD || at % WORD)
        return false;
    memcpy(to, (const void *)at, WORD);
    return true;
}

#if defined __x86_64__

enum { REG_FP = 6, REG_SP = 7, REG_RA = 16, REGS = 17 };

// Where the kernel's signal frame has them, from the stack pointer of the restorer on: struct ucontext.
enum { SIGNAL_FP = 120, SIGNAL_SP = 160, SIGNAL_PC = 168, SIGNAL_BYTES = 176 };

static uint32_t make_rule(enum way way, uint32_t slot, int64_t number)
{
    return (uint32_t)way | slot << WAY_BITS | (uint32_t)(number / WORD) << NUMBER_SHIFT;
}

// Bytes under reading. Beyond the end there are only zeros, and `bad` is set.
struct bytes {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get(struct bytes *b, size_t n)
{
    uint64_t v = 0;
    if ((size_t)(b->end - b->at) < n) {
        b->bad = true;
        b->at = b->end;
        return 0;
    }
    memcpy(&v, b->at, n);
    b->at += n;
    return v;
}

static uint64_t get_leb(struct bytes *b, bool is_signed)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)get(b, 1);
        v |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        shift += 7;
    } while (byte & 128);
    return is_signed && shift < 64 && (byte & 64) ? v | ~0ull << shift : v;
}

static uint64_t get_uleb(struct bytes *b)
{
    return get_leb(b, false);
}

static int64_t get_sleb(struct bytes *b)
{
    return (int64_t)get_leb(b, true);
}

// DW_EH_PE_*: the low half says the form, the high half from where on it counts; indirect ones point to data that a walk
// does not need.
enum { PE_PCREL = 0x10, PE_DATAREL = 0x30, PE_OMIT = 0xff };

static uint64_t get_encoded(struct bytes *b, uint8_t encoding, uintptr_t base)
{
    uintptr_t here = (uintptr_t)b->at;
    uint64_t v = 0;
    if (encoding == PE_OMIT)
        return 0;
    switch (encoding & 15) {
    case 0:
    case 4:
    case 12:
        v = get(b, 8);
        break;
    case 1:
        v = get_uleb(b);
        break;
    case 9:
        v = (uint64_t)get_sleb(b);
        break;
    case 2:
        v = get(b, 2);
        break;
    case 10:
        v = (uint64_t)(int16_t)get(b, 2);
        break;
    case 3:
        v = get(b, 4);
        break;
    case 11:
        v = (uint64_t)(int32_t)get(b, 4);
        break;
    default:
        b->bad = true;
    }
    if ((encoding & 0x70) == PE_PCREL)
        return v + here;
    return (encoding & 0x70) == PE_DATAREL ? v + base : v;
}

// A function's entry (FDE), with what its common part (CIE) says.
struct entry {
    uint64_t start, end;
    struct bytes common, own; // instructions
    uint64_t code_factor;
    int64_t data_factor;
    uint8_t encoding;
    bool is_signal;
};

// The bytes of an entry that begins at `p`, behind its length.
static bool open_entry(const uint8_t *p, const uint8_t *limit, struct bytes *b)
{
    *b = (struct bytes){p, limit, false};
    uint32_t n = (uint32_t)get(b, 4);
    // 64-bit entries are not made by any linker.
    if (b->bad || n < 4 || n == UINT32_MAX || n > (size_t)(limit - b->at))
        return false;
    b->end = b->at + n;
    return true;
}

static bool read_common(struct entry *e, const uint8_t *p, const uint8_t *limit)
{
    struct bytes b;
    if (!open_entry(p, limit, &b) || get(&b, 4) != 0)
        return false;
    (void)get(&b, 1); // version
    const char *augmentation = (const char *)b.at;
    size_t n = strnlen(augmentation, (size_t)(b.end - b.at));
    (void)get(&b, n < 8 ? n + 1 : 8); // one that is longer is unknown, and so are the bytes behind it
    if (n >= 8)
        return false;
    e->code_factor = get_uleb(&b);
    e->data_factor = get_sleb(&b);
    (void)get_uleb(&b); // register of the return address
    e->encoding = 0;
    e->is_signal = false;
    if (augmentation[0] == 'z') {
        uint64_t bytes = get_uleb(&b);
        if (bytes > (size_t)(b.end - b.at))
            return false;
        struct bytes data = {b.at, b.at + bytes, false};
        b.at += bytes;
        for (const char *a = augmentation + 1; *a; a++) {
            if (*a == 'R')
                e->encoding = (uint8_t)get(&data, 1);
            else if (*a == 'L')
                (void)get(&data, 1);
            else if (*a == 'S')
                e->is_signal = true;
            else if (*a == 'P')
                (void)get_encoded(&data, (uint8_t)get(&data, 1) & 0x7f, 0);
        }
    } else if (n) {
        return false;
    }
    e->common = b;
    return !b.bad;
}

static bool read_entry(struct entry *e, const uint8_t *p, const uint8_t *first, const uint8_t *limit)
{
    struct bytes b;
    if (p < first || !open_entry(p, limit, &b))
        return false;
    const uint8_t *from = b.at;
    uint64_t back = get(&b, 4);
    if (back == 0 || back > (size_t)(from - first) || !read_common(e, from - back, limit))
        return false;
    e->start = get_encoded(&b, e->encoding, 0);
    e->end = e->start + get_encoded(&b, e->encoding & 15, 0);
    uint64_t n = get_uleb(&b);
    if (b.bad || n > (size_t)(b.end - b.at))
        return false;
    b.at += n;
    e->own = b;
    return true;
}

// What is known of a register: the same as before, saved at CFA + offset, saved where the frame pointer points, or lost.
enum saved { SAVED_NOT, SAVED_AT, SAVED_AT_FP, SAVED_LOST, SAVED_UNDEFINED };

struct row {
    enum way way;
    uint64_t reg; // of WAY_SP: REG_SP or REG_FP
    int64_t number;
    enum saved fp, ra;
    int64_t fp_offset, ra_offset;
};

static void set_saved(struct row *row, uint64_t reg, enum saved how, int64_t offset)
{
    if (reg == REG_FP) {
        row->fp = how;
        row->fp_offset = offset;
    } else if (reg == REG_RA) {
        row->ra = how;
        row->ra_offset = offset;
    }
}

static void restore(struct row *row, uint64_t reg, const struct row *first)
{
    if (reg == REG_FP) {
        row->fp = first->fp;
        row->fp_offset = first->fp_offset;
    } else if (reg == REG_RA) {
        row->ra = first->ra;
        row->ra_offset = first->ra_offset;
    }
}

enum { OP_BREG0 = 0x70, OP_DEREF = 6 };

// The three expressions that compilers and linkers write for a CFA.
static void set_expression(struct row *row, struct bytes x, bool is_signal)
{
    // rsp + 8 + ((rip & 15) >= number) * 8: entries of the procedure linkage table.
    static const uint8_t plt[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30, 0x2a, 0x33, 0x24, 0x22};
    size_t n = (size_t)(x.end - x.at);
    const uint8_t *p = x.at;
    row->way = WAY_BROKEN;
    if (is_signal) {
        row->way = WAY_SIGNAL;
    } else if (n == sizeof plt && memcmp(p, plt, 6) == 0 && memcmp(p + 7, plt + 7, 4) == 0) {
        row->way = WAY_PLT;
        row->number = (p[6] & 15) * WORD;
    } else if (n > 2 && get(&x, 1) == OP_BREG0 + REG_FP) {
        row->number = get_sleb(&x);
        if (x.end - x.at == 1 && *x.at == OP_DEREF)
            row->way = WAY_ALIGNED;
    }
}

// DW_CFA_expression for a register: the frame pointer of a function that has realigned its stack is where it points.
static bool is_fp_itself(struct bytes x)
{
    return x.end - x.at == 2 && x.at[0] == OP_BREG0 + REG_FP && x.at[1] == 0;
}

static struct bytes get_block(struct bytes *b)
{
    uint64_t n = get_uleb(b);
    if (n > (size_t)(b->end - b->at)) {
        b->bad = true;
        n = 0;
    }
    struct bytes block = {b->at, b->at + n, false};
    b->at += n;
    return block;
}

enum { MAX_STATES = 8 };

struct run {
    const struct entry *entry;
    struct row row, first; // now, and after the common instructions
    struct row states[MAX_STATES];
    unsigned n_states;
    uint64_t at; // what the row is valid from
};

// Where the row ends that begins at r->at, if the instruction ends it; else 0.
static uint64_t row_end(struct run *r, uint8_t op, struct bytes *b)
{
    uint64_t factor = r->entry->code_factor;
    switch (op) {
    case 1:
        return get_encoded(b, r->entry->encoding, 0);
    case 2:
        return r->at + get(b, 1) * factor;
    case 3:
        return r->at + get(b, 2) * factor;
    case 4:
        return r->at + get(b, 4) * factor;
    default:
        return op >> 6 == 1 ? r->at + (op & 63) * factor : 0;
    }
}

static void set_cfa(struct row *row, uint64_t reg, int64_t number)
{
    row->way = reg == REG_SP ? WAY_SP : reg == REG_FP ? WAY_FP : WAY_BROKEN;
    row->reg = reg;
    row->number = number;
}

// DW_CFA_*, but for those that end a row.
static void instruction(struct run *r, uint8_t op, struct bytes *b)
{
    struct row *row = &r->row;
    int64_t factor = r->entry->data_factor;
    uint64_t reg;
    if (op >> 6 == 2) {
        set_saved(row, op & 63, SAVED_AT, (int64_t)get_uleb(b) * factor);
        return;
    }
    if (op >> 6 == 3) {
        restore(row, op & 63, &r->first);
        return;
    }
    switch (op) {
    case 0x00: // nop
        break;
    case 0x05: // offset_extended
        reg = get_uleb(b);
        set_saved(row, reg, SAVED_AT, (int64_t)get_uleb(b) * factor);
        break;
    case 0x11: // offset_extended_sf
        reg = get_uleb(b);
        set_saved(row, reg, SAVED_AT, get_sleb(b) * factor);
        break;
    case 0x06: // restore_extended
        restore(row, get_uleb(b), &r->first);
        break;
    case 0x07: // undefined
        set_saved(row, get_uleb(b), SAVED_UNDEFINED, 0);
        break;
    case 0x08: // same_value
        set_saved(row, get_uleb(b), SAVED_NOT, 0);
        break;
    case 0x09: // register
        set_saved(row, get_uleb(b), SAVED_LOST, 0);
        (void)get_uleb(b);
        break;
    case 0x0a: // remember_state
        if (r->n_states < MAX_STATES)
            r->states[r->n_states++] = *row;
        else
            b->bad = true;
        break;
    case 0x0b: // restore_state
        if (r->n_states)
            *row = r->states[--r->n_states];
        else
            b->bad = true;
        break;
    case 0x0c: // def_cfa
        reg = get_uleb(b);
        set_cfa(row, reg, (int64_t)get_uleb(b));
        break;
    case 0x12: // def_cfa_sf
        reg = get_uleb(b);
        set_cfa(row, reg, get_sleb(b) * factor);
        break;
    case 0x0d: // def_cfa_register
        set_cfa(row, get_uleb(b), row->number);
        break;
    case 0x0e: // def_cfa_offset
        set_cfa(row, row->reg, (int64_t)get_uleb(b));
        break;
    case 0x13: // def_cfa_offset_sf
        set_cfa(row, row->reg, get_sleb(b) * factor);
        break;
    case 0x0f: // def_cfa_expression
        set_expression(row, get_block(b), r->entry->is_signal);
        break;
    case 0x10: // expression
        reg = get_uleb(b);
        set_saved(row, reg, is_fp_itself(get_block(b)) ? SAVED_AT_FP : SAVED_LOST, 0);
        break;
    case 0x16: // val_expression
        reg = get_uleb(b);
        (void)get_block(b);
        set_saved(row, reg, SAVED_LOST, 0);
        break;
    case 0x14: // val_offset
    case 0x15: // val_offset_sf
        set_saved(row, get_uleb(b), SAVED_LOST, 0);
        (void)get_uleb(b);
        break;
    case 0x2e: // GNU_args_size
        (void)get_uleb(b);
        break;
    default:
        b->bad = true;
    }
}

// Interprets until the row that holds `pc`. False: what stands there is not understood.
static bool run_until(struct run *r, struct bytes b, uint64_t pc)
{
    while (b.at < b.end && !b.bad) {
        uint8_t op = (uint8_t)get(&b, 1);
        uint64_t end = row_end(r, op, &b);
        if (!end)
            instruction(r, op, &b);
        else if (pc < end)
            return !b.bad;
        else
            r->at = end;
    }
    return !b.bad;
}

static uint32_t pack(const struct row *row)
{
    uint32_t slot = 0;
    if (row->ra == SAVED_UNDEFINED)
        return make_rule(WAY_END, 0, 0);
    if (row->way == WAY_SIGNAL || row->way == WAY_PLT)
        return make_rule(row->way, 0, row->number);
    if (row->ra != SAVED_AT || row->ra_offset != -WORD || row->number % WORD || row->number >= 1 << 23 ||
        row->number < -(1 << 23))
        return make_rule(WAY_BROKEN, 0, 0);
    if (row->way == WAY_ALIGNED)
        return make_rule(row->fp == SAVED_AT_FP ? WAY_ALIGNED : WAY_BROKEN, 0, row->number);
    if (row->fp == SAVED_AT && row->fp_offset < 0 && row->fp_offset % WORD == 0 && row->fp_offset > -SLOT_LOST * WORD)
        slot = (uint32_t)(-row->fp_offset / WORD);
    else if (row->fp != SAVED_NOT)
        slot = SLOT_LOST;
    return make_rule(row->way, slot, row->number);
}

// The FDE of an address, by the table that the linker has sorted (.eh_frame_hdr): pairs of offsets from its start. NULL:
// none.
static const uint8_t *search(const uint8_t *header, const uint8_t *limit, uint64_t pc)
{
    enum { TABLE_SDATA4_DATAREL = 0x3b, PAIR = 8 };
    struct bytes b = {header, limit, false};
    if (get(&b, 1) != 1)
        return NULL;
    uint8_t frame = (uint8_t)get(&b, 1), count = (uint8_t)get(&b, 1), table = (uint8_t)get(&b, 1);
    (void)get_encoded(&b, frame, (uintptr_t)header);
    uint64_t n = get_encoded(&b, count, (uintptr_t)header);
    if (b.bad || table != TABLE_SDATA4_DATAREL || n == 0 || n > (size_t)(limit - b.at) / PAIR)
        return NULL;
    int64_t want = (int64_t)(pc - (uintptr_t)header);
    const uint8_t *low = b.at;
    int32_t pair[2];
    while (n > 1) {
        uint64_t half = n / 2;
        memcpy(pair, low + half * PAIR, PAIR);
        if (pair[0] <= want)
            low += half * PAIR;
        n -= half;
    }
    memcpy(pair, low, PAIR);
    return pair[0] <= want ? header + pair[1] : NULL;
}

// Since glibc 2.35; it takes no lock.
#pragma weak _dl_find_object

// The rule for code at `pc`, from the tables of its object.
static uint32_t find_rule(uint64_t pc)
{
    struct dl_find_object object;
    if (!_dl_find_object || _dl_find_object((void *)pc, &object) != 0 || !object.dlfo_eh_frame)
        return make_rule(WAY_UNKNOWN, 0, 0);
    const uint8_t *first = object.dlfo_map_start, *limit = object.dlfo_map_end;
    const uint8_t *fde = search(object.dlfo_eh_frame, limit, pc);
    struct entry e;
    if (!fde)
        return make_rule(WAY_UNKNOWN, 0, 0);
    if (!read_entry(&e, fde, first, limit))
        return make_rule(WAY_BROKEN, 0, 0);
    if (pc < e.start || pc >= e.end)
        return make_rule(WAY_UNKNOWN, 0, 0);
    struct run r = {.entry = &e, .at = e.start, .row = {.way = WAY_BROKEN}};
    if (!run_until(&r, e.common, UINT64_MAX))
        return make_rule(WAY_BROKEN, 0, 0);
    r.first = r.row;
    return run_until(&r, e.own, pc) ? pack(&r.row) : make_rule(WAY_BROKEN, 0, 0);
}

static uint32_t rule_of(struct unwind_cursor *c, uint64_t pc)
{
    if (!c->memory)
        return find_rule(pc);
    uint32_t age = atomic_load_explicit(&unwind_age, memory_order_relaxed);
    struct unwind_rule *kept = &c->memory->rules[(pc * 0x9e3779b97f4a7c15u) >> 52];
    _Static_assert(UNWIND_RULES == 1 << 12, "of 64 bits 12 are left");
    if (kept->pc == pc && kept->age == age)
        return kept->rule;
    *kept = (struct unwind_rule){pc, find_rule(pc), age};
    return kept->rule;
}

// Goes to the caller through the return address right below the CFA, with the frame pointer from `slot` words below it.
static bool leave(struct unwind_cursor *c, uint64_t cfa, uint32_t slot)
{
    struct unwind_frame f = {.sp = cfa, .fp = slot == SLOT_LOST ? 0 : c->frame.fp};
    if (cfa <= c->frame.sp || !read_word(c, cfa - WORD, &f.pc))
        return false;
    if (slot && slot != SLOT_LOST) {
        f.fp_at = cfa - slot * WORD;
        if (!read_word(c, f.fp_at, &f.fp))
            return false;
    }
    copy(&c->frame, &f);
    c->interrupted = false;
    return f.pc;
}

// As `fp_at`: more had to be read than can be compared later.
enum { NOT_TO_COMPARE = 1 };

static bool leave_aligned(struct unwind_cursor *c, int64_t number)
{
    uint64_t cfa, fp;
    if (!read_word(c, c->frame.fp + (uint64_t)number, &cfa) || !read_word(c, c->frame.fp, &fp) || !leave(c, cfa, 0))
        return false;
    c->frame.fp = fp;
    c->frame.fp_at = NOT_TO_COMPARE;
    return true;
}

static bool leave_signal(struct unwind_cursor *c)
{
    uint64_t at = c->frame.sp;
    struct unwind_frame f = {.fp_at = NOT_TO_COMPARE};
    if (!read_word(c, at + SIGNAL_SP, &f.sp) || !read_word(c, at + SIGNAL_FP, &f.fp) ||
        !read_word(c, at + SIGNAL_PC, &f.pc) || f.sp <= at)
        return false;
    c->frame = f;
    c->interrupted = true;
    return true;
}

// Goes to the caller. False at the end of the chain.
static bool step(struct unwind_cursor *c)
{
    const struct unwind_frame *f = &c->frame;
    uint32_t rule = rule_of(c, c->interrupted ? f->pc : f->pc - 1), slot = rule >> WAY_BITS & SLOT_LOST;
    int64_t number = (int64_t)((int32_t)rule >> NUMBER_SHIFT) * WORD;
    switch ((enum way)(rule & ((1 << WAY_BITS) - 1))) {
    case WAY_SP:
        return leave(c, f->sp + (uint64_t)number, slot);
    case WAY_FP:
        return leave(c, f->fp + (uint64_t)number, slot);
    case WAY_PLT:
        return leave(c, f->sp + ((int64_t)(f->pc & 15) * WORD >= number ? 2 * WORD : WORD), 0);
    case WAY_ALIGNED:
        return leave_aligned(c, number);
    case WAY_SIGNAL:
        return leave_signal(c);
    case WAY_UNKNOWN:
        // Code made at run time, or without tables: [fp] is the caller's fp, and above it is the return address.
        return f->fp >= f->sp && leave(c, f->fp + 2 * WORD, 2);
    case WAY_END:
    case WAY_BROKEN:
        break;
    }
    return false;
}

#else

enum { NOT_TO_COMPARE = 1 };

// Elsewhere along the frame pointers: [fp] is the caller's, and above it is the return address.
static bool step(struct unwind_cursor *c)
{
    uint64_t at = c->frame.fp;
    struct unwind_frame f = {.sp = at + 2 * WORD, .fp_at = at};
    if (at < c->frame.sp || !read_word(c, at, &f.fp) || !read_word(c, at + WORD, &f.pc))
        return false;
    c->frame = f;
    return f.pc;
}

#endif

// Is the frame what it was, given that its callee's is? Its registers follow from these two words then.
static bool is_unchanged(const struct unwind_frame *f)
{
    return *(const uint64_t *)(f->sp - WORD) == f->pc &&
           (f->fp_at == 0 || (f->fp_at != NOT_TO_COMPARE && *(const uint64_t *)f->fp_at == f->fp));
}

// Keeps the n fresh frames, followed by the kept ones from `rest` on; nothing when they are too many.
static void keep(struct unwind_memory *m, uint32_t n, uint32_t rest, bool whole)
{
    m->first = n <= rest ? rest - n : UNWIND_KEPT;
    m->whole = whole;
    for (uint32_t i = 0; i < n && n <= rest; i++)
        copy(&m->kept[m->first + i], &m->fresh[i]);
}

static uint32_t walk_and_keep(struct unwind_cursor *c, struct unwind_memory *m, uint64_t *codes, uint32_t max)
{
    uint32_t n = 0, j = m->first, age = atomic_load_explicit(&unwind_age, memory_order_relaxed);
    if (m->age != age)
        j = UNWIND_KEPT;
    m->age = age;
    for (;;) {
        const struct unwind_frame *f = &c->frame;
        copy(&m->fresh[n], f);
        codes[n++] = f->pc;
        while (j < UNWIND_KEPT && m->kept[j].sp < f->sp)
            j++;
        if (j < UNWIND_KEPT && m->kept[j].sp == f->sp && m->kept[j].pc == f->pc && m->kept[j].fp == f->fp) {
            uint32_t same = j + 1, found = n;
            for (; same < UNWIND_KEPT && n < max && is_unchanged(&m->kept[same]); same++)
                codes[n++] = m->kept[same].pc;
            if (n == max || (same == UNWIND_KEPT && m->whole)) {
                keep(m, found, j + 1, m->whole);
                return n;
            }
            memcpy(m->fresh + found, m->kept + j + 1, (same - j - 1) * sizeof *m->kept);
            if (same > j + 1) {
                c->frame = m->kept[same - 1];
                c->interrupted = false;
            }
            j = same;
        }
        bool whole = n < max && !step(c);
        if (whole || n == max) {
            keep(m, n, UNWIND_KEPT, whole);
            return n;
        }
    }
}

uint32_t unwind_walk(struct unwind_cursor *c, uint64_t *codes, uint32_t max)
{
    uint32_t n = 0;
    if (c->memory)
        return walk_and_keep(c, c->memory, codes, max);
    do
        codes[n++] = c->frame.pc;
    while (n < max && step(c));
    return n;
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
