#include "record/entries/move.h"

#include "base/bytes.h"
#include "base/thread.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 16, // alignment of functions
    REACH_REL8 = 128,
    // A short jump from code after the window cannot lead into the replaced bytes.
    WINDOW = ENTRIES_MAX_BYTES + REACH_REL8 + ZYDIS_MAX_INSTRUCTION_LENGTH,
    MAX_UNSIZED = 4096, // maximum number of bytes examined in a function of unknown size
    JMP_REL8 = 0xeb,
    JMP_REL32 = 0xe9,
    RET = 0xc3,
    CALL_REL32 = 0xe8,
    JCC_REL8 = 0x70,  // to 0x7f
    JCC_REL32 = 0x80, // to 0x8f, after 0x0f
    PIECE_BYTES = 1 << 18,
    HELPED_BYTES = 1 << 25, // two threads examine an object that is larger than this
    HELPER_STACK_BYTES = 1 << 18,
};

static const uint8_t endbr64[ENTRIES_KEEP_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};

typedef ZydisDecodedInstruction instruction;

static bool decode(const uint8_t *code, size_t n, instruction *to)
{
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, n, to));
}

// The function and its first bytes.
struct body {
    const struct find_function *function;
    uint64_t bytes; // size of the function
    uint8_t window[WINDOW];
    size_t n;
};

static bool has_prefix(const instruction *in, uint8_t prefix)
{
    for (unsigned k = 0; k < in->raw.prefix_count; k++) {
        if (in->raw.prefixes[k].value == prefix)
            return true;
    }
    return false;
}

static bool is_branch(const instruction *in)
{
    return in->raw.imm[0].size && in->raw.imm[0].is_relative;
}

static bool is_rip_relative(const instruction *in)
{
    return (in->attributes & ZYDIS_ATTRIB_HAS_MODRM) && in->raw.modrm.mod == 0 &&
           in->raw.modrm.rm == 5 && in->raw.disp.size == 32;
}

// Returns true if execution does not continue in the trampoline after this instruction. This
// includes calls, which return to the object.
static bool ends_flow(const instruction *in)
{
    return in->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
           in->meta.category == ZYDIS_CATEGORY_RET || in->meta.category == ZYDIS_CATEGORY_CALL ||
           in->mnemonic == ZYDIS_MNEMONIC_UD2 || in->mnemonic == ZYDIS_MNEMONIC_HLT ||
           in->mnemonic == ZYDIS_MNEMONIC_INT3;
}

static enum entries_reason put_bytes(struct move *m, const void *bytes, size_t n)
{
    if (n > sizeof m->code - m->code_bytes)
        return ENTRIES_REASON_LONG;
    memcpy(m->code + m->code_bytes, bytes, n);
    m->code_bytes += (unsigned)n;
    return ENTRIES_REASONS;
}

// Sets the displacement at `at` in an instruction that ends at `end`, so that the displacement
// leads to `target`.
static enum entries_reason put_displacement(struct move *m, unsigned at, unsigned end,
                                            uint64_t target)
{
    int64_t far = (int64_t)(target - (m->trampoline + end));
    if (far != (int32_t)far || m->n_fixups == MOVE_MAX_FIXUPS)
        return ENTRIES_REASON_REACH;
    put_u32(m->code + at, (uint32_t)far);
    m->targets[m->n_fixups] = target;
    m->fixups[m->n_fixups++] = (uint8_t)at;
    return ENTRIES_REASONS;
}

static enum entries_reason put_jump(struct move *m, const uint8_t *opcode, unsigned n,
                                    uint64_t target)
{
    uint8_t code[8] = {0};
    memcpy(code, opcode, n);
    enum entries_reason reason = put_bytes(m, code, n + 4);
    return reason == ENTRIES_REASONS ? put_displacement(m, m->code_bytes - 4, m->code_bytes, target)
                                     : reason;
}

