#include "trace/columns.h"

#include "base/bytes.h"
#include "trace/packing.h"
#include "trace/wide.h"

#include <errno.h>

// Records are split into columns in blocks of this size, so that the buffers fit in the L1 cache.
enum { BLOCK = 1024, PLANES = 6, WORD = 8, GROUP = 8, RUN = 64 };

enum {
    TAG_CHANGED = 1 << CODEC_TAG_BITS, // flag of a tag: the stamp differs from the previous stamp
    BODY_BITS = 64 - CODEC_BODY_AT,
    // Bit positions of counts in columns.sums. The count of SIZED records is at bit 0.
    SUM_COUNTED = 8,
    SUM_HOT = 16,
};

#define BYTES_OF_1 0x0101010101010101u
// A vector of 16 bytes.
#define BYTES16 uint8_t __attribute__((vector_size(16)))

struct columns_block {
    uint32_t records, n_stamps, n_changes, n_sized, n_plain, n_notes;
    uint32_t hot_events; // while columns are merged: number of counted events in hot groups
    union {
        uint16_t changes[BLOCK]; // while records are split: differences of stamps, without zeros
        uint16_t stamps[BLOCK];  // while columns are merged
    };
    // While columns are merged: sum of columns.sums for each group of hot records, 0 for other
    // groups.
    uint32_t sums[BLOCK / GROUP];
    // While records are split, the arrays hold complete words. While columns are merged, they hold
    // bits 19 to 63 of the words. The addresses in `plain` are relative to the base.
    // A group after the last record may be read, but is not used.
    uint64_t sized[BLOCK + GROUP], plain[BLOCK + GROUP];
};

static const uint8_t item_bytes[COLUMN_COUNT] = {
    [0 ... COLUMN_WORDS - 1] = 1, [COLUMN_WORDS] = WORD};

static enum columns_form form_of(unsigned tag)
{
    switch (tag) {
    case CODEC_TAG_HOLE:
        return COLUMNS_BAD;
    case CODEC_TAG_EPOCH:
        return COLUMNS_EPOCH;
    case CODEC_TAG_BASE:
        return COLUMNS_BASE;
    case CODEC_TAG_LONG:
        return COLUMNS_LONG;
    }
    if (tag >= HT_FIRST_NOTE)
        return event_note_names[tag - HT_FIRST_NOTE] ? COLUMNS_NOTE : COLUMNS_BAD;
    unsigned form = event_infos[tag].form;
    return form == HT_FORM_SIZED   ? COLUMNS_SIZED
           : form == HT_FORM_PLAIN ? COLUMNS_PLAIN
                                   : COLUMNS_BAD;
}

static bool is_site(unsigned tag)
{
    return tag == HT_FIRST_NOTE + HT_NOTE_SITE;
}

static struct columns_class class_of(unsigned tag)
{
    enum columns_form form = form_of(tag);
    bool hot = form <= COLUMNS_PLAIN, note = form == COLUMNS_NOTE, base = form == COLUMNS_BASE;
    return (struct columns_class){
        .sized = form == COLUMNS_SIZED,
        .plain = form == COLUMNS_PLAIN,
        .word_bytes = note || base ? WORD : 0,
        .counts = hot && event_counts(tag),
        .is_site = is_site(tag),
        .is_base = base,
        .ends = note ? 2 : !hot && !base,
        .follows = hot ? 1 : 3,
    };
}

void columns_init(struct columns *c)
{
    *c = (struct columns){.wide = wide_is_supported()};
    for (unsigned tag = 0; tag < 1 << CODEC_TAG_BITS; tag++) {
        enum columns_form form = form_of(tag);
        bool hot = form <= COLUMNS_PLAIN;
        c->forms[tag] = (uint8_t)form;
        c->hot |= (uint32_t)hot << tag;
        c->sized |= (uint32_t)(form == COLUMNS_SIZED) << tag;
        c->counted |= (uint32_t)(hot && event_counts(tag)) << tag;
        c->classes[tag] = class_of(tag);
        c->sums[tag] = (uint32_t)hot << SUM_HOT | (c->counted >> tag & 1) << SUM_COUNTED |
                       (form == COLUMNS_SIZED);
    }
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        c->hints[false][i] = (struct frame_hint){.far = i == COLUMN_WORDS};
        c->hints[true][i] = (struct frame_hint){.fast = true, .far = i == COLUMN_WORDS};
    }
}

void columns_release(struct columns *c)
{
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        buf_release(&c->column[i]);
    buf_release(&c->packed);
    *c = (struct columns){0};
}

int columns_reserve(struct columns *c, uint32_t words)
{
    columns_clear(c);
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        if (buf_reserve(&c->column[i], (size_t)words * item_bytes[i] + PACKING_SLACK) < 0)
            return -ENOMEM;
    }
    c->room = words;
    return 0;
}

void columns_clear(struct columns *c)
{
    c->words = 0;
    c->stamp = 0;
    c->defined = 0;
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        c->column[i].size = 0;
}

