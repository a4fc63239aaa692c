#include "commands/replay_options.h"
#include "analysis/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_SECONDS = 10, MAX_IDLE_SECONDS = 86400 };

static enum results_touch touch_of(const char *word)
{
    if (strcmp(word, "none") == 0)
        return RESULTS_TOUCH_NONE;
    return strcmp(word, "all") == 0 ? RESULTS_TOUCH_ALL : RESULTS_TOUCH_PAGE;
}

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

static uint64_t idle_seconds(const struct replay_options *o, double speed)
{
    return o->idle_seconds || !(speed > 0) ? o->idle_seconds : IDLE_SECONDS;
}

// "max", "recorded", or "x" and a number: times the recorded pace, 0 for max. False when it is none of these.
static bool parse_speed(const char *text, double *speed)
{
    char *end;
    *speed = strcmp(text, "recorded") == 0;
    if (*speed > 0 || strcmp(text, "max") == 0)
        return true;
    if (text[0] != 'x' || !strchr("0123456789.", text[1]))
        return false;
    *speed = strtod(text + 1, &end);
    return !*end && *speed >= 1e-6 && *speed <= 1e6;
}

static int check_options(const struct command *c, const struct replay_options *o, double *speed)
{
    if (o->runs < 1 || o->runs > MEASURE_MAX_RUNS)
        return usage_error(c, "--runs must be from 1 to %d", MEASURE_MAX_RUNS);
    if (!parse_speed(o->speed, speed))
        return usage_error(c, "--speed must be max, recorded, or x and a number");
    if (o->fragmentation && o->verify)
        return usage_error(c, "--fragmentation cannot be used with --verify, which measures nothing");
    if (o->idle_seconds > MAX_IDLE_SECONDS)
        return usage_error(c, "--idle must be at most %d", MAX_IDLE_SECONDS);
    for (size_t i = 0; i < o->sweeps.n; i++) {
        if (!is_sweep(o->sweeps.items[i]))
            return usage_error(c, "--sweep %s: expected VARIABLE=VALUE,VALUE...", o->sweeps.items[i]);
    }
    return EXIT_DONE;
}

static void apply_options(struct replay_session *s, const struct replay_options *o)
{
    s->n_runs = o->runs;
    s->how_to_plan.memory_bytes = o->memory_bytes;
    s->how_to_plan.stats_every = o->verify ? 0 : o->stats_every;
    s->how_to_plan.trim_every = o->trim_every;
    s->internal_fragmentation = o->internal_fragmentation && !o->verify;
    s->fragmentation = o->fragmentation && !o->verify;
    s->how_to_plan.one_thread = strcmp(o->threads, "one") == 0;
    s->settings.idle_wait_ns = idle_seconds(o, s->speed) * 1000000000u;
    s->latency = !o->no_latency;
    s->settings.touch = touch_of(o->touch);
    if (o->verify) {
        s->verify = true;
        s->latency = false;
        s->settings.touch = RESULTS_TOUCH_CHECKED;
    }
}

int replay_run_all(const struct command *c, const struct replay_options *o, const char *path,
                   void (*print)(const struct replay_session *s, const struct replay_options *o))
{
    struct replay_session session = {0};
    struct err e = {0};
    int code = check_options(c, o, &session.speed);
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
