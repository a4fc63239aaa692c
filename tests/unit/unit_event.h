// Assertions about events with messages that name the kinds.
#pragma once

#include "trace/event/event.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static inline const char *unit_kind_name(unsigned kind)
{
    return kind == 0                                        ? "(no event)"
           : kind < HT_KIND_LIMIT && event_infos[kind].name ? event_infos[kind].name
                                                            : "(none)";
}

#define unit_assert_kind(got, want)                                                                \
    do {                                                                                           \
        unsigned got_ = (got), want_ = (want);                                                     \
        if (got_ != want_)                                                                         \
            fail_msg("kind %s (%u), expected %s (%u)", unit_kind_name(got_), got_,                 \
                     unit_kind_name(want_), want_);                                                \
    } while (0)

static inline const char *unit_event_text(char text[512], const struct event *ev)
{
    int n = snprintf(
        text, 512,
        "%s stamp=%#llx ptr=%#llx size=%llu count=%llu align=%llu result=%#llx value=%llu error=%u",
        unit_kind_name(ev->kind), (unsigned long long)ev->stamp, (unsigned long long)ev->ptr,
        (unsigned long long)ev->size, (unsigned long long)ev->count, (unsigned long long)ev->align,
        (unsigned long long)ev->result, (unsigned long long)ev->value, ev->error);
    for (unsigned i = 0; i < HT_NOTES; i++)
        n += ev->notes[i] ? snprintf(text + n, 512 - (size_t)n, " note%u=%llu", i,
                                     (unsigned long long)ev->notes[i])
                          : 0;
    snprintf(text + n, 512 - (size_t)n, " text of %u bytes", ev->text_bytes);
    return text;
}

static inline bool unit_events_equal(const struct event *a, const struct event *b)
{
    return a->kind == b->kind && a->stamp == b->stamp && a->error == b->error && a->ptr == b->ptr &&
           a->size == b->size && a->count == b->count && a->align == b->align &&
           a->result == b->result && a->value == b->value &&
           memcmp(a->notes, b->notes, sizeof a->notes) == 0 && a->text_bytes == b->text_bytes &&
           (a->text_bytes == 0 || memcmp(a->text, b->text, a->text_bytes) == 0);
}

static inline void unit_assert_events_equal(const struct event *got, const struct event *want)
{
    char a[512], b[512];
    if (!unit_events_equal(got, want))
        fail_msg("got      %s\nexpected %s", unit_event_text(a, got), unit_event_text(b, want));
}
