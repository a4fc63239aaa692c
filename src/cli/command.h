// The command table. Each command is one row of data, from which parsing, --help, the outline of
// the man page and the shell completions are derived. Each text here is one clause. docs/man
// contains the long texts (see docs/adding.md).
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "cli/human.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Exit codes. `record` also returns the traced program's exit code.
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, // an error occurred, or a difference was found
    EXIT_USAGE = 2,
    EXIT_RECORD = 125, // `record` itself failed
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
};

// The type of an option's argument, and of the option's field in the options struct.
enum option_type {
    OPTION_FLAG,    // bool; no argument; --no-NAME clears it
    OPTION_STRING,  // const char *, borrowed from argv
    OPTION_NUMBER,  // uint64_t
    OPTION_SECONDS, // uint64_t, ns: 90, 1.5, 90s, 10m, 2h
    OPTION_SIZE,    // uint64_t, bytes: 512, 64K, 16M, 2G, 1T (powers of 1,024)
    OPTION_CHOICE,  // enum: index of the word in `argument`, "auto|always|never"; -1 if not given
    OPTION_LIST,    // struct option_list; may be repeated
    OPTION_PARSED,  // stored by `parse`
};

// Largest `max` of OPTION_SECONDS: 136 years.
#define OPTION_MAX_NS (UINT32_MAX * CLOCK_NS_PER_S)

struct option_list {
    const char **items; // borrowed from argv
    size_t n;
};

// Value of an option "PID|all".
struct option_pid {
    uint32_t pid; // 0 if not given
    bool all;
};

struct option {
    char letter;      // 0 if there is no short form
    const char *name; // long form without dashes
    enum option_type type;
    // For example FILE, N or auto|always|never. NULL for a flag.
    const char *argument;
    // The default as text, or NULL for zero. "on" if the flag is on by default.
    const char *fallback;
    // One clause without a full stop. If a flag is on by default, the clause describes --no-NAME.
    const char *help;
    size_t offset; // offset of the field in the options struct
    // Value if the argument is omitted; an argument must then follow "=". NULL if the argument is
    // required.
    const char *bare;
    // Range of a number, a size, or a time in ns; max is 0 if there is no limit.
    uint64_t min, max;
    // Parses the argument, for OPTION_PARSED. Returns 0, -EINVAL or -ERANGE.
    int (*parse)(const char *text, void *field);
    // Short form of a long `argument` for --help, such as WHEN or FORMAT; or NULL.
    const char *shown;
    const char *group; // heading printed before this option, or NULL
};