static enum entries_reason move_branch(struct move *m, const instruction *in, uint64_t target)
{
    const uint8_t jump[] = {JMP_REL32}, jcc[] = {0x0f, JCC_REL32 | (in->opcode & 15)};
    bool is_default = in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
    // Refuse branches with 16-bit operands: AMD's and Intel's processors handle them differently.
    if (has_prefix(in, 0x66))
        return ENTRIES_REASON_UNMOVABLE;
    if (is_default && (in->opcode == JMP_REL8 || in->opcode == JMP_REL32))
        return put_jump(m, jump, sizeof jump, target);
    if ((is_default && (in->opcode & 0xf0) == JCC_REL8) ||
        (in->opcode_map == ZYDIS_OPCODE_MAP_0F && (in->opcode & 0xf0) == JCC_REL32))
        return put_jump(m, jcc, sizeof jcc, target);
    return ENTRIES_REASON_UNMOVABLE;
}

// Appends a call whose return address is in the object, after the replaced bytes, so that unwinders
// find the function there. The processor predicts returns by pairs of call and ret. Therefore the
// sequence executes a call, and then replaces the return address. The sequence keeps all registers
// and flags.
static enum entries_reason move_call(struct move *m, const uint8_t *code, const instruction *in,
                                     uint64_t at)
{
    static const uint8_t replace[] = {
        CALL_REL32, 2,    0,    0,    0,       // call 1f
        0x0f,       0x0b,                      // ud2
        0x50,                                  // 1: push %rax
        0x48,       0x8d, 0x05, 0,    0, 0, 0, // lea END(%rip), %rax
        0x48,       0x89, 0x44, 0x24, 8,       // mov %rax, 8(%rsp)
        0x58,                                  // pop %rax
    };
    enum { LEA_END = 15 };
    const uint8_t jump[] = {JMP_REL32}, jump_through[] = {0xff, 0x25};
    uint64_t end = at + in->length;
    unsigned start = m->code_bytes;
    // Linkers replace a call through a table with a direct call that has the prefix 0x67.
    bool is_direct = is_branch(in) && in->opcode == CALL_REL32 && !has_prefix(in, 0x66);
    bool is_through = is_rip_relative(in) && in->length == 6 && code[0] == 0xff && code[1] == 0x15;
    if (m->keeps_returns || (!is_direct && !is_through))
        return ENTRIES_REASON_CALL;
    enum entries_reason reason = put_bytes(m, replace, sizeof replace);
    if (reason == ENTRIES_REASONS)
        reason = put_displacement(m, start + LEA_END - 4, start + LEA_END, end);
    if (reason != ENTRIES_REASONS)
        return reason;
    return is_direct
               ? put_jump(m, jump, sizeof jump, end + (uint64_t)in->raw.imm[0].value.s)
               : put_jump(m, jump_through, sizeof jump_through, end + (uint64_t)in->raw.disp.value);
}

static bool is_replaced(const struct move *m, uint64_t address)
{
    return address >= m->entry->at && address - m->entry->at < m->entry->bytes;
}

// Appends the instruction at `at`, changed so that it has the same effect in the trampoline.
static enum entries_reason move_instruction(struct move *m, const uint8_t *code,
                                            const instruction *in, uint64_t at)
{
    uint64_t end = at + in->length;
    unsigned start = m->code_bytes;
    if (in->meta.category == ZYDIS_CATEGORY_CALL)
        return move_call(m, code, in, at);
    if (is_branch(in))
        return move_branch(m, in, end + (uint64_t)in->raw.imm[0].value.s);
    enum entries_reason reason = put_bytes(m, code, in->length);
    if (reason != ENTRIES_REASONS || !is_rip_relative(in))
        return reason;
    if (in->address_width != 64)
        return ENTRIES_REASON_UNMOVABLE;
    return put_displacement(m, start + in->raw.disp.offset, m->code_bytes,
                            end + (uint64_t)in->raw.disp.value);
}

