#include "capture/spool/attach.h"

#include "capture/spool/entries.h"
#include "trace/event/event.h"

#include <errno.h>
#include <string.h>

uint64_t spool_wrap_address(const char *name)
{
    uint64_t at = 0;
    if (name[0] != '0' || name[1] != 'x')
        return 0;
    for (name += 2; *name; name++) {
        unsigned digit = *name >= '0' && *name <= '9'   ? (unsigned)(*name - '0')
                         : *name >= 'a' && *name <= 'f' ? (unsigned)(*name - 'a' + 10)
                         : *name >= 'A' && *name <= 'F' ? (unsigned)(*name - 'A' + 10)
                                                        : 16;
        if (digit > 15 || at >> 60)
            return 0;
        at = at << 4 | digit;
    }
    return at;
}

// Returns the number of characters of `name` if an item of --wrap ends with `name` at `text`, else
// 0.
static size_t match_function(const char *text, const char *name)
{
    size_t n = name ? strlen(name) : 0;
    return n && strncmp(text, name, n) == 0 && (!text[n] || text[n] == ',') ? n : 0;
}

// Reads a function at `text` and sets *function to its event kind, or to 0 for malloc_usable_size.
// Returns the number of characters, or 0 if there is no such function.
static size_t parse_function(const char *text, uint16_t *function)
{
    size_t n = match_function(text, "malloc_usable_size");
    *function = 0;
    for (unsigned kind = 1; !n && kind < HT_KIND_LIMIT; kind++) {
        if (entries_class(kind) == HT_CLASS_NONE || !entries_symbol(kind))
            continue;
        n = match_function(text, event_infos[kind].name);
        n = n ? n : match_function(text, entries_symbol(kind));
        *function = (uint16_t)kind;
    }
    return n;
}

// Appends the item at *text, such as "je_malloc=malloc", and sets *text to the item's end.
static int parse_one(const char **text, struct spool_wrap *to)
{
    struct spool_wrapped *item = &to->items[to->n];
    size_t own = strcspn(*text, "=,");
    if (to->n == SPOOL_WRAPPED)
        return -E2BIG;
    if (!own || own >= SPOOL_WRAP_BYTES || (*text)[own] != '=')
        return -EINVAL;
    memcpy(item->name, *text, own);
    size_t n = parse_function(*text + own + 1, &item->function);
    if (!n || (**text == '0' && !spool_wrap_address(item->name)))
        return -EINVAL;
    for (uint32_t i = 0; i < to->n; i++) {
        if (strcmp(to->items[i].name, item->name) == 0 ||
            (!item->function && !to->items[i].function))
            return -EEXIST;
    }
    to->n++;
    *text += own + 1 + n;
    return 0;
}

int spool_parse_wrap(const char *text, struct spool_wrap *to)
{
    *to = (struct spool_wrap){0};
    int rc = parse_one(&text, to);
    while (rc == 0 && *text++ == ',')
        rc = parse_one(&text, to);
    return rc;
}
