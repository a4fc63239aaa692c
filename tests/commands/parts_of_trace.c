// Feeds a trace from standard input to a flight recording that keeps BYTES of frames, or writes it
// as segments of BYTES: parts_of_trace dump|segments PATH BYTES
#include "cli/command.h"
#include "record/flight/flight.h"
#include "record/flight/segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The program parses options without any command.
const struct command *const cli_commands[] = {NULL};
const struct command_row cli_command_rows[] = {{0}};

static void print(const char *text)
{
    puts(text);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc != 4)
        return 2;
    const struct flight_window window = {strtoull(argv[3], NULL, 10), UINT64_MAX};
    const struct flight_settings dump = {
        .path = argv[2], .force = true, .window = window, .note = print};
    const struct segments_settings segments = {
        .path = argv[2], .window = window, .codec = FRAME_CODEC_LZ4, .note = print};
    if ((strcmp(argv[1], "dump") == 0 ? flight_run(&dump, &e) : segments_run(&segments, &e)) == 0)
        return 0;
    fprintf(stderr, "%s\n", e.text);
    return 1;
}
