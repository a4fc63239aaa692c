#include "cli/modes.h"

#include "cli/help.h"
#include "cli/options.h"

#include <string.h>

static bool is_default(const struct command_mode *m)
{
    return !m->option && !m->selects;
}

static bool is_selected(const struct command *c, const struct command_mode *m, const void *fields,
                        uint64_t given, int operands)
{
    if (!m->option)
        return !m->selects || m->selects(fields, operands);
    for (size_t i = 0; c->options[i].name; i++) {
        if (given >> i & 1 && strcmp(c->options[i].name, m->option) == 0)
            return true;
    }
    return false;
}

// Returns true if a message can name the mode, by its option or by its name.
static bool has_name(const struct command_mode *m)
{
    return m->option || m->name;
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
    snprintf(text, 64, "--%s", m->option ? m->option : "");
    return m->name ? m->name : text;
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
    usage_error(c, "--%s%s requires %s", help_option_prefix(o), o->name, list);
}

const struct command_mode *modes_select(const struct command *c, const struct command_mode *modes,
                                        const void *fields, uint64_t given, int operands)
{
    char name[64];
    const struct command_mode *mode = modes;
    while (!is_selected(c, mode, fields, given, operands))
        mode++;
    if (operands && mode->rejects) {
        usage_error(c, "%s takes no %s", mode_name(mode, name), mode->rejects);
        return NULL;
    }
    for (size_t i = 0; c->options[i].name; i++) {
        const struct option *o = &c->options[i];
        if (i >= MODES_MAX_OPTIONS)
            die(EXIT_FAILED, "'%s' has more than %d options", c->name, MODES_MAX_OPTIONS);
        if (!(given >> i & 1) || accepts(mode, o->name) || !is_restricted(modes, o->name))
            continue;
        if (is_default(mode))
            print_required(c, modes, o);
        else
            usage_error(c, "%s cannot be combined with --%s%s", mode_name(mode, name),
                        help_option_prefix(o), o->name);
        return NULL;
    }
    return mode;
}
