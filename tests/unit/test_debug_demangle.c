// Tests the demangling of C++ and Rust names, including names that would need exponential time or
// memory.
#include "analysis/symbols/demangle.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_readable(const char *name, const char *want)
{
    char *got = demangle_new(name);
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
    free(got);
}

static void names_are_readable(void **unused)
{
    (void)unused;
    expect_readable("_Z1fi", "f(int)");
    expect_readable("_ZNSt6vectorIiSaIiEE9push_backEOi",
                    "std::vector<int, std::allocator<int> >::push_back(int&&)");
    expect_readable("_Z1fIJicEEvDpT_", "void f<int, char>(int, char)");
    expect_readable("_ZN1acvT_IiEEv", "a::operator int<int>()");
    expect_readable("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
    expect_readable("_RNvC1a1b", "a::b");
    expect_readable("_RIC1aFG_RL0_hEuE", "a::<for<'a> fn(&'a u8)>");
    expect_readable("main", NULL);
    expect_readable("_Z", NULL);
    expect_readable("_R", NULL);
    expect_readable("", NULL);
}

// Appends the reference to substitution `i`.
static char *put_substitution(char *to, unsigned i)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    *to++ = 'S';
    if (i > 36)
        *to++ = digits[(i - 1) / 36];
    if (i > 0)
        *to++ = digits[(i - 1) % 36];
    *to++ = '_';
    return to;
}

// Appends a chain of types, each with the previous one as two arguments.
static char *put_doubling(char *to, unsigned template, unsigned n)
{
    to = stpcpy(to, "1aIiiE");
    for (unsigned i = 0; i < n; i++) {
        to = put_substitution(to, template);
        *to++ = 'I';
        to = put_substitution(put_substitution(to, template + 1 + i), template + 1 + i);
        *to++ = 'E';
    }
    return to;
}

static void exponential_names_are_not_printed(void **unused)
{
    (void)unused;
    char name[1000], *at;
    strcpy(put_doubling(stpcpy(name, "_Z1f"), 0, 60), "");
    expect_readable(name, NULL);
    // The demangler prints the return type first, so it expands the pack before it has printed
    // anything.
    at = put_substitution(stpcpy(put_doubling(stpcpy(name, "_Z1fI"), 1, 60), "EDp"), 60);
    strcpy(at, "v");
    expect_readable(name, NULL);
}

static void nested_conversions_are_not_parsed(void **unused)
{
    (void)unused;
    char name[1000], *at = stpcpy(name, "_Z");
    for (unsigned i = 0; i < 60; i++)
        at = stpcpy(at, "cvT_ILZ");
    expect_readable(name, NULL);
}

static void lifetimes_are_not_counted(void **unused)
{
    (void)unused;
    expect_readable("_RMIC1aFGzzzzzzz_EuEu", NULL);
    expect_readable("_RMIC1aDGzzzzzzz_EL_Eu", NULL);
    expect_readable("_RIC1aFGzzzzzzz_EuE", NULL);
}

static void a_readable_name_may_be_long(void **unused)
{
    (void)unused;
    enum { PARAMETERS = 200, NAME_BYTES = 90 };
    char name[2 * PARAMETERS + NAME_BYTES + 10],
        *at = name + sprintf(name, "_Z1f%da%0*d", NAME_BYTES, NAME_BYTES - 1, 0);
    for (unsigned i = 1; i < PARAMETERS; i++)
        at = stpcpy(at, "S_");
    char *got = demangle_new(name);
    assert_non_null(got);
    assert_int_equal(strlen(got),
                     strlen("f()") + PARAMETERS * (NAME_BYTES + strlen(", ")) - strlen(", "));
    free(got);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_readable),
    cmocka_unit_test(exponential_names_are_not_printed),
    cmocka_unit_test(nested_conversions_are_not_parsed),
    cmocka_unit_test(lifetimes_are_not_counted),
    cmocka_unit_test(a_readable_name_may_be_long),
};

UNIT_MAIN(tests)