// Returns true if the bytes [from, to) of the window are padding after the function's code: nops or
// int3 up to the alignment of the next function.
static bool is_padding(const struct body *b, unsigned from, unsigned to)
{
    uint64_t at = b->function->at, limit = (at + from + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    instruction in;
    if (at + to > limit || at + to > b->function->next)
        return false;
    for (unsigned k = from; k < to; k += in.length) {
        if (!decode(b->window + k, b->n - k, &in) ||
            (in.mnemonic != ZYDIS_MNEMONIC_NOP && in.mnemonic != ZYDIS_MNEMONIC_INT3))
            return false;
    }
    return true;
}

// Moves instructions until a jump fits into the space that they occupied.
static enum entries_reason move_instructions(struct move *m, struct body *b)
{
    struct entries_entry *e = m->entry;
    const unsigned wanted = e->keep + ENTRIES_JUMP_BYTES;
    enum entries_reason reason = ENTRIES_REASONS;
    bool ended = false;
    unsigned at = e->keep;
    instruction in;
    while (reason == ENTRIES_REASONS && !ended && at < wanted && at < b->bytes) {
        if (!decode(b->window + at, b->n - at, &in))
            return ENTRIES_REASON_UNKNOWN;
        if (in.length > b->bytes - at)
            return ENTRIES_REASON_SHORT;
        if (at + in.length > ENTRIES_MAX_BYTES)
            return ENTRIES_REASON_LONG;
        e->moved[at] = (uint8_t)m->code_bytes;
        reason = move_instruction(m, b->window + at, &in, b->function->at + at);
        at += in.length;
        ended = ends_flow(&in);
    }
    if (reason != ENTRIES_REASONS)
        return reason;
    if (ended && at < wanted && !b->function->bytes)
        b->bytes = at; // the function ends here, unless code follows instead of padding
    bool fits = at >= wanted || (ended && at == b->bytes && is_padding(b, at, wanted));
    if (!fits)
        return ENTRIES_REASON_SHORT;
    e->bytes = (uint8_t)(at > wanted ? at : wanted);
    if (b->function->next - b->function->at < e->bytes)
        return ENTRIES_REASON_OVERLAP;
    return ended ? reason : put_jump(m, &(const uint8_t){JMP_REL32}, 1, b->function->at + e->bytes);
}

static bool refers_to_replaced(const struct move *m)
{
    for (unsigned k = 0; k < m->n_fixups; k++) {
        if (is_replaced(m, m->targets[k]))
            return true;
    }
    return false;
}

// Checks that no instruction after the moved instructions jumps into the replaced bytes. Examines
// only the window, because a short jump from code after the window cannot reach these bytes.
static enum entries_reason check_rest(const struct move *m, const struct body *b)
{
    const struct entries_entry *e = m->entry;
    instruction in;
    size_t end = b->bytes < b->n ? (size_t)b->bytes : b->n;
    for (size_t at = e->bytes; at < end; at += in.length) {
        if (!decode(b->window + at, b->n - at, &in)) {
            // The last instruction of the window may be cut off.
            bool is_cut = end == b->n && b->n - at < ZYDIS_MAX_INSTRUCTION_LENGTH;
            return is_cut ? ENTRIES_REASONS : ENTRIES_REASON_UNKNOWN;
        }
        uint64_t target = e->at + at + in.length + (uint64_t)in.raw.imm[0].value.s;
        bool calls_start = in.meta.category == ZYDIS_CATEGORY_CALL &&
                           (target == e->at || target == e->at + e->keep);
        if (is_branch(&in) && is_replaced(m, target) && !calls_start)
            return ENTRIES_REASON_JUMPED_TO;
    }
    return ENTRIES_REASONS;
}

static void find_body(const struct entries_image *i, const struct find_function *f, struct body *b)
{
    uint64_t most = f->next - f->at < MAX_UNSIZED ? f->next - f->at : MAX_UNSIZED;
    b->function = f;
    b->bytes = f->bytes ? f->bytes : most;
    b->n = image_read(i, f->at, b->window, sizeof b->window);
}

static bool starts_with_endbr(const struct body *b)
{
    return b->n >= ENTRIES_KEEP_BYTES && memcmp(b->window, endbr64, sizeof endbr64) == 0;
}

uint64_t move_jump_target(const uint8_t code[MOVE_JUMP_BYTES], uint64_t at)
{
    bool has_endbr = memcmp(code, endbr64, sizeof endbr64) == 0;
    unsigned k = has_endbr ? ENTRIES_KEEP_BYTES : 0;
    if (code[k] == JMP_REL32)
        return at + k + ENTRIES_JUMP_BYTES + (uint64_t)(int32_t)get_u32(code + k + 1);
    return code[k] == JMP_REL8 ? at + k + 2 + (uint64_t)(int8_t)code[k + 1] : 0;
}

bool move_is_return(const struct entries_image *i, uint64_t end)
{
    uint8_t last;
    return image_read(i, end - 1, &last, 1) == 1 && last == RET;
}

uint64_t move_reached_end(const struct entries_image *i)
{
    return i->end;
}

// Writes the stub: endbr64, and a jump through the slot.
void move_write_stub(uint8_t to[MOVE_STUB_BYTES], const struct entries_entry *e)
{
    static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
    memcpy(to, code, sizeof code);
    put_u32(to + sizeof code - 4, e->slot - (e->stub + (uint32_t)sizeof code));
}

enum entries_reason move_function(struct move *m, const struct entries_image *i,
                                  const struct find_function *f)
{
    struct entries_entry *e = m->entry;
    struct body b = {0};
    if (f->is_indirect)
        return ENTRIES_REASON_INDIRECT;
    if (!image_code_at(i, f->at))
        return ENTRIES_REASON_OUTSIDE;
    find_body(i, f, &b);
    e->at = f->at;
    e->keep = starts_with_endbr(&b) ? ENTRIES_KEEP_BYTES : 0;
    memset(e->moved, ENTRIES_NO_INSTRUCTION, sizeof e->moved);
    e->moved[0] = 0;
    if (b.n < (size_t)e->keep + ENTRIES_JUMP_BYTES)
        return ENTRIES_REASON_OUTSIDE;
    if (b.window[e->keep] == ENTRIES_FILL)
        return ENTRIES_REASON_BREAKPOINT;
    enum entries_reason reason = move_instructions(m, &b);
    if (reason != ENTRIES_REASONS)
        return reason;
    if (e->bytes > b.n)
        return ENTRIES_REASON_OUTSIDE;
    memcpy(e->was, b.window, e->bytes);
    return refers_to_replaced(m) ? ENTRIES_REASON_JUMPED_TO : check_rest(m, &b);
}

// Returns true if a branch may end at this address. Returns false if the bytes before the address
// are parts of other instructions. Decodes the code from different start bytes: the streams of
// instructions soon agree on the boundaries, so a real branch is in most streams.
static bool is_branch_end(const struct entries_image *i, uint64_t end)
{
    enum { BACK = 64, STREAMS = 32, MIN_STREAMS = 8 };
    uint8_t code[BACK + ZYDIS_MAX_INSTRUCTION_LENGTH];
    size_t n = image_read(i, end - BACK, code, sizeof code);
    unsigned found = 0;
    instruction in;
    if (n < BACK)
        return true;
    for (size_t start = 0; start < STREAMS; start++) {
        for (size_t at = start; at < BACK; at += in.length) {
            if (!decode(code + at, n - at, &in))
                in.length = 1;
            else if (at + in.length == BACK)
                found += is_branch(&in);
        }
    }
    return found >= MIN_STREAMS;
}

// Code that is examined for jumps, in pieces.
struct jump_scan {
    const struct entries_image *image;
    const struct entries_entry *entries;
    const uint64_t *bytes;
    enum entries_reason *reasons;
    size_t n;
    uint64_t first, span; // range that contains all entries
};

// Returns true if the bytes before a displacement can be the opcode of a jump, or of a call.
static bool is_jump_opcode(const uint8_t *displacement, bool *is_call)
{
    *is_call = displacement[-1] == CALL_REL32;
    return *is_call || displacement[-1] == JMP_REL32 ||
           (displacement[-2] == 0x0f && (displacement[-1] & 0xf0) == JCC_REL32);
}

// Handles a displacement at `from` that may belong to a jump or call to an entry. Calls to the
// start of the function are harmless. Jumps to the start are harmless if they are outside the
// function; inside the function they are loops.
static void check_jump(const struct jump_scan *s, uint64_t from, uint64_t to, bool is_call)
{
    size_t low = 0, high = s->n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (s->entries[middle].at <= to)
            low = middle;
        else
            high = middle;
    }
    const struct entries_entry *e = &s->entries[low];
    bool is_start = to == e->at || to == e->at + e->keep;
    bool is_own = from >= e->at && from - e->at < s->bytes[low];
    if (to >= e->at && to - e->at < e->bytes && (!is_start || (is_own && !is_call)) &&
        is_branch_end(s->image, from + 4))
        __atomic_store_n(&s->reasons[low], ENTRIES_REASON_JUMPED_TO, __ATOMIC_RELAXED);
}

