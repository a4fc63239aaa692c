#include "cli/options.h"

#include "base/clock.h"
#include "cli/span.h"
#include "cli/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct options_shared, member)

const struct option options_common[] = {
    {'h', "help", OPTION_FLAG, NULL, NULL, "show this help and exit", AT(help)},
    {'q', "quiet", OPTION_FLAG, NULL, NULL, "print only errors on standard error", AT(quiet)},
    {0, "color", OPTION_CHOICE, "auto|always|never", "auto", "use colour: auto, always or never",
     AT(color), .shown = "WHEN"},
    {0},
};

enum { MAX_OPTIONS = 64 }; // number of bits of parse.given

struct parse {
    const struct command *command;
    void *fields;
    struct options_shared *common;
    uint64_t given; // bit i: option i of the command differs from its default
    char **argv;
    int argc, next; // argv[next] is the next word to parse
};

// An option, and the struct that contains the option's field.
struct option_match {
    const struct option *option;
    void *base;
    bool negated;
};

int options_parse_number(const char *text, uint64_t *n)
{
    uint64_t v = 0;
    if (!*text)
        return -EINVAL;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (unsigned)(*text - '0'), &v))
            return -ERANGE;
    }
    *n = v;
    return 0;
}

int options_parse_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char digits[24];
    size_t n = strspn(text, "0123456789");
    unsigned shift = 0;
    if (n >= sizeof digits)
        return -ERANGE;
    if (text[n]) {
        const char *unit = strchr(units, text[n] & ~0x20);
        if (!unit || text[n + 1])
            return -EINVAL;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    memcpy(digits, text, n);
    digits[n] = 0;
    uint64_t v;
    int rc = options_parse_number(digits, &v);
    if (rc < 0)
        return rc;
    if (v > UINT64_MAX >> shift)
        return -ERANGE;
    *bytes = v << shift;
    return 0;
}

int options_parse_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    int i = 0;
    for (const char *at = choices; at; at = strchr(at, '|'), i++) {
        at += *at == '|';
        if (strcspn(at, "|") == n && memcmp(at, word, n) == 0)
            return i;
    }
    return -1;
}

int options_parse_pid(const char *text, void *field)
{
    struct option_pid *p = field;
    uint64_t pid = 0;
    *p = (struct option_pid){.all = strcmp(text, "all") == 0};
    int rc = p->all ? 0 : options_parse_number(text, &pid);
    if (rc == 0 && !p->all && (pid < 1 || pid > UINT32_MAX))
        rc = -ERANGE;
    p->pid = (uint32_t)pid;
    return rc;
}

static int list_add(struct option_list *list, const char *value)
{
    const char **grown = reallocarray(list->items, list->n + 1, sizeof *grown);
    if (!grown)
        die(EXIT_FAILED, "out of memory");
    list->items = grown;
    list->items[list->n++] = value;
    return 0;
}

static int store_choice(const struct option *o, void *field, const char *value)
{
    int i = options_parse_choice(o->argument, value);
    memcpy(field, &i, sizeof i);
    return i < 0 ? -EINVAL : 0;
}

static int store_number(const struct option *o, uint64_t *field, const char *value)
{
    int rc = o->type == OPTION_SIZE      ? options_parse_size(value, field)
             : o->type == OPTION_SECONDS ? span_parse_seconds(value, field)
                                         : options_parse_number(value, field);
    return rc == 0 && (*field < o->min || (o->max && *field > o->max)) ? -ERANGE : rc;
}

// Stores `value` in the option's field. Returns 0, -EINVAL or -ERANGE.
static int store_value(const struct option *o, void *base, const char *value)
{
    void *field = (char *)base + o->offset;
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)field = value != NULL;
        return 0;
    case OPTION_STRING:
        *(const char **)field = value;
        return 0;
    case OPTION_NUMBER:
    case OPTION_SECONDS:
    case OPTION_SIZE:
        return store_number(o, field, value);
    case OPTION_CHOICE:
        return store_choice(o, field, value);
    case OPTION_PARSED:
        return o->parse(value, field);
    case OPTION_LIST:
        return list_add(field, value);
    }
    return -EINVAL;
}

