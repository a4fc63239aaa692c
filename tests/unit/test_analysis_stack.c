// Tests abbreviated names, the shown function of a stack, recursion and allocation wrappers.
#include "analysis/symbols/shorten.h"
#include "analysis/symbols/stack.h"
#include "analysis/symbols/wrappers.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

static void shortening(void **state)
{
    static const struct {
        const char *name;
        size_t max;
        const char *shorter;
    } cases[] = {
        {"main", 4, "main"},
        {"std::vector<int, std::allocator<int> >::push_back(int&&)", 56,
         "std::vector<int, std::allocator<int> >::push_back(int&&)"},
        {"std::vector<int, std::allocator<int> >::push_back(int&&)", 55,
         "std::vector<int, std::allocator<int> >::push_back(…)"},
        {"app::map<app::list<app::node, app::pool<app::node> > >::at(int)", 62,
         "app::map<app::list<app::node, app::pool<…> > >::at(…)"},
        {"app::map<app::list<app::node, app::pool<app::node> > >::at(int)", 36,
         "app::map<app::list<…> >::at(…)"},
        {"std::vector<int, std::allocator<int> >::push_back(int&&)", 34,
         "std::vector<…>::push_back(…)"},
        {"std::vector<int, std::allocator<int> >::push_back(int&&)", 24, "…::push_back(…)"},
        {"std::vector<int, std::allocator<int> >::push_back(int&&)", 16, "push_back(…)"},
        {"void app::grow<std::string>(std::string const&)", 30, "void app::grow<…>(…)"},
        {"void app::grow<std::string>(std::string const&)", 20, "app::grow<…>(…)"},
        {"app::operator<<(app::big const&, app::small)", 24, "app::operator<<(…)"},
        {"app::cell::operator()(int, int, int, int)", 27, "app::cell::operator()(…)"},
        {"app::set<int (*)(char)>::operator->(int (*)(char))", 32, "app::set<…>::operator->(…)"},
        {"(anonymous namespace)::f(std::string, std::string)", 32, "(anonymous namespace)::f(…)"},
        {"<alloc::vec::Vec<u8> as std::io::Write>::write_fmt", 50,
         "<alloc::vec::Vec<u8> as std::io::Write>::write_fmt"},
        {"<alloc::vec::Vec<u8> as std::io::Write>::write_fmt", 20, "<…>::write_fmt"},
        {"operator new(unsigned long, std::align_val_t)", 20, "operator new(…)"},
        {"an_identifier_without_any_end", 16, "an_identifier…"},
        {"größe_des_hauptspeichers", 7, "grö…"},
        {"f()", 3, "f()"},
        {"unbalanced(<{[(((", 15, "unbalanced(…)"},
        {"", 1, ""},
    };
    char to[SHORTEN_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *shorter = shorten_name(cases[i].name, cases[i].max, to);
        if (strcmp(shorter, cases[i].shorter) != 0)
            fail_msg("'%s' in %zu bytes: '%s', not '%s'", cases[i].name, cases[i].max, shorter,
                     cases[i].shorter);
        assert_true(strlen(shorter) <= cases[i].max);
    }
}

// Creates one function for each letter. An upper-case letter is a function of a library, and 'w' is
// a wrapper. In the process of node, 'n' is a function of node, 's' and 't' are functions of a
// script, 'i' is a function of a script of node itself, and 'g' is generated code without a name.
// In the process of Python, 'p' is a function of libpython, 'x' is a function of an installed
// extension, 'y' is a function of a script, and 'Y' is a function of a script of Python itself.
static size_t functions_of(const char *letters, struct symbol *functions)
{
    static char names[128][2];
    for (size_t i = 0; letters[i]; i++) {
        char *name = names[(unsigned char)letters[i]];
        name[0] = letters[i];
        functions[i] =
            (struct symbol){.function = letters[i] == 's'   ? "JS:^add /srv/app.js:2:18"
                                        : letters[i] == 't' ? "py::add:/srv/app.py"
                                        : letters[i] == 'i' ? "JS:^alloc node:buffer:391:30"
                                                            : name,
                            .module = letters[i] == 'n'              ? "/usr/bin/node"
                                      : strchr("stigyY", letters[i]) ? ""
                                      : letters[i] == 'p' ? "/opt/lib/libpython3.11.so.1.0"
                                      : letters[i] == 'x' ? "/opt/lib/python3.11/site-packages/x.so"
                                                          : "/srv/node_exporter",
                            .library = letters[i] < 'a',
                            .script = letters[i] == 'y' || letters[i] == 'Y',
                            .wrapper = letters[i] == 'w'};
    }
    return strlen(letters);
}