// Returns the number of words in the LONG record at `w`, or 0 if the record is invalid; `left`
// words are available.
static uint32_t long_words(const uint64_t *w, uint32_t left)
{
    uint32_t words = codec_record_words(w[0]);
    struct event ev = {.kind = (uint8_t)(w[0] >> CODEC_LONG_KIND_AT)};
    return words <= left && codec_get_long(w, words, &ev) ? words : 0;
}

static bool long_counts(uint64_t head)
{
    return event_counts(head >> CODEC_LONG_KIND_AT & 0xff);
}

// Returns true if a record follows the notes at `w`.
static bool is_followed(const struct columns *c, const uint64_t *w, uint32_t left)
{
    uint32_t notes = 1;
    while (notes < left && notes <= HT_NOTES && c->forms[codec_tag_of(w[notes])] == COLUMNS_NOTE)
        notes++;
    if (notes == left || notes > HT_NOTES)
        return false;
    unsigned form = c->forms[codec_tag_of(w[notes])];
    return form <= COLUMNS_PLAIN || (form == COLUMNS_LONG && long_words(w + notes, left - notes));
}

// Updates the state for the record at `w`, which is neither SIZED nor PLAIN. Returns the record's
// number of words, or 0 if the record is invalid.
static uint32_t scan_rare(const struct columns *c, const uint64_t *w, uint32_t left,
                          struct columns_records *r)
{
    unsigned form = c->forms[codec_tag_of(w[0])];
    if (form == COLUMNS_NOTE)
        return is_followed(c, w, left);
    if (form == COLUMNS_LONG) {
        uint32_t words = long_words(w, left);
        r->events += words && long_counts(w[0]);
        r->modules |= words && (w[0] >> CODEC_LONG_KIND_AT & 0xff) == HT_MODULE;
        return words;
    }
    if (form == COLUMNS_EPOCH)
        r->state.epoch = w[0] >> CODEC_TAG_BITS;
    else if (form == COLUMNS_BASE)
        r->state.base = w[0] >> CODEC_TAG_BITS << CODEC_ADDRESS_SHIFT;
    return form != COLUMNS_BAD;
}

// Returns the class of w[i]. If `i` is past the end, returns the class of CODEC_TAG_HOLE.
static inline const struct columns_class *class_at(const struct columns *c, const uint64_t *w,
                                                   uint32_t i, uint32_t n)
{
    return &c->classes[i < n ? codec_tag_of(w[i]) : CODEC_TAG_HOLE];
}

// Returns the number of counted events in the GROUP records at `w`, or -1 if a record is not hot.
static inline int group_events(const struct columns *c, const uint64_t *w)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < GROUP; i++)
        sum += c->sums[codec_tag_of(w[i])];
    return sum >> SUM_HOT == GROUP ? (int)(sum >> SUM_COUNTED & 0xff) : -1;
}

// Scans frequent records (see split_frequent). Returns the number of records.
static uint32_t scan_frequent(const struct columns *c, const uint64_t *w, uint32_t n,
                              struct columns_records *r)
{
    uint64_t base = r->state.base >> CODEC_ADDRESS_SHIFT, events = 0;
    uint32_t i = c->wide ? wide_count(c, w, n, &events) : 0;
    for (int got; !c->wide && n - i >= GROUP && (got = group_events(c, w + i)) >= 0; i += GROUP)
        events += (unsigned)got;
    const struct columns_class *k = class_at(c, w, i, n), *next;
    for (; i < n; i++, k = next) {
        next = class_at(c, w, i + 1, n);
        if (__builtin_expect(k->ends & next->follows, 0))
            break;
        base = k->is_base ? w[i] >> CODEC_TAG_BITS : base;
        events += k->counts;
    }
    r->state.base = base << CODEC_ADDRESS_SHIFT;
    r->events += events;
    return i;
}

void columns_scan(const struct columns *c, const uint64_t *w, uint32_t n, struct columns_records *r)
{
    uint32_t i = 0, extra = 0;
    r->events = 0;
    while ((i += scan_frequent(c, w + i, n - i, r)) < n) {
        uint32_t words = scan_rare(c, w + i, n - i, r);
        if (words == 0)
            break;
        i += words;
        extra += words - 1;
    }
    r->words = i;
    r->records = i - extra;
}

static void put_word(struct columns *c, uint64_t word)
{
    struct buf *b = &c->column[COLUMN_WORDS];
    put_u64(b->data + b->size, word);
    b->size += 8;
}

// If the LONG record at `w` is HT_FRAMES, sets *defined to the innermost site that it defines.
static void note_defined(const uint64_t *w, uint32_t words, uint64_t *defined)
{
    struct event ev = {.kind = HT_FRAMES};
    if ((w[0] >> CODEC_LONG_KIND_AT & 0xff) != HT_FRAMES || !codec_get_long(w, words, &ev) ||
        ev.text_bytes < WORD)
        return;
    *defined = ev.size;
    for (uint32_t n = ev.text_bytes / WORD; n-- > 0;)
        *defined = codec_site(*defined, get_u64((const uint8_t *)ev.text + WORD * n));
}

