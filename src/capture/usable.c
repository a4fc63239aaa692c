#include "capture/usable.h"
#include "capture/next.h"
#include "capture/producer.h"
#include "capture/wrap_cxx.h"
#include "event/event.h"

#include <string.h>

static bool is_operator(unsigned kind)
{
    return strncmp(event_infos[kind].symbol, "_Z", 2) == 0;
}

// Only the allocator itself may be asked, and only for its own blocks.
static size_t usable(unsigned kind, void *block)
{
    if (next_is_early(block) || next_is_foreign(kind) || (is_operator(kind) && !wrap_cxx_is_malloc()))
        return 0;
    // tcmalloc's makes an object of its own at the first call.
    uint32_t was = producer_enter(PRODUCER_IN_ALLOCATOR);
    size_t size = next_usable_size(block);
    producer_leave(was);
    return size;
}

void usable_start(void)
{
    if (next_usable_size)
        producer_set_usable(usable);
}
