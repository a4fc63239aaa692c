// Decompresses LZ4 frames on the way.
#ifndef HEAPTAPE_FORMATS_UNLZ4_H
#define HEAPTAPE_FORMATS_UNLZ4_H

#include "base/fio.h"

#include <sys/types.h>

struct unlz4; // opaque

// NULL when out of memory.
struct unlz4 *unlz4_new(struct input *in);
void unlz4_free(struct unlz4 *u);

// Up to `most` bytes, at least one until the end, which gives 0. Negative errno with the text set: -EBADMSG for what is no
// frame, -ENODATA when the last one is cut off.
ssize_t unlz4_read(struct unlz4 *u, void *to, size_t most, struct err *e);

#endif
