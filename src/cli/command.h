// The command table: one row a command, pure data. Parsing, --help, the outline of the man pages and
// the shell completions are derived from it. Every text here is one clause; the explanations are in
// docs/man/, see docs/adding.md.
#ifndef HEAPTAPE_CLI_COMMAND_H
#define HEAPTAPE_CLI_COMMAND_H

#include "base/err.h"
#include "cli/human.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Exit codes of the command line; `record` adds those of the traced program.
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, // it failed, or a difference was found
    EXIT_USAGE = 2,
    EXIT_RECORD = 125, // record: heaptape itself failed
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
};

// What an option's argument is, and the type of the field that it fills in.
enum option_type {
    OPTION_FLAG,   // bool; no argument; --no-NAME sets it to false
    OPTION_STRING, // const char *, borrowed from argv
    OPTION_NUMBER, // uint64_t
    OPTION_SIZE,   // uint64_t, bytes: 512, 64K, 16M, 2G, 1T (powers of 1,024)
    OPTION_CHOICE, // an enum: the index of the word in `argument`, "auto|always|never"; −1 when there is none
    OPTION_LIST,   // struct option_list: may be given several times
    OPTION_PARSED, // what `parse` stores
};

struct option_list {
    const char **items; // borrowed from argv
    size_t n;
};

// "PID|all".
struct option_pid {
    uint32_t pid; // 0: not given
    bool all;
};

struct option {
    char letter;      // 0: no short form
    const char *name; // long form, without the dashes
    enum option_type type;
    const char *argument; // as --help shows it: FILE, N, auto|always|never; NULL for a flag
    const char
        *fallback; // the default as text, parsed as if given; NULL: zero. A flag's is "on" or NULL
    const char *help; // one clause without a full stop; if a flag is on by default: of --no-NAME
    size_t offset;    // of the field in the command's options struct
    const char *
        bare; // what the option means without an argument, which then needs "="; NULL: it needs one
    uint64_t min, max;                           // of numbers and sizes; max 0: no limit
    int (*parse)(const char *text, void *field); // OPTION_PARSED: 0, -EINVAL or -ERANGE
    const char *shown; // what --help prints for a long `argument`: WHEN, FORMAT; or NULL
    const char *group; // heading that begins a group of options here, or NULL
};

// A word that operands or an option's argument can be, for a table below the options: "start",
// "begin recording".
struct command_word {
    const char *word, *meaning;
};

struct command_example {
    const char *purpose; // one sentence, without the full stop
    const char *lines;   // of the shell, parted by newlines; at most 76 columns each
};

enum { COMMAND_EXAMPLES = 3, COMMAND_MODES = 2 };

// One of several ways in which a command runs. The first row that the command line selects is the mode. It rejects each
// option that some row of the table mentions and the row of the mode does not; options that no row mentions go with every mode.
struct command_mode {
    const char *
        option; // selects the mode; NULL: `selects` does, or, in the last row, the absence of other modes
    bool (*selects)(const void *options, int operands);
    const char *name;    // in messages: "-o URL"; NULL: "--OPTION"
    const char *accepts; // "keep|trigger": further options that go with the mode
    const char *rejects; // name of the operands that the mode rejects, or NULL
    int (*run)(const void *options, void *context); // for the command's own use
};

struct command {
    const char *name;
    const char *operands;                            // "TRACE|-"; several forms are parted by " | "
    const char *summary;                             // one line for the list of commands
    const struct option *options;                    // ended by a row without a name; may be NULL
    const struct command_mode *modes[COMMAND_MODES]; // independent tables; NULL at the end
    size_t options_bytes;                            // of the options struct; ≤ 1024
    const char *words_title;                         // "Formats"; NULL without `words`
    const struct command_word *words;                // ended by a row without a word; may be NULL
    struct command_example examples[COMMAND_EXAMPLES]; // unused rows at the end have no lines
    unsigned min_operands, max_operands; // wrong numbers are a usage error before `run` is called
    bool
        prints_text; // for people, unless it has --json and that is given: long lines are broken on a terminal
    bool
        runs_program; // operands from the first one on are a command line of their own: options end there
    // Returns an exit code. `options` is the filled-in struct; argv[0..argc) are the operands.
    int (*run)(const void *options, int argc, char **argv);
};

// Every command, in the order of the list of commands; ended by NULL.
extern const struct command *const cli_commands[];

// The list of commands: a row is a heading or a command; the last row is neither.
struct command_row {
    const char *heading;
    const struct command *command;
};
extern const struct command_row cli_command_rows[];

// Options that every command has: -h --help, -q --quiet, --color.
struct cli_common {
    bool quiet;
    bool color;                                      // may be used on stdout
    const struct command_mode *modes[COMMAND_MODES]; // selected rows of the command's tables
};
extern struct cli_common cli_common;

// Prints "heaptape: TEXT" as one line on stderr and exits with `code`. For cli/ only.
_Noreturn void die(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// One line on stderr, "heaptape: TEXT"; silent under --quiet.
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// The same of a text as it is, for functions that call a `note`; and one that is printed under --quiet, too.
void note_text(const char *text);
void error_text(const char *text);

// Prints an error and the command's usage line; returns EXIT_USAGE.
int usage_error(const struct command *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// Text from a file or the command line as a terminal may show it: each string that heaptape has not made itself is printed
// by these. Borrowed; each of the next 7 calls returns another buffer.
const char *cli_text(const char *text);

// The same, cut or padded on the right to so many characters.
const char *cli_cell(const char *text, size_t width);

// How a text on standard output stands out, where cli_common.color allows it.
enum cli_color { CLI_PLAIN, CLI_BOLD, CLI_WORSE, CLI_BETTER };

// The escape sequence that begins it; with CLI_PLAIN that ends it. "" where there is no colour.
const char *cli_color(enum cli_color c);

// The same for a change of a figure by the factor `ratio`, where less is better, or `more_is_better`.
enum cli_color cli_color_of_change(double ratio, bool more_is_better);

// Prints the head of a table as a line in bold, on standard output. Newlines at the start of the format stand before it.
void cli_table_head(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
