#include "trace/columns.h"

#include "base/bytes.h"

#include <errno.h>

// Records are taken apart in blocks whose scratch stays in the L1 cache.
enum { BLOCK = 1024 };

struct block {
    uint32_t records, n_stamps, n_sized, n_plain, n_notes;
    uint16_t stamps[BLOCK];
    uint64_t sized[BLOCK]; // bits 19 to 63
    uint64_t plain[BLOCK]; // address - base, in units of 8 bytes, mod 2^45
};

static const uint8_t item_bytes[COLUMN_COUNT] = {[0 ... COLUMN_WORDS - 1] = 1, [COLUMN_WORDS] = 8};

static enum record_form form_of(unsigned tag)
{
    switch (tag) {
    case CODEC_TAG_HOLE:
        return RECORD_BAD;
    case CODEC_TAG_EPOCH:
        return RECORD_EPOCH;
    case CODEC_TAG_BASE:
        return RECORD_BASE;
    case CODEC_TAG_LONG:
        return RECORD_LONG;
    }
    if (tag >= HT_FIRST_NOTE)
        return event_note_names[tag - HT_FIRST_NOTE] ? RECORD_NOTE : RECORD_BAD;
    unsigned form = event_infos[tag].form;
    return form == HT_FORM_SIZED ? RECORD_SIZED : form == HT_FORM_PLAIN ? RECORD_PLAIN : RECORD_BAD;
}

void columns_init(struct columns *c)
{
    *c = (struct columns){0};
    for (unsigned tag = 0; tag < 1 << CODEC_TAG_BITS; tag++) {
        c->forms[tag] = (uint8_t)form_of(tag);
        c->counts[tag] = c->forms[tag] <= RECORD_PLAIN && event_counts(tag);
    }
}

void columns_release(struct columns *c)
{
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        buf_release(&c->column[i]);
    *c = (struct columns){0};
}

int columns_reserve(struct columns *c, uint32_t words)
{
    columns_clear(c);
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        if (buf_reserve(&c->column[i], (size_t)words * item_bytes[i]) < 0)
            return -ENOMEM;
    }
    c->room = words;
    return 0;
}

void columns_clear(struct columns *c)
{
    c->words = 0;
    c->stamp = 0;
    for (unsigned i = 0; i < COLUMN_COUNT; i++)
        c->column[i].size = 0;
}

// Words of the LONG record at `w`, of which `left` are there; 0 when there is none.
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

// A note and its record are not parted.
static bool is_followed(const struct columns *c, const uint64_t *w, uint32_t left)
{
    uint32_t notes = 1;
    while (notes < left && notes <= HT_NOTES && c->forms[codec_tag_of(w[notes])] == RECORD_NOTE)
        notes++;
    if (notes == left || notes > HT_NOTES)
        return false;
    unsigned form = c->forms[codec_tag_of(w[notes])];
    return form <= RECORD_PLAIN || (form == RECORD_LONG && long_words(w + notes, left - notes));
}

// Moves the state over the record at `w`, which is none of the hot forms. Its words, 0 when it is no record.
static uint32_t scan_rare(const struct columns *c, const uint64_t *w, uint32_t left, struct records *r)
{
    unsigned form = c->forms[codec_tag_of(w[0])];
    if (form == RECORD_NOTE)
        return is_followed(c, w, left);
    if (form == RECORD_LONG) {
        uint32_t words = long_words(w, left);
        r->events += words && long_counts(w[0]);
        return words;
    }
    if (form == RECORD_EPOCH)
        r->state.epoch = w[0] >> CODEC_TAG_BITS;
    else if (form == RECORD_BASE)
        r->state.base = w[0] >> CODEC_TAG_BITS << CODEC_ADDRESS_SHIFT;
    return form != RECORD_BAD;
}