// Swaps 0 and the site that was just defined. The decoder knows the site's number from its
// definition, and 0 compresses better. Calling the function twice restores the value.
static inline uint64_t exchange_site(bool is_site, uint64_t value, uint64_t defined)
{
    bool is_either = is_site & ((value == defined) | (value == 0));
    return __builtin_expect(is_either, 0) ? value ^ defined : value;
}

// Like scan_rare, but also appends the record to COLUMN_WORDS.
static uint32_t split_rare(struct columns *c, unsigned form, const uint64_t *w, uint32_t left,
                           struct columns_records *r)
{
    struct codec_state before = r->state;
    uint32_t words = scan_rare(c, w, left, r);
    if (words == 0)
        return 0;
    // Store the difference of the epochs, which is nearly always one of a few small numbers.
    if (form == COLUMNS_EPOCH)
        put_word(c, (r->state.epoch - before.epoch) & codec_mask(64 - CODEC_TAG_BITS));
    else if (form == COLUMNS_LONG)
        put_word(c, w[0] >> CODEC_BODY_AT);
    else
        put_word(c, exchange_site(is_site(codec_tag_of(w[0])), w[0] >> CODEC_TAG_BITS, c->defined));
    if (form == COLUMNS_LONG)
        note_defined(w, words, &c->defined);
    for (uint32_t i = 1; i < words; i++)
        put_word(c, w[i]);
    return words;
}

// Moves the changes of the records with TAG_CHANGED to the front. Returns their number.
static uint32_t keep_changes(const uint8_t *tags, uint16_t *changes, uint32_t n)
{
    uint32_t kept = 0, i = 0;
    for (; n - i >= GROUP; i += GROUP) {
        uint64_t changed = get_u64(tags + i) & TAG_CHANGED * BYTES_OF_1;
        // Usually, at most one stamp of a group has changed, so the first change is copied without
        // a branch.
        do {
            changes[kept] = changes[i + (unsigned)__builtin_ctzll(changed | 1ull << 63) / 8];
            kept += changed != 0;
            changed &= changed - 1;
        } while (changed);
    }
    for (; i < n; i++) {
        changes[kept] = changes[i];
        kept += tags[i] >= TAG_CHANGED;
    }
    return kept;
}

static inline uint16_t stamp_of(uint64_t word)
{
    return (uint16_t)((uint32_t)word >> CODEC_STAMP_AT) & (uint16_t)codec_mask(CODEC_STAMP_BITS);
}

static inline uint16_t change_of(uint16_t stamp, uint16_t before)
{
    return (uint16_t)(stamp - before) & (uint16_t)codec_mask(CODEC_STAMP_BITS);
}

static void get_heads(const uint64_t *w, uint32_t n, uint8_t *restrict tags,
                      uint16_t *restrict stamps)
{
    for (uint32_t i = 0; i < n; i++)
        stamps[i] = stamp_of(w[i]);
    for (uint32_t i = 0; i < n; i++)
        tags[i] = w[i] & codec_mask(CODEC_TAG_BITS);
}

// Appends the tags and stamp changes of hot records. The caller has already stored the tags after
// the end of COLUMN_TAG. stamps[0] is the stamp before the first record.
static void put_hot_heads(struct columns *c, struct columns_block *b, const uint16_t *stamps,
                          uint32_t n)
{
    uint8_t *restrict tags = c->column[COLUMN_TAG].data + c->column[COLUMN_TAG].size;
    uint16_t *restrict changes = b->changes + b->n_changes;
    for (uint32_t i = 0; i < n; i++)
        changes[i] = change_of(stamps[i + 1], stamps[i]);
    for (uint32_t i = 0; i < n; i++)
        tags[i] |= changes[i] ? TAG_CHANGED : 0;
    c->stamp = stamps[n];
    c->column[COLUMN_TAG].size += n;
    b->records += n;
    b->n_changes += keep_changes(tags, changes, n);
}

// Appends the tags and stamp changes of records of any form. `stamped` is a bit set of the tags
// whose records have a stamp.
static void split_heads(struct columns *c, struct columns_block *b, const uint64_t *w, uint32_t n,
                        uint32_t stamped)
{
    uint8_t *restrict tags = c->column[COLUMN_TAG].data + c->column[COLUMN_TAG].size;
    uint16_t *restrict changes = b->changes, before = c->stamp;
    uint32_t n_changes = b->n_changes;
    for (uint32_t i = 0; i < n; i++) {
        unsigned tag = codec_tag_of(w[i]);
        uint16_t stamp = stamped >> tag & 1 ? stamp_of(w[i]) : before,
                 change = change_of(stamp, before);
        tags[i] = (uint8_t)(tag | (change ? TAG_CHANGED : 0));
        changes[n_changes] = change;
        n_changes += change != 0;
        before = stamp;
    }
    c->stamp = before;
    c->column[COLUMN_TAG].size += n;
    b->records += n;
    b->n_changes = n_changes;
}

