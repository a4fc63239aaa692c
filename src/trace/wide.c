#include "trace/wide.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { GROUP = 8, PLANES = 6, BODY_BITS = 64 - CODEC_BODY_AT };

bool wide_is_supported(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

// Returns a mask of the tags that are in the bit set.
WIDE static inline __mmask8 in_set(uint32_t set, __m512i tags)
{
    return _mm512_test_epi64_mask(_mm512_srlv_epi64(_mm512_set1_epi64(set), tags),
                                  _mm512_set1_epi64(1));
}

WIDE uint32_t wide_count(const struct columns *c, const uint64_t *w, uint32_t n, uint64_t *events)
{
    const __m512i low = _mm512_set1_epi64((1 << CODEC_TAG_BITS) - 1);
    uint32_t i = 0;
    for (; n - i >= GROUP; i += GROUP) {
        __m512i tags = _mm512_and_si512(_mm512_loadu_si512(w + i), low);
        if (in_set(c->hot, tags) != 0xff)
            break;
        *events += (unsigned)__builtin_popcount(in_set(c->counted, tags));
    }
    return i;
}

WIDE uint32_t wide_split(const struct columns *c, const uint64_t *w, uint32_t n,
                         struct wide_split *to)
{
    const __m512i low = _mm512_set1_epi64((1 << CODEC_TAG_BITS) - 1),
                  stamp = _mm512_set1_epi64((1 << CODEC_STAMP_BITS) - 1),
                  base = _mm512_set1_epi64((long long)to->base);
    struct wide_split at = *to;
    uint32_t i = 0;
    for (; n - i >= GROUP; i += GROUP) {
        __m512i words = _mm512_loadu_si512(w + i), tags = _mm512_and_si512(words, low);
        if (in_set(c->hot, tags) != 0xff)
            break;
        __mmask8 sized = in_set(c->sized, tags), plain = (__mmask8)~sized;
        __m512i stamps = _mm512_and_si512(_mm512_srli_epi64(words, CODEC_STAMP_AT), stamp);
        _mm_storel_epi64((__m128i *)(at.tags + i), _mm512_cvtepi64_epi8(tags));
        _mm_storeu_si128((__m128i *)(at.stamps + i), _mm512_cvtepi64_epi16(stamps));
        _mm512_storeu_si512(at.sized, _mm512_maskz_compress_epi64(sized, words));
        _mm512_storeu_si512(at.plain,
                            _mm512_maskz_compress_epi64(plain, _mm512_sub_epi64(words, base)));
        at.sized += __builtin_popcount(sized);
        at.plain += __builtin_popcount(plain);
        at.events += (unsigned)__builtin_popcount(in_set(c->counted, tags));
    }
    *to = at;
    return i;
}

// Like interleave_halves of columns.c, but for each 16-byte lane of the vectors.
WIDE static inline void interleave_halves(__m512i *a)
{
    __m512i b[8];
    for (unsigned i = 0; i < 4; i++) {
        b[2 * i] = _mm512_unpacklo_epi8(a[i], a[i + 4]);
        b[2 * i + 1] = _mm512_unpackhi_epi8(a[i], a[i + 4]);
    }
    memcpy(a, b, sizeof b);
}

// Returns the indexes that transpose 32 pairs of bytes from columns of `rows` pairs.
WIDE static inline __m512i transpose_pairs(unsigned rows)
{
    uint16_t pairs[32];
    for (unsigned k = 0; k < 32; k++)
        pairs[k] = (uint16_t)(k % rows * (32 / rows) + k / rows);
    return _mm512_loadu_si512(pairs);
}

WIDE uint32_t wide_planes(uint8_t *const *to, const uint64_t *w, uint32_t n, unsigned at)
{
    const __m512i below = _mm512_set1_epi64((1ll << at) - 1);
    const __m512i order = transpose_pairs(4);
    uint32_t i = 0;
    for (; n - i >= 64; i += 64) {
        __m512i a[8];
        for (unsigned k = 0; k < 8; k++) {
            __m512i body = _mm512_srli_epi64(_mm512_loadu_si512(w + i + 8 * k), CODEC_BODY_AT),
                    upper = _mm512_srli_epi64(body, at), top = _mm512_slli_epi64(upper, 63);
            upper = _mm512_slli_epi64(_mm512_srli_epi64(upper, 1), at);
            a[k] = _mm512_or_si512(_mm512_and_si512(body, below),
                                   _mm512_or_si512(upper, _mm512_srli_epi64(top, 64 - BODY_BITS)));
        }
        for (unsigned k = 0; k < 4; k++)
            interleave_halves(a);
        // Vector p holds byte p of all words, but out of order: each 16-byte lane holds every
        // fourth pair of bytes.
        for (unsigned p = 0; p < PLANES; p++)
            _mm512_storeu_si512(to[p] + i, _mm512_permutexvar_epi16(order, a[p]));
    }
    return i;
}

WIDE uint32_t wide_words(const uint8_t *const *from, uint64_t *to, uint32_t n, unsigned at)
{
    const __m512i below = _mm512_set1_epi64((1ll << at) - 1),
                  body = _mm512_set1_epi64((1ll << BODY_BITS) - 1);
    const __m512i order = transpose_pairs(8);
    uint32_t i = 0;
    for (; n - i >= 64; i += 64) {
        __m512i a[8] = {0};
        for (unsigned p = 0; p < PLANES; p++)
            a[p] = _mm512_permutexvar_epi16(order, _mm512_loadu_si512(from[p] + i));
        for (unsigned k = 0; k < 3; k++)
            interleave_halves(a);
        for (unsigned k = 0; k < 8; k++) {
            __m512i address = _mm512_srli_epi64(_mm512_and_si512(a[k], body), at);
            address = _mm512_or_si512(_mm512_slli_epi64(address, 1),
                                      _mm512_srli_epi64(address, BODY_BITS - 1 - at));
            _mm512_storeu_si512(to + i + 8 * k, _mm512_or_si512(_mm512_and_si512(a[k], below),
                                                                _mm512_slli_epi64(address, at)));
        }
    }
    return i;
}

// Returns the tags of a group, extended to words.
WIDE static inline __m512i group_tags(const uint8_t *tags)
{
    __m512i words = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)tags));
    return _mm512_and_si512(words, _mm512_set1_epi64((1 << CODEC_TAG_BITS) - 1));
}

