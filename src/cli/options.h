// Parses a command line by a command's option table.
#ifndef HEAPTAPE_CLI_OPTIONS_H
#define HEAPTAPE_CLI_OPTIONS_H

#include "cli/command.h"

enum { OPTIONS_MAX_BYTES = 1024 };

enum options_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

// What the options that every command has are parsed into.
struct options_shared {
    bool help;
    bool quiet;
    enum options_color color;
    const struct command_mode *modes[COMMAND_MODES]; // selected rows
};
extern const struct option options_common[];

// Fills `fields` (c->options_bytes of them) and `common` with the defaults and then with what argv[0..argc) says, and
// moves the operands to the front of argv. Returns their number, or -1 after a usage error has been printed. Stops at
// --help: what follows is not looked at.
int options_parse(const struct command *c, void *fields, struct options_shared *common, int argc,
                  char **argv);

// Frees the lists in `fields`.
void options_release(const struct command *c, void *fields);

// "512", "64K", "16M" to bytes. 0, -EINVAL, or -ERANGE when it does not fit 64 bits.
int options_parse_size(const char *text, uint64_t *bytes);

// Decimal digits only. As options_parse_size.
int options_parse_number(const char *text, uint64_t *n);

// The index of `word` among the words of "auto|always|never", or -1.
int options_parse_choice(const char *choices, const char *word);

// OPTION_PARSED: "PID|all" to struct option_pid.
int options_parse_pid(const char *text, void *field);

#endif
