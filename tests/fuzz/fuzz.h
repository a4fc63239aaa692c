// Shared by the fuzz targets. A target has the interface of libFuzzer; fuzz_main.c calls it with
// files instead. CONTRIBUTING.md describes fuzzing.
#pragma once

#include "base/fio.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

// Opens the bytes as an input in memory. The caller closes it.
void fuzz_input(struct input *in, const uint8_t *data, size_t n);

// Makes a file of frames with correct checksums, so that the contents of frames are fuzzed. The
// bytes are a sequence of: type (1 byte), length (2 bytes, little-endian), payload.
void fuzz_frames(struct input *in, uint32_t magic, const uint8_t *data, size_t n);

// Opens an output to /dev/null.
void fuzz_output(struct output *out);