// Appends groups of hot records. Stops at the first record that is not hot, when the block is full,
// or at the end of `w`. Returns the number of records. Each record is written to both arrays, but
// only the array that the record belongs to advances. This is cheaper than mispredicted branches.
static uint32_t split_hot(struct columns *c, struct columns_block *b, const uint64_t *w, uint32_t n,
                          struct columns_records *r)
{
    uint64_t *restrict to_sized = b->sized + b->n_sized, *restrict to_plain = b->plain + b->n_plain;
    const uint64_t base = r->state.base >> CODEC_ADDRESS_SHIFT << CODEC_BODY_AT;
    uint32_t i = 0, most = n < BLOCK - b->records ? n : BLOCK - b->records;
    uint8_t *tags = c->column[COLUMN_TAG].data + c->column[COLUMN_TAG].size;
    uint16_t stamps[BLOCK + 1];
    stamps[0] = c->stamp;
    if (c->wide) {
        struct wide_split to = {tags, stamps + 1, to_sized, to_plain, base, 0};
        i = wide_split(c, w, most, &to);
        to_sized = to.sized;
        to_plain = to.plain;
        r->events += to.events;
    }
    for (; !c->wide && most - i >= GROUP; i += GROUP) {
        uint32_t sum = 0;
        for (unsigned k = 0; k < GROUP; k++) {
            uint64_t word = w[i + k];
            unsigned sized = sum & 0xff;
            to_sized[sized] = word;
            to_plain[k - sized] = word - base;
            sum += c->sums[codec_tag_of(word)];
        }
        if (sum >> SUM_HOT != GROUP)
            break;
        to_sized += sum & 0xff;
        to_plain += GROUP - (sum & 0xff);
        r->events += sum >> SUM_COUNTED & 0xff;
    }
    if (!c->wide)
        get_heads(w, i, tags, stamps + 1);
    put_hot_heads(c, b, stamps, i);
    b->n_sized = (uint32_t)(to_sized - b->sized);
    b->n_plain = (uint32_t)(to_plain - b->plain);
    return i;
}

// Like split_hot, but for hot records, BASE, and notes before hot records. Stops after RUN records,
// so that split_hot gets the groups that follow.
static uint32_t split_frequent(struct columns *c, struct columns_block *b, const uint64_t *w,
                               uint32_t n, struct columns_records *r)
{
    struct buf *column = &c->column[COLUMN_WORDS];
    uint8_t *restrict words = column->data + column->size;
    uint64_t *restrict to_sized = b->sized + b->n_sized, *restrict to_plain = b->plain + b->n_plain;
    const uint64_t defined = c->defined;
    uint64_t base = r->state.base >> CODEC_ADDRESS_SHIFT, events = 0;
    uint32_t i = 0, most = n < BLOCK - b->records ? n : BLOCK - b->records;
    most = most < RUN ? most : RUN;
    const struct columns_class *k = class_at(c, w, i, n), *next;
    for (; i < most; i++, k = next) {
        uint64_t word = w[i], value = word >> CODEC_TAG_BITS;
        next = class_at(c, w, i + 1, n);
        if (__builtin_expect(k->ends & next->follows, 0))
            break;
        *to_sized = word;
        *to_plain = word - (base << CODEC_BODY_AT);
        base = k->is_base ? value : base;
        put_u64(words, exchange_site(k->is_site, value, defined));
        to_sized += k->sized;
        to_plain += k->plain;
        words += k->word_bytes;
        events += k->counts;
    }
    split_heads(c, b, w, i, c->hot);
    b->n_sized = (uint32_t)(to_sized - b->sized);
    b->n_plain = (uint32_t)(to_plain - b->plain);
    column->size = (size_t)(words - column->data);
    r->state.base = base << CODEC_ADDRESS_SHIFT;
    r->events += events;
    return i;
}

// Splits records until the block is full or w ends. Returns the number of words. Sets *more to
// false if no record follows.
static uint32_t split_records(struct columns *c, struct columns_block *b, const uint64_t *w,
                              uint32_t n, struct columns_records *r, bool *more)
{
    uint32_t i = 0;
    b->records = b->n_changes = b->n_sized = b->n_plain = 0;
    while (i < n && b->records < BLOCK) {
        i += split_hot(c, b, w + i, n - i, r);
        uint32_t frequent = split_frequent(c, b, w + i, n - i, r);
        i += frequent;
        if (frequent == RUN || i == n || b->records == BLOCK)
            continue;
        unsigned tag = codec_tag_of(w[i]), form = c->forms[tag];
        uint32_t words = split_rare(c, form, w + i, n - i, r);
        *more = words != 0;
        if (words == 0)
            break;
        split_heads(c, b, w + i, 1, 1u << CODEC_TAG_LONG);
        i += words;
    }
    return i;
}

static uint8_t *extend_column(struct columns *c, unsigned column, uint32_t n)
{
    struct buf *b = &c->column[column];
    uint8_t *at = b->data + b->size;
    b->size += n;
    return at;
}