void columns_scan(const struct columns *c, const uint64_t *w, uint32_t n, struct records *r)
{
    uint32_t i = 0, records = 0, words;
    uint64_t events = 0;
    r->events = 0;
    while (i < n) {
        unsigned tag = codec_tag_of(w[i]), form = c->forms[tag];
        events += c->counts[tag];
        words = 1;
        if (__builtin_expect(form > RECORD_PLAIN, 0)) {
            words = scan_rare(c, w + i, n - i, r);
            if (words == 0)
                break;
        }
        i += words;
        records++;
    }
    r->words = i;
    r->records = records;
    r->events += events;
}

static void put_word(struct columns *c, uint64_t word)
{
    struct buf *b = &c->column[COLUMN_WORDS];
    put_u64(b->data + b->size, word);
    b->size += 8;
}

// As scan_rare, and stores what does not fit the block.
static uint32_t split_rare(struct columns *c, unsigned form, const uint64_t *w, uint32_t left, struct records *r)
{
    struct codec_state before = r->state;
    uint32_t words = scan_rare(c, w, left, r);
    if (words == 0)
        return 0;
    // As differences these are nearly always the same small numbers.
    if (form == RECORD_EPOCH)
        put_word(c, (r->state.epoch - before.epoch) & codec_mask(64 - CODEC_TAG_BITS));
    else if (form == RECORD_LONG)
        put_word(c, w[0] >> CODEC_BODY_AT);
    else
        put_word(c, w[0] >> CODEC_TAG_BITS);
    for (uint32_t i = 1; i < words; i++)
        put_word(c, w[i]);
    return words;
}

// Takes records until the block is full or w ends; returns the words taken. *more is false when no record follows.
static uint32_t split(struct columns *c, struct block *b, const uint64_t *w, uint32_t n, struct records *r, bool *more)
{
    uint8_t *tags = c->column[COLUMN_TAG].data + c->column[COLUMN_TAG].size;
    uint32_t i = 0, k = 0, stamps = 0, at[2] = {0};
    uint64_t base = r->state.base >> CODEC_ADDRESS_SHIFT, events = 0;
    while (i < n && k < BLOCK) {
        uint64_t word = w[i];
        unsigned tag = codec_tag_of(word), form = c->forms[tag];
        uint32_t words = 1;
        if (__builtin_expect(form > RECORD_PLAIN, 0)) {
            words = split_rare(c, form, w + i, n - i, r);
            if (words == 0) {
                *more = false;
                break;
            }
            base = r->state.base >> CODEC_ADDRESS_SHIFT;
            b->stamps[stamps] = (uint16_t)(word >> CODEC_STAMP_AT);
            stamps += form == RECORD_LONG;
        } else {
            b->stamps[stamps++] = (uint16_t)(word >> CODEC_STAMP_AT);
            b->sized[at[0]] = word >> CODEC_BODY_AT;
            b->plain[at[1]] = (word >> CODEC_BODY_AT) - base;
            at[0] += form == RECORD_SIZED;
            at[1] += form == RECORD_PLAIN;
            events += c->counts[tag];
        }
        tags[k++] = (uint8_t)tag;
        i += words;
    }
    c->column[COLUMN_TAG].size += k;
    b->records = k;
    b->n_stamps = stamps;
    b->n_sized = at[0];
    b->n_plain = at[1];
    r->events += events;
    return i;
}

static uint8_t *extend(struct columns *c, unsigned column, uint32_t n)
{
    struct buf *b = &c->column[column];
    uint8_t *at = b->data + b->size;
    b->size += n;
    return at;
}

static void put_planes(struct columns *c, unsigned column, unsigned planes, const uint64_t *v, uint32_t n)
{
    for (unsigned p = 0; p < planes; p++) {
        uint8_t *restrict to = extend(c, column + p, n);
        for (uint32_t i = 0; i < n; i++)
            to[i] = (uint8_t)(v[i] >> (8 * p));
    }
}