enum {
    LANES = 8,
    LANE_BYTES = 4,
    BLOCK_BYTES = LANES * LANE_BYTES,
    GROUP_BYTES = 4 * BLOCK_BYTES, // number of bytes examined before the result is tested
};

// Examines the displacement at `code`, which has the virtual address `at`. The opcode precedes the
// displacement.
static inline void examine(const struct jump_scan *s, const uint8_t *code, uint64_t at)
{
    uint64_t to = at + LANE_BYTES + (uint64_t)(int64_t)(int32_t)get_u32(code);
    bool is_call;
    if (to - s->first < s->span && is_jump_opcode(code, &is_call))
        check_jump(s, at, to, is_call);
}

// The AVX2 functions compare eight distances at once with the span of the entries. A distance is
// measured from the first entry to the target of a displacement.
#define AVX2 __attribute__((target("avx2")))

// Returns the lanes of the displacements at code, code + 4, … that may lead to an entry. `ends` are
// the distances from the first entry to the ends of the displacements, minus 2³¹. `span` is the
// span of the entries, minus 2³¹. The subtraction is necessary because the comparison is signed.
AVX2 static inline __m256i find_lanes(const uint8_t *code, __m256i ends, __m256i span)
{
    __m256i displacements = _mm256_loadu_si256((const __m256i *)(const void *)code);
    return _mm256_cmpgt_epi32(span, _mm256_add_epi32(displacements, ends));
}

