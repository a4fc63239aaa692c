// Parses command lines according to the option table of a command.
#pragma once

#include "cli/command.h"

enum { OPTIONS_MAX_BYTES = 1024 };

enum options_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

// Values of the options that all commands share.
struct options_shared {
    bool help;
    bool quiet;
    bool is_program; // "--" precedes the first operand
    enum options_color color;
    const struct command_mode *modes[COMMAND_MODES]; // selected rows of the command's mode tables
};
extern const struct option options_common[];

// Parses argv[0..argc) into `fields` (c->options_bytes) and `common`, which initially contain the
// defaults. Moves the operands to the front of argv. Stops after --help. Returns the number of
// operands, or -1 after a usage error.
int options_parse(const struct command *c, void *fields, struct options_shared *common, int argc,
                  char **argv);

// Frees the lists in `fields`.
void options_release(const struct command *c, void *fields);

// Parses a size in bytes such as "512", "64K" or "16M". Returns 0, -EINVAL, or -ERANGE if the size
// exceeds 64 bits.
int options_parse_size(const char *text, uint64_t *bytes);

// Parses decimal digits. Returns 0, -EINVAL, or -ERANGE if the number exceeds 64 bits.
int options_parse_number(const char *text, uint64_t *n);

// Returns the index of `word` in a list such as "auto|always|never", or -1.
int options_parse_choice(const char *choices, const char *word);

// Parses "PID|all" into a struct option_pid, for OPTION_PARSED. Returns 0, -EINVAL or -ERANGE.
int options_parse_pid(const char *text, void *field);

// Returns "no-" for a flag that is on by default, else "".
const char *options_prefix(const struct option *o);
