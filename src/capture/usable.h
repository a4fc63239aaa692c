// How many bytes can be used of a block, for `heaptape record --usable`.
#ifndef HEAPTAPE_CAPTURE_USABLE_H
#define HEAPTAPE_CAPTURE_USABLE_H

// Tells the producer how to find it out, once the allocator is known.
void usable_start(void);

#endif