// Options that several commands have. The commands store the values as `force` and `level`.
#define OPTION_FORCE(fields)                                                                       \
    {                                                                                              \
        'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists",                        \
            offsetof(fields, force)                                                                \
    }
#define OPTION_LEVEL(fields)                                                                       \
    {                                                                                              \
        'l', "level", OPTION_NUMBER, "N", "3", "set the zstd compression level",                   \
            offsetof(fields, level), .min = 1, .max = 19                                           \
    }

// A word that an operand or argument accepts, and its meaning. --help prints the words as a table
// below the options.
struct command_word {
    const char *word, *meaning;
};

struct command_example {
    const char *purpose; // one sentence without the full stop
    const char *lines;   // shell commands of at most 76 columns, separated by newlines
};

enum { COMMAND_EXAMPLES = 4, COMMAND_MODES = 2 };

// A mode of a command. The first row that matches the command line is the mode. A mode rejects
// options that only other rows accept. Options that no row accepts can be combined with every mode.
struct command_mode {
    const char *option; // the mode is selected if this option is given; the mode accepts the option
    const char *verb;   // the mode is selected if the first operand is this verb
    // Used if `option` and `verb` are NULL. Returns true if the command line selects the mode. The
    // last row of a table sets none of these three members, and is the default.
    bool (*selects)(const void *options, int operands);
    const char *name;    // name in messages, such as "-o URL"; NULL for "--OPTION"
    const char *accepts; // names of other options that the mode accepts, such as "keep|trigger"
    const char *rejects; // what the error message calls operands, or NULL to allow operands
    // Called by the command, not by the option parser.
    int (*run)(const void *options, void *context);
};

struct command {
    const char *name;
    const char *operands; // such as "TRACE|-"; forms are separated by " | "
    const char *summary;
    const struct option *options;                    // ends with a row without a name; may be NULL
    const struct command_mode *modes[COMMAND_MODES]; // independent tables; unused entries are NULL
    size_t options_bytes;             // size of the options struct; at most OPTIONS_MAX_BYTES
    const char *words_title;          // such as "Formats"; NULL without `words`
    const struct command_word *words; // ends with a row without a word; may be NULL
    struct command_example examples[COMMAND_EXAMPLES]; // unused rows have no lines
    unsigned min_operands, max_operands;
    bool prints_text;  // if --json is not given, wrap output on a terminal
    bool runs_program; // the operands are a command line, so options end at the first operand
    // Returns an exit code. argv contains the operands and ends with NULL.
    int (*run)(const void *options, char **argv);
};

// All commands in the order of `heaptape help`. The last entry is NULL.
extern const struct command *const cli_commands[];

// The list of commands. Each row is a heading or a command; the last row is neither.
struct command_row {
    const char *heading;
    const struct command *command;
};
extern const struct command_row cli_command_rows[];

// Values of the common options, and the modes of the command.
struct cli_common {
    int n_operands;
    bool quiet;
    bool color;                                      // standard output may have colours
    bool is_program;                                 // "--" precedes the first operand
    const struct command_mode *modes[COMMAND_MODES]; // selected rows of the command's tables
};
extern struct cli_common cli_common;

// Prints "heaptape: TEXT" as one line on standard error and exits with `code`. Only code in cli/
// and commands/ may call this function.
_Noreturn void die(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Dies with the message in *e if `rc` is negative.
void die_on_error(int rc, int code, const struct err *e);

// Prints "heaptape: TEXT" as one line on standard error, unless --quiet is given.
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Like note(), but also with --quiet: for lost data, and for failures that do not end the command.
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Flushes standard output. Dies if this or an earlier write to standard output failed.
void cli_flush(void);

// Callbacks that print a line like note(). error_text() also prints under --quiet.
void note_text(const char *text);
void error_text(const char *text);

// Prints "usage: heaptape record [options] ..." as one line, or heaptape's own usage if `c` is
// NULL.
void cli_print_usage(FILE *to, const struct command *c);

// Prints an error and the command's usage line. Returns EXIT_USAGE.
int usage_error(const struct command *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// Returns the index of `word` in c->words. If `word` is not in the table, prints a usage error that
// names the nearest word, and returns -1.
int cli_find_word(const struct command *c, const char *word);

// Returns `text` with unprintable characters escaped. Required for every string from a file or the
// command line. The result is valid for the next 7 calls of cli_text() and cli_cell().
const char *cli_text(const char *text);

// Like cli_text(), but truncates the text to `width` characters, or pads it on the right.
const char *cli_cell(const char *text, size_t width);

// Emphasis of text on standard output, if cli_common.color is set.
enum cli_color { CLI_PLAIN, CLI_BOLD, CLI_WORSE, CLI_BETTER, CLI_DIM };

// Returns the escape sequence that starts a colour. CLI_PLAIN ends the colour. Returns "" if
// colours are off.
const char *cli_color(enum cli_color c);

// Returns the colour of a figure that changed by the factor `ratio`.
enum cli_color cli_color_of_change(double ratio, bool more_is_better);

// Prints the head of a table as a bold line on standard output. Newlines at the start of `fmt`
// precede the bold text.
void cli_table_head(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// All commands in the order of `heaptape help`. COMMAND(record) refers to `cmd_record` in
// src/commands/record.c.
#define COMMANDS(HEADING, COMMAND)                                                                 \
    HEADING("Start here")                                                                          \
    COMMAND(doctor)                                                                                \
    COMMAND(record)                                                                                \
    COMMAND(stat)                                                                                  \
    COMMAND(top)                                                                                   \
    COMMAND(report)                                                                                \
    COMMAND(compare)                                                                               \
    COMMAND(advise)                                                                                \
    HEADING("Record")                                                                              \
    COMMAND(ctl)                                                                                   \
    COMMAND(check)                                                                                 \
    COMMAND(symbolize)                                                                             \
    COMMAND(corpus)                                                                                \
    HEADING("Inspect recordings")                                                                  \
    COMMAND(diff)                                                                                  \
    COMMAND(dump)                                                                                  \
    COMMAND(sql)                                                                                   \
    HEADING("Compare allocators")                                                                  \
    COMMAND(replay)                                                                                \
    COMMAND(allocators)                                                                            \
    COMMAND(reduce)                                                                                \
    COMMAND(matrix)                                                                                \
    HEADING("Exchange with other tools")                                                           \
    COMMAND(import)                                                                                \
    COMMAND(export)                                                                                \
    COMMAND(anonymize)                                                                             \
    COMMAND(trace_run)                                                                             \
    HEADING("Services on many hosts")                                                              \
    COMMAND(upload)                                                                                \
    COMMAND(receive)                                                                               \
    HEADING("More")                                                                                \
    COMMAND(convert)                                                                               \
    COMMAND(slice)                                                                                 \
    COMMAND(merge)

#define CLI_NOTHING(...)
#define CLI_DECLARE(name) extern const struct command cmd_##name;
COMMANDS(CLI_NOTHING, CLI_DECLARE)
#undef CLI_DECLARE
