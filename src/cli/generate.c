#include "cli/generate.h"

#include "cli/help.h"
#include "cli/options.h"
#include "trace/event/event.h"

#include <ctype.h>
#include <string.h>

// Prints text, and escapes the characters that scdoc interprets.
static void put_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\*_", *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}

// Prints a clause of the command table as a sentence and ends the paragraph.
static void put_sentence(FILE *to, const char *clause, const char *note)
{
    fputc(toupper((unsigned char)*clause), to);
    put_text(to, clause + 1);
    put_text(to, note);
    fputs(".\n\n", to);
}

static void put_option(FILE *to, const struct option *o)
{
    char note[128];
    if (o->letter)
        fprintf(to, "*-%c*, ", o->letter);
    fprintf(to, "*--%s%s*", options_prefix(o), o->name);
    if (o->argument) {
        fputs(o->bare ? "[=_" : "=_", to);
        put_text(to, o->argument);
        fputs(o->bare ? "_]" : "_", to);
    }
    help_option_note(note, sizeof note, o);
    fputs("\n\t", to);
    put_sentence(to, o->help, note);
}

static void put_options(FILE *to, const struct option *options)
{
    for (const struct option *o = options; o && o->name; o++) {
        if (o->group)
            fprintf(to, "## %s\n\n", o->group);
        put_option(to, o);
    }
}

static void put_upper(FILE *to, const char *text)
{
    for (; *text; text++)
        fputc(toupper((unsigned char)*text), to);
}

static void put_words(FILE *to, const struct command *c)
{
    if (c->words) {
        fputs("# ", to);
        put_upper(to, c->words_title);
        fputs("\n\n", to);
    }
    for (const struct command_word *w = c->words; w && w->word; w++) {
        fputc('*', to);
        put_text(to, w->word);
        fputs("*\n\t", to);
        put_sentence(to, w->meaning, "");
    }
}

static void put_examples(FILE *to, const struct command *c)
{
    fputs("# EXAMPLES\n\n", to);
    for (const struct command_example *e = c->examples;
         e < c->examples + COMMAND_EXAMPLES && e->lines; e++) {
        put_text(to, e->purpose);
        fputs(".\n\n```\n", to);
        for (const char *at = e->lines; *at; at++)
            fprintf(to, "%s%c", *at == '\\' ? "\\" : "", *at);
        fputs("\n```\n\n", to);
    }
}

static void command_man(FILE *to, const struct command *c)
{
    fprintf(to, "heaptape-%s(1)\n\n# NAME\n\nheaptape-%s - ", c->name, c->name);
    put_text(to, c->summary);
    fprintf(to, "\n\n# SYNOPSIS\n\n*heaptape %s* [options] ", c->name);
    put_text(to, c->operands ? c->operands : "");
    fputs("\n\n# DESCRIPTION\n\n# OPTIONS\n\n", to);
    put_options(to, c->options);
    put_options(to, options_common);
    put_words(to, c);
    put_examples(to, c);
}

void generate_man(FILE *to, const struct command *c)
{
    if (c) {
        command_man(to, c);
        return;
    }
    fputs("heaptape(1)\n\n"
          "# NAME\n\n"
          "heaptape - record the heap of a program and replay it on any allocator\n\n"
          "# SYNOPSIS\n\n*heaptape* _COMMAND_ [options] [operands]\n\n# COMMANDS\n\n",
          to);
    for (const struct command_row *row = cli_command_rows; row->heading || row->command; row++) {
        if (row->heading) {
            fprintf(to, "## %s\n\n", row->heading);
            continue;
        }
        fprintf(to, "*heaptape-%s*(1)\n\t", row->command->name);
        put_text(to, row->command->summary);
        fputs(".\n\n", to);
    }
    fputs("# OPTIONS\n\nOptions of a command follow its name. Every command has these:\n\n", to);
    put_options(to, options_common);
}

struct kind_row {
    unsigned wire, fields;
    const char *name, *symbol, *class, *stamp, *form;
};

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    {wire, fields, name, symbol, #class, #stamp, #form},
static const struct kind_row kind_rows[] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X

void generate_kinds(FILE *to)
{
    // Names in the order of the HT_F_* bits.
    static const char *const fields[] = {"ptr",    "size",  "count", "align",
                                         "result", "value", "text"};
    fputs("| number | kind | function | class | stamped | form | fields |\n"
          "|---|---|---|---|---|---|---|\n",
          to);
    for (size_t i = 0; i < sizeof kind_rows / sizeof *kind_rows; i++) {
        const struct kind_row *k = &kind_rows[i];
        const char *quote = k->symbol[0] ? "`" : "";
        fprintf(to, "| %u | %s | %s%s%s | %s | %s | %s |", k->wire, k->name, quote, k->symbol,
                quote, k->class, k->stamp, k->form);
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