AVX2 static inline __m256i find_ends(const struct jump_scan *s, uint64_t at)
{
    const __m256i steps = _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    uint32_t end = (uint32_t)(at - s->first) + LANE_BYTES + (1u << 31);
    return _mm256_add_epi32(_mm256_set1_epi32((int)end), steps);
}

AVX2 static void examine_group(const struct jump_scan *s, const uint8_t *code, uint64_t at,
                               __m256i span)
{
    for (size_t block = 0; block < GROUP_BYTES; block += BLOCK_BYTES) {
        for (size_t k = block; k < block + LANE_BYTES; k++) {
            __m256i found = find_lanes(code + k, find_ends(s, at + k), span);
            unsigned lanes = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(found));
            for (; lanes; lanes &= lanes - 1) {
                size_t lane = k + LANE_BYTES * (size_t)__builtin_ctz(lanes);
                examine(s, code + lane, at + lane);
            }
        }
    }
}

// Examines the displacements that begin in code[0, n). n must be a multiple of GROUP_BYTES, and the
// LANE_BYTES bytes after code[n - 1] must be readable.
AVX2 static void examine_groups(const struct jump_scan *s, const uint8_t *code, size_t n,
                                uint64_t at)
{
    const __m256i span = _mm256_set1_epi32((int)((uint32_t)s->span + (1u << 31)));
    const __m256i block = _mm256_set1_epi32(BLOCK_BYTES);
    __m256i ends[LANE_BYTES];
    for (size_t i = 0; i < LANE_BYTES; i++)
        ends[i] = find_ends(s, at + i);
    for (size_t k = 0; k < n; k += GROUP_BYTES) {
        __m256i found = _mm256_setzero_si256();
        for (size_t from = k; from < k + GROUP_BYTES; from += BLOCK_BYTES) {
            for (size_t i = 0; i < LANE_BYTES; i++) {
                found = _mm256_or_si256(found, find_lanes(code + from + i, ends[i], span));
                ends[i] = _mm256_add_epi32(ends[i], block);
            }
        }
        if (!_mm256_testz_si256(found, found))
            examine_group(s, code + k, at + k, span);
    }
}

