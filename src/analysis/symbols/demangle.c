#include "analysis/symbols/demangle.h"

#include "base/buf.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS = DMGL_PARAMS | DMGL_ANSI,
    // Limit on the demangled form: FIRST_BYTES, plus this many bytes for each mangled byte. A
    // mangled name can refer back to its own parts, but real names grow at most tenfold.
    BYTES_FOR_EACH = 32,
    FIRST_BYTES = 4096,
    MAX_COMPONENTS = 1 << 15,
    MAX_CONVERSIONS = 8,
    MAX_LIFETIME_DIGITS = 2,
};

struct readable {
    struct buf text;
    size_t max;
    jmp_buf too_large;
};

// Demangler callback. Only longjmp can stop the demangler. With a callback, the demangler allocates
// nothing that longjmp could leak, except memory for non-ASCII letters in Rust names.
static void append_text(const char *text, size_t n, void *context)
{
    struct readable *r = context;
    if (n > r->max - r->text.size || buf_put(&r->text, text, n) < 0)
        longjmp(r->too_large, 1);
}

// Subtracts the number of nodes in the tree from *left. A shared node counts once for each use.
// Returns false if there are more nodes than *left.
static bool count_components(const struct demangle_component *c, unsigned *left)
{
    for (; c; c = c->u.s_binary.right) {
        if (!*left)
            return false;
        --*left;
        switch (c->type) {
        case DEMANGLE_COMPONENT_NAME:
        case DEMANGLE_COMPONENT_OPERATOR:
        case DEMANGLE_COMPONENT_BUILTIN_TYPE:
        case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
        case DEMANGLE_COMPONENT_SUB_STD:
        case DEMANGLE_COMPONENT_CHARACTER:
        case DEMANGLE_COMPONENT_NUMBER:
        case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
        case DEMANGLE_COMPONENT_FUNCTION_PARAM:
        case DEMANGLE_COMPONENT_UNNAMED_TYPE:
        case DEMANGLE_COMPONENT_LAMBDA:
        case DEMANGLE_COMPONENT_DEFAULT_ARG:
        case DEMANGLE_COMPONENT_FIXED_TYPE:
        case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
        case DEMANGLE_COMPONENT_CTOR:
        case DEMANGLE_COMPONENT_DTOR:
            return true;
        default:
            if (!count_components(c->u.s_binary.left, left))
                return false;
        }
    }
    return true;
}

// Returns true if a pack expansion of the name has a large pattern. Before it prints anything, the
// demangler searches the pattern, visiting a shared node once for each use.
static bool has_large_pack(const char *name)
{
    void *memory = NULL;
    unsigned left = MAX_COMPONENTS;
    if (!strstr(name, "Dp") && !strstr(name, "sZ"))
        return false;
    bool is_large = !count_components(cplus_demangle_v3_components(name, OPTIONS, &memory), &left);
    free(memory);
    return is_large;
}

// Returns true if the name has many nested conversions. The demangler parses the arguments of each
// conversion to a template parameter twice, so nested conversions take exponential time.
static bool has_many_conversions(const char *name)
{
    unsigned n = 0;
    for (const char *at = name; (at = strstr(at, "cvT")); at++)
        n++;
    return n > MAX_CONVERSIONS;
}

// Returns true if the name specifies many lifetimes. A Rust function type or trait object may
// contain a number of lifetimes in base 62, and the demangler counts up to that number even if it
// prints nothing.
static bool has_many_lifetimes(const char *name)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (const char *at = name; (at = strchr(at + 1, 'G'));) {
        size_t n = strspn(at + 1, digits);
        if ((at[-1] == 'F' || at[-1] == 'D') && n > MAX_LIFETIME_DIGITS && at[1 + n] == '_')
            return true;
    }
    return false;
}

static bool put_readable(struct readable *r, const char *name)
{
    if (setjmp(r->too_large))
        return false;
    if (rust_demangle_callback(name, OPTIONS, append_text, r))
        return true;
    r->text.size = 0;
    return cplus_demangle_v3_callback(name, OPTIONS, append_text, r);
}

char *demangle_new(const char *name)
{
    struct readable r = {.max = FIRST_BYTES + BYTES_FOR_EACH * strlen(name)};
    bool is_rust = strncmp(name, "_R", 2) == 0;
    if (name[0] != '_')
        return NULL;
    // Legacy Rust names are C++ names that end with a hash.
    if (is_rust ? has_many_lifetimes(name) : has_many_conversions(name) || has_large_pack(name))
        return NULL;
    if (put_readable(&r, name) && buf_put_u8(&r.text, 0) == 0)
        return (char *)r.text.data;
    buf_release(&r.text);
    return NULL;
}