static const char *expected_value(const struct option *o, char text[256])
{
    if (strcmp(o->argument, "SECONDS") == 0 || strcmp(o->argument, "TIME") == 0)
        return "a number of seconds or a time such as 10m";
    switch (o->type) {
    case OPTION_SIZE:
        return "a number of bytes such as 4096, 64K, 16M or 2G";
    case OPTION_CHOICE:
    case OPTION_PARSED:
        if (strcmp(o->argument, "LIST") == 0)
            return "a list of numbers such as 2,3 or 0-7";
        if (!strchr(o->argument, '|'))
            break;
        snprintf(text, 256, "one of %s", o->argument);
        return text;
    case OPTION_NUMBER:
    case OPTION_SECONDS:
    case OPTION_FLAG:
    case OPTION_STRING:
    case OPTION_LIST:
        break;
    }
    return "a whole number";
}

static void complain_range(const struct parse *p, const struct option *o, const char *value)
{
    if (o->type == OPTION_PARSED && o->min && !o->max)
        usage_error(p->command, "--%s: the size in '%s' is below %s", o->name, value,
                    human_size(o->min));
    else if (!o->max)
        usage_error(p->command, "--%s: '%s' is too large", o->name, value);
    else if (o->argument && strcmp(o->argument, "SECONDS") == 0)
        usage_error(p->command, "--%s: '%s' is not %s %llu seconds", o->name, value,
                    o->min ? "more than 0 and at most" : "at most",
                    (unsigned long long)(o->max / CLOCK_NS_PER_S));
    else if (o->type == OPTION_SIZE)
        usage_error(p->command, "--%s: '%s' is out of range: %s to %s", o->name, value,
                    human_size(o->min), human_size(o->max));
    else
        usage_error(p->command, "--%s: '%s' is out of range: %llu to %llu", o->name, value,
                    (unsigned long long)o->min, (unsigned long long)o->max);
}

static void note_given(struct parse *p, const struct option_match *f)
{
    const struct option *o = f->option;
    bool differs = o->type != OPTION_FLAG || f->negated == (o->fallback != NULL);
    if (f->base != p->fields || o - p->command->options >= MAX_OPTIONS)
        return;
    uint64_t bit = UINT64_C(1) << (o - p->command->options);
    p->given = differs ? p->given | bit : p->given & ~bit;
}

static int store_or_complain(struct parse *p, const struct option_match *f, const char *value)
{
    char text[256];
    int rc = store_value(f->option, f->base, f->negated ? NULL : value);
    if (rc == 0) {
        note_given(p, f);
        return 0;
    }
    if (rc == -ERANGE)
        complain_range(p, f->option, value);
    else
        usage_error(p->command, "--%s: '%s' is not %s", f->option->name, value,
                    expected_value(f->option, text));
    return -1;
}

// If `lists` is true, sets the defaults of lists, else the defaults of all other options. Call for
// lists after parsing, because values on the command line replace a list's default.
static void set_defaults(const struct option *options, void *base, bool lists)
{
    for (const struct option *o = options; o && o->name; o++) {
        if (o->type == OPTION_CHOICE && !o->fallback && !lists)
            memcpy((char *)base + o->offset, &(int){-1}, sizeof(int));
        if (!o->fallback || (o->type == OPTION_LIST) != lists)
            continue;
        if (lists && ((struct option_list *)((char *)base + o->offset))->n)
            continue;
        if (store_value(o, base, o->fallback) < 0)
            die(EXIT_FAILED, "the default of --%s is wrong: '%s'", o->name, o->fallback);
    }
}

static bool find_in(const struct option *options, void *base, const char *name, size_t n,
                    struct option_match *f)
{
    for (const struct option *o = options; o && o->name; o++) {
        if (strlen(o->name) != n || memcmp(o->name, name, n) != 0)
            continue;
        *f = (struct option_match){o, base, false};
        return true;
    }
    return false;
}

static bool find_name(const struct parse *p, const char *name, size_t n, struct option_match *f)
{
    return find_in(p->command->options, p->fields, name, n, f) ||
           find_in(options_common, p->common, name, n, f);
}

// Searches the command's options first, so that they can override common options.
static bool find_long(const struct parse *p, const char *name, size_t n, struct option_match *f)
{
    if (find_name(p, name, n, f))
        return true;
    if (n <= 3 || memcmp(name, "no-", 3) != 0 || !find_name(p, name + 3, n - 3, f))
        return false;
    f->negated = true;
    return f->option->type == OPTION_FLAG;
}

