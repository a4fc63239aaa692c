#include "cli/generate.h"

#include "cli/command.h"
#include "cli/options.h"

#include <ctype.h>
#include <string.h>

// Kinds of values that can be completed. The name of the argument or operand determines the kind.
enum { FILES = 1, FOLDERS = 2, ALLOCATORS = 4, PROCESSES = 8, PROGRAMS = 16 };
static const struct completion_kind {
    const char *argument, *word;
    unsigned kind;
} kinds[] = {
    {"A", "@files", FILES},
    {"ALLOCATOR", "@allocators", ALLOCATORS | FILES}, // a name, or the path of a library
    {"B", "@files", FILES},
    {"DIR", "@folders", FOLDERS},
    {"FILE", "@files", FILES},
    {"PID", "@processes", PROCESSES},
    {"PROGRAM", "@programs", PROGRAMS},
    {"REPORT", "@files", FILES},
    {"TRACE", "@files", FILES},
    {"WORKLOAD", "@files", FILES},
};

static const struct completion_kind *find_kind(const char *argument, size_t n)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].argument) == n && memcmp(kinds[i].argument, argument, n) == 0)
            return &kinds[i];
    }
    return NULL;
}

static bool has_upper(const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (isupper((unsigned char)word[i]))
            return true;
    }
    return false;
}

// Prints the completions of an argument as words. For "PID|all", prints "@processes all". Returns
// the kinds of words that were printed. `to` may be NULL.
static unsigned put_words(FILE *to, const char *argument)
{
    static const char between[] = " |[]";
    const char *gap = "";
    unsigned found = 0;
    for (const char *at = argument + strspn(argument, between); *at; at += strspn(at, between)) {
        // Only the first word counts in arguments such as "DIR[:DIR...]", "FILE.wl" and
        // "VARIABLE=VALUE".
        size_t n = strcspn(at, between), word = strcspn(at, " |[].:=,");
        const struct completion_kind *kind = find_kind(at, word);
        if (kind && (found & kind->kind) != kind->kind) {
            found |= kind->kind;
            if (to)
                fprintf(to, "%s%s", gap, kind->word);
            gap = " ";
        } else if (to && word && islower((unsigned char)*at) && !has_upper(at, word)) {
            fprintf(to, "%s%.*s", gap, (int)word, at);
            gap = " ";
        }
        at += n;
    }
    return found;
}

// Prints the completions of the operands before "--", for the first form of the command.
static unsigned put_operands(FILE *to, const struct command *c)
{
    char text[128];
    snprintf(text, sizeof text, "%s", c->operands ? c->operands : "");
    static const char *const ends[] = {" | ", " [-- "};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *end = strstr(text, ends[i]);
        if (end)
            *end = 0;
    }
    return put_words(to, text);
}

// Prints options, such as ' --output= --force'. An option with a value ends with '='.
static void bash_options(FILE *to, const struct option *options)
{
    for (const struct option *o = options; o && o->name; o++) {
        fprintf(to, " --%s%s%s", options_prefix(o), o->name, o->type == OPTION_FLAG ? "" : "=");
        if (o->letter)
            fprintf(to, " -%c", o->letter);
    }
}

static void bash_value(FILE *to, const char *command, const char *dashes, const char *name,
                       const struct option *o)
{
    fprintf(to, "  ['%s %s%s%s']='", command, dashes, name, o->bare ? "=" : "");
    put_words(to, o->argument);
    fputs("'\n", to);
}

static void bash_values(FILE *to, const char *command, const struct option *options)
{
    for (const struct option *o = options; o && o->name; o++) {
        if (o->type == OPTION_FLAG)
            continue;
        bash_value(to, command, "--", o->name, o);
        if (o->letter)
            bash_value(to, command, "-", (char[]){o->letter, 0}, o);
    }
}

void generate_bash(FILE *to)
{
    fputs("declare -gA _heaptape_options=(\n", to);
    for (const struct command *const *c = cli_commands; *c; c++) {
        fprintf(to, "  [%s]='", (*c)->name);
        bash_options(to, (*c)->options);
        bash_options(to, options_common);
        fputs("'\n", to);
    }
    fputs(")\n"
          "# Values of options: words, or @ and a kind of value.\n"
          "declare -gA _heaptape_values=(\n",
          to);
    for (const struct command *const *c = cli_commands; *c; c++) {
        bash_values(to, (*c)->name, (*c)->options);
        bash_values(to, (*c)->name, options_common);
    }
    fputs(")\n# Values of operands.\ndeclare -gA _heaptape_operands=(\n", to);
    for (const struct command *const *c = cli_commands; *c; c++) {
        fprintf(to, "  [%s]='", (*c)->name);
        put_operands(to, *c);
        fputs("'\n", to);
    }
    fputs(")\n", to);
}