// Interleaves the bytes of the two halves of `a`, which has 128 bytes. This rotates the 7-bit index
// of each byte by one bit. If `a` holds 16 words of 8 bytes, four calls sort the bytes into planes,
// and three more calls restore the words.
static inline void interleave_halves(BYTES16 *a)
{
    BYTES16 b[8];
    for (unsigned i = 0; i < 4; i++) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                           6, 22, 7, 23);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                               13, 29, 14, 30, 15, 31);
    }
    memcpy(a, b, sizeof b);
}

// Moves the lowest bit of the address in a body to the top. The address begins at bit `at`. In most
// programs, this bit is 0 in all addresses, because blocks are aligned to 16 bytes.
static inline uint64_t rotate_address(uint64_t body, unsigned at)
{
    return (body & codec_mask(at)) | body >> (at + 1) << at | (body >> at & 1) << (BODY_BITS - 1);
}

static inline uint64_t restore_address(uint64_t body, unsigned at)
{
    uint64_t address = body >> at & codec_mask(BODY_BITS - at);
    return (body & codec_mask(at)) | (address << 1 | address >> (BODY_BITS - 1 - at)) << at;
}

// Returns the position of the address in the body of a record.
static inline unsigned address_at(unsigned column)
{
    return column == COLUMN_SIZE ? CODEC_SIZE_BITS : 0;
}

// Appends the bodies of the words (without tag and stamp), one column per byte of a body.
static inline void put_planes(struct columns *c, unsigned column, const uint64_t *w, uint32_t n)
{
    const unsigned at = address_at(column);
    uint8_t *to[PLANES];
    uint32_t i;
    for (unsigned p = 0; p < PLANES; p++)
        to[p] = extend_column(c, column + p, n);
    for (i = c->wide ? wide_planes(to, w, n, at) : 0; i + 16 <= n; i += 16) {
        uint64_t bodies[16];
        BYTES16 a[8];
        for (unsigned k = 0; k < 16; k++)
            bodies[k] = rotate_address(w[i + k] >> CODEC_BODY_AT, at);
        memcpy(a, bodies, sizeof a);
        interleave_halves(a);
        interleave_halves(a);
        interleave_halves(a);
        interleave_halves(a);
        for (unsigned p = 0; p < PLANES; p++)
            memcpy(to[p] + i, &a[p], sizeof a[p]);
    }
    for (; i < n; i++) {
        for (unsigned p = 0; p < PLANES; p++)
            to[p][i] = (uint8_t)(rotate_address(w[i] >> CODEC_BODY_AT, at) >> (8 * p));
    }
}

static void put_changes(struct columns *c, const uint16_t *changes, uint32_t n)
{
    uint8_t *restrict low = extend_column(c, COLUMN_STAMP, n), *restrict high = extend_column(
                                                                   c, COLUMN_STAMP + 1, n);
    for (uint32_t i = 0; i < n; i++) {
        low[i] = (uint8_t)changes[i];
        high[i] = (uint8_t)(changes[i] >> 8);
    }
}

void columns_put(struct columns *c, const uint64_t *w, uint32_t n, struct columns_records *r)
{
    struct columns_block b;
    bool more = true;
    r->words = r->records = 0;
    r->events = 0;
    while (more && r->words < n) {
        r->words += split_records(c, &b, w + r->words, n - r->words, r, &more);
        r->records += b.records;
        put_changes(c, b.changes, b.n_changes);
        put_planes(c, COLUMN_SIZE, b.sized, b.n_sized);
        put_planes(c, COLUMN_PTR, b.plain, b.n_plain);
    }
    c->words += r->words;
}

int columns_finish(struct columns *c, bool fast, struct buf *payload, struct frame_part *parts)
{
    size_t most = 0;
    for (unsigned i = 0; i < COLUMN_WORDS; i++)
        most += packing_bytes(1, c->column[i].size);
    c->packed.size = 0;
    if (buf_reserve(&c->packed, most + PACKING_SLACK) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        const struct buf *items = &c->column[i];
        uint8_t length[4], *packed = c->packed.data + c->packed.size;
        unsigned packing = i < COLUMN_WORDS ? packing_put(items->data, items->size, packed) : 0;
        put_u32(length, (uint32_t)items->size | packing << EVENTS_PACKING_AT);
        if (buf_put(payload, length, sizeof length) < 0)
            return -ENOMEM;
        size_t bytes = packing_bytes(packing, items->size);
        c->packed.size += packing ? bytes : 0;
        parts[i] = (struct frame_part){packing ? packed : items->data, bytes, &c->hints[fast][i]};
    }
    return 0;
}

// Unpacks a column. Returns the items, or NULL if the packing or the length is invalid.
static const uint8_t *unpack(struct columns *c, unsigned column, unsigned packing,
                             const uint8_t *packed, uint32_t n)
{
    if (packing > PACKING_MAX || column == COLUMN_WORDS || n > c->room)
        return NULL;
    packing_get(packing, packed, n, c->column[column].data);
    return c->column[column].data;
}

