#include "cli/help.h"

#include "cli/options.h"
#include "cli/wrap.h"

#include <string.h>

enum { HELP_WIDTH = 80, HELP_COLUMN = 28 };

void help_print_usage(FILE *to, const struct command *c)
{
    char text[512] = "usage: heaptape COMMAND [options] [operands]   (heaptape help lists commands)";
    if (c)
        snprintf(text, sizeof text, "usage: heaptape %s [options]%s%s", c->name, c->operands ? " " : "",
                 c->operands ? c->operands : "");
    wrap_text(to, text, strlen(text), to == stderr ? wrap_error_columns() : 0);
    putc('\n', to);
}

// Prints words, broken at HELP_WIDTH; the cursor is at `column`, later lines begin at `indent`.
static void print_wrapped(FILE *to, const char *text, size_t n, int indent, int column)
{
    bool first = true;
    while (n) {
        size_t word = strcspn(text, " \n");
        word = word < n ? word : n;
        if (word && !first && column + 1 + (int)word > HELP_WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        if (word) {
            column += fprintf(to, "%s%.*s", first ? "" : " ", (int)word, text);
            first = false;
        }
        text += word;
        n -= word;
        if (n) {
            text++;
            n--;
        }
    }
    fputc('\n', to);
}

static void print_paragraphs(FILE *to, const char *text)
{
    while (text && *text) {
        const char *end = strstr(text, "\n\n");
        fputc('\n', to);
        print_wrapped(to, text, end ? (size_t)(end - text) : strlen(text), 0, 0);
        text = end ? end + 2 : NULL;
    }
}

const char *help_option_prefix(const struct option *o)
{
    return o->type == OPTION_FLAG && o->fallback ? "no-" : "";
}

void help_option_note(char *text, size_t size, const struct option *o)
{
    enum { WORTH_SHOWING = 1000000 }; // a larger limit is the type's, not the option's
    char range[64] = "";
    bool number = o->type == OPTION_NUMBER && o->max && o->max < WORTH_SHOWING;
    bool shown = o->fallback && *o->fallback && o->type != OPTION_FLAG;
    if (number)
        snprintf(range, sizeof range, "%llu to %llu%s", (unsigned long long)o->min, (unsigned long long)o->max,
                 shown ? "; " : "");
    *text = 0;
    if (number || shown)
        snprintf(text, size, " (%s%s%s)", range, shown ? "default: " : "", shown ? o->fallback : "");
}

int help_option_name(char *text, size_t size, const struct option *o)
{
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(text, size, "%s--%s%s%s%s%s%s", letter, help_option_prefix(o), o->name, o->bare ? "[" : "",
                    o->argument ? "=" : "", o->argument ? o->argument : "", o->bare ? "]" : "");
}

static void print_option(FILE *to, const struct option *o)
{
    char name[160], help[1024], note[128];
    help_option_name(name, sizeof name, o);
    int column = fprintf(to, "  %s%s", o->letter ? "" : "    ", name);
    if (column >= HELP_COLUMN) {
        fputc('\n', to);
        column = 0;
    }
    fprintf(to, "%*s", HELP_COLUMN - column, "");
    help_option_note(note, sizeof note, o);
    int n = snprintf(help, sizeof help, "%s%s", o->help, note);
    print_wrapped(to, help, n < (int)sizeof help ? (size_t)n : sizeof help - 1, HELP_COLUMN, HELP_COLUMN);
}

static void print_options(FILE *to, const struct option *options)
{
    for (const struct option *o = options; o && o->name; o++)
        print_option(to, o);
}

void help_print_command(FILE *to, const struct command *c)
{
    help_print_usage(to, c);
    fprintf(to, "\n%s.\n", c->summary);
    print_paragraphs(to, c->description);
    fputs("\nOptions:\n", to);
    print_options(to, c->options);
    print_options(to, options_common);
}

void help_print_commands(FILE *to)
{
    fputs("usage: heaptape COMMAND [options] [operands]\n"
          "\n"
          "Record the heap of a real program once; replay it on any allocator.\n"
          "\n"
          "Commands:\n",
          to);
    for (const struct command *const *c = cli_commands; *c; c++)
        fprintf(to, "  %-12s%s\n", (*c)->name, (*c)->summary);
    fputs("  help        Show this list, or the help of a command\n"
          "\n"
          "'heaptape COMMAND --help' shows a command's options; 'heaptape --version' the version.\n"
          "'heaptape --version --verbose' adds how it was built, and the libraries.\n",
          to);
}
