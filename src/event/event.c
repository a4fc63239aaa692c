#include "event/event.h"

#include <string.h>

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                                              \
    [wire] = {name, symbol, HT_CLASS_##class, HT_STAMP_##stamp, HT_FORM_##form, fields},
const struct event_info event_infos[HT_KIND_LIMIT] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X

#define HT_X(tag, SYMBOL, name) [HT_NOTE_##SYMBOL] = name,
const char *const event_note_names[HT_NOTES] = {HT_NOTE_TABLE(HT_X)};
#undef HT_X

int event_kind_by_name(const char *name)
{
    for (int kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].name && strcmp(event_infos[kind].name, name) == 0)
            return kind;
    }
    return -1;
}