bool columns_open(struct columns *c, struct columns_source *src, enum columns_transform transform,
                  const uint8_t *at, size_t n)
{
    *src = (struct columns_source){.transform = transform};
    if (n < 4 * COLUMN_COUNT)
        return false;
    const uint8_t *p = at + 4 * COLUMN_COUNT;
    size_t left = n - 4 * COLUMN_COUNT;
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        uint32_t length = get_u32(at + 4 * i);
        unsigned packing = transform < EVENTS_COLUMNS ? 0 : length >> EVENTS_PACKING_AT;
        length -= packing << EVENTS_PACKING_AT;
        size_t bytes = packing_bytes(packing & PACKING_MAX, length);
        if (bytes > left || length % item_bytes[i])
            return false;
        src->column[i] = packing ? unpack(c, i, packing, p, length) : p;
        src->left[i] = length / item_bytes[i];
        if (!src->column[i])
            return false;
        p += bytes;
        left -= bytes;
    }
    return left == 0;
}

bool columns_ended(const struct columns_source *src)
{
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        if (src->left[i])
            return false;
    }
    return true;
}

// Returns true if the layout marks tags with TAG_CHANGED and rotates addresses.
static bool has_changes(const struct columns_source *src)
{
    return src->transform >= EVENTS_COLUMNS_3;
}

// Returns the sum of columns.sums for GROUP tags, or 0 if a tag is not hot or not below `limit`,
// which is a power of two.
static inline uint32_t sum_group(const struct columns *c, uint64_t tags, uint8_t limit)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < GROUP; i++)
        sum += c->sums[tags >> 8 * i & codec_mask(CODEC_TAG_BITS)];
    return sum >> SUM_HOT != GROUP || tags & (uint8_t)-limit * BYTES_OF_1 ? 0 : sum;
}

// Returns the number of tags of a group that have TAG_CHANGED.
static inline uint32_t count_changed(uint64_t tags)
{
    return (tags / TAG_CHANGED & BYTES_OF_1) * BYTES_OF_1 >> 56;
}

// Counts the forms in a block of tags. Returns false if a tag is invalid or a column is too short.
// The get_* functions advance the columns later.
static bool count_block(const struct columns *c, const struct columns_source *src,
                        struct columns_block *b)
{
    uint32_t n[COLUMNS_BAD + 1] = {0}, changed[COLUMNS_BAD + 1] = {0};
    const uint8_t *tags = src->column[COLUMN_TAG], limit = (has_changes(src) ? 2 : 1) * TAG_CHANGED;
    if (src->left[COLUMN_TAG] < b->records)
        return false;
    b->hot_events = 0;
    for (uint32_t i = 0; i < b->records; i++) {
        if (i % GROUP == 0) {
            uint64_t group = b->records - i < GROUP ? 0 : get_u64(tags + i);
            uint32_t sum = b->sums[i / GROUP] = sum_group(c, group, limit);
            if (sum) {
                n[COLUMNS_SIZED] += sum & 0xff;
                n[COLUMNS_PLAIN] += GROUP - (sum & 0xff);
                changed[COLUMNS_SIZED] += count_changed(group);
                b->hot_events += sum >> SUM_COUNTED & 0xff;
                i += GROUP - 1;
                continue;
            }
        }
        unsigned form = c->forms[tags[i] & codec_mask(CODEC_TAG_BITS)];
        if (tags[i] >= limit)
            return false;
        n[form]++;
        changed[form] += tags[i] >= TAG_CHANGED;
    }
    b->n_sized = n[COLUMNS_SIZED];
    b->n_plain = n[COLUMNS_PLAIN];
    b->n_notes = n[COLUMNS_NOTE];
    b->n_stamps = b->n_sized + b->n_plain + n[COLUMNS_LONG];
    b->n_changes = has_changes(src)
                       ? changed[COLUMNS_SIZED] + changed[COLUMNS_PLAIN] + changed[COLUMNS_LONG]
                       : b->n_stamps;
    bool all = n[COLUMNS_BAD] == 0 &&
               changed[COLUMNS_EPOCH] + changed[COLUMNS_BASE] + changed[COLUMNS_NOTE] == 0;
    for (unsigned i = COLUMN_STAMP; i < COLUMN_WORDS; i++)
        all &= src->left[i] >= (i < COLUMN_SIZE  ? b->n_changes
                                : i < COLUMN_PTR ? b->n_sized
                                                 : b->n_plain);
    return all;
}

static const uint8_t *take_items(struct columns_source *src, unsigned column, uint32_t n)
{
    const uint8_t *at = src->column[column];
    src->column[column] += n * item_bytes[column];
    src->left[column] -= n;
    return at;
}