// Prints text inside single quotes for fish, where two characters must be escaped.
static void fish_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', to);
        fputc(*text, to);
    }
}

static void fish_option(FILE *to, const struct command *c, const struct option *o)
{
    fprintf(to, "complete -c heaptape -n '__heaptape_in %s'", c->name);
    if (o->letter)
        fprintf(to, " -s %c", o->letter);
    fprintf(to, " -l %s%s", options_prefix(o), o->name);
    if (o->type != OPTION_FLAG) {
        bool files = put_words(NULL, o->argument) & FILES;
        fprintf(to, "%s -a '(__heaptape_words ", o->bare ? "" : files ? " -r -F" : " -x");
        put_words(to, o->argument);
        fputs(")'", to);
    }
    fputs(" -d '", to);
    fish_text(to, o->help);
    fputs("'\n", to);
}

void generate_fish(FILE *to)
{
    fputs("complete -c heaptape -f\n", to);
    for (const struct command *const *c = cli_commands; *c; c++) {
        fprintf(to, "complete -c heaptape -n __heaptape_at_command -a %s -d '", (*c)->name);
        fish_text(to, (*c)->summary);
        fputs("'\n", to);
    }
    for (const struct command *const *c = cli_commands; *c; c++) {
        for (const struct option *o = (*c)->options; o && o->name; o++)
            fish_option(to, *c, o);
        for (const struct option *o = options_common; o->name; o++)
            fish_option(to, *c, o);
        bool files = put_operands(NULL, *c) & FILES;
        fprintf(to, "complete -c heaptape -n '__heaptape_operand %s'%s -a '(__heaptape_words ",
                (*c)->name, files ? " -F" : "");
        put_operands(to, *c);
        fputs(")'\n", to);
    }
}

// Prints text for single quotes in a specification of _arguments.
static void zsh_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", to);
        else if (strchr("[]:\\", *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}

// Prints an option, such as '(-o --output)'{-o+,--output=}'[help]:FILE: _heaptape_words @files'.
static void zsh_option(FILE *to, const struct option *o)
{
    const char *prefix = options_prefix(o), *equals = "", *short_equals = "";
    if (o->type != OPTION_FLAG) {
        equals = o->bare ? "=-" : "=";
        short_equals = o->bare ? "-" : "+";
    }
    if (o->type == OPTION_LIST && o->letter)
        fprintf(to, "    '*'{-%c%s,--%s%s}'[", o->letter, short_equals, o->name, equals);
    else if (o->type == OPTION_LIST)
        fprintf(to, "    '*--%s%s[", o->name, equals);
    else if (o->letter)
        fprintf(to, "    '(-%c --%s%s)'{-%c%s,--%s%s%s}'[", o->letter, prefix, o->name, o->letter,
                short_equals, prefix, o->name, equals);
    else
        fprintf(to, "    '--%s%s%s[", prefix, o->name, equals);
    zsh_text(to, o->help);
    fputc(']', to);
    if (o->type != OPTION_FLAG) {
        fputs(o->bare ? "::" : ":", to);
        zsh_text(to, o->argument);
        fputs(": _heaptape_words ", to);
        put_words(to, o->argument);
    }
    fputs("' \\\n", to);
}

void generate_zsh(FILE *to)
{
    fputs("_heaptape_commands=(\n", to);
    for (const struct command *const *c = cli_commands; *c; c++) {
        fprintf(to, "  '%s:", (*c)->name);
        zsh_text(to, (*c)->summary);
        fputs("'\n", to);
    }
    fputs(")\n", to);
    for (const struct command *const *c = cli_commands; *c; c++) {
        fprintf(to, "_heaptape_%s() {\n  _arguments -s -S : \\\n", (*c)->name);
        for (const struct option *o = (*c)->options; o && o->name; o++)
            zsh_option(to, o);
        for (const struct option *o = options_common; o->name; o++)
            zsh_option(to, o);
        fputs("    '*:operand: _heaptape_words ", to);
        put_operands(to, *c);
        fputs("'\n}\n", to);
    }
}
