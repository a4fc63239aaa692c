// Digests of the bytes of an upload, for comparison with those that servers return.
#ifndef HEAPTAPE_TRANSFER_DIGEST_H
#define HEAPTAPE_TRANSFER_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Header of an answer of `receive`: the XXH3-128 of the file that it has, as 32 hexadecimal digits.
#define DIGEST_HEADER "Heaptape-XXH3-128"

enum { DIGEST_DIGITS = 32 };

struct digest; // XXH3-128 and, on request, MD5

// Returns NULL when out of memory.
struct digest *digest_new(bool with_md5);
void digest_free(struct digest *d);

void digest_restart(struct digest *d);
void digest_add(struct digest *d, const void *bytes, size_t n);

// Write the digests of all bytes that were added, in lower case.
void digest_xxh3(const struct digest *d, char out[static DIGEST_DIGITS + 1]);
void digest_md5(const struct digest *d, char out[static DIGEST_DIGITS + 1]);

#endif
