// docs/format/trace.md lists the kinds as the table has them.
#include "event/event.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static char *load(const char *name)
{
    char path[4096];
    const char *source = getenv("HEAPTAPE_SOURCE");
    snprintf(path, sizeof path, "%s/%s", source ? source : "..", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    static char text[1 << 20];
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void put_fields(char *to, unsigned fields)
{
    static const char *const names[] = {"ptr", "size", "count", "align", "result", "value", "text"};
    *to = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (fields >> i & 1)
            sprintf(to + strlen(to), "%s%s", *to ? ", " : "", names[i]);
    }
}

static void kinds_are_documented(void **state)
{
    (void)state;
    static const char *const classes[] = {"", "ALLOC", "FREE", "RESIZE", "HALF", "MAP", "THREAD", "MARK", "META"};
    static const char *const stamps[] = {"BEFORE", "AFTER", "BOTH"};
    static const char *const forms[] = {"NONE", "SIZED", "PLAIN"};
    const char *doc = load("docs/format/trace.md");
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const struct event_info *info = &event_infos[kind];
        char row[256], fields[100];
        if (!info->name)
            continue;
        put_fields(fields, info->fields);
        snprintf(row, sizeof row, "\n| %u | %s | %s | %s | %s | %s |\n", kind, info->name, classes[info->class],
                 stamps[info->stamp], forms[info->form], fields);
        if (!strstr(doc, row))
            fail_msg("docs/format/trace.md lacks the row:%s", row);
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_are_documented)};
UNIT_MAIN(tests)