WIDE uint32_t wide_merge(const struct columns *c, const uint8_t *tags, const uint16_t *stamps,
                         struct wide_bodies *b, uint64_t *to)
{
    const __m512i base = _mm512_set1_epi64((long long)b->base[COLUMNS_PLAIN]);
    struct wide_bodies from = *b;
    uint32_t i = 0;
    for (; from.left - i >= GROUP; i += GROUP) {
        __m512i group = group_tags(tags + i);
        if (in_set(c->hot, group) != 0xff)
            break;
        __mmask8 sized = in_set(c->sized, group), plain = (__mmask8)~sized;
        __m512i stamp = _mm512_cvtepu16_epi64(
                    _mm_loadu_si128((const __m128i *)(const void *)(stamps + i))),
                bodies =
                    _mm512_maskz_expand_epi64(sized, _mm512_loadu_si512(from.at[COLUMNS_SIZED]));
        bodies = _mm512_mask_expand_epi64(
            bodies, plain, _mm512_add_epi64(_mm512_loadu_si512(from.at[COLUMNS_PLAIN]), base));
        bodies = _mm512_or_si512(_mm512_slli_epi64(bodies, CODEC_BODY_AT),
                                 _mm512_slli_epi64(stamp, CODEC_STAMP_AT));
        _mm512_storeu_si512(to + i, _mm512_or_si512(bodies, group));
        from.at[COLUMNS_SIZED] += __builtin_popcount(sized);
        from.at[COLUMNS_PLAIN] += __builtin_popcount(plain);
    }
    *b = from;
    return i;
}

#else

bool wide_is_supported(void)
{
    return false;
}

uint32_t wide_count(const struct columns *c, const uint64_t *w, uint32_t n, uint64_t *events)
{
    (void)c, (void)w, (void)n, (void)events;
    return 0;
}

uint32_t wide_split(const struct columns *c, const uint64_t *w, uint32_t n, struct wide_split *to)
{
    (void)c, (void)w, (void)n, (void)to;
    return 0;
}

uint32_t wide_planes(uint8_t *const *to, const uint64_t *w, uint32_t n, unsigned at)
{
    (void)to, (void)w, (void)n, (void)at;
    return 0;
}

uint32_t wide_words(const uint8_t *const *from, uint64_t *to, uint32_t n, unsigned at)
{
    (void)from, (void)to, (void)n, (void)at;
    return 0;
}

uint32_t wide_merge(const struct columns *c, const uint8_t *tags, const uint16_t *stamps,
                    struct wide_bodies *b, uint64_t *to)
{
    (void)c, (void)tags, (void)stamps, (void)b, (void)to;
    return 0;
}

#endif