static void put_stamps(struct columns *c, const uint16_t *stamps, uint32_t n)
{
    if (n == 0)
        return;
    uint8_t *restrict low = extend(c, COLUMN_STAMP, n), *restrict high = extend(c, COLUMN_STAMP + 1, n);
    uint16_t before = (uint16_t)c->stamp, mask = (uint16_t)codec_mask(CODEC_STAMP_BITS);
    uint16_t d = (uint16_t)(stamps[0] - before) & mask;
    low[0] = (uint8_t)d;
    high[0] = (uint8_t)(d >> 8);
    for (uint32_t i = 1; i < n; i++) {
        d = (uint16_t)(stamps[i] - stamps[i - 1]) & mask;
        low[i] = (uint8_t)d;
        high[i] = (uint8_t)(d >> 8);
    }
    c->stamp = stamps[n - 1];
}

void columns_put(struct columns *c, const uint64_t *w, uint32_t n, struct records *r)
{
    struct block b;
    bool more = true;
    r->words = r->records = 0;
    r->events = 0;
    while (more && r->words < n) {
        r->words += split(c, &b, w + r->words, n - r->words, r, &more);
        r->records += b.records;
        put_stamps(c, b.stamps, b.n_stamps);
        put_planes(c, COLUMN_SIZE, 6, b.sized, b.n_sized);
        put_planes(c, COLUMN_PTR, 6, b.plain, b.n_plain);
    }
    c->words += r->words;
}

int columns_finish(const struct columns *c, struct buf *payload, struct frame_part *parts)
{
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        uint8_t length[4];
        put_u32(length, (uint32_t)c->column[i].size);
        if (buf_put(payload, length, sizeof length) < 0)
            return -ENOMEM;
        parts[i] = (struct frame_part){c->column[i].data, c->column[i].size, i == COLUMN_STAMP};
    }
    return 0;
}

