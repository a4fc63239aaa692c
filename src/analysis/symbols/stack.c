#include "analysis/symbols/stack.h"

#include "analysis/symbols/shorten.h"
#include "base/buf.h"
#include "base/printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PERIOD = 8, // maximum number of functions in a cycle of mutual recursion
    PATH_FUNCTIONS = 3,
    PATH_NAME_BYTES = 60,
};

void stack_release(struct stack *to)
{
    free(to->functions);
    *to = (struct stack){0};
}

static bool is_shown(const struct symbol *s)
{
    return !s->library && !s->wrapper;
}

// Returns true for functions of node or Python, and of extensions in Python's own directories.
static bool is_runtime(const struct symbol *s)
{
    const char *name = basename(s->module);
    size_t n = strncmp(name, "node", 4) == 0          ? 4
               : strncmp(name, "python3", 7) == 0     ? 7
               : strncmp(name, "libpython3", 10) == 0 ? 10
                                                      : 0;
    // Match "python3.12", but not "node_exporter".
    return (n && (!name[n] || strchr(".0123456789", name[n]))) || strstr(s->module, "/lib/python3");
}

// Returns true for a function of the user's script. V8 and Python give names to generated code:
// "JS:^add /srv/app.js:2:18", "py::add:/srv/app.py".
static bool is_script(const struct symbol *s)
{
    static const char *const starts[] = {"JS:", "LazyCompile:", "Function:", "py::"};
    if (s->script)
        return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (strncmp(s->function, starts[i], strlen(starts[i])) == 0)
            return !s->module[0] && !strstr(s->function, " node:") && !strstr(s->function, ":<");
    }
    return false;
}

// Returns `shown`, unless that function belongs to a runtime and was called by a script. In that
// case, returns the innermost function of the user's script, or of the user's extension that the
// script called. If only the scripts' libraries made the call, returns the innermost function of
// these libraries.
static size_t find_script(const struct symbol *functions, size_t n, size_t shown)
{
    size_t first = n, library = n;
    if (!n || !is_runtime(&functions[shown]))
        return shown;
    for (size_t i = shown + 1; i < n; i++) {
        const struct symbol *s = &functions[i];
        library = s->script && library == n ? i : library;
        if (!is_shown(s) || is_runtime(s) || !(s->module[0] || is_script(s)))
            continue;
        first = first < i ? first : i;
        if (is_script(s))
            return first;
    }
    return library < n ? library : shown;
}

size_t stack_shown(const struct symbol *functions, size_t n)
{
    size_t shown = 0;
    for (size_t i = 0; i < n; i++) {
        shown = functions[i].library ? shown : i;
        if (is_shown(&functions[i]))
            break;
    }
    return find_script(functions, n, shown);
}

// Returns the site, or NULL if the site has no stack. Also finds the allocation wrappers if
// necessary; when out of memory, no function counts as a wrapper.
static const struct workload_site *find_site(struct symbols *s, uint64_t number)
{
    const struct workload_site *site = symbols_site(s, number);
    if (!site->n)
        return NULL;
    symbols_find_wrappers(s);
    return site;
}

int stack_read(struct stack *to, struct symbols *s, uint64_t number)
{
    const struct workload_site *site = find_site(s, number);
    to->n = to->shown = 0;
    for (uint32_t i = 0; site && i < site->n; i++) {
        const struct symbol *found;
        size_t n = symbols_of(s, symbols_frame(s, site, i), &found);
        if (!n || HT_GROW(&to->functions, &to->capacity, to->n + n) < 0)
            return -ENOMEM;
        memcpy(to->functions + to->n, found, n * sizeof *found);
        to->n += n;
    }
    to->shown = stack_shown(to->functions, to->n);
    return 0;
}

static bool is_same(const struct symbol *a, const struct symbol *b)
{
    return strcmp(a->function, b->function) == 0 && strcmp(a->module, b->module) == 0;
}

static size_t count_repeats(const struct symbol *functions, size_t n, size_t period)
{
    size_t same = 0;
    while (same + period < n && is_same(&functions[same], &functions[same + period]))
        same++;
    return 1 + same / period;
}

size_t stack_repeats(const struct symbol *functions, size_t n, size_t *period)
{
    size_t best = 1;
    *period = 1;
    for (size_t p = 1; p <= MAX_PERIOD && 2 * p <= n; p++) {
        size_t repeats = count_repeats(functions, n, p);
        if (repeats < 2 || repeats * p <= best * *period)
            continue;
        best = repeats;
        *period = p;
    }
    return best;
}