static bool find_letter(const struct parse *p, char letter, struct option_match *f)
{
    const struct option *tables[] = {p->command->options, options_common};
    void *bases[] = {p->fields, p->common};
    for (int t = 0; t < 2; t++) {
        for (const struct option *o = tables[t]; o && o->name; o++) {
            if (o->letter != letter)
                continue;
            *f = (struct option_match){o, bases[t], false};
            return true;
        }
    }
    return false;
}

static int unknown_long(const struct parse *p, const char *name, size_t n)
{
    struct suggest s;
    suggest_init(&s, name, n);
    for (const struct option *o = p->command->options; o && o->name; o++)
        suggest_offer(&s, o->name);
    for (const struct option *o = options_common; o->name; o++)
        suggest_offer(&s, o->name);
    usage_error(p->command,
                s.best ? "unknown option '--%.*s'; did you mean '--%s'?"
                       : "unknown option '--%.*s'",
                (int)n, name, s.best);
    return -1;
}

static const char *next_word(struct parse *p)
{
    return p->next < p->argc ? p->argv[p->next++] : NULL;
}

// Parses a long option. `word` is the text after the two dashes.
static int parse_long(struct parse *p, const char *word)
{
    struct option_match f;
    size_t n = strcspn(word, "=");
    const char *value = word[n] ? word + n + 1 : NULL;
    if (!find_long(p, word, n, &f))
        return unknown_long(p, word, n);
    if (f.option->type == OPTION_FLAG) {
        if (!value)
            return store_or_complain(p, &f, "");
        usage_error(p->command, "--%.*s takes no value", (int)n, word);
        return -1;
    }
    if (!value)
        value = f.option->bare ? f.option->bare : next_word(p);
    if (!value) {
        usage_error(p->command, "--%s requires %s", f.option->name, f.option->argument);
        return -1;
    }
    return store_or_complain(p, &f, value);
}

// Parses a group of single-letter options. The last letter may be an option with a value. `word` is
// the text after the dash.
static int parse_letters(struct parse *p, const char *word)
{
    struct option_match f;
    for (; *word; word++) {
        if (!find_letter(p, *word, &f)) {
            usage_error(p->command, "unknown option '-%c'", *word);
            return -1;
        }
        if (f.option->type != OPTION_FLAG)
            break;
        if (store_or_complain(p, &f, "") < 0)
            return -1;
    }
    if (!*word)
        return 0;
    const char *value = word[1] ? word + 1 : next_word(p);
    if (!value) {
        usage_error(p->command, "-%c requires %s", *word, f.option->argument);
        return -1;
    }
    return store_or_complain(p, &f, value);
}

// Parses all words and moves the operands to the front of argv. Returns the number of operands, or
// -1.
static int parse_words(struct parse *p)
{
    int operands = 0;
    bool ended = false;
    while (p->next < p->argc && !p->common->help) {
        char *word = p->argv[p->next++];
        if (ended || word[0] != '-' || !word[1]) {
            p->argv[operands++] = word;
            ended |= p->command->runs_program;
        } else if (strcmp(word, "--") == 0) {
            ended = true;
            p->common->is_program = !operands;
        } else if ((word[1] == '-' ? parse_long(p, word + 2) : parse_letters(p, word + 1)) < 0) {
            return -1;
        }
    }
    return operands;
}

static bool is_default(const struct command_mode *m)
{
    return !m->option && !m->verb && !m->selects;
}

static bool is_selected(const struct parse *p, const struct command_mode *m, int operands)
{
    const struct option *o = p->command->options;
    if (m->verb)
        return operands && strcmp(p->argv[0], m->verb) == 0;
    if (!m->option)
        return !m->selects || m->selects(p->fields, operands);
    for (size_t i = 0; o[i].name; i++) {
        if (p->given >> i & 1 && strcmp(o[i].name, m->option) == 0)
            return true;
    }
    return false;
}

// Returns true if a message can refer to the mode by its option or its name.
static bool has_name(const struct command_mode *m)
{
    return m->option || m->verb || m->name;
}

static bool accepts(const struct command_mode *m, const char *option)
{
    return (m->option && strcmp(m->option, option) == 0) ||
           (m->accepts && options_parse_choice(m->accepts, option) >= 0);
}

