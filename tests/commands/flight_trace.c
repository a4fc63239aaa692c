// Feeds a trace, from standard input, to a flight recording that keeps BYTES of frames, and writes its dump:
// flight_trace OUT BYTES
#include "cli/command.h"
#include "flight/flight.h"

#include <stdio.h>
#include <stdlib.h>

// The options that are parsed here are those of no command.
const struct command *const cli_commands[] = {NULL};

static void print(const char *text)
{
    puts(text);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc != 3)
        return 2;
    const struct flight_settings s = {
        .path = argv[1], .force = true, .window = {strtoull(argv[2], NULL, 10), UINT64_MAX}, .note = print};
    if (flight_run(&s, &e) == 0)
        return 0;
    fprintf(stderr, "%s\n", e.text);
    return 1;
}
