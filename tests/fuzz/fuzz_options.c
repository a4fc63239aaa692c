// Fuzzes command lines: words separated by newlines, the first being the command.
#include "cli/options.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

static bool has_right_number(const struct command *c, unsigned operands)
{
    return operands >= c->min_operands && (operands <= c->max_operands || c->runs_program);
}

// The buffer for the fields has the exact size, because spare space would hide writes beyond the
// fields.
static void parse(const struct command *c, int argc, char **argv)
{
    struct options_shared common;
    void *fields = malloc(c->options_bytes ? c->options_bytes : 1);
    if (!fields)
        return;
    int n = options_parse(c, fields, &common, argc, argv);
    if (n > argc || (n >= 0 && !common.help && !has_right_number(c, (unsigned)n)))
        abort();
    options_release(c, fields);
    free(fields);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *words[MAX_WORDS + 1], *text = malloc(n + 1);
    int argc = 0;
    if (!text)
        return 0;
    memcpy(text, data, n);
    text[n] = 0;
    for (char *at = text, *end; at && argc < MAX_WORDS; at = end ? end + 1 : NULL) {
        end = strchr(at, '\n');
        if (end)
            *end = 0;
        words[argc++] = at;
    }
    words[argc] = NULL;
    for (const struct command *const *c = cli_commands; *c; c++) {
        if (strcmp((*c)->name, words[0]) == 0)
            parse(*c, argc - 1, words + 1);
    }
    free(text);
    return 0;
}
