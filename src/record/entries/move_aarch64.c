// The jump replaces one instruction, so no thread and no other jump can stand between its bytes.
#include "record/entries/move.h"

#include "base/bytes.h"
#include "capture/spool/code_aarch64.h"

#include <stdbool.h>

enum {
    WORD = 4,           // size of an instruction
    PAGE = 4096,        // unit of adrp
    MAX_UNSIZED = 4096, // maximum number of examined bytes of a function of unknown size
    PIECE_WORDS = 256,
    X16 = 16, // calls may change this register before the first instruction of the called function
    XZR = 31,
};

#define BL           0x94000000u
#define B_MASK       0xfc000000u
#define ADD          0x91000000u // add Xd, Xn, #imm
#define BTI_C        0xd503245fu
#define PACIASP      0xd503233fu
#define AUTHENTICATE 0x80u       // paciasp to autiasp, pacibsp to autibsp
#define LOAD_SLOT    0x58000010u // ldr x16, displacement
#define BR_X16       0xd61f0200u
#define RET          0xd65f03c0u

// Also bti jc.
static bool is_bti(uint32_t code)
{
    return (code & ~0x80u) == BTI_C;
}

// Also pacibsp.
static bool is_sign(uint32_t code)
{
    return (code & ~0x40u) == PACIASP;
}

// Branches to a displacement, in words.
struct branch {
    uint32_t mask, code;
    unsigned low, bits; // place of the displacement
};

static const struct branch branches[] = {
    {0x7c000000, CODE_B, 0, 26},     // b, bl
    {0xff000000, 0x54000000, 5, 19}, // b.cond
    {0x7e000000, 0x34000000, 5, 19}, // cbz, cbnz
    {0x7e000000, 0x36000000, 5, 14}, // tbz, tbnz
    {0, 0, 0, 0},
};

// Returns the kind of branch, or NULL. Sets *target.
static const struct branch *find_branch(uint32_t code, uint64_t at, uint64_t *target)
{
    const struct branch *b = branches;
    while (b->mask && (code & b->mask) != b->code)
        b++;
    if (!b->mask)
        return NULL;
    *target = at + (uint64_t)(code_extend_sign(code >> b->low, b->bits) * WORD);
    return b;
}

static void put_word(struct move *m, uint32_t code)
{
    put_u32(m->code + m->code_bytes, code);
    m->code_bytes += WORD;
}

// Appends b or adrp with a displacement to the target. `unit` is the unit of the displacement.
static enum entries_reason put_fixup(struct move *m, uint32_t code, uint64_t target, uint64_t unit)
{
    uint64_t from = m->trampoline + m->code_bytes;
    uint8_t *at = m->code + m->code_bytes;
    m->fixups[m->n_fixups++] = (uint8_t)m->code_bytes;
    put_word(m, code);
    return entries_shift(at, (int64_t)((from & -unit) - (target & -unit))) ? ENTRIES_REASONS
                                                                           : ENTRIES_REASON_REACH;
}

static enum entries_reason put_jump(struct move *m, uint64_t target)
{
    return put_fixup(m, CODE_B, target, WORD);
}

static bool is_replaced(const struct entries_entry *e, uint64_t address)
{
    return address - e->at < e->bytes;
}

// Appends a branch. A conditional branch leads over the jump back to the function.
static enum entries_reason move_branch(struct move *m, const struct branch *b, uint32_t code,
                                       uint64_t target)
{
    const struct entries_entry *e = m->entry;
    const uint32_t displacement = ((1u << b->bits) - 1) << b->low;
    enum entries_reason reason = ENTRIES_REASONS;
    if ((code & B_MASK) == BL)
        return ENTRIES_REASON_CALL;
    if (is_replaced(e, target))
        return ENTRIES_REASON_JUMPED_TO;
    if ((code & B_MASK) != CODE_B) {
        put_word(m, (code & ~displacement) | 2u << b->low);
        reason = put_jump(m, e->at + e->bytes);
    }
    return reason == ENTRIES_REASONS ? put_jump(m, target) : reason;
}

static enum entries_reason put_address(struct move *m, uint32_t to, uint64_t target)
{
    enum entries_reason reason = put_fixup(m, CODE_ADRP | to, target, PAGE);
    put_word(m, ADD | (uint32_t)(target % PAGE) << 10 | to << 5 | to);
    return reason;
}

// Appends adr or adrp, or returns ENTRIES_REASON_UNMOVABLE.
static enum entries_reason move_address(struct move *m, uint32_t code, uint64_t at)
{
    int64_t far = code_address_displacement(code);
    uint32_t to = code & 31;
    if (to == XZR)
        return ENTRIES_REASON_UNMOVABLE;
    if (code >> 31)
        return put_fixup(m, CODE_ADRP | to, at + (uint64_t)(far * PAGE), PAGE);
    return put_address(m, to, at + (uint64_t)far);
}

static enum entries_reason move_load(struct move *m, uint32_t code, uint64_t at)
{
    // ldr w, ldr x, ldrsw, prfm; ldr s, ldr d, ldr q
    static const uint32_t loads[8] = {0xb9400000, 0xf9400000, 0xb9800000, 0xf9800000,
                                      0xbd400000, 0xfd400000, 0x3dc00000, 0};
    uint32_t load = loads[(code >> 24 & 4) | code >> 30];
    if (!load)
        return ENTRIES_REASON_UNKNOWN;
    enum entries_reason reason =
        put_address(m, X16, at + (uint64_t)(code_extend_sign(code >> 5, 19) * WORD));
    put_word(m, load | X16 << 5 | (code & 31));
    return reason;
}

