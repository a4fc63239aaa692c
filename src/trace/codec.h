// Records: the words that a thread writes for each event. The functions are inline and do not
// allocate, because the capture library uses them too. Layout: docs/reference/trace-format.md,
// "Records".
//
//   bits     0-4   5-18    19-34   35-63
//   SIZED    tag   stamp   size    (address - base) / 8, 29 bits
//   PLAIN    tag   stamp   address / 8, 45 bits
//   EPOCH    tag   epoch: bits of the stamp above the 14 in each record, 59 bits
//   BASE     tag   base / 8, 59 bits
//   LONG     tag   stamp   kind 19-26, words 27-34, error 35-42, text bytes 43-53; then the words
//   NOTE     tag   value of the next record, 59 bits
#pragma once

#include "trace/event/event.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum codec_tag {
    // A word that was never written. If a thread was killed, its stream ends at such a word.
    CODEC_TAG_HOLE = 0,
    CODEC_TAG_EPOCH = 1,
    CODEC_TAG_BASE = 2,
    CODEC_TAG_LONG = 3,
    // Tags 4 to 26 are one-word records: the tag is the wire number of the event kind. Tags from
    // HT_FIRST_NOTE are notes.
};

enum {
    CODEC_TAG_BITS = 5,
    CODEC_STAMP_BITS = 14,
    CODEC_SIZE_BITS = 16,
    CODEC_REL_BITS = 29,
    CODEC_PTR_BITS = 45,
    CODEC_STAMP_AT = CODEC_TAG_BITS,
    CODEC_BODY_AT = CODEC_STAMP_AT + CODEC_STAMP_BITS,
    CODEC_REL_AT = CODEC_BODY_AT + CODEC_SIZE_BITS,
    CODEC_NOTE_BITS = 64 - CODEC_TAG_BITS,
    // Addresses are in units of 8 bytes, the smallest alignment of jemalloc and tcmalloc.
    CODEC_ADDRESS_SHIFT = 3,

    // Unit of stamps: 2^4 ticks (6 ns at 2.6 GHz). A finer unit would need more space and exceed
    // the precision of rdtsc without a fence.
    CODEC_STAMP_SHIFT = 4,

    CODEC_LOWEST_BASE = 4096, // no block has a lower address

    CODEC_LONG_KIND_AT = 19,
    CODEC_LONG_WORDS_AT = 27,
    CODEC_LONG_ERROR_AT = 35,
    CODEC_LONG_TEXT_AT = 43,
    CODEC_MAX_TEXT_BYTES = 1024,
    CODEC_MAX_LONG_WORDS =
        1 + 6 + CODEC_MAX_TEXT_BYTES / 8,  // head, numbers and text of the longest record
    CODEC_MAX_PREFIX_WORDS = 2 + HT_NOTES, // the EPOCH, BASE and notes that precede a record
    CODEC_MAX_RECORD_WORDS = HT_NOTES + CODEC_MAX_LONG_WORDS, // the longest record with its notes
};

_Static_assert(CODEC_REL_AT + CODEC_REL_BITS == 64, "a SIZED record is one word");
_Static_assert(CODEC_BODY_AT + CODEC_PTR_BITS == 64, "a PLAIN record is one word");
_Static_assert(HT_FIRST_NOTE + HT_NOTES == 1 << CODEC_TAG_BITS, "notes have the last tags");
_Static_assert(CODEC_MAX_LONG_WORDS <= 255, "the word count has 8 bits");

static inline uint64_t codec_mask(unsigned bits)
{
    return (1ull << bits) - 1;
}

// Returns the address as a 29-bit field. If the address is below the base, too far above the base,
// or not a multiple of 8, the result is 2^29 or more, because the rotation moves the low bits to
// the top.
static inline uint64_t codec_relative(uint64_t address, uint64_t base)
{
    uint64_t d = address - base;
    return d >> CODEC_ADDRESS_SHIFT | d << (64 - CODEC_ADDRESS_SHIFT);
}

static inline uint64_t codec_epoch_of_ticks(uint64_t ticks)
{
    return ticks >> (CODEC_STAMP_SHIFT + CODEC_STAMP_BITS);
}

static inline uint64_t codec_epoch(uint64_t stamp)
{
    return stamp >> CODEC_STAMP_BITS;
}

