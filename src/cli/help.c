#include "cli/help.h"

#include "cli/options.h"
#include "cli/words.h"

#include <string.h>

enum { HELP_COLUMN = 28, FORM_INDENT = 11 };

void help_option_note(char *text, size_t size, const struct option *o)
{
    enum { WORTH_SHOWING = 1000000 }; // a larger maximum is merely the limit of the type
    char range[64] = "";
    bool seconds = o->type == OPTION_SECONDS;
    uint64_t max = seconds ? o->max / CLOCK_NS_PER_S : o->max;
    bool number = (seconds || o->type == OPTION_NUMBER) && max && max < WORTH_SHOWING;
    bool shown = o->fallback && *o->fallback && o->type != OPTION_FLAG;
    if (number && !seconds)
        snprintf(range, sizeof range, "%llu to ", (unsigned long long)o->min);
    if (number)
        snprintf(range + strlen(range), sizeof range - strlen(range), "%s%llu%s",
                 seconds ? "at most " : "", (unsigned long long)max, shown ? "; " : "");
    *text = 0;
    if (number || shown)
        snprintf(text, size, " (%s%s%s)", range, shown ? "default: " : "",
                 shown ? o->fallback : "");
}

int help_option_name(char *text, size_t size, const struct option *o)
{
    char letter[8] = "";
    const char *argument = o->shown ? o->shown : o->argument;
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(text, size, "%s--%s%s%s%s%s%s", letter, options_prefix(o), o->name,
                    o->bare ? "[" : "", argument ? "=" : "", argument ? argument : "",
                    o->bare ? "]" : "");
}

// Prints `text` at column `indent`. `column` is the column of the cursor. If `column` is not below
// `indent`, starts a new line.
static void print_beside(FILE *to, int column, int indent, const char *text)
{
    if (column >= indent) {
        fputc('\n', to);
        column = 0;
    }
    fprintf(to, "%*s", indent - column, "");
    words_print(to, text, (size_t)indent, (size_t)indent, NULL);
    fputc('\n', to);
}

static void print_option(FILE *to, const struct option *o)
{
    char name[160], help[1024], note[128];
    help_option_name(name, sizeof name, o);
    help_option_note(note, sizeof note, o);
    snprintf(help, sizeof help, "%s%s", o->help, note);
    print_beside(to, fprintf(to, "  %s%s", o->letter ? "" : "    ", name), HELP_COLUMN, help);
}

static void print_options(FILE *to, const struct option *options)
{
    for (const struct option *o = options; o && o->name; o++) {
        if (o->group)
            fprintf(to, "%s:\n", o->group);
        print_option(to, o);
    }
}

// Prints one line for each form of the operands.
static void print_forms(FILE *to, const struct command *c)
{
    const char *lead = "usage", *at = c->operands ? c->operands : "", *end;
    char form[256];
    do {
        end = strstr(at, " | ");
        int column = fprintf(to, "%5s: heaptape %s", lead, c->name);
        snprintf(form, sizeof form, "[options] %.*s", end ? (int)(end - at) : (int)strlen(at), at);
        words_print(to, form, (size_t)column, FORM_INDENT, NULL);
        fputc('\n', to);
        lead = "or";
        at = end ? end + 3 : NULL;
    } while (at);
}

static void print_words(FILE *to, const struct command *c)
{
    int widest = 0;
    for (const struct command_word *w = c->words; w && w->word; w++)
        widest = (int)strlen(w->word) > widest ? (int)strlen(w->word) : widest;
    if (c->words)
        fprintf(to, "\n%s:\n", c->words_title);
    for (const struct command_word *w = c->words; w && w->word; w++)
        print_beside(to, fprintf(to, "  %s", w->word), widest + 4, w->meaning);
}

static void print_examples(FILE *to, const struct command *c)
{
    fputs("\nExamples:\n", to);
    for (const struct command_example *e = c->examples;
         e < c->examples + COMMAND_EXAMPLES && e->lines; e++) {
        fprintf(to, "  %s:\n", e->purpose);
        for (const char *at = e->lines, *end; *at; at = *end ? end + 1 : end) {
            end = strchrnul(at, '\n');
            fputs("    ", to);
            fwrite(at, 1, (size_t)(end - at), to);
            fputc('\n', to);
        }
    }
}

void help_print_command(FILE *to, const struct command *c)
{
    print_forms(to, c);
    fprintf(to, "\n%s.\n\n", c->summary);
    if (!c->options || !c->options->group)
        fputs("Options:\n", to);
    print_options(to, c->options);
    print_options(to, options_common);
    print_words(to, c);
    print_examples(to, c);
    fprintf(to, "\nManual: man heaptape-%s\n", c->name);
}

void help_print_commands(FILE *to)
{
    fputs("usage: heaptape COMMAND [options] [operands]\n"
          "\n"
          "Record the heap of a real program once; replay it on any allocator.\n",
          to);
    for (const struct command_row *row = cli_command_rows; row->heading || row->command; row++) {
        if (row->heading)
            fprintf(to, "\n%s:\n", row->heading);
        else
            fprintf(to, "  %-12s%s\n", row->command->name, row->command->summary);
    }
    fputs("  help        Show this list, or the help of a command\n"
          "\n"
          "'heaptape COMMAND --help' shows the options of a command, with examples;\n"
          "'man heaptape-COMMAND' explains them. 'heaptape --version --verbose' prints the\n"
          "version, how heaptape was built, and the libraries.\n",
          to);
}