static bool is_restricted(const struct command_mode *modes, const char *option)
{
    const struct command_mode *m = modes;
    while (!accepts(m, option) && !is_default(m))
        m++;
    return accepts(m, option);
}

static const char *mode_name(const struct command_mode *m, char text[64])
{
    if (m->name)
        return m->name;
    snprintf(text, 64, "%s%s", m->verb ? "the verb " : "--", m->verb ? m->verb : m->option);
    return text;
}

// Prints "--keep requires --flight or --segment", with the modes that accept the option.
static void print_required(const struct command *c, const struct command_mode *modes,
                           const struct option *o)
{
    char list[256] = "", name[64];
    size_t n = 0, left = 0;
    for (const struct command_mode *m = modes; !is_default(m); m++)
        left += has_name(m) && accepts(m, o->name);
    for (const struct command_mode *m = modes; !is_default(m) && n < sizeof list; m++) {
        if (has_name(m) && accepts(m, o->name))
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", mode_name(m, name),
                                  --left == 0 ? ""
                                  : left == 1 ? " or "
                                              : ", ");
    }
    usage_error(c, "--%s%s requires %s", options_prefix(o), o->name, list);
}

// Returns the first row of `modes` that the command line selects, or NULL after a usage error. Bit
// i of `given` is set if option i of the command differs from its default.
static const struct command_mode *select_mode(const struct parse *p,
                                              const struct command_mode *modes, int operands)
{
    char name[64];
    const struct command *c = p->command;
    const struct command_mode *mode = modes;
    while (!is_selected(p, mode, operands))
        mode++;
    if (operands && mode->rejects) {
        usage_error(c, "%s takes no %s", mode_name(mode, name), mode->rejects);
        return NULL;
    }
    for (size_t i = 0; c->options[i].name; i++) {
        const struct option *o = &c->options[i];
        if (i >= MAX_OPTIONS)
            die(EXIT_FAILED, "'%s' has more than %d options", c->name, MAX_OPTIONS);
        if (!(p->given >> i & 1) || accepts(mode, o->name) || !is_restricted(modes, o->name))
            continue;
        if (is_default(mode))
            print_required(c, modes, o);
        else
            usage_error(c, "%s cannot be combined with --%s%s", mode_name(mode, name),
                        options_prefix(o), o->name);
        return NULL;
    }
    return mode;
}

static int check_operands(const struct command *c, int n, char **argv)
{
    if ((unsigned)n < c->min_operands)
        usage_error(c, n ? "an operand is missing after '%s'" : "an operand is missing",
                    n ? argv[n - 1] : "");
    else if ((unsigned)n > c->max_operands && !c->runs_program)
        usage_error(c, "unexpected operand '%s'", argv[c->max_operands]);
    else
        return n;
    return -1;
}

int options_parse(const struct command *c, void *fields, struct options_shared *common, int argc,
                  char **argv)
{
    struct parse p = {.command = c, .fields = fields, .common = common, .argv = argv, .argc = argc};
    memset(fields, 0, c->options_bytes);
    *common = (struct options_shared){0};
    set_defaults(c->options, fields, false);
    set_defaults(options_common, common, false);
    int n = parse_words(&p);
    if (n < 0 || common->help)
        return n;
    set_defaults(c->options, fields, true);
    argv[n] = n < argc ? NULL : argv[n];
    for (size_t i = 0; i < COMMAND_MODES && c->modes[i]; i++) {
        common->modes[i] = select_mode(&p, c->modes[i], n);
        if (!common->modes[i])
            return -1;
    }
    return check_operands(c, n, argv);
}

int cli_find_word(const struct command *c, const char *word)
{
    struct suggest s;
    int i = 0;
    suggest_init(&s, word, strlen(word));
    for (; c->words[i].word && strcmp(c->words[i].word, word) != 0; i++)
        suggest_offer(&s, c->words[i].word);
    if (c->words[i].word)
        return i;
    usage_error(c, s.best ? "unknown verb '%s'; did you mean '%s'?" : "unknown verb '%s'", word,
                s.best);
    return -1;
}

void options_release(const struct command *c, void *fields)
{
    for (const struct option *o = c->options; o && o->name; o++) {
        if (o->type == OPTION_LIST)
            free(((struct option_list *)((char *)fields + o->offset))->items);
    }
}

const char *options_prefix(const struct option *o)
{
    return o->type == OPTION_FLAG && o->fallback ? "no-" : "";
}