// Encodes a SIZED record. Requires that `size` and `rel` fit, and that the stamp is in the current
// epoch.
static inline uint64_t codec_sized(unsigned tag, uint64_t stamp, uint64_t size, uint64_t rel)
{
    return tag | (stamp & codec_mask(CODEC_STAMP_BITS)) << CODEC_STAMP_AT | size << CODEC_BODY_AT |
           rel << CODEC_REL_AT;
}

// Encodes a PLAIN record. Requires an address that is below 2^48 and a multiple of 8.
static inline uint64_t codec_plain(unsigned tag, uint64_t stamp, uint64_t address)
{
    return tag | (stamp & codec_mask(CODEC_STAMP_BITS)) << CODEC_STAMP_AT |
           address << (CODEC_BODY_AT - CODEC_ADDRESS_SHIFT);
}

static inline uint64_t codec_epoch_record(uint64_t epoch)
{
    return CODEC_TAG_EPOCH | epoch << CODEC_TAG_BITS;
}

static inline uint64_t codec_base_record(uint64_t base)
{
    return CODEC_TAG_BASE | base >> CODEC_ADDRESS_SHIFT << CODEC_TAG_BITS;
}

// Encodes a note. Requires a value below 2^59.
static inline uint64_t codec_note(enum event_note note, uint64_t value)
{
    return (HT_FIRST_NOTE + (unsigned)note) | value << CODEC_TAG_BITS;
}

// Returns the number of words in this event's LONG record, including the head.
static inline unsigned codec_long_words(const struct event *ev)
{
    unsigned fields = event_infos[ev->kind].fields & ~HT_F_TEXT;
    return 1 + (unsigned)__builtin_popcount(fields) + (ev->text_bytes + 7) / 8;
}

// Writes a LONG record, which can hold any kind, any values and up to CODEC_MAX_TEXT_BYTES bytes of
// text. Returns the number of words. Requires a stamp in the current epoch; ignores ev->stamp.
static inline unsigned codec_put_long_at(uint64_t *w, uint64_t stamp, const struct event *ev)
{
    unsigned fields = event_infos[ev->kind].fields, n = 1;
    const uint64_t values[] = {ev->ptr, ev->size, ev->count, ev->align, ev->result, ev->value};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        if (fields >> i & 1)
            w[n++] = values[i];
    }
    if (ev->text_bytes) {
        unsigned text_words = (ev->text_bytes + 7) / 8;
        w[n + text_words - 1] = 0;
        memcpy(w + n, ev->text, ev->text_bytes);
        n += text_words;
    }
    w[0] = CODEC_TAG_LONG | (stamp & codec_mask(CODEC_STAMP_BITS)) << CODEC_STAMP_AT |
           (uint64_t)ev->kind << CODEC_LONG_KIND_AT | (uint64_t)(n - 1) << CODEC_LONG_WORDS_AT |
           (uint64_t)ev->error << CODEC_LONG_ERROR_AT |
           (uint64_t)ev->text_bytes << CODEC_LONG_TEXT_AT;
    return n;
}

static inline unsigned codec_put_long(uint64_t *w, const struct event *ev)
{
    return codec_put_long_at(w, ev->stamp, ev);
}

// The number of a call site identifies its whole stack: it is a hash of the return address and of
// `outer`, the number of the caller's call site. For the outermost frame, `outer` is a generation.
#define CODEC_SITE_FACTOR 0xd6e8feb86659fd93u

// All generations are below this number. A generation counts how often the process's code was
// replaced with other code at the same address. Equal addresses before and after a replacement
// therefore belong to different sites.
#define CODEC_GENERATIONS 4096u
static inline uint64_t codec_site(uint64_t outer, uint64_t address)
{
    return (outer * CODEC_SITE_FACTOR + address) & codec_mask(CODEC_NOTE_BITS);
}

// Script functions have no machine code, so their addresses are in this range, where no program
// maps code. A function's address is a hash of its name, source file and line. An HT_MODULE record
// of one byte at the address stores the name, file and line: `value` is the line, and `text` is
// CODEC_SCRIPT_TEXT, the function, NUL, the source file.
#define CODEC_SCRIPT_START (1ull << 46)
#define CODEC_SCRIPT_BYTES (1ull << 44)
#define CODEC_SCRIPT_TEXT  "python "