// Examines each displacement in code[0, n). Skips displacements in the first two bytes, because
// their opcodes are missing.
static void scan_piece(const struct jump_scan *s, const uint8_t *code, size_t n, uint64_t at)
{
    size_t k = 2, groups = n > 8 ? (n - 8) / GROUP_BYTES * GROUP_BYTES : 0;
    if (__builtin_cpu_supports("avx2") && groups) {
        examine_groups(s, code + k, groups, at + k);
        k += groups;
    }
    for (; k + LANE_BYTES <= n; k++)
        examine(s, code + k, at + k);
}

// Examines every `of`-th piece of the code, starting with piece `number`. Returns 0, or -ENOMEM.
static int scan_pieces(const struct jump_scan *s, size_t number, size_t of)
{
    enum { OVERLAP = 8 }; // pieces overlap, so that instructions between them are examined
    const struct entries_image *i = s->image;
    // Limit the total, because segments may overlap.
    uint64_t left = i->end - i->start;
    uint8_t *piece = malloc(PIECE_BYTES);
    if (!piece)
        return -ENOMEM;
    for (unsigned k = 0; k < i->n_segments; k++) {
        const Elf64_Phdr *p = &i->segments[k];
        uint64_t at = p->p_vaddr + number * (PIECE_BYTES - OVERLAP);
        bool is_code = p->p_type == PT_LOAD && p->p_flags & PF_X;
        for (size_t got = PIECE_BYTES; is_code && got == PIECE_BYTES && left;
             at += of * (PIECE_BYTES - OVERLAP)) {
            got = image_read(i, at, piece, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES);
            scan_piece(s, piece, got, at);
            left -= got == PIECE_BYTES ? got - OVERLAP : got;
        }
    }
    free(piece);
    return 0;
}

// A second thread that examines half of the pieces.
struct scan_helper {
    const struct jump_scan *scan;
    int rc;
};

static void *run_helper(void *data)
{
    struct scan_helper *h = data;
    h->rc = scan_pieces(h->scan, 1, 2);
    return NULL;
}

int move_find_jumps(const struct entries_image *i, const struct entries_entry *entries, size_t n,
                    const uint64_t *bytes, enum entries_reason *reasons)
{
    uint64_t first = n ? entries[0].at : 0;
    const struct jump_scan s = {.image = i,
                                .entries = entries,
                                .bytes = bytes,
                                .reasons = reasons,
                                .n = n,
                                .first = first,
                                .span = n ? entries[n - 1].at + entries[n - 1].bytes - first : 0};
    struct scan_helper helper = {&s, 0};
    pthread_t thread;
    // Use a second thread only for large objects: starting it takes as long as examining a few
    // pieces.
    bool helped = n && i->end - i->start > HELPED_BYTES &&
                  thread_start(&thread, HELPER_STACK_BYTES, run_helper, &helper) == 0;
    int rc = n ? scan_pieces(&s, 0, helped ? 2 : 1) : 0;
    if (helped)
        pthread_join(thread, NULL);
    return rc < 0 ? rc : helper.rc;
}