static size_t shown_of(const char *letters)
{
    struct symbol functions[16];
    size_t n = functions_of(letters, functions);
    return stack_shown(functions, n);
}

static void shown(void **state)
{
    (void)state;
    assert_int_equal(shown_of("ab"), 0);
    assert_int_equal(shown_of("LMab"), 2);
    assert_int_equal(shown_of("LwLab"), 3);
    assert_int_equal(shown_of("LwLawb"), 3);
    // A function of a script that has called the runtime.
    assert_int_equal(shown_of("LnnisTn"), 4);
    assert_int_equal(shown_of("nLwst"), 3);
    assert_int_equal(shown_of("naisn"), 1);  // an extension of the user between them
    assert_int_equal(shown_of("ansn"), 0);   // an extension that calls malloc itself
    assert_int_equal(shown_of("Lnnign"), 1); // no script
    assert_int_equal(shown_of("nan"), 0);
    // The same in Python.
    assert_int_equal(shown_of("LpxpYpyp"), 6);
    assert_int_equal(shown_of("paypy"), 1);
    assert_int_equal(shown_of("xpYpYp"), 2); // no script of the user
    // A wrapper is preferred to a function of a library.
    assert_int_equal(shown_of("LwLwL"), 3);
    assert_int_equal(shown_of("LMN"), 0);
    assert_int_equal(stack_shown(NULL, 0), 0);
}

static void recursion(void **state)
{
    static const struct {
        const char *letters;
        size_t repeats, period;
    } cases[] = {
        {"a", 1, 1},      {"ab", 1, 1},    {"aab", 2, 1},     {"aaaa", 4, 1},
        {"ababab", 3, 2}, {"ababa", 2, 2}, {"abcabcd", 2, 3}, {"abab", 2, 2},
        {"aabaab", 2, 3}, {"abca", 1, 1},  {"abaaaa", 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct symbol functions[16];
        size_t n = functions_of(cases[i].letters, functions), period;
        assert_int_equal(stack_repeats(functions, n, &period), cases[i].repeats);
        assert_int_equal(period, cases[i].period);
    }
}

// Call sites whose functions have names in the recording, so that the tests need no program.
struct stacks {
    struct workload_sites sites;
    struct map addresses; // maps the hash of a word to an address
    uint64_t next;
    uint32_t n;
};

static void begin_stacks(struct stacks *s)
{
    static const char python[] = " /usr/bin/python3";
    const struct workload_module m = {.start = 0x10000, .bytes = 0x100000};
    *s = (struct stacks){.next = 0x10001};
    assert_int_equal(workload_sites_module(&s->sites, &m, " /app/prog", 10), 0);
    assert_int_equal(workload_sites_module(&s->sites, &m, python, sizeof python - 1), 0);
}

// Functions of Python's interpreter begin with Py. The code of scripts has no file.
static uint32_t module_of(const char *word)
{
    return strncmp(word, "py::", 4) == 0 ? 0 : strncmp(word, "Py", 2) == 0 ? 2 : 1;
}

static uint64_t address_of(struct stacks *s, const char *word)
{
    char name[64];
    unsigned line = 0;
    uint64_t key = 5381, at;
    for (const char *c = word; *c; c++)
        key = key * 33 + (uint8_t)*c;
    if ((at = map_get(&s->addresses, key)))
        return at;
    at = s->next++;
    assert_int_equal(map_put(&s->addresses, key, at), 0);
    assert_true(sscanf(word, "%63[^@]@%u", name, &line) > 0);
    assert_int_equal(names_begin(&s->sites.names, module_of(word), at - 1, 1), 0);
    assert_int_equal(names_function(&s->sites.names, name, sizeof name, line ? "a.c" : "", 4, line),
                     0);
    return at;
}

// Adds a stack. `words` are the names of its functions, separated by spaces, innermost first. "f@2"
// is a second call in f.
static void add_stack(struct stacks *s, const char *words)
{
    struct workload_frame frames[16];
    char copy[256], *rest = copy;
    uint32_t n = 0;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word; (word = strsep(&rest, " "));)
        frames[n++] = (struct workload_frame){address_of(s, word), module_of(word)};
    assert_int_equal(workload_sites_set(&s->sites, ++s->n, frames, n), 0);
}