static inline bool codec_is_script(uint64_t address)
{
    return address - CODEC_SCRIPT_START <= CODEC_SCRIPT_BYTES;
}

// Encoding state of a stream. Each segment of a trace stores the state before its first record.
struct codec_state {
    uint64_t epoch;
    uint64_t base; // address, a multiple of 8
};

// Returns the base of a 4 GiB window that is centered on the address, because heaps grow in both
// directions. A base is never 0, so NULL is never in the window.
static inline uint64_t codec_base_for(uint64_t address)
{
    const uint64_t half = 1ull << (CODEC_REL_BITS + CODEC_ADDRESS_SHIFT - 1);
    return address > half + CODEC_LOWEST_BASE ? (address - half) & ~7ull : CODEC_LOWEST_BASE;
}

// Moves the base if the address is outside the window of the base. Returns false if a SIZED record
// cannot hold the address.
static inline bool codec_put_base(struct codec_state *st, uint64_t **w, uint64_t address)
{
    if (address && codec_relative(address, st->base) >> CODEC_REL_BITS == 0)
        return true;
    if (address < CODEC_LOWEST_BASE || codec_relative(address, 0) >> CODEC_PTR_BITS)
        return false;
    st->base = codec_base_for(address);
    *(*w)++ = codec_base_record(st->base);
    return true;
}

static inline uint64_t *codec_put_notes(uint64_t *w, const struct event *ev)
{
    for (unsigned i = 0; i < HT_NOTES; i++) {
        if (ev->notes[i] && ev->notes[i] >> CODEC_NOTE_BITS == 0)
            *w++ = codec_note((enum event_note)i, ev->notes[i]);
    }
    return w;
}

// Returns true if a SIZED calloc can hold this count. Any count other than 1 needs a note.
static inline bool codec_count_fits(uint64_t count)
{
    return count && count >> CODEC_NOTE_BITS == 0;
}

// Writes the event in the shortest form, after the necessary EPOCH, BASE and notes, and updates the
// state. Requires space for codec_long_words(ev) + CODEC_MAX_PREFIX_WORDS words. Returns the end of
// the written words. Ignores ev->stamp.
static inline uint64_t *codec_put(struct codec_state *st, uint64_t *w, uint64_t stamp,
                                  const struct event *ev)
{
    const struct event_info *info = &event_infos[ev->kind];
    if (codec_epoch(stamp) != st->epoch) {
        st->epoch = codec_epoch(stamp);
        *w++ = codec_epoch_record(st->epoch);
    }
    if (info->form == HT_FORM_PLAIN && !ev->error &&
        codec_relative(ev->ptr, 0) >> CODEC_PTR_BITS == 0) {
        w = codec_put_notes(w, ev);
        *w++ = codec_plain(ev->kind, stamp, ev->ptr);
        return w;
    }
    uint64_t address = info->class == HT_CLASS_FREE ? ev->ptr : ev->result;
    if (info->form == HT_FORM_SIZED && !ev->error && ev->size >> CODEC_SIZE_BITS == 0 &&
        (ev->kind != HT_CALLOC || codec_count_fits(ev->count)) && codec_put_base(st, &w, address)) {
        w = codec_put_notes(w, ev);
        if (ev->kind == HT_CALLOC && ev->count != 1)
            *w++ = codec_note(HT_NOTE_COUNT, ev->count);
        *w++ = codec_sized(ev->kind, stamp, ev->size, codec_relative(address, st->base));
        return w;
    }
    w = codec_put_notes(w, ev);
    return w + codec_put_long_at(w, stamp, ev);
}

static inline unsigned codec_tag_of(uint64_t word)
{
    return word & codec_mask(CODEC_TAG_BITS);
}

// Returns the stamp of a record other than EPOCH and BASE.
static inline uint64_t codec_stamp(uint64_t epoch, uint64_t word)
{
    return epoch << CODEC_STAMP_BITS | (word >> CODEC_STAMP_AT & codec_mask(CODEC_STAMP_BITS));
}

// Returns the number of words in the record that starts with `word`, from 1 to 256. A note is a
// record of one word.
static inline unsigned codec_record_words(uint64_t word)
{
    return codec_tag_of(word) == CODEC_TAG_LONG ? 1 + (word >> CODEC_LONG_WORDS_AT & 0xff) : 1;
}