static void get_planes(const struct columns *c, struct columns_source *src, unsigned column,
                       uint64_t *v, uint32_t n)
{
    const uint8_t *from[PLANES];
    uint32_t i;
    for (unsigned p = 0; p < PLANES; p++)
        from[p] = take_items(src, column + p, n);
    const uint32_t restored =
        c->wide && has_changes(src) ? wide_words(from, v, n, address_at(column)) : 0;
    for (i = restored; i + 16 <= n; i += 16) {
        BYTES16 a[8] = {0};
        for (unsigned p = 0; p < PLANES; p++)
            memcpy(&a[p], from[p] + i, sizeof a[p]);
        interleave_halves(a);
        interleave_halves(a);
        interleave_halves(a);
        memcpy(v + i, a, sizeof a);
    }
    for (; i < n; i++) {
        v[i] = 0;
        for (unsigned p = 0; p < PLANES; p++)
            v[i] |= (uint64_t)from[p][i] << (8 * p);
    }
    for (i = restored; i < n && has_changes(src); i++)
        v[i] = restore_address(v[i], address_at(column));
}

static void get_stamps(const struct columns *c, struct columns_source *src, struct columns_block *b)
{
    const uint8_t *low = take_items(src, COLUMN_STAMP, b->n_changes),
                  *high = take_items(src, COLUMN_STAMP + 1, b->n_changes);
    const uint8_t *tags = src->column[COLUMN_TAG], *end = tags + b->records;
    const uint32_t stamped = c->hot | 1u << CODEC_TAG_LONG, always = has_changes(src) ? 0 : stamped;
    uint16_t changes[BLOCK + 1], stamp = src->stamp;
    uint32_t n = 0, k = 0;
    for (uint32_t i = 0; i < b->n_changes; i++)
        changes[i] = (uint16_t)(low[i] | high[i] << 8);
    changes[b->n_changes] = 0;
    for (uint32_t i = 0; tags < end; tags++, i++) {
        if (i % GROUP == 0 && b->sums[i / GROUP] && !always && !count_changed(get_u64(tags))) {
            for (unsigned g = 0; g < GROUP; g++)
                b->stamps[n + g] = stamp & codec_mask(CODEC_STAMP_BITS);
            n += GROUP;
            tags += GROUP - 1;
            i += GROUP - 1;
            continue;
        }
        unsigned tag = *tags & codec_mask(CODEC_TAG_BITS);
        bool changed = (*tags >= TAG_CHANGED) | (always >> tag & 1);
        stamp += changed ? changes[k] : 0;
        k += changed;
        b->stamps[n] = stamp & codec_mask(CODEC_STAMP_BITS);
        n += stamped >> tag & 1;
    }
    src->stamp = stamp;
}

// Decodes an EPOCH, BASE or LONG record or a note into `to`, which has space for `room` words.
// Returns the number of words, or 0 if the record is invalid.
static uint32_t merge_rare(const struct columns *c, struct columns_source *src, unsigned tag,
                           uint64_t *to, uint32_t room, struct columns_records *r)
{
    unsigned form = c->forms[tag];
    if (src->left[COLUMN_WORDS] == 0 || room == 0)
        return 0;
    uint64_t word = get_u64(take_items(src, COLUMN_WORDS, 1));
    if (form == COLUMNS_EPOCH)
        to[0] = codec_epoch_record(r->state.epoch + word);
    else if (form == COLUMNS_LONG)
        to[0] = CODEC_TAG_LONG | word << CODEC_BODY_AT;
    else
        to[0] = tag | exchange_site(is_site(tag), word, src->defined) << CODEC_TAG_BITS;
    if (form == COLUMNS_NOTE)
        return 1; // columns_get checks that a record follows
    uint32_t words = codec_record_words(to[0]);
    if (words > room || words - 1 > src->left[COLUMN_WORDS])
        return 0;
    memcpy(to + 1, take_items(src, COLUMN_WORDS, words - 1), WORD * (words - 1));
    if (form == COLUMNS_LONG && src->transform != EVENTS_COLUMNS_1)
        note_defined(to, words, &src->defined);
    return scan_rare(c, to, words, r);
}

// Merges at least one group of hot records into words and advances the bodies. Returns the number
// of records. Reads a body of each form for every record, which is cheaper than mispredicted
// branches.
static inline uint32_t merge_groups(const struct columns *c, const uint8_t *tags,
                                    const uint16_t *stamps, struct wide_bodies *b, uint64_t *to)
{
    if (c->wide)
        return wide_merge(c, tags, stamps, b, to);
    const uint64_t *sized = b->at[COLUMNS_SIZED], *plain = b->at[COLUMNS_PLAIN];
    for (unsigned i = 0; i < GROUP; i++) {
        unsigned tag = tags[i] & codec_mask(CODEC_TAG_BITS), is_sized = c->sums[tag] & 1;
        uint64_t from_sized = *sized, from_plain = *plain + b->base[COLUMNS_PLAIN];
        to[i] = tag | (uint64_t)stamps[i] << CODEC_STAMP_AT |
                (is_sized ? from_sized : from_plain) << CODEC_BODY_AT;
        sized += is_sized;
        plain += 1 - is_sized;
    }
    b->at[COLUMNS_SIZED] = sized;
    b->at[COLUMNS_PLAIN] = plain;
    return GROUP;
}

