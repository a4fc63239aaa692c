#include "transfer/digest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK = 64 };

struct digest {
    XXH3_state_t *xxh3;
    bool with_md5;
    uint32_t md5[4]; // A, B, C and D of RFC 1321
    uint64_t bytes;
    uint8_t block[BLOCK]; // bytes of the incomplete block
    uint32_t sines[BLOCK];
};

struct digest *digest_new(bool with_md5)
{
    struct digest *d = calloc(1, sizeof *d);
    if (d && !(d->xxh3 = XXH3_createState())) {
        free(d);
        return NULL;
    }
    for (int i = 0; d && i < BLOCK; i++)
        d->sines[i] = (uint32_t)(fabs(sin(i + 1)) * 4294967296.0);
    if (d) {
        d->with_md5 = with_md5;
        digest_restart(d);
    }
    return d;
}

void digest_free(struct digest *d)
{
    if (d)
        XXH3_freeState(d->xxh3);
    free(d);
}

void digest_restart(struct digest *d)
{
    XXH3_128bits_reset(d->xxh3);
    memcpy(d->md5, (uint32_t[]){0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, sizeof d->md5);
    d->bytes = 0;
}

static uint32_t rotate(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static void add_block(struct digest *d, const uint8_t *block)
{
    static const uint8_t shifts[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = d->md5[0], b = d->md5[1], c = d->md5[2], e = d->md5[3], words[16];
    for (int i = 0; i < 16; i++) {
        const uint8_t *w = block + 4 * i;
        words[i] = w[0] | (uint32_t)w[1] << 8 | (uint32_t)w[2] << 16 | (uint32_t)w[3] << 24;
    }
    for (int i = 0; i < BLOCK; i++) {
        int round = i / 16,
            at = (i * (const int[]){1, 5, 3, 7}[round] + (const int[]){0, 1, 5, 0}[round]) % 16;
        uint32_t f = round == 0   ? (b & c) | (~b & e)
                     : round == 1 ? (e & b) | (~e & c)
                     : round == 2 ? b ^ c ^ e
                                  : c ^ (b | ~e);
        uint32_t sum = rotate(a + f + d->sines[i] + words[at], shifts[round][i % 4]);
        a = e;
        e = c;
        c = b;
        b += sum;
    }
    d->md5[0] += a;
    d->md5[1] += b;
    d->md5[2] += c;
    d->md5[3] += e;
}

static void add_md5(struct digest *d, const uint8_t *at, size_t n)
{
    while (n) {
        size_t used = d->bytes % BLOCK, room = BLOCK - used, part = n < room ? n : room;
        memcpy(d->block + used, at, part);
        d->bytes += part;
        at += part;
        n -= part;
        if (part == room)
            add_block(d, d->block);
    }
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
    XXH3_128bits_update(d->xxh3, bytes, n);
    if (d->with_md5)
        add_md5(d, bytes, n);
}

void digest_xxh3(const struct digest *d, char out[static DIGEST_DIGITS + 1])
{
    XXH128_hash_t h = XXH3_128bits_digest(d->xxh3);
    snprintf(out, DIGEST_DIGITS + 1, "%016llx%016llx", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
}

void digest_md5(const struct digest *d, char out[static DIGEST_DIGITS + 1])
{
    struct digest last = *d;
    uint8_t tail[BLOCK + 8] = {0x80};
    // Pad the data so that 8 bytes of the last block remain for the length in bits.
    size_t n = (BLOCK + 55 - d->bytes % BLOCK) % BLOCK + 1;
    for (int i = 0; i < 8; i++)
        tail[n + (size_t)i] = (uint8_t)(d->bytes * 8 >> 8 * i);
    add_md5(&last, tail, n + 8);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", last.md5[i / 4] >> 8 * (i % 4) & 0xff);
}
