// Reads the unwind tables of loaded objects (.eh_frame_hdr, .eh_frame) to find the rule for an
// address. Does not trust the contents of the tables.
#include "capture/unwind/unwind.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined __x86_64__

enum { REG_FP = 6, REG_SP = 7, REG_RA = 16, REGS = 17 };

// A byte reader. Reading past the end returns zeros and sets `bad`.
struct bytes {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get_fixed(struct bytes *b, size_t n)
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

static uint64_t get_long_leb(struct bytes *b, bool is_signed)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)get_fixed(b, 1);
        v |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        shift += 7;
    } while (byte & 128);
    return is_signed && shift < 64 && (byte & 64) ? v | ~0ull << shift : v;
}

// Optimized for one-byte values, because nearly all values are that short.
static inline uint64_t get_uleb(struct bytes *b)
{
    return b->at < b->end && *b->at < 128 ? *b->at++ : get_long_leb(b, false);
}

static int64_t get_sleb(struct bytes *b)
{
    return (int64_t)get_long_leb(b, true);
}

// DW_EH_PE_*: the low four bits encode the form, and the next three bits the base of the offset.
// Indirect pointers refer to data that a walk does not need.
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
        v = get_fixed(b, 8);
        break;
    case 1:
        v = get_uleb(b);
        break;
    case 9:
        v = (uint64_t)get_sleb(b);
        break;
    case 2:
        v = get_fixed(b, 2);
        break;
    case 10:
        v = (uint64_t)(int16_t)get_fixed(b, 2);
        break;
    case 3:
        v = get_fixed(b, 4);
        break;
    case 11:
        v = (uint64_t)(int32_t)get_fixed(b, 4);
        break;
    default:
        b->bad = true;
    }
    if ((encoding & 0x70) == PE_PCREL)
        return v + here;
    return (encoding & 0x70) == PE_DATAREL ? v + base : v;
}

// A function's entry (FDE), including data from its common entry (CIE).
struct entry {
    uint64_t start, end;
    struct bytes common, own; // instructions
    uint64_t code_factor;
    int64_t data_factor;
    uint8_t encoding;
    bool is_signal;
};

// Sets *b to the contents of the entry at `p`, after its length.
static bool open_entry(const uint8_t *p, const uint8_t *limit, struct bytes *b)
{
    *b = (struct bytes){p, limit, false};
    uint32_t n = (uint32_t)get_fixed(b, 4);
    // Linkers do not produce 64-bit entries.
    if (b->bad || n < 4 || n == UINT32_MAX || n > (size_t)(limit - b->at))
        return false;
    b->end = b->at + n;
    return true;
}

static bool read_common(struct entry *e, const uint8_t *p, const uint8_t *limit)
{
    struct bytes b;
    if (!open_entry(p, limit, &b) || get_fixed(&b, 4) != 0)
        return false;
    (void)get_fixed(&b, 1); // version
    const char *augmentation = (const char *)b.at;
    size_t n = strnlen(augmentation, (size_t)(b.end - b.at));
    (void)get_fixed(&b,
                    // If the augmentation string is longer, the meaning of its rest and of the
                    // bytes after it is unknown.
                    n < 8 ? n + 1 : 8);
    if (n >= 8)
        return false;
    e->code_factor = get_uleb(&b);
    e->data_factor = get_sleb(&b);
    (void)get_uleb(&b); // return address register
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
                e->encoding = (uint8_t)get_fixed(&data, 1);
            else if (*a == 'L')
                (void)get_fixed(&data, 1);
            else if (*a == 'S')
                e->is_signal = true;
            else if (*a == 'P')
                (void)get_encoded(&data, (uint8_t)get_fixed(&data, 1) & 0x7f, 0);
        }
    } else if (n) {
        return false;
    }
    e->common = b;
    return !b.bad;
}