// Merges the columns of a block into words. Returns the number of words, or 0 if a record is
// invalid.
static uint32_t merge_records(const struct columns *c, struct columns_source *src,
                              const struct columns_block *b, uint64_t *to, uint32_t room,
                              struct columns_records *r)
{
    const uint8_t *tags = take_items(src, COLUMN_TAG, b->records);
    struct wide_bodies bodies = {.at = {b->sized, b->plain},
                                 .base = {0, r->state.base >> CODEC_ADDRESS_SHIFT}};
    const uint16_t *stamp = b->stamps;
    uint32_t at = 0;
    r->events += b->hot_events;
    for (uint32_t i = 0; i < b->records; i++) {
        if (i % GROUP == 0 && room - at >= GROUP && b->sums[i / GROUP]) {
            bodies.left = b->records - i < room - at ? b->records - i : room - at;
            uint32_t merged = merge_groups(c, tags + i, stamp, &bodies, to + at);
            stamp += merged;
            at += merged;
            i += merged - 1;
            continue;
        }
        unsigned tag = tags[i] & codec_mask(CODEC_TAG_BITS), form = c->forms[tag];
        uint32_t words = 1;
        if (__builtin_expect(form > COLUMNS_PLAIN, 0)) {
            words = merge_rare(c, src, tag, to + at, room - at, r);
            if (words == 0)
                return 0;
            bodies.base[COLUMNS_PLAIN] = r->state.base >> CODEC_ADDRESS_SHIFT;
            if (form == COLUMNS_LONG)
                to[at] |= (uint64_t)*stamp++ << CODEC_STAMP_AT;
        } else {
            if (at == room)
                return 0;
            to[at] = tag | (uint64_t)*stamp++ << CODEC_STAMP_AT |
                     (*bodies.at[form]++ + bodies.base[form]) << CODEC_BODY_AT;
            r->events += c->counted >> tag & 1;
        }
        at += words;
    }
    return at;
}

// Returns true if a record follows every note.
static bool notes_are_good(const struct columns *c, const struct columns_records *r,
                           const uint64_t *words)
{
    struct columns_records all = {.state = r->state};
    columns_scan(c, words, r->words, &all);
    return all.words == r->words;
}

bool columns_get(const struct columns *c, struct columns_source *src, struct columns_records *r,
                 uint64_t *words)
{
    struct columns_block b;
    uint32_t done = 0, at = 0, notes = 0;
    r->events = 0;
    while (done < r->records) {
        b.records = r->records - done < BLOCK ? r->records - done : BLOCK;
        if (!count_block(c, src, &b))
            return false;
        get_stamps(c, src, &b);
        get_planes(c, src, COLUMN_SIZE, b.sized, b.n_sized);
        get_planes(c, src, COLUMN_PTR, b.plain, b.n_plain);
        uint32_t got = merge_records(c, src, &b, words + at, r->words - at, r);
        if (got == 0)
            return false;
        at += got;
        done += b.records;
        notes += b.n_notes;
    }
    return at == r->words && (!notes || notes_are_good(c, r, words));
}

// Returns the kind if it is unknown, else 0. `body` is the word without tag and stamp.
static unsigned unknown_kind_of(unsigned tag, uint64_t body)
{
    unsigned kind = tag == CODEC_TAG_LONG ? body & 0xff : tag < HT_FIRST_NOTE ? tag : 0;
    return event_is_unknown(kind) ? kind : 0;
}

static unsigned unknown_kind_of_words(const uint8_t *at, size_t n)
{
    for (size_t i = 0; i + WORD <= n;) {
        uint64_t word = get_u64(at + i);
        unsigned kind = unknown_kind_of(codec_tag_of(word), word >> CODEC_BODY_AT);
        if (kind)
            return kind;
        i += (size_t)WORD * codec_record_words(word);
    }
    return 0;
}

unsigned columns_unknown_kind(struct columns *c, enum columns_transform transform,
                              const uint8_t *at, size_t n)
{
    struct columns_source src;
    if (transform == EVENTS_WORDS)
        return unknown_kind_of_words(at, n);
    if (!columns_open(c, &src, transform, at, n))
        return 0;
    while (src.left[COLUMN_TAG]) {
        unsigned tag = *take_items(&src, COLUMN_TAG, 1) & codec_mask(CODEC_TAG_BITS);
        bool is_long = tag == CODEC_TAG_LONG, has_word = is_long || tag == CODEC_TAG_EPOCH ||
                                                         tag == CODEC_TAG_BASE ||
                                                         tag >= HT_FIRST_NOTE;
        if (has_word && !src.left[COLUMN_WORDS])
            return 0;
        uint64_t body = has_word ? get_u64(take_items(&src, COLUMN_WORDS, 1)) : 0;
        unsigned kind = unknown_kind_of(tag, body);
        uint32_t more = is_long ? codec_record_words(tag | body << CODEC_BODY_AT) - 1 : 0;
        if (kind || more > src.left[COLUMN_WORDS])
            return kind;
        take_items(&src, COLUMN_WORDS, more);
    }
    return 0;
}
