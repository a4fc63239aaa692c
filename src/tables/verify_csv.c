#include "tables/tables.h"
#include "tables/verify.h"

#include <errno.h>
#include <string.h>

// Returns true if the text begins with the table's column names.
static bool is_header_of(const struct tables_definition *t, const char *text, size_t n)
{
    for (unsigned i = 0; i < t->n_columns; i++) {
        size_t bytes = strlen(t->columns[i].name);
        if (n <= bytes || memcmp(text, t->columns[i].name, bytes) != 0 ||
            text[bytes] != (i + 1 < t->n_columns ? ',' : '\n'))
            return false;
        text += bytes + 1;
        n -= bytes + 1;
    }
    return true;
}

bool tables_is_csv(const uint8_t *text, size_t n)
{
    for (unsigned i = 0; i < TABLES_N; i++) {
        if (is_header_of(&tables_definitions[i], (const char *)text, n))
            return true;
    }
    return false;
}

// State after the previous byte of a line.
enum csv_state {
    CSV_BEGIN,  // at the start of a field
    CSV_PLAIN,  // inside an unquoted field
    CSV_QUOTED, // inside a quoted field
    CSV_QUOTE,  // after a quote inside a quoted field
    CSV_BAD,
};

static enum csv_state next_state(enum csv_state state, uint8_t c)
{
    switch (state) {
    case CSV_QUOTED:
        return c == '"' ? CSV_QUOTE : CSV_QUOTED;
    case CSV_QUOTE:
        return c == '"' ? CSV_QUOTED : c == ',' || c == '\n' ? CSV_BEGIN : CSV_BAD;
    case CSV_BEGIN:
    case CSV_PLAIN:
        if (c == ',' || c == '\n')
            return CSV_BEGIN;
        return c != '"' ? CSV_PLAIN : state == CSV_BEGIN ? CSV_QUOTED : CSV_BAD;
    case CSV_BAD:
        break;
    }
    return CSV_BAD;
}

int tables_verify_csv(struct input *in, uint64_t *rows, struct err *e)
{
    uint8_t bytes[1 << 14];
    enum csv_state state = CSV_BEGIN;
    uint64_t lines = 0, at = in->offset, line_at = at;
    unsigned fields = 1, wanted = 0;
    ssize_t n;
    while ((n = input_read_some(in, bytes, sizeof bytes, e)) > 0) {
        for (ssize_t i = 0; i < n; i++, at++) {
            state = next_state(state, bytes[i]);
            if (state == CSV_BAD)
                return err_set(e, -EBADMSG, "%s: unexpected quote, at byte %llu", in->name,
                               (unsigned long long)at);
            fields += state == CSV_BEGIN && bytes[i] == ',';
            if (state != CSV_BEGIN || bytes[i] != '\n')
                continue;
            wanted = lines++ ? wanted : fields;
            if (fields != wanted)
                return err_set(e, -EBADMSG, "%s: a row of %u fields, expected %u, at byte %llu",
                               in->name, fields, wanted, (unsigned long long)line_at);
            fields = 1;
            line_at = at + 1;
        }
    }
    if (n < 0)
        return (int)n;
    if (line_at != at)
        return err_set(e, -EBADMSG, "%s: cut off in the row at byte %llu", in->name,
                       (unsigned long long)line_at);
    *rows = lines - 1;
    return 0;
}
