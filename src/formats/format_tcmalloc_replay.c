// Instructions for gperftools' malloc-trace-replay: records of 24 bytes each, in a total order.
// docs/reference/foreign-formats.md, "tcmalloc-replay".
#include "base/bytes.h"
#include "formats/export.h"
#include "formats/import.h"

#include <errno.h>

enum instruction {
    INSTRUCTION_MALLOC = 0,
    INSTRUCTION_FREE = 1,
    INSTRUCTION_FREE_SIZED = 2, // second word: size
    INSTRUCTION_MEMALIGN = 3,
    INSTRUCTION_REALLOC = 4,
    INSTRUCTION_SWITCH_THREAD = 5,
    INSTRUCTION_KILL_THREAD = 6,
    INSTRUCTION_SET_TS_CPU = 7,
};

enum {
    INSTRUCTION_BYTES = 24,
    TYPE_BITS = 8,
    CPU_BITS = 10, // times are multiples of 1,024 ns
};

#define MAX_REGISTERS (1u << 30) // limit of the original player

struct replay_import {
    uint64_t thread, ts;
};

static uint64_t address(uint64_t reg)
{
    return (reg + 1) << 4;
}

static const uint8_t kinds_read[] = {
    [INSTRUCTION_MALLOC] = HT_MALLOC,         [INSTRUCTION_FREE] = HT_FREE,
    [INSTRUCTION_FREE_SIZED] = HT_FREE_SIZED, [INSTRUCTION_MEMALIGN] = HT_MEMALIGN,
    [INSTRUCTION_REALLOC] = HT_REALLOC,       [INSTRUCTION_KILL_THREAD] = HT_THREAD_END,
};

static struct event decode_event(unsigned type, uint64_t reg, uint64_t second, uint64_t third)
{
    struct event ev = {.kind = kinds_read[type]};
    unsigned fields = event_infos[ev.kind].fields;
    bool moves = type == INSTRUCTION_REALLOC;
    ev.ptr = fields & HT_F_PTR ? address(reg) : 0;
    ev.result = fields & HT_F_RESULT ? address(moves ? second : reg) : 0;
    ev.size = fields & HT_F_SIZE ? (moves ? third : second) : 0;
    ev.align = fields & HT_F_ALIGN ? third : 0;
    return ev;
}

static int read_instruction(struct import *im, const uint8_t *at)
{
    struct replay_import *r = im->state;
    uint64_t first = get_u64(at), second = get_u64(at + 8), third = get_u64(at + 16);
    unsigned type = first & 0xff;
    uint64_t reg = first >> TYPE_BITS;
    uint64_t offset = import_source_offset(&im->source);
    if (type > INSTRUCTION_SET_TS_CPU)
        return import_bad(im, offset, "expected an instruction of type 0 to 7, found %u", type);
    if (type <= INSTRUCTION_REALLOC &&
        (reg >= MAX_REGISTERS || (type == INSTRUCTION_REALLOC && second >= MAX_REGISTERS)))
        return import_bad(im, offset, "expected a register below %u", MAX_REGISTERS);
    if (type == INSTRUCTION_SWITCH_THREAD && second >> IMPORT_TID_BITS)
        return import_bad(im, offset, "expected a thread below 2^%d", IMPORT_TID_BITS);
    if (type == INSTRUCTION_SWITCH_THREAD) {
        r->thread = second;
        return 0;
    }
    if (type == INSTRUCTION_SET_TS_CPU) {
        r->ts = second;
        im->has_times = im->has_times || !im->events;
        return 0;
    }
    struct event ev = decode_event(type, reg, second, third);
    ev.stamp = r->ts;
    return import_put(im, 1, r->thread, &ev);
}

struct replay_export {
    uint32_t thread;
    bool in_thread;
    bool timed; // `ts` has been written
    uint64_t ts;
};

static void put_instruction(struct export *x, enum instruction type, uint64_t reg, uint64_t second,
                            uint64_t third)
{
    uint8_t *to = export_buffer_reserve(&x->out, INSTRUCTION_BYTES);
    put_u64(to, type | reg << TYPE_BITS);
    put_u64(to + 8, second);
    put_u64(to + 16, third);
    export_buffer_commit(&x->out, to + INSTRUCTION_BYTES);
}

// Writes a switch of threads and the time, if necessary. The player requires that every switch
// changes the thread, and that a thread's kill is followed by a switch.
static void put_position(struct export *x, const struct export_call *c)
{
    struct replay_export *r = x->state;
    uint64_t ts = c->ev.stamp >> CPU_BITS << CPU_BITS;
    if (!r->in_thread || r->thread != c->thread)
        put_instruction(x, INSTRUCTION_SWITCH_THREAD, 0, c->thread, 0);
    // If no time precedes the first call, readers assume that the file contains no times.
    if (x->facts.has_stamps && (ts != r->ts || !r->timed))
        put_instruction(x, INSTRUCTION_SET_TS_CPU, 0, ts, 0);
    r->timed = true;
    r->in_thread = true;
    r->thread = c->thread;
    r->ts = ts;
}

static int replay_put(struct export *x, const struct export_call *c)
{
    struct replay_export *r = x->state;
    const struct event *ev = &c->ev;
    uint64_t reg = (ev->ptr ? ev->ptr : ev->result) - 1;
    if ((ev->ptr || ev->result) && reg >= MAX_REGISTERS)
        return err_set(x->e, -EOVERFLOW,
                       "%s: more than %u live blocks, the limit of malloc-trace-replay",
                       x->out.out->name, MAX_REGISTERS);
    put_position(x, c);
    switch (ev->kind) {
    case HT_FREE:
        put_instruction(x, INSTRUCTION_FREE, reg, 0, 0);
        break;
    case HT_FREE_SIZED:
        put_instruction(x, INSTRUCTION_FREE_SIZED, reg, ev->size, 0);
        break;
    case HT_MEMALIGN:
        put_instruction(x, INSTRUCTION_MEMALIGN, reg, ev->size, export_power_of_two(ev->align));
        break;
    case HT_THREAD_END:
        put_instruction(x, INSTRUCTION_KILL_THREAD, 0, 0, 0);
        r->in_thread = false;
        break;
    case HT_REALLOC:
        // The player aborts if realloc returns NULL, as glibc's realloc does for 0 bytes.
        if (ev->ptr) {
            put_instruction(x, INSTRUCTION_REALLOC, reg, ev->result - 1, ev->size ? ev->size : 1);
            break;
        }
        // fall through
    default:
        put_instruction(x, INSTRUCTION_MALLOC, reg, ev->size, 0);
    }
    return 0;
}

// The player ignores the last instruction, so append one that has no effect.
static int replay_end(struct export *x)
{
    const struct replay_export *r = x->state;
    put_instruction(x, INSTRUCTION_SET_TS_CPU, 0, r->ts, 0);
    return 0;
}

static const uint8_t kinds[] = {HT_MALLOC,     HT_FREE, HT_FREE_SIZED, HT_REALLOC, HT_MEMALIGN,
                                HT_THREAD_END, 0};

const struct format format_tcmalloc_replay = {
    .name = "tcmalloc-replay",
    .import =
        {
            .record = read_instruction,
            .record_bytes = INSTRUCTION_BYTES,
            .record_name = "an instruction",
            .state_bytes = sizeof(struct replay_import),
            .window = 1,
        },
    .export =
        {
            .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_TIDS,
            .kinds = kinds,
            .state_bytes = sizeof(struct replay_export),
            .put = replay_put,
            .end = replay_end,
        },
};
