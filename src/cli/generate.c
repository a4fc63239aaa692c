#include "cli/generate.h"

#include "cli/help.h"
#include "cli/options.h"
#include "event/event.h"

#include <string.h>

// Text of which scdoc must not take any character as its own.
static void put_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\*_", *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}

// A paragraph of the table is one line; scdoc breaks it.
static void put_paragraphs(FILE *to, const char *text)
{
    bool begins = true;
    for (; text && *text; text++) {
        // At the beginning of a line these make lists, headings, comments and tables.
        if (begins && strchr("-.#;|[]", *text))
            fputc('\\', to);
        begins = *text == '\n';
        if (begins && text[1] != '\n' && text[-1] != '\n')
            fputc(' ', to);
        else
            put_text(to, (char[]){*text, 0});
    }
    fputs("\n\n", to);
}

static void put_option(FILE *to, const struct option *o)
{
    char note[128];
    if (o->letter)
        fprintf(to, "*-%c*, ", o->letter);
    fprintf(to, "*--%s%s*", help_option_prefix(o), o->name);
    if (o->argument) {
        fputs(o->bare ? "[=_" : "=_", to);
        put_text(to, o->argument);
        fputs(o->bare ? "_]" : "_", to);
    }
    fputs("\n\t", to);
    put_text(to, o->help);
    help_option_note(note, sizeof note, o);
    put_text(to, note);
    fputs(".\n\n", to);
}

static void put_options(FILE *to, const struct option *options)
{
    for (const struct option *o = options; o && o->name; o++)
        put_option(to, o);
}

static void command_man(FILE *to, const struct command *c)
{
    fprintf(to, "heaptape-%s(1)\n\n# NAME\n\nheaptape-%s - ", c->name, c->name);
    put_text(to, c->summary);
    fprintf(to, "\n\n# SYNOPSIS\n\n*heaptape %s* [options] ", c->name);
    put_text(to, c->operands ? c->operands : "");
    fputs("\n\n# DESCRIPTION\n\n", to);
    if (c->description) {
        put_paragraphs(to, c->description);
    } else {
        put_text(to, c->summary);
        fputs(".\n\n", to);
    }
    fputs("# OPTIONS\n\n", to);
    put_options(to, c->options);
    put_options(to, options_common);
}

void generate_man(FILE *to, const struct command *c)
{
    if (c) {
        command_man(to, c);
        return;
    }
    fputs("heaptape(1)\n\n# NAME\n\nheaptape - record the heap of a program and replay it on any allocator\n\n"
          "# SYNOPSIS\n\n*heaptape* _COMMAND_ [options] [operands]\n\n# COMMANDS\n\n",
          to);
    for (const struct command *const *at = cli_commands; *at; at++) {
        fprintf(to, "*heaptape-%s*(1)\n\t", (*at)->name);
        put_text(to, (*at)->summary);
        fputs(".\n\n", to);
    }
    fputs("# OPTIONS\n\nOptions of a command stand after its name. Every command has these:\n\n", to);
    put_options(to, options_common);
}

struct kind_row {
    unsigned wire, fields;
    const char *name, *symbol, *class, *stamp, *form;
};

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                                              \
    {wire, fields, name, symbol, #class, #stamp, #form},
static const struct kind_row kind_rows[] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X

void generate_kinds(FILE *to)
{
    // In the order of the bits of HT_F_*.
    static const char *const fields[] = {"ptr", "size", "count", "align", "result", "value", "text"};
    fputs("| number | kind | function | class | stamped | form | fields |\n|---|---|---|---|---|---|---|\n", to);
    for (size_t i = 0; i < sizeof kind_rows / sizeof *kind_rows; i++) {
        const struct kind_row *k = &kind_rows[i];
        const char *quote = k->symbol[0] ? "`" : "";
        fprintf(to, "| %u | %s | %s%s%s | %s | %s | %s |", k->wire, k->name, quote, k->symbol, quote, k->class,
                k->stamp, k->form);
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            const struct event_argument a = event_argument(k->wire, 1u << f);
            bool is_number = 1u << f & (HT_F_SIZE | HT_F_COUNT | HT_F_VALUE);
            if (!(k->fields >> f & 1))
                continue;
            fprintf(to, " %s", fields[f]);
            if (is_number && strcmp(a.name, fields[f]) != 0)
                fprintf(to, "=%s", a.name);
            if (is_number && a.is_signed)
                fputs(":signed", to);
        }
        fputs(" |\n", to);
    }
}
