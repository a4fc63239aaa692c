#include "workload/encode.h"

#include "base/pages.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

enum { RARE_FIELDS = HT_F_COUNT | HT_F_ALIGN | HT_F_VALUE | HT_F_TEXT };

static int words_put(struct encode_words *w, uint64_t v)
{
    if (w->n == w->capacity && HT_GROW(&w->at, &w->capacity, w->n + 1) < 0)
        return -ENOMEM;
    w->at[w->n++] = v;
    return 0;
}

void encode_init(struct encode *x)
{
    *x = (struct encode){.last_block = ENCODE_NO_BLOCK, .frame.shapes[0].key = ENCODE_NO_KEY};
}

// Reserves space for `want` values. The second plane has space for the longest values; its
// untouched pages use no memory.
static int column_reserve(struct encode_column *c, size_t capacity, size_t want)
{
    size_t capacities[2] = {capacity, capacity * PLANES_MAX_REST + (capacity ? PLANES_SLACK : 0)};
    size_t n = encode_values(c), n_rest = (size_t)(c->rest_at - c->rest);
    if (HT_GROW(&c->first, &capacities[0], want) < 0 ||
        HT_GROW(&c->rest, &capacities[1], want * PLANES_MAX_REST + PLANES_SLACK) < 0)
        return -ENOMEM;
    c->first_at = c->first + n;
    c->rest_at = c->rest + n_rest;
    return 0;
}

static void block_release(struct encode_block *b)
{
    free(b->shapes);
    free(b->stamps);
    free(b->at.used);
    free(b->at.freed);
    for (unsigned i = 0; i < ENCODE_COLUMNS; i++) {
        free(b->columns[i].first);
        free(b->columns[i].rest);
    }
    free(b->more.at);
    free(b->dependencies.at);
    free(b->texts.at);
    buf_release(&b->text);
    *b = (struct encode_block){0};
}

static void blocks_release(struct encode_frame *f)
{
    for (size_t i = 0; i < f->blocks_capacity; i++)
        block_release(&f->blocks[i]);
    free(f->blocks);
    f->blocks = NULL;
    f->blocks_capacity = 0;
}

void encode_frame_release(struct encode_frame *f)
{
    blocks_release(f);
    free(f->switches.at);
    *f = (struct encode_frame){0};
}

void encode_release(struct encode *x)
{
    encode_frame_release(&x->frame);
    free(x->threads);
    pages_array_free(x->slots, x->slots_capacity, sizeof *x->slots);
    encode_init(x);
}

static inline __attribute__((always_inline)) void column_put(struct encode_column *c, uint64_t v)
{
    planes_put(&c->first_at, &c->rest_at, v);
}

// Packs a shape's kind, flags, and error or allocator into one number.
static inline uint32_t make_key(unsigned kind, uint32_t flags, unsigned last)
{
    return kind | flags << 8 | last << 16;
}

// Returns the key's index in the shape cache.
static inline unsigned shape_place(uint32_t key)
{
    return (key ^ key >> 5 ^ key >> 13) % 256;
}

static inline uint32_t shape_key(const struct workload_op *op)
{
    bool no_slot = op->slot == WORKLOAD_NO_SLOT && event_infos[op->kind].class <= HT_CLASS_RESIZE;
    bool site = op->value && format_has_site(op->kind);
    uint32_t flags = op->flags | (site ? FORMAT_SHAPE_SITE : 0) |
                     (op->n_dependencies ? FORMAT_SHAPE_DEPENDENCIES : 0) |
                     (no_slot ? FORMAT_SHAPE_NO_SLOT : 0);
    return make_key(op->kind, flags,
                    format_has_allocator(op->kind, op->flags) ? op->allocator : op->error);
}