// Checks the shown function of every stack, and the number of wrappers. Releases the stacks.
static void check_shown(struct stacks *s, size_t wrappers, const char *const *names)
{
    struct symbols *symbols = symbols_new(&s->sites, "/app/prog");
    assert_non_null(symbols);
    for (uint32_t i = 1; i <= s->n; i++) {
        struct symbol shown;
        assert_true(stack_site(symbols, i, &shown));
        assert_string_equal(shown.function, names[i - 1]);
    }
    assert_int_equal(symbols_wrappers(symbols)->n, wrappers);
    symbols_free(symbols);
    workload_sites_release(&s->sites);
    map_release(&s->addresses);
}

// A function that calls the allocator and has many callers is a wrapper. A function that only this
// wrapper calls is also a wrapper. A function with fewer callers, or a function that calls a
// wrapper, may keep its blocks. Only the program's file shows whether such a function is a wrapper.
static void wrappers_in_stacks(void **state)
{
    static const char *const names[] = {
        "load_0",   "load_1",   "load_2",   "load_3",   "load_4",   "load_5",   "load_6",
        "load_7",   "keep",     "keep",     "keep",     "keep",     "remember", "remember",
        "remember", "remember", "remember", "remember", "remember", "remember",
    };
    struct stacks s;
    char words[64];
    (void)state;
    begin_stacks(&s);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(words, sizeof words, "checked get load_%u main@%u", i, i);
        add_stack(&s, words);
    }
    for (unsigned i = 0; i < 4; i++) {
        snprintf(words, sizeof words, "keep load_%u main@%u", i, i);
        add_stack(&s, words);
    }
    for (unsigned i = 0; i < 8; i++) {
        snprintf(words, sizeof words, "checked get remember load_%u main@%u", i, i);
        add_stack(&s, words);
    }
    check_shown(&s, 2, names);
}

// A function is not a wrapper if it allocates in many places, or if it mostly calls other functions
// that allocate in many places.
static void functions_with_many_calls(void **state)
{
    static const char *const names[] = {
        "parse", "parse", "parse", "parse", "parse", "parse", "parse", "parse", "serve",
        "open",  "serve", "open",  "serve", "open",  "serve", "open",  "serve", "open",
        "serve", "open",  "serve", "open",  "serve", "open",  "open",
    };
    struct stacks s;
    char words[64];
    (void)state;
    begin_stacks(&s);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(words, sizeof words, "parse@%u load_%u main", i % 4 + 1, i);
        add_stack(&s, words);
    }
    for (unsigned i = 0; i < 8; i++) {
        snprintf(words, sizeof words, "serve@1 load_%u main", i);
        add_stack(&s, words);
        snprintf(words, sizeof words, "open@1 serve@2 load_%u main", i);
        add_stack(&s, words);
    }
    add_stack(&s, "open@1 reopen main");
    check_shown(&s, 0, names);
}

