#include "cli/wrap.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Redirects standard output to a file, because wrap_lines() applies to the whole process.
static void lines_are_broken_unless_they_are_kept(void **state)
{
    static const char want[] = "one two three four\n"
                               "    five six\n"
                               "A=aaaaaaaaaaa B=bbbbbbbbbbbb\n"
                               "seven eight nine\n"
                               "    ten eleven\n";
    char got[256] = "";
    FILE *file = tmpfile();
    int terminal = dup(STDOUT_FILENO);
    (void)state;
    assert_true(file && terminal >= 0 && setenv("COLUMNS", "20", 1) == 0);
    fflush(stdout);
    assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
    wrap_lines();
    printf("one two three four five six\n");
    wrap_keep_line();
    printf("A=aaaaaaaaaaa B=bbbbbbbbbbbb\nseven eight nine ten eleven\n");
    fflush(stdout);
    assert_true(dup2(terminal, STDOUT_FILENO) >= 0);
    rewind(file);
    assert_true(fread(got, 1, sizeof got - 1, file) > 0);
    assert_string_equal(got, want);
    fclose(file);
    close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_broken_unless_they_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