// Adds the shape of a valid op. Returns the shape's index, -EAGAIN or -EINVAL.
static int shape_add(struct encode *x, const struct workload_op *op, uint32_t key)
{
    bool no_slot = op->slot == WORKLOAD_NO_SLOT;
    if (op->flags & ~FORMAT_OP_FLAGS || !format_flags_valid(op->kind, op->flags, no_slot))
        return -EINVAL;
    if (x->frame.n_shapes == FORMAT_MAX_SHAPES)
        return -EAGAIN;
    struct encode_shape *to = &x->frame.shapes[x->frame.n_shapes];
    *to = (struct encode_shape){
        .key = key,
        .fields = format_op_fields(op->kind) | (key >> 8 & FORMAT_SHAPE_SITE ? HT_F_VALUE : 0),
        .use = key >> 8 & FORMAT_SHAPE_NO_SLOT ? FORMAT_SLOT_NONE
                                               : (uint8_t)format_slot_use(op->kind, op->flags),
    };
    to->simple = to->use != FORMAT_SLOT_NONE && !(to->fields & RARE_FIELDS) &&
                 !(key >> 8 & FORMAT_SHAPE_DEPENDENCIES);
    if (to->simple && key == make_key(op->kind, op->kind == HT_REALLOC ? WORKLOAD_FROM_NULL : 0, 0))
        x->simple_shapes[op->kind] = (uint16_t)(x->frame.n_shapes + 1);
    return (int)x->frame.n_shapes++;
}

static __attribute__((noinline)) int
find_or_add_shape(struct encode *x, const struct workload_op *op, uint32_t key, uint16_t *cached)
{
    int i = 0;
    while (i < (int)x->frame.n_shapes && x->frame.shapes[i].key != key)
        i++;
    if (i == (int)x->frame.n_shapes)
        i = shape_add(x, op, key);
    if (i >= 0)
        *cached = (uint16_t)i;
    return i;
}

// Returns the index of the op's shape, adding the shape if necessary, or -EAGAIN or -EINVAL.
static inline int shape_find(struct encode *x, const struct workload_op *op)
{
    uint32_t key = shape_key(op);
    uint16_t *cached = &x->shape_cache[shape_place(key)];
    // The key of an unused shape matches no op.
    return __builtin_expect(x->frame.shapes[*cached].key == key, 1)
               ? *cached
               : find_or_add_shape(x, op, key, cached);
}

static int block_grow(struct encode_block *b)
{
    size_t want = b->capacity ? b->capacity * 2 : 64;
    size_t c[4] = {b->capacity, b->capacity, b->capacity, b->capacity};
    if (HT_GROW(&b->shapes, &c[0], want) < 0 || HT_GROW(&b->stamps, &c[1], want) < 0 ||
        HT_GROW(&b->at.used, &c[2], want) < 0 || HT_GROW(&b->at.freed, &c[3], want) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < ENCODE_COLUMNS; i++) {
        if (column_reserve(&b->columns[i], b->capacity, want) < 0)
            return -ENOMEM;
    }
    b->capacity = want;
    return 0;
}

static int block_begin(struct encode *x, uint32_t thread)
{
    size_t had = x->frame.blocks_capacity;
    if (HT_GROW(&x->frame.blocks, &x->frame.blocks_capacity, x->frame.n_blocks + 1u) < 0)
        return -ENOMEM;
    if (x->frame.blocks_capacity > had)
        memset(x->frame.blocks + had, 0,
               (x->frame.blocks_capacity - had) * sizeof *x->frame.blocks);
    struct encode_block *b = &x->frame.blocks[x->frame.n_blocks];
    b->thread = thread;
    b->n_stamps = b->n_ops = b->at.n_used = b->at.n_freed = b->at.uses = b->at.last_explicit = 0;
    for (struct encode_column *c = b->columns; c < b->columns + ENCODE_COLUMNS; c++) {
        c->first_at = c->first;
        c->rest_at = c->rest;
    }
    b->first_op = x->threads[thread].next_op;
    b->serial = ++x->serial;
    memset(b->recent, 0xff, sizeof b->recent);
    b->more.n = b->dependencies.n = b->texts.n = b->text.size = 0;
    x->threads[thread].block = x->frame.n_blocks++;
    return 0;
}

