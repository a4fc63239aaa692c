// make_aggregate FILE SECONDS <TRACE: writes the same file that `record --aggregate --period
// SECONDS -o FILE` would have written for this recording.
#include "record/aggregate/write.h"

#include <stdio.h>
#include <stdlib.h>

static void print(const char *text)
{
    fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc != 3)
        return 2;
    const struct aggregate_settings s = {.path = argv[1],
                                         .force = true,
                                         .period_ns = (uint64_t)(atof(argv[2]) * 1e9),
                                         .note = print};
    // Without an interval, each batch rewrites the file.
    if (aggregate_check(&s, &e) == 0 && aggregate_write(&s, &e) == 0)
        return 0;
    print(e.text);
    return 1;
}