// All instances of a template count as one function. A recursive function does not count as its own
// caller.
static void instances(void **state)
{
    static const char *const names[] = {"load_0", "load_1", "load_2", "load_3", "load_4",
                                        "load_5", "load_6", "load_7", "walk"};
    struct stacks s;
    char words[64];
    (void)state;
    begin_stacks(&s);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(words, sizeof words, "app::make<T%u>(int)@1 load_%u main", i % 3, i);
        add_stack(&s, words);
    }
    add_stack(&s, "walk walk walk walk main");
    check_shown(&s, 1, names);
}

// In a stripped program, the names of a function and of its callers show that the function is a
// wrapper. A word in an argument of a template, the function next to main, and functions for
// allocators do not count.
static void wrappers_by_name(void **state)
{
    static const char *const names[] = {
        "stksess_new",    "app::Cache::fill(int)",
        "load_words",     "load_words",
        "alloc_tables",   "app::list<app::alloc>::push(int)",
        "make_allocator", "remember",
    };
    struct stacks s;
    (void)state;
    begin_stacks(&s);
    add_stack(&s, "get_from_os pool_alloc_nocache __pool_alloc stksess_new track main");
    add_stack(&s, "app::Pool<int>::AllocateRaw(int) app::Cache::fill(int) serve main");
    add_stack(&s, "zrealloc_usable@1 load_words read main");
    add_stack(&s, "zrealloc_usable@2 load_words read main");
    add_stack(&s, "alloc_tables main");
    add_stack(&s, "app::list<app::alloc>::push(int) load read main");
    add_stack(&s, "make_allocator load read main");
    add_stack(&s, "remember serve main");
    check_shown(&s, 5, names);
}

// A call path omits wrappers at its start and the start of the program, and counts recursion.
static void paths(void **state)
{
    static const char *const expected[] = {
        "keep (prog) < load_0 (a.c:1) < main (prog)",
        "load_3 (prog) < main (prog)",
        "walk (prog) ×4 < main (prog)",
        "a (prog) ×2 < b (prog) ×2 < main (prog)",
        "copy (prog) < list (prog) ×3 < node (prog) < plan (prog)",
        "main (prog)",
        "_start (prog)",
        "py::add:/srv/app.py < py::run:/srv/app.py < main (prog)",
        "keep (prog) < PyEval (python3) < main (prog)"};
    char text[STACK_PATH_BYTES], words[64];
    struct stacks s;
    (void)state;
    begin_stacks(&s);
    add_stack(&s, "keep load_0@1 main other _start");
    add_stack(&s, "get load_3 main _start");
    add_stack(&s, "walk walk walk walk main");
    add_stack(&s, "a b a b main");
    add_stack(&s, "copy list node list query node list node plan prepare main");
    add_stack(&s, "main _start");
    add_stack(&s, "_start");
    // In scripts, the functions of the interpreter are omitted.
    add_stack(&s, "PyNew py::add:/srv/app.py PyEval py::run:/srv/app.py PyRun main _start");
    add_stack(&s, "keep PyEval main");
    for (unsigned i = 0; i < 8; i++) {
        snprintf(words, sizeof words, "get caller_%u main", i);
        add_stack(&s, words);
    }
    struct symbols *symbols = symbols_new(&s.sites, "/app/prog");
    assert_non_null(symbols);
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
        stack_path(symbols, i + 1, text);
        assert_string_equal(text, expected[i]);
    }
    // Tests a site without a stack.
    stack_path(symbols, 0, text);
    assert_string_equal(text, "");
    symbols_free(symbols);
    workload_sites_release(&s.sites);
    map_release(&s.addresses);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shortening),
    cmocka_unit_test(shown),
    cmocka_unit_test(recursion),
    cmocka_unit_test(wrappers_in_stacks),
    cmocka_unit_test(functions_with_many_calls),
    cmocka_unit_test(instances),
    cmocka_unit_test(wrappers_by_name),
    cmocka_unit_test(paths),
};

UNIT_MAIN(tests)
