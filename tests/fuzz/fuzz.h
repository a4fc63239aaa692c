// What the fuzz targets share. A target is a function as libFuzzer wants it; fuzz_main.c calls it with files instead
// (CONTRIBUTING.md says how to fuzz).
#ifndef HEAPTAPE_TESTS_FUZZ_H
#define HEAPTAPE_TESTS_FUZZ_H

#include "base/fio.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

// The bytes as an input, from a file in memory; to be closed.
void fuzz_input(struct input *in, const uint8_t *data, size_t n);

// A file of frames that the bytes stand for, with right checksums, so that what is in the frames is fuzzed: type (1 byte),
// length (2 bytes, little-endian), payload, as often as there is room.
void fuzz_frames(struct input *in, uint32_t magic, const uint8_t *data, size_t n);

// An output that goes nowhere.
void fuzz_output(struct output *out);

#endif
