// The layout of the Common Trace Format's files as heaptape writes them: the text that describes it, and the bytes.
#ifndef HEAPTAPE_FORMATS_CTF_METADATA_H
#define HEAPTAPE_FORMATS_CTF_METADATA_H

#include "base/buf.h"
#include "event/event.h"

enum {
    CTF_PACKET_HEADER_BYTES = 4 + 4 + 8 * 4 + 4 * 2,
    CTF_EVENT_MAX_BYTES = 1 + 8 + 6 * 8 + 1 + 1024 + 1, // of a text that the trace may hold
};

// Appends the metadata. `realtime_ns`: CLOCK_REALTIME at stamp 0, 0 when unknown. 0 or -ENOMEM.
int ctf_metadata(struct buf *to, uint64_t realtime_ns);

struct ctf_packet {
    uint64_t begin_ns, end_ns; // of its events
    uint64_t bytes;            // with its header
    uint32_t pid, tid;
};

// Fills in the CTF_PACKET_HEADER_BYTES at `to`.
void ctf_packet_header(uint8_t *to, const struct ctf_packet *p);

// Puts the event, whose stamp is in ns. Returns how many bytes it took, at most CTF_EVENT_MAX_BYTES.
size_t ctf_event(uint8_t *to, const struct event *ev);

#endif