// Decodes the notes that precede a record. Returns their number, or -1 if no record follows.
static inline int codec_get_notes(const uint64_t *w, uint64_t left, struct event *ev)
{
    int n = 0;
    while (codec_tag_of(w[n]) >= HT_FIRST_NOTE) {
        if (n == HT_NOTES || (uint64_t)n + 1 >= left)
            return -1;
        ev->notes[codec_tag_of(w[n]) - HT_FIRST_NOTE] = w[n] >> CODEC_TAG_BITS;
        n++;
    }
    unsigned tag = codec_tag_of(w[n]);
    return n && (tag == CODEC_TAG_EPOCH || tag == CODEC_TAG_BASE) ? -1 : n;
}

static inline bool codec_get_long(const uint64_t *w, unsigned words, struct event *ev)
{
    unsigned fields = event_infos[ev->kind].fields, n = 1;
    unsigned text_bytes = w[0] >> CODEC_LONG_TEXT_AT & 0x7ff;
    if (!event_infos[ev->kind].name ||
        words != 1 + (unsigned)__builtin_popcount(fields & ~HT_F_TEXT) + (text_bytes + 7) / 8 ||
        text_bytes > CODEC_MAX_TEXT_BYTES || (text_bytes && !(fields & HT_F_TEXT)))
        return false;
    uint64_t *const values[] = {&ev->ptr,   &ev->size,   &ev->count,
                                &ev->align, &ev->result, &ev->value};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        if (fields >> i & 1)
            *values[i] = w[n++];
    }
    ev->error = (uint8_t)(w[0] >> CODEC_LONG_ERROR_AT);
    ev->text = text_bytes ? (const char *)(w + n) : NULL;
    ev->text_bytes = text_bytes;
    return true;
}

// Decodes the record at `w` and its notes; `left` words are available. Returns the number of words
// and fills in *ev. For EPOCH and BASE, which only change the state, sets ev->kind to 0. Returns 0
// if the words are corrupt or truncated.
static inline unsigned codec_get(struct codec_state *st, const uint64_t *w, uint64_t left,
                                 struct event *ev)
{
    if (left == 0)
        return 0;
    *ev = (struct event){0};
    unsigned notes = 0;
    uint64_t count = 1;
    if (codec_tag_of(w[0]) >= HT_FIRST_NOTE) {
        int n = codec_get_notes(w, left, ev);
        if (n < 0)
            return 0;
        notes = (unsigned)n;
        count = ev->notes[HT_NOTE_COUNT] ? ev->notes[HT_NOTE_COUNT] : 1;
        ev->notes[HT_NOTE_COUNT] = 0;
    }
    uint64_t word = w[notes];
    unsigned tag = codec_tag_of(word), words = codec_record_words(word);
    if (words > left - notes)
        return 0;
    if (tag == CODEC_TAG_EPOCH) {
        st->epoch = word >> CODEC_TAG_BITS;
        return 1;
    }
    if (tag == CODEC_TAG_BASE) {
        st->base = word >> CODEC_TAG_BITS << CODEC_ADDRESS_SHIFT;
        return 1;
    }
    ev->stamp = codec_stamp(st->epoch, word);
    if (tag == CODEC_TAG_LONG) {
        ev->kind = (uint8_t)(word >> CODEC_LONG_KIND_AT);
        return codec_get_long(w + notes, words, ev) ? notes + words : 0;
    }
    ev->kind = (uint8_t)tag;
    const struct event_info *info = &event_infos[tag];
    if (info->form == HT_FORM_PLAIN) {
        ev->ptr = word >> CODEC_BODY_AT << CODEC_ADDRESS_SHIFT;
        return notes + 1;
    }
    if (info->form != HT_FORM_SIZED)
        return 0;
    ev->size = word >> CODEC_BODY_AT & codec_mask(CODEC_SIZE_BITS);
    uint64_t address = st->base + (word >> CODEC_REL_AT << CODEC_ADDRESS_SHIFT);
    if (info->class == HT_CLASS_FREE)
        ev->ptr = address;
    else
        ev->result = address;
    if (tag == HT_CALLOC)
        ev->count = count;
    return notes + 1;
}
