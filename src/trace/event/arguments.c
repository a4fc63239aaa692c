// Names of arguments. Kept out of event.c, because the capture library does not use them.
#include "trace/event/event.h"

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...) [wire] = {__VA_ARGS__},
const struct event_arguments event_arguments[HT_KIND_LIMIT] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X

struct event_argument event_argument(unsigned kind, unsigned field)
{
    const struct event_arguments *own = &event_arguments[kind];
    switch (field) {
    case HT_F_SIZE:
        return own->size.name ? own->size : (struct event_argument){"size", false};
    case HT_F_COUNT:
        return own->count.name ? own->count : (struct event_argument){"count", false};
    case HT_F_ALIGN:
        return own->align.name ? own->align : (struct event_argument){"align", false};
    default:
        return own->value.name ? own->value : (struct event_argument){"value", false};
    }
}
