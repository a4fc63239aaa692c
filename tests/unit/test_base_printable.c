// Tests how text from a file is made safe for a terminal.
#include "base/printable.h"

#include "unit.h"

#include <string.h>

static void expect(const char *text, const char *want)
{
    char out[64];
    size_t n = printable_copy(out, sizeof out, text, strlen(text));
    assert_string_equal(out, want);
    assert_int_equal(n, strlen(want));
}

static void plain_text_stays(void **state)
{
    (void)state;
    expect("", "");
    expect("malloc \\ \"x\" ä€😀", "malloc \\ \"x\" ä€😀");
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    expect("\x1b[31m\n\x7f", "\\x1b[31m\\x0a\\x7f");
    expect("\xc2\x9b"
           "2J\xc2\xa0",
           "\\xc2\\x9b2J\xc2\xa0");
    expect("\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa6", "\\xe2\\x80\\xae\\xe2\\x81\\xa6\xe2\x80\xa6");
}

static void invalid_utf8_is_escaped(void **state)
{
    (void)state;
    expect("\xff\xc3", "\\xff\\xc3");
    expect("\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80");
}

static void nothing_is_cut_in_two(void **state)
{
    char out[6];
    (void)state;
    assert_int_equal(printable_copy(out, sizeof out, "abc\x1b", 4), 3);
    assert_string_equal(out, "abc");
    assert_int_equal(printable_copy(out, sizeof out, "abc€", 6), 3);
    assert_int_equal(printable_copy(out, sizeof out, "a\x1b", 2), 5);
    assert_string_equal(out, "a\\x1b");
    assert_int_equal(printable_cut("abc", 3), 3);
    assert_int_equal(printable_cut("abc", 9), 3);
    assert_int_equal(printable_cut("a€b", 2), 1);
    assert_int_equal(printable_cut("a€b", 3), 1);
    assert_int_equal(printable_cut("a€b", 4), 4);
    assert_int_equal(printable_cut("€", 1), 0);
    assert_int_equal(printable_cut("", 1), 0);
}

static void words_of_a_command_line(void **state)
{
    static const char line[] = "a\0--b\0äö";
    char to[sizeof line + sizeof "..."];
    (void)state;
    printable_words(to, sizeof line, line, sizeof line);
    assert_string_equal(to, "a --b äö");
    // A character is not split.
    printable_words(to, 9, line, sizeof line);
    assert_string_equal(to, "a --b ä...");
    printable_words(to, 10, line, sizeof line);
    assert_string_equal(to, "a --b äö");
    // A title that is padded.
    static const char title[] = "worker  \0\0 \0\0";
    printable_words(to, 7, title, sizeof title);
    assert_string_equal(to, "worker");
    printable_words(to, 7, "   ", 4);
    assert_string_equal(to, "");
    printable_words(to, 10, NULL, 0);
    assert_string_equal(to, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plain_text_stays),        cmocka_unit_test(control_characters_are_escaped),
    cmocka_unit_test(invalid_utf8_is_escaped), cmocka_unit_test(nothing_is_cut_in_two),
    cmocka_unit_test(words_of_a_command_line),
};

UNIT_MAIN(tests)