// Registers the thread if it is new. Thread numbers have no gaps.
static int add_thread(struct encode *x, uint64_t thread)
{
    if (thread < x->n_threads)
        return 0;
    if (thread > x->n_threads || thread >= ENCODE_NO_BLOCK)
        return -EINVAL;
    return HT_APPEND(&x->threads, &x->n_threads, &x->threads_capacity,
                     (struct encode_thread){.block = ENCODE_NO_BLOCK});
}

static int add_slot(struct encode *x, uint32_t slot)
{
    if (slot > x->n_slots)
        return -EINVAL;
    if (HT_PAGES_GROW(&x->slots, &x->slots_capacity, x->n_slots + 1) < 0)
        return -ENOMEM;
    x->n_slots++;
    return 0;
}

// Returns true if the dependency `wait` of `op` is valid. The op that `wait` names must have been
// appended. If that op is in this frame, it must also have a lower stamp than `op`.
static bool dependency_valid(const struct encode *x, uint32_t thread, const struct workload_op *op,
                             const struct workload_dependency *wait)
{
    if (wait->thread >= x->n_threads || wait->thread == thread)
        return false;
    const struct encode_thread *t = &x->threads[wait->thread];
    if (wait->op >= t->next_op)
        return false;
    if (t->block == ENCODE_NO_BLOCK || !x->has_stamps)
        return true;
    const struct encode_block *b = &x->frame.blocks[t->block];
    if (wait->op < b->first_op)
        return true;
    size_t next = HT_SEARCH(i, b->n_stamps, b->stamps[i].op > wait->op - b->first_op);
    return b->stamps[next - 1].stamp < op->stamp;
}

static int put_dependencies(struct encode *x, struct encode_block *b, const struct workload_op *op)
{
    if (op->n_dependencies > FORMAT_MAX_DEPENDENCIES / 8)
        return -EINVAL;
    for (uint32_t i = 0; i < op->n_dependencies; i++) {
        if (!dependency_valid(x, b->thread, op, &op->dependencies[i]))
            return -EINVAL;
    }
    int rc = words_put(&b->dependencies, op->n_dependencies);
    for (uint32_t i = 0; rc == 0 && i < op->n_dependencies; i++)
        rc = words_put(&b->dependencies, op->dependencies[i].thread) ||
             words_put(&b->dependencies, op->dependencies[i].op);
    x->frame.dependency_values += 1 + 2u * op->n_dependencies;
    return rc ? -ENOMEM : 0;
}

static int put_text(struct encode *x, struct encode_block *b, const struct workload_op *op)
{
    if (op->text_bytes > FORMAT_MAX_TEXT)
        return -EINVAL;
    x->frame.text_bytes += op->text_bytes;
    return words_put(&b->texts, op->text_bytes) || buf_put(&b->text, op->text, op->text_bytes)
               ? -ENOMEM
               : 0;
}

// Appends the fields that only rare kinds have.
static int put_more(struct encode *x, struct encode_block *b, const struct workload_op *op,
                    unsigned fields)
{
    int rc = 0;
    if (fields & HT_F_COUNT)
        rc |= words_put(&b->more, op->count);
    if (fields & HT_F_ALIGN)
        rc |= words_put(&b->more, op->align);
    if (fields & HT_F_VALUE)
        rc |= words_put(&b->more, op->value);
    if (rc)
        return -ENOMEM;
    return fields & HT_F_TEXT ? put_text(x, b, op) : 0;
}

static inline uint64_t allocated_code(struct encode_cursor *at, uint32_t slot)
{
    if (at->n_freed && at->freed[at->n_freed - 1] == slot) {
        at->n_freed--;
        return 0;
    }
    uint64_t code = 1 + zigzag_put((int64_t)slot - at->last_explicit);
    at->last_explicit = slot;
    return code;
}

