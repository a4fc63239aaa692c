// Digests of uploaded bytes, to compare with the digests that servers return.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Response header of `receive`. The value is the XXH3-128 of the stored file in 32 hexadecimal
// digits.
#define DIGEST_HEADER "Heaptape-XXH3-128"

enum { DIGEST_DIGITS = 32 };

struct digest; // XXH3-128 and optionally MD5

// Creates a digest of zero bytes. Returns NULL when out of memory.
struct digest *digest_new(bool with_md5);
void digest_free(struct digest *d);

void digest_restart(struct digest *d);
void digest_add(struct digest *d, const void *bytes, size_t n);

// Write the digest of all added bytes in lower-case hexadecimal digits.
void digest_xxh3(const struct digest *d, char out[static DIGEST_DIGITS + 1]);
void digest_md5(const struct digest *d, char out[static DIGEST_DIGITS + 1]);