static bool read_entry(struct entry *e, const uint8_t *p, const uint8_t *first,
                       const uint8_t *limit)
{
    struct bytes b;
    if (!open_entry(p, limit, &b))
        return false;
    const uint8_t *from = b.at;
    uint64_t back = get_fixed(&b, 4);
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

// Location of a register: unchanged, saved at CFA + offset, saved where the frame pointer points,
// lost, or undefined.
enum saved { SAVED_NOT, SAVED_AT, SAVED_AT_FP, SAVED_LOST, SAVED_UNDEFINED };

struct row {
    enum unwind_way way;
    uint64_t reg; // for WAY_SP: REG_SP or REG_FP
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

static void restore_register(struct row *row, uint64_t reg, const struct row *first)
{
    if (reg == REG_FP) {
        row->fp = first->fp;
        row->fp_offset = first->fp_offset;
    } else if (reg == REG_RA) {
        row->ra = first->ra;
        row->ra_offset = first->ra_offset;
    }
}

enum { MAX_STATES = 8 };

struct run {
    const struct entry *entry;
    struct row row, first; // current row; row after the instructions of the common entry
    struct row states[MAX_STATES];
    unsigned n_states;
    uint64_t at; // start address of the current row
    uint64_t pc; // address whose row is wanted
};

enum { OP_BREG0 = 0x70, OP_DEREF = 6 };

// Recognizes the three CFA expressions that compilers and linkers emit.
static void set_expression(struct row *row, struct bytes x, const struct run *r)
{
    // CFA expression of the procedure linkage table: rsp + 8 + ((rip & 15) >= threshold) * 8.
    static const uint8_t plt[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30, 0x2a, 0x33, 0x24, 0x22};
    size_t n = (size_t)(x.end - x.at);
    const uint8_t *p = x.at;
    row->way = WAY_BROKEN;
    if (r->entry->is_signal) {
        row->way = WAY_SIGNAL;
    } else if (n == sizeof plt && memcmp(p, plt, 6) == 0 && memcmp(p + 7, plt + 7, 4) == 0) {
        row->way = WAY_SP;
        row->number = (r->pc & 15) >= (p[6] & 15) ? 2 * WORD : WORD;
    } else if (n > 2 && get_fixed(&x, 1) == OP_BREG0 + REG_FP) {
        row->number = get_sleb(&x);
        if (x.end - x.at == 1 && *x.at == OP_DEREF)
            row->way = WAY_ALIGNED;
    }
}

// Returns true if the DW_CFA_expression of a register is fp itself. In a function that realigned
// its stack, the caller's frame pointer is saved at the address in fp.
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

// If the instruction ends the row that begins at r->at, returns the end of the row. Otherwise
// returns 0.
static uint64_t row_end(struct run *r, uint8_t op, struct bytes *b)
{
    uint64_t factor = r->entry->code_factor;
    switch (op) {
    case 1:
        return get_encoded(b, r->entry->encoding, 0);
    case 2:
        return r->at + get_fixed(b, 1) * factor;
    case 3:
        return r->at + get_fixed(b, 2) * factor;
    case 4:
        return r->at + get_fixed(b, 4) * factor;
    default:
        return 0;
    }
}

static void set_cfa(struct row *row, uint64_t reg, int64_t number)
{
    row->way = reg == REG_SP ? WAY_SP : reg == REG_FP ? WAY_FP : WAY_BROKEN;
    row->reg = reg;
    row->number = number;
}

// Executes a DW_CFA_* instruction that does not end a row.
static void execute_instruction(struct run *r, uint8_t op, struct bytes *b)
{
    struct row *row = &r->row;
    int64_t factor = r->entry->data_factor;
    uint64_t reg;
    if (op >> 6 == 2) {
        set_saved(row, op & 63, SAVED_AT, (int64_t)get_uleb(b) * factor);
        return;
    }
    if (op >> 6 == 3) {
        restore_register(row, op & 63, &r->first);
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
        restore_register(row, get_uleb(b), &r->first);
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
    case 0x13: // def_cfa_offset_sf
        set_cfa(row, row->reg, get_sleb(b) * factor);
        break;
    case 0x0f: // def_cfa_expression
        set_expression(row, get_block(b), r);
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

// Interprets instructions up to the row that contains `until`. Returns false if an instruction is
// invalid.
static bool interpret_until(struct run *r, struct bytes b, uint64_t until)
{
    while (b.at < b.end && !b.bad) {
        uint8_t op = *b.at++;
        // Long functions contain thousands of instructions of only two kinds: advance the location,
        // and set the CFA offset.
        uint64_t end = op >> 6 == 1 ? r->at + (op & 63) * r->entry->code_factor : 0;
        if (op == 0x0e)
            set_cfa(&r->row, r->row.reg, (int64_t)get_uleb(&b));
        else if (!end && !(end = row_end(r, op, &b)))
            execute_instruction(r, op, &b);
        if (!end)
            continue;
        if (until < end)
            return !b.bad;
        r->at = end;
    }
    return !b.bad;
}

static uint32_t pack_row(const struct row *row)
{
    uint32_t slot = 0;
    if (row->ra == SAVED_UNDEFINED)
        return unwind_make_rule(WAY_END, 0, 0);
    if (row->way == WAY_SIGNAL)
        return unwind_make_rule(WAY_SIGNAL, 0, 0);
    const int64_t limit = (int64_t)WORD << (NUMBER_BITS - 1);
    if (row->ra != SAVED_AT || row->ra_offset != -WORD || row->number % WORD ||
        row->number >= limit || row->number < -limit)
        return unwind_make_rule(WAY_BROKEN, 0, 0);
    if (row->way == WAY_ALIGNED)
        return unwind_make_rule(row->fp == SAVED_AT_FP ? WAY_ALIGNED : WAY_BROKEN, 0, row->number);
    if (row->fp == SAVED_AT && row->fp_offset < 0 && row->fp_offset % WORD == 0 &&
        row->fp_offset > -UNWIND_SLOT_LOST * WORD)
        slot = (uint32_t)(-row->fp_offset / WORD);
    else if (row->fp != SAVED_NOT)
        slot = UNWIND_SLOT_LOST;
    return unwind_make_rule(row->way, slot, row->number);
}

// Finds an address in the linker's sorted table (.eh_frame_hdr), which contains pairs of offsets
// from its start. Returns the address's FDE, or NULL.
static const uint8_t *search_table(const uint8_t *header, const uint8_t *limit, uint64_t pc)
{
    enum { TABLE_SDATA4_DATAREL = 0x3b, PAIR = 8 };
    struct bytes b = {header, limit, false};
    if (get_fixed(&b, 1) != 1)
        return NULL;
    uint8_t frame = (uint8_t)get_fixed(&b, 1), count = (uint8_t)get_fixed(&b, 1),
            table = (uint8_t)get_fixed(&b, 1);
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

// Finds the readable segment that contains `at`. The check is necessary because a table may point
// anywhere, and memory between an object's segments may be unmapped. Linkers always put the program
// headers in the first segment.
static bool find_segment(const struct dl_find_object *object, const uint8_t *at,
                         struct bytes *segment)
{
    enum { FIRST_PAGE = 4096 };
    const uint8_t *start = object->dlfo_map_start;
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)start;
    if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phoff % WORD ||
        elf->e_phnum > FIRST_PAGE / sizeof(Elf64_Phdr) ||
        elf->e_phoff > FIRST_PAGE - elf->e_phnum * sizeof(Elf64_Phdr))
        return false;
    const Elf64_Phdr *headers = (const Elf64_Phdr *)(start + elf->e_phoff);
    for (unsigned i = 0; i < elf->e_phnum; i++) {
        const Elf64_Phdr *p = &headers[i];
        *segment =
            (struct bytes){.at = (const uint8_t *)(object->dlfo_link_map->l_addr + p->p_vaddr)};
        segment->end = segment->at + p->p_memsz;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_R) && at >= segment->at && at < segment->end)
            return true;
    }
    return false;
}

uint32_t unwind_find_rule(uint64_t pc)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)pc, &object) != 0 || !object.dlfo_eh_frame)
        return unwind_unknown_rule();
    struct bytes segment;
    if (!find_segment(&object, object.dlfo_eh_frame, &segment))
        return unwind_unknown_rule();
    const uint8_t *fde = search_table(object.dlfo_eh_frame, segment.end, pc);
    struct entry e;
    if (!fde)
        return unwind_unknown_rule();
    if (!find_segment(&object, fde, &segment) || !read_entry(&e, fde, segment.at, segment.end))
        return unwind_make_rule(WAY_BROKEN, 0, 0);
    if (pc < e.start || pc >= e.end)
        return unwind_unknown_rule();
    struct run r = {.entry = &e, .at = e.start, .pc = pc, .row = {.way = WAY_BROKEN}};
    if (!interpret_until(&r, e.common, UINT64_MAX))
        return unwind_make_rule(WAY_BROKEN, 0, 0);
    r.first = r.row;
    return interpret_until(&r, e.own, pc) ? pack_row(&r.row) : unwind_make_rule(WAY_BROKEN, 0, 0);
}

#else

uint32_t unwind_find_rule(uint64_t pc)
{
    (void)pc;
    return unwind_unknown_rule();
}

#endif