// Appends the code of a known slot. *last is the number of the slot's last use in the block. If the
// op frees or resizes the slot, the code is the age of the last use or, if `recent` no longer
// contains that use, ENCODE_BY_NUMBER | slot.
static inline __attribute__((always_inline)) void code_slot(struct encode_cursor *at,
                                                            struct encode_column *allocated,
                                                            uint32_t *recent, uint16_t *last,
                                                            uint32_t slot, unsigned use)
{
    if (use == FORMAT_SLOT_ALLOCATED) {
        column_put(allocated, allocated_code(at, slot));
    } else {
        uint32_t age = at->uses - 1 - *last;
        bool young = age < ENCODE_AGE_CODES && recent[*last % ENCODE_AGE_CODES] == slot;
        at->used[at->n_used++] = young ? age : ENCODE_BY_NUMBER | slot;
    }
    if (use == FORMAT_SLOT_FREED) {
        at->freed[at->n_freed++] = slot;
        return;
    }
    *last = (uint16_t)at->uses++;
    recent[*last % ENCODE_AGE_CODES] = slot;
}

static inline int put_slot(struct encode *x, struct encode_block *b, uint32_t slot, unsigned use)
{
    if (__builtin_expect(slot >= x->n_slots, 0)) {
        int rc = use == FORMAT_SLOT_ALLOCATED ? add_slot(x, slot) : -EINVAL;
        if (rc < 0)
            return rc;
    }
    code_slot(&b->at, &b->columns[ENCODE_ALLOCATED], b->recent, &x->slots[slot], slot, use);
    return 0;
}

static int put_switch(struct encode *x, uint32_t block)
{
    if (block == x->last_block) {
        x->frame.switches.at[x->frame.switches.n - 1]++;
        return 0;
    }
    x->last_block = block;
    return words_put(&x->frame.switches, block) || words_put(&x->frame.switches, 1) ? -ENOMEM : 0;
}

// Registers the op's thread and starts a block. Also registers the thread that a thread.create
// names.
static int thread_begin(struct encode *x, uint32_t thread)
{
    int rc = add_thread(x, thread);
    return rc < 0 || x->threads[thread].block != ENCODE_NO_BLOCK ? rc : block_begin(x, thread);
}

// Appends the rare parts of an op.
static int put_rare(struct encode *x, struct encode_block *b, const struct workload_op *op,
                    unsigned fields)
{
    int rc = op->n_dependencies ? put_dependencies(x, b, op) : 0;
    if (rc == 0 && op->kind == HT_THREAD_CREATE)
        rc = add_thread(x, op->value);
    return rc < 0 ? rc : put_more(x, b, op, fields);
}

static inline void note_stamp(struct encode_block *b, uint32_t op, uint64_t stamp)
{
    if (!b->n_stamps || b->stamps[b->n_stamps - 1].stamp != stamp)
        b->stamps[b->n_stamps++] = (struct encode_stamp){stamp, op};
}

int encode_op(struct encode *x, uint32_t thread, const struct workload_op *op)
{
    int shape = shape_find(x, op), rc = 0;
    if (__builtin_expect(shape < 0, 0))
        return shape;
    if (__builtin_expect(thread >= x->n_threads || x->threads[thread].block == ENCODE_NO_BLOCK, 0))
        rc = thread_begin(x, thread);
    if (rc < 0)
        return rc;
    struct encode_thread *t = &x->threads[thread];
    struct encode_block *b = &x->frame.blocks[t->block];
    unsigned fields = x->frame.shapes[shape].fields, use = x->frame.shapes[shape].use;
    if (x->has_stamps && op->stamp < t->last_stamp)
        return -EINVAL;
    if (__builtin_expect(b->n_ops == b->capacity, 0))
        rc = block_grow(b);
    if (rc == 0 && (op->n_dependencies || fields & RARE_FIELDS))
        rc = put_rare(x, b, op, fields);
    if (rc == 0 && use != FORMAT_SLOT_NONE)
        rc = put_slot(x, b, op->slot, use);
    if (rc == 0 && !x->has_stamps)
        rc = put_switch(x, (uint32_t)(b - x->frame.blocks));
    if (rc < 0)
        return rc;
    if (fields & HT_F_SIZE)
        column_put(&b->columns[ENCODE_SIZES], op->size);
    // put_rare may add a thread, which can reallocate the array.
    t = &x->threads[thread];
    if (x->has_stamps)
        column_put(&b->columns[ENCODE_TIMES + (use == FORMAT_SLOT_ALLOCATED)],
                   b->n_ops ? op->stamp - t->last_stamp : 0);
    b->shapes[b->n_ops] = (uint8_t)shape;
    note_stamp(b, b->n_ops++, t->last_stamp = op->stamp);
    t->next_op++;
    x->frame.n_ops++;
    return 0;
}