static bool copy_shown(struct symbols *s, uint64_t number, struct symbol *to)
{
    struct stack stack = {0};
    int rc = stack_read(&stack, s, number);
    if (rc == 0)
        *to = stack.functions[stack.shown];
    stack_release(&stack);
    return rc == 0;
}

bool stack_site(struct symbols *s, uint64_t number, struct symbol *to)
{
    const struct workload_site *site = find_site(s, number);
    bool any = false;
    // Do not look up the functions that called the shown function.
    for (uint32_t i = 0; site && i < site->n; i++) {
        const struct symbol *found;
        size_t n = symbols_of(s, symbols_frame(s, site, i), &found);
        for (size_t k = 0; k < n; k++) {
            if (!any || !found[k].library)
                *to = found[k];
            any = true;
            if (is_shown(&found[k]))
                return !is_runtime(to) || copy_shown(s, number, to);
        }
    }
    return any;
}

const char *stack_site_text(struct symbols *s, uint64_t number, char text[STACK_SITE_BYTES])
{
    char name[SHORTEN_BYTES];
    struct symbol found;
    if (!stack_site(s, number, &found))
        return NULL;
    const char *file = basename(symbols_file(&found));
    int n = snprintf(text, STACK_SITE_BYTES, "%s", shorten_name(found.function, 100, name));
    if (file[0] && n > 0)
        n += snprintf(text + n, STACK_SITE_BYTES - (size_t)n, " (%.*s",
                      (int)printable_cut(file, 80), file);
    if (file[0] && n > 0)
        snprintf(text + n, STACK_SITE_BYTES - (size_t)n, found.file[0] ? ":%d)" : ")", found.line);
    return text;
}

static void append_function(char path[STACK_PATH_BYTES], const struct symbol *s, size_t repeats)
{
    char name[SHORTEN_BYTES], place[80] = "", count[24] = "";
    size_t n = strlen(path);
    const char *file = basename(symbols_file(s));
    if (s->file[0])
        snprintf(place, sizeof place, " (%.*s:%d)", (int)printable_cut(file, 60), file, s->line);
    else if (file[0])
        snprintf(place, sizeof place, " (%.*s)", (int)printable_cut(file, 60), file);
    if (repeats > 1)
        snprintf(count, sizeof count, " ×%zu", repeats);
    snprintf(path + n, STACK_PATH_BYTES - n, "%s%s%s%s", n ? " < " : "",
             shorten_name(s->function, PATH_NAME_BYTES, name), place, count);
}

// Returns true if the function is _start or the function of libc that calls main. _start has no
// name in a stripped program.
static bool is_start(const struct symbol *s)
{
    static const char libc[] = "__libc_start";
    return strcmp(s->function, "_start") == 0 || strncmp(s->function, libc, sizeof libc - 1) == 0;
}

// Returns the number of functions in a recursion. The recursion ends with the outermost call of one
// of the first `period` functions. The first `least` functions are known to belong to the
// recursion.
static size_t find_outermost(const struct symbol *functions, size_t n, size_t period, size_t least)
{
    for (size_t i = least; i < n; i++) {
        for (size_t k = 0; k < period; k++)
            least = strcmp(functions[i].function, functions[k].function) == 0 ? i + 1 : least;
    }
    return least;
}

static size_t count_calls(const struct symbol *functions, size_t n)
{
    size_t calls = 0;
    for (size_t i = 0; i < n; i++)
        calls += strcmp(functions[i].function, functions[0].function) == 0;
    return calls;
}

void stack_path(struct symbols *s, uint64_t number, char text[STACK_PATH_BYTES])
{
    struct stack stack = {0};
    unsigned shown = 0;
    bool is_read = stack_read(&stack, s, number) == 0;
    bool scripted = is_read && stack.n && is_script(&stack.functions[stack.shown]);
    text[0] = 0;
    for (size_t i = stack.shown, period, length; is_read && i < stack.n && shown < PATH_FUNCTIONS &&
                                                 (!text[0] || !is_start(&stack.functions[i]));
         i += length) {
        const struct symbol *f = stack.functions + i;
        size_t repeats = stack_repeats(f, stack.n - i, &period);
        length = find_outermost(f, stack.n - i, period, period * repeats);
        for (size_t k = 0; k < period; k++) {
            if (text[0] && (f[k].library || (scripted && is_runtime(&f[k]))))
                continue;
            append_function(text, &f[k], count_calls(f + k, length - k));
            // A recursion does not count towards the limit, so that the path also contains its
            // caller.
            shown += length == period;
        }
    }
    stack_release(&stack);
}
