// Shared by frame.c and frame_write.c.
#pragma once

// Byte offsets in a header: docs/reference/trace-format.md.
enum {
    AT_MAGIC = 0,
    AT_TYPE = 4,
    AT_CODEC = 5,
    AT_VERSION = 6,
    AT_STORED = 8,
    AT_RAW = 12,
    AT_SEQUENCE = 16,
    AT_PAYLOAD_HASH = 24,
    AT_HEADER_HASH = 32,
};