// Returns how many of the `n` ops encode_simple may append to the thread's block.
static size_t simple_room(const struct encode *x, uint32_t thread,
                          const struct workload_simple *ops, size_t n)
{
    if (thread >= x->n_threads || x->threads[thread].block == ENCODE_NO_BLOCK ||
        encode_is_full(&x->frame))
        return 0;
    const struct encode_thread *t = &x->threads[thread];
    const struct encode_block *b = &x->frame.blocks[t->block];
    // Without stamps, encode_op must record each switch between blocks.
    bool follows = x->has_stamps ? ops->stamp >= t->last_stamp : t->block == x->last_block;
    size_t frame = ENCODE_FRAME_OPS - x->frame.n_ops, block = b->capacity - b->n_ops;
    size_t room = frame < block ? frame : block;
    return !b->n_ops || !follows ? 0 : n < room ? n : room;
}

// Appends the shapes of the ops before the first op that is not simple or has an invalid slot.
// Returns the number of shapes.
static size_t put_shapes(struct encode *x, uint8_t *to, const struct workload_simple *ops, size_t n)
{
    size_t i = 0, shape;
    for (; i < n && (shape = x->simple_shapes[ops[i].kind]); i++) {
        if (__builtin_expect(ops[i].slot >= x->n_slots, 0) &&
            (!ops[i].allocates || add_slot(x, ops[i].slot) < 0))
            break;
        to[i] = (uint8_t)(shape - 1);
    }
    return i;
}

// Appends the stamps of the ops. A column holds the difference from the previous stamp, which is
// usually 0.
static void put_times(struct encode_block *b, uint64_t stamp, const struct workload_simple *ops,
                      size_t n)
{
    struct encode_column *times = &b->columns[ENCODE_TIMES];
    uint8_t *at[2] = {times[0].first_at, times[1].first_at};
    memset(at[0], 0, n);
    memset(at[1], 0, n);
    for (size_t i = 0; i < n; i++) {
        bool allocates = ops[i].allocates;
        if (ops[i].stamp != stamp) {
            times[allocates].first_at = at[allocates];
            column_put(&times[allocates], ops[i].stamp - stamp);
            stamp = ops[i].stamp;
            note_stamp(b, b->n_ops + (uint32_t)i, stamp);
        }
        at[allocates]++;
    }
    times[0].first_at = at[0];
    times[1].first_at = at[1];
}

static void put_slots(struct encode *x, struct encode_block *b, const struct workload_simple *ops,
                      size_t n)
{
    struct encode_cursor at = b->at;
    struct encode_column allocated = b->columns[ENCODE_ALLOCATED];
    uint16_t *const last_uses = x->slots;
    for (size_t i = 0; i < n; i++)
        code_slot(&at, &allocated, b->recent, &last_uses[ops[i].slot], ops[i].slot,
                  ops[i].allocates ? FORMAT_SLOT_ALLOCATED : FORMAT_SLOT_FREED);
    b->at = at;
    b->columns[ENCODE_ALLOCATED] = allocated;
}

