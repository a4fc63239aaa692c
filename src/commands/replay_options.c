#include "commands/replay_options.h"
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_SECONDS = 10 };

// Is it VARIABLE= and something behind?
static bool is_sweep(const char *sweep)
{
    const char *equals = strchr(sweep, '=');
    return equals && equals != sweep && equals[1];
}

// Adds `spec` once for each combination of the values of the sweeps from number `i` on.
static int add_swept(struct replay_session *s, const struct replay_options *o, const char *spec, size_t i,
                     struct err *e)
{
    if (i == o->sweeps.n)
        return session_add_allocator(s, spec, e);
    const char *sweep = o->sweeps.items[i], *value = strchr(sweep, '=') + 1;
    int rc = 0;
    while (rc == 0 && value) {
        char *with = NULL;
        if (asprintf(&with, "%s,%.*s=%.*s", spec, (int)strcspn(sweep, "="), sweep, (int)strcspn(value, ","), value) < 0)
            return err_set(e, -ENOMEM, "out of memory");
        rc = add_swept(s, o, with, i + 1, e);
        free(with);
        value = strchr(value, ',');
        value += value != NULL;
    }
    return rc;
}

static int add_allocators(struct replay_session *s, const struct replay_options *o, struct err *e)
{
    int rc = 0;
    if (!o->allocators.n)
        return add_swept(s, o, "glibc", 0, e);
    for (size_t i = 0; rc == 0 && i < o->allocators.n; i++)
        rc = add_swept(s, o, o->allocators.items[i], 0, e);
    return rc;
}

static uint64_t idle_seconds(const struct replay_options *o)
{
    return o->idle_seconds || !(o->speed > 0) ? o->idle_seconds : IDLE_SECONDS;
}

int replay_parse_speed(const char *text, void *field)
{
    double *speed = field;
    char *end;
    int word = options_parse_choice("max|recorded", text);
    *speed = word;
    if (word >= 0)
        return 0;
    if (text[0] != 'x' || !strchr("0123456789.", text[1]))
        return -EINVAL;
    *speed = strtod(text + 1, &end);
    return !*end && *speed >= 1e-6 && *speed <= 1e6 ? 0 : -EINVAL;
}

static int check_options(const struct command *c, const struct replay_options *o)
{
    if (o->fragmentation && o->verify)
        return usage_error(c, "--fragmentation cannot be used with --verify, which measures nothing");
    for (size_t i = 0; i < o->sweeps.n; i++) {
        if (!is_sweep(o->sweeps.items[i]))
            return usage_error(c, "--sweep %s: expected VARIABLE=VALUE,VALUE...", o->sweeps.items[i]);
    }
    return EXIT_DONE;
}

static void apply_options(struct replay_session *s, const struct replay_options *o)
{
    s->n_runs = o->runs;
    s->speed = o->speed;
    s->how_to_plan.memory_bytes = o->memory_bytes;
    s->how_to_plan.stats_every = o->verify ? 0 : o->stats_every;
    s->how_to_plan.trim_every = o->trim_every;
    s->internal_fragmentation = o->internal_fragmentation && !o->verify;
    s->fragmentation = o->fragmentation && !o->verify;
    s->how_to_plan.one_thread = o->threads == REPLAY_ONE_THREAD;
    s->settings.idle_wait_ns = idle_seconds(o) * 1000000000u;
    s->latency = o->latency;
    s->settings.touch = o->touch;
    if (o->verify) {
        s->verify = true;
        s->latency = false;
        s->settings.touch = RESULTS_TOUCH_VERIFY;
    }
}

int replay_run_all(const struct command *c, const struct replay_options *o, const char *path,
                   void (*print)(const struct replay_session *s, const struct replay_options *o))
{
    struct replay_session session = {0};
    struct err e = {0};
    int code = check_options(c, o);
    if (code != EXIT_DONE)
        return code;
    apply_options(&session, o);
    int rc = session_init(&session, &e);
    if (rc == 0)
        rc = add_allocators(&session, o, &e);
    if (rc == 0)
        rc = session_read(&session, path, &e);
    if (rc == 0)
        rc = session_run(&session, &e);
    if (rc == 0)
        print(&session, o);
    session_release(&session);
    if (rc < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : strerror(-rc));
    return EXIT_DONE;
}