// Appends an instruction, changed so that it has the same effect in the trampoline, and a jump back
// to the function.
static enum entries_reason move_instruction(struct move *m, uint32_t code, uint64_t at)
{
    uint64_t target;
    enum entries_reason reason = ENTRIES_REASONS;
    const struct branch *b = find_branch(code, at, &target);
    if (b)
        return move_branch(m, b, code, target);
    if ((code & 0xffe0001f) == 0xd4200000) // brk
        return ENTRIES_REASON_BREAKPOINT;
    if ((code & 0xfefff000) == 0xd63f0000) // blr, blraa
        return ENTRIES_REASON_CALL;
    if (code >> 16 == 0) // udf
        return ENTRIES_REASON_UNKNOWN;
    if ((code & 0x1f000000) == 0x10000000) // adr, adrp
        reason = move_address(m, code, at);
    else if ((code & 0x3b000000) == 0x18000000) // ldr with a displacement
        reason = move_load(m, code, at);
    else
        put_word(m, code);
    return reason == ENTRIES_REASONS ? put_jump(m, at + WORD) : reason;
}

// Returns true if a jump in the function, except a call of the function by itself, leads to its
// start. The jump would be another event.
static bool is_loop(const struct entries_image *i, const struct find_function *f,
                    const struct entries_entry *e)
{
    uint32_t words[PIECE_WORDS];
    uint64_t most = f->next - f->at < MAX_UNSIZED ? f->next - f->at : MAX_UNSIZED;
    uint64_t end = f->at + (f->bytes ? f->bytes : most), at = f->at, target;
    for (size_t got = PIECE_WORDS; got == PIECE_WORDS && at < end; at += sizeof words) {
        got = image_read(i, at, words, sizeof words) / WORD;
        for (size_t k = 0; k < got && at + k * WORD < end; k++) {
            if (find_branch(words[k], at + k * WORD, &target) && (words[k] & B_MASK) != BL &&
                is_replaced(e, target))
                return true;
        }
    }
    return false;
}

enum entries_reason move_function(struct move *m, const struct entries_image *i,
                                  const struct find_function *f)
{
    struct entries_entry *e = m->entry;
    uint32_t words[2];
    if (f->is_indirect)
        return ENTRIES_REASON_INDIRECT;
    if (!image_code_at(i, f->at) || f->at % WORD)
        return ENTRIES_REASON_OUTSIDE;
    size_t got = image_read(i, f->at, words, sizeof words);
    bool keeps = got >= WORD && (is_bti(words[0]) || is_sign(words[0]));
    e->at = f->at;
    e->keep = keeps ? ENTRIES_KEEP_BYTES : 0;
    e->bytes = e->keep + ENTRIES_JUMP_BYTES;
    memset(e->moved, ENTRIES_NO_INSTRUCTION, sizeof e->moved);
    e->moved[0] = e->moved[e->keep] = 0;
    if (got < e->bytes)
        return ENTRIES_REASON_OUTSIDE;
    if (f->bytes && f->bytes < e->bytes)
        return ENTRIES_REASON_SHORT;
    if (f->next - f->at < e->bytes)
        return ENTRIES_REASON_OVERLAP;
    memcpy(e->was, words, e->bytes);
    // The stub removes the signature from the return address.
    if (is_sign(words[0]))
        put_word(m, words[0]);
    enum entries_reason reason = move_instruction(m, words[keeps], f->at + e->keep);
    return reason == ENTRIES_REASONS && is_loop(i, f, e) ? ENTRIES_REASON_JUMPED_TO : reason;
}

// A jump from elsewhere to the replaced instruction reaches the stub, like a call.
int move_find_jumps(const struct entries_image *i, const struct entries_entry *entries, size_t n,
                    const uint64_t *bytes, enum entries_reason *reasons)
{
    (void)i, (void)entries, (void)n, (void)bytes, (void)reasons;
    return 0;
}

uint64_t move_jump_target(const uint8_t code[MOVE_JUMP_BYTES], uint64_t at)
{
    unsigned k = is_bti(get_u32(code)) ? ENTRIES_KEEP_BYTES : 0;
    uint32_t jump = get_u32(code + k);
    return (jump & B_MASK) == CODE_B ? at + k + (uint64_t)(code_extend_sign(jump, 26) * WORD) : 0;
}

bool move_is_return(const struct entries_image *i, uint64_t end)
{
    uint32_t last;
    return image_read(i, end - WORD, &last, WORD) == WORD && last == RET;
}

// adrp reaches data in any object.
uint64_t move_reached_end(const struct entries_image *i)
{
    uint64_t end = 0;
    for (unsigned k = 0; k < i->n_segments; k++) {
        const Elf64_Phdr *p = &i->segments[k];
        bool is_code = p->p_type == PT_LOAD && p->p_flags & PF_X;
        end = is_code && p->p_vaddr + p->p_memsz > end ? p->p_vaddr + p->p_memsz : end;
    }
    return end;
}

void move_write_stub(uint8_t to[MOVE_STUB_BYTES], const struct entries_entry *e)
{
    uint32_t first = get_u32(e->was), at = e->stub;
    if (is_sign(first)) {
        put_u32(to, first | AUTHENTICATE);
        to += WORD;
        at += WORD;
    }
    put_u32(to, LOAD_SLOT | (e->slot - at) / WORD << 5);
    put_u32(to + WORD, BR_X16);
}