static void put_sizes(struct encode_column *to, const struct workload_simple *ops, size_t n)
{
    struct encode_column sizes = *to;
    for (size_t i = 0; i < n; i++) {
        if (event_infos[ops[i].kind].fields & HT_F_SIZE)
            column_put(&sizes, ops[i].size);
    }
    *to = sizes;
}

size_t encode_simple(struct encode *x, uint32_t thread, const struct workload_simple *ops, size_t n)
{
    n = simple_room(x, thread, ops, n);
    if (!n)
        return 0;
    struct encode_thread *t = &x->threads[thread];
    struct encode_block *b = &x->frame.blocks[t->block];
    n = put_shapes(x, b->shapes + b->n_ops, ops, n);
    if (!n)
        return 0;
    if (x->has_stamps)
        put_times(b, t->last_stamp, ops, n);
    else
        x->frame.switches.at[x->frame.switches.n - 1] += n;
    put_slots(x, b, ops, n);
    put_sizes(&b->columns[ENCODE_SIZES], ops, n);
    b->n_ops += (uint32_t)n;
    t->next_op += n;
    t->last_stamp = ops[n - 1].stamp;
    x->frame.n_ops += (uint32_t)n;
    return n;
}

// Converts a block's dependencies to differences from the previous dependency on the same thread.
static void code_dependencies(struct encode *x, struct encode_block *b)
{
    for (size_t i = 0; i < b->dependencies.n;) {
        uint64_t n = b->dependencies.at[i++];
        for (uint64_t k = 0; k < n; k++, i += 2) {
            struct encode_thread *t = &x->threads[b->dependencies.at[i]];
            uint64_t op = b->dependencies.at[i + 1];
            uint64_t first =
                t->block == ENCODE_NO_BLOCK ? t->next_op : x->frame.blocks[t->block].first_op;
            uint64_t from = t->wait_serial == b->serial ? t->dependency_op : first;
            b->dependencies.at[i + 1] = zigzag_put((int64_t)(op - from));
            t->dependency_op = op;
            t->wait_serial = b->serial;
        }
    }
}

void encode_stamps(const struct encode_frame *f, uint64_t *first, uint64_t *last)
{
    *first = *last = 0;
    for (uint32_t i = 0; f->has_stamps && i < f->n_blocks; i++) {
        const struct encode_block *b = &f->blocks[i];
        uint64_t from = b->stamps[0].stamp, to = b->stamps[b->n_stamps - 1].stamp;
        *first = i == 0 || from < *first ? from : *first;
        *last = to > *last ? to : *last;
    }
}

// Clears a frame. Blocks keep their storage, unless the total storage has grown too large.
static void frame_clear(struct encode_frame *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->blocks_capacity; i++)
        kept += f->blocks[i].capacity;
    if (kept > 4u * FORMAT_MAX_OPS)
        blocks_release(f);
    f->n_ops = f->n_shapes = f->n_blocks = 0;
    f->text_bytes = f->dependency_values = f->switches.n = 0;
    f->shapes[0].key = ENCODE_NO_KEY;
}

void encode_end_frame(struct encode *x, struct encode_frame *done)
{
    struct encode_frame *f = &x->frame, next = *done;
    for (uint32_t i = 0; i < f->n_blocks; i++)
        code_dependencies(x, &f->blocks[i]);
    for (uint32_t i = 0; i < f->n_blocks; i++)
        x->threads[f->blocks[i].thread].block = ENCODE_NO_BLOCK;
    f->has_stamps = x->has_stamps;
    f->first_op = x->ops;
    f->slot_limit = x->n_slots;
    f->thread_limit = x->n_threads;
    x->ops += f->n_ops;
    *done = *f;
    *f = next;
    frame_clear(f);
    x->last_block = ENCODE_NO_BLOCK;
    memset(x->shape_cache, 0, sizeof x->shape_cache);
    memset(x->simple_shapes, 0, sizeof x->simple_shapes);
}