bool columns_open(struct columns_source *src, const uint8_t *at, size_t n)
{
    *src = (struct columns_source){0};
    if (n < 4 * COLUMN_COUNT)
        return false;
    const uint8_t *p = at + 4 * COLUMN_COUNT;
    size_t left = n - 4 * COLUMN_COUNT;
    for (unsigned i = 0; i < COLUMN_COUNT; i++) {
        uint32_t bytes = get_u32(at + 4 * i);
        if (bytes > left || bytes % item_bytes[i])
            return false;
        src->column[i] = p;
        src->left[i] = bytes / item_bytes[i];
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

// Counts of a block of tags, and whether all its columns have that many; the columns move on in get_*.
static bool count_block(const struct columns *c, const struct columns_source *src, struct block *b)
{
    uint32_t n[RECORD_BAD + 1] = {0};
    const uint8_t *tags = src->column[COLUMN_TAG];
    if (src->left[COLUMN_TAG] < b->records)
        return false;
    for (uint32_t i = 0; i < b->records; i++) {
        if (tags[i] >> CODEC_TAG_BITS)
            return false;
        n[c->forms[tags[i]]]++;
    }
    b->n_sized = n[RECORD_SIZED];
    b->n_plain = n[RECORD_PLAIN];
    b->n_notes = n[RECORD_NOTE];
    b->n_stamps = b->n_sized + b->n_plain + n[RECORD_LONG];
    bool all = n[RECORD_BAD] == 0;
    for (unsigned i = COLUMN_STAMP; i < COLUMN_WORDS; i++)
        all &= src->left[i] >= (i < COLUMN_SIZE ? b->n_stamps : i < COLUMN_PTR ? b->n_sized : b->n_plain);
    return all;
}

static const uint8_t *take(struct columns_source *src, unsigned column, uint32_t n)
{
    const uint8_t *at = src->column[column];
    src->column[column] += n * item_bytes[column];
    src->left[column] -= n;
    return at;
}

static void get_planes(struct columns_source *src, unsigned column, uint64_t *restrict v, uint32_t n)
{
    const uint8_t *p[6];
    for (unsigned i = 0; i < 6; i++)
        p[i] = take(src, column + i, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t low = p[0][i] | (uint32_t)p[1][i] << 8 | (uint32_t)p[2][i] << 16 | (uint32_t)p[3][i] << 24;
        v[i] = low | (uint64_t)(p[4][i] | (uint32_t)p[5][i] << 8) << 32;
    }
}

static void get_stamps(struct columns_source *src, struct block *b)
{
    const uint8_t *low = take(src, COLUMN_STAMP, b->n_stamps), *high = take(src, COLUMN_STAMP + 1, b->n_stamps);
    uint32_t stamp = src->stamp;
    for (uint32_t i = 0; i < b->n_stamps; i++) {
        stamp += low[i] | (uint32_t)high[i] << 8;
        b->stamps[i] = (uint16_t)(stamp & codec_mask(CODEC_STAMP_BITS));
    }
    src->stamp = stamp;
}

// Puts an EPOCH, BASE or LONG record or a note to `to`, which has room for `room` words. Its words, 0 when it is none.
static uint32_t merge_rare(const struct columns *c, struct columns_source *src, unsigned tag, uint64_t *to,
                           uint32_t room, struct records *r)
{
    unsigned form = c->forms[tag];
    if (src->left[COLUMN_WORDS] == 0 || room == 0)
        return 0;
    uint64_t word = get_u64(take(src, COLUMN_WORDS, 1));
    if (form == RECORD_EPOCH)
        to[0] = codec_epoch_record(r->state.epoch + word);
    else if (form == RECORD_LONG)
        to[0] = CODEC_TAG_LONG | word << CODEC_BODY_AT;
    else
        to[0] = tag | word << CODEC_TAG_BITS;
    if (form == RECORD_NOTE)
        return 1; // columns_get looks at what follows
    uint32_t words = codec_record_words(to[0]);
    if (words > room || words - 1 > src->left[COLUMN_WORDS])
        return 0;
    memcpy(to + 1, take(src, COLUMN_WORDS, words - 1), 8 * (words - 1));
    return scan_rare(c, to, words, r);
}

// The words of a block whose columns are expanded; 0 when it holds a wrong record.
static uint32_t merge(const struct columns *c, struct columns_source *src, const struct block *b, uint64_t *to,
                      uint32_t room, struct records *r)
{
    const uint8_t *tags = take(src, COLUMN_TAG, b->records);
    const uint64_t *body[2] = {b->sized, b->plain};
    uint64_t base[2] = {0, r->state.base >> CODEC_ADDRESS_SHIFT};
    const uint16_t *stamp = b->stamps;
    uint32_t at = 0;
    for (uint32_t i = 0; i < b->records; i++) {
        unsigned tag = tags[i], form = c->forms[tag];
        uint32_t words = 1;
        if (__builtin_expect(form > RECORD_PLAIN, 0)) {
            words = merge_rare(c, src, tag, to + at, room - at, r);
            if (words == 0)
                return 0;
            base[RECORD_PLAIN] = r->state.base >> CODEC_ADDRESS_SHIFT;
            if (form == RECORD_LONG)
                to[at] |= (uint64_t)*stamp++ << CODEC_STAMP_AT;
        } else {
            if (at == room)
                return 0;
            to[at] = tag | (uint64_t)*stamp++ << CODEC_STAMP_AT | (*body[form]++ + base[form]) << CODEC_BODY_AT;
            r->events += c->counts[tag];
        }
        at += words;
    }
    return at;
}

// Is each note followed by its record?
static bool notes_are_good(const struct columns *c, const struct records *r, const uint64_t *words)
{
    struct records all = {.state = r->state};
    columns_scan(c, words, r->words, &all);
    return all.words == r->words;
}

bool columns_get(const struct columns *c, struct columns_source *src, struct records *r, uint64_t *words)
{
    struct block b;
    uint32_t done = 0, at = 0, notes = 0;
    r->events = 0;
    while (done < r->records) {
        b.records = r->records - done < BLOCK ? r->records - done : BLOCK;
        if (!count_block(c, src, &b))
            return false;
        get_stamps(src, &b);
        get_planes(src, COLUMN_SIZE, b.sized, b.n_sized);
        get_planes(src, COLUMN_PTR, b.plain, b.n_plain);
        uint32_t got = merge(c, src, &b, words + at, r->words - at, r);
        if (got == 0)
            return false;
        at += got;
        done += b.records;
        notes += b.n_notes;
    }
    return at == r->words && (!notes || notes_are_good(c, r, words));
}
