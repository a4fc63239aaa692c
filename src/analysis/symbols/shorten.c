#include "analysis/symbols/shorten.h"

#include "analysis/symbols/symbols.h"
#include "base/printable.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char dots[] = "…";

// A string buffer of limited size.
struct text {
    char *to;
    size_t n, max;
    bool full;
};

static void append(struct text *t, const char *text, size_t n)
{
    t->full |= n > t->max - t->n;
    if (t->full)
        return;
    memcpy(t->to + t->n, text, n);
    t->n += n;
    t->to[t->n] = 0;
}

static bool is_identifier(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c & 0x80;
}

// Returns the length of "operator" and its symbol if they are at `at`, else 0. The brackets of an
// operator's symbol do not enclose anything.
static size_t operator_length(const char *name, const char *at)
{
    size_t n = strlen("operator");
    if (strncmp(at, "operator", n) != 0 || is_identifier(at[n]) ||
        (at > name && is_identifier(at[-1])))
        return 0;
    if (strncmp(at + n, "()", 2) == 0 || strncmp(at + n, "[]", 2) == 0)
        return n + 2;
    return n + strspn(at + n, "<>=-+*/%^&|!~,");
}

static bool opens(char c)
{
    return c == '(' || c == '<' || c == '{' || c == '[';
}

// Returns true for a closing bracket. The '>' of "->" does not close a group.
static bool closes(const char *name, const char *at)
{
    return *at == ')' || *at == '}' || *at == ']' || (*at == '>' && (at == name || at[-1] != '-'));
}

// Returns the end of the group that begins with the bracket at `at`.
static const char *group_end(const char *name, const char *at)
{
    unsigned depth = 0;
    while (*at) {
        size_t n = operator_length(name, at);
        if (n) {
            at += n;
            continue;
        }
        depth += opens(*at);
        depth -= closes(name, at);
        at++;
        if (!depth)
            break;
    }
    return at;
}

static bool is_anonymous(const char *at)
{
    return strncmp(at, "(anonymous namespace)", strlen("(anonymous namespace)")) == 0;
}

enum { KEEP = 100 }; // depth at which no template arguments are omitted

// Appends the name without its parameters. Omits template arguments that are nested in `depth`
// other arguments.
static void append_abbreviated(struct text *t, const char *name, unsigned depth)
{
    unsigned open = 0;
    for (const char *at = name; *at && !t->full;) {
        size_t n = operator_length(name, at);
        bool empty = opens(*at) && closes(name, at + 1);
        if (n || (*at == '(' && open == 0 && is_anonymous(at))) {
            n = n ? n : (size_t)(group_end(name, at) - at);
            append(t, at, n);
            at += n;
        } else if (!empty && ((*at == '(' && open == 0) || (*at == '<' && open >= depth))) {
            const char *end = group_end(name, at);
            append(t, at, 1);
            append(t, dots, strlen(dots));
            append(t, *at == '(' ? ")" : ">", 1);
            at = end;
        } else {
            open += opens(*at);
            open -= open && closes(name, at);
            append(t, at++, 1);
        }
    }
}

static bool try_depth(struct text *t, const char *name, const char *prefix, unsigned depth)
{
    t->n = 0;
    t->full = false;
    append(t, prefix, strlen(prefix));
    append_abbreviated(t, name, depth);
    return !t->full;
}

// Returns the name after its first scope, or NULL.
static const char *skip_scope(const char *name)
{
    for (const char *at = name; *at;) {
        if (operator_length(name, at) || (*at == '(' && !is_anonymous(at)))
            return NULL;
        if (opens(*at)) {
            at = group_end(name, at);
            continue;
        }
        if (strncmp(at, "::", 2) == 0)
            return at + 2;
        at++;
    }
    return NULL;
}

const char *shorten_name(const char *name, size_t max, char to[SHORTEN_BYTES])
{
    enum { DEPTH = 3 };
    struct text t = {.to = to, .max = max};
    size_t bare_bytes;
    if (strlen(name) <= max)
        return name;
    if (try_depth(&t, name, "", KEEP))
        return to;
    for (unsigned depth = DEPTH + 1; depth-- > 0;) {
        if (try_depth(&t, name, "", depth))
            return to;
    }
    const char *bare = symbols_bare_name(name, &bare_bytes), *last = bare;
    if (try_depth(&t, bare, "", 0))
        return to;
    for (const char *at = bare; (at = skip_scope(at)); last = at) {
        if (try_depth(&t, at, "…::", 0))
            return to;
    }
    if (try_depth(&t, last, "", 0))
        return to;
    if (max < strlen(dots))
        return "";
    size_t kept = printable_cut(last, max - strlen(dots));
    snprintf(to, SHORTEN_BYTES, "%.*s%s", (int)kept, last, dots);
    return to;
}
