#include "cli/replay_options.h"
#include "report/measure.h"

#include <errno.h>
#include <string.h>

static enum results_touch touch_of(const char *word)
{
    if (strcmp(word, "none") == 0)
        return RESULTS_TOUCH_NONE;
    return strcmp(word, "all") == 0 ? RESULTS_TOUCH_ALL : RESULTS_TOUCH_PAGE;
}

static int add_allocators(struct replay_session *s, const struct replay_options *o, struct err *e)
{
    int rc = 0;
    if (!o->allocators.n)
        return session_add_allocator(s, "glibc", e);
    for (size_t i = 0; rc == 0 && i < o->allocators.n; i++)
        rc = session_add_allocator(s, o->allocators.items[i], e);
    return rc;
}

int replay_run_all(struct replay_session *s, const struct command *c, const struct replay_options *o, const char *path)
{
    struct err e = {0};
    if (o->runs < 1 || o->runs > MEASURE_MAX_RUNS)
        return usage_error(c, "--runs is 1 to %d", MEASURE_MAX_RUNS);
    s->n_runs = o->runs;
    s->latency = !o->no_latency;
    s->settings.touch = touch_of(o->touch);
    if (o->verify) {
        s->verify = true;
        s->latency = false;
        s->settings.touch = RESULTS_TOUCH_CHECKED;
    }
    int rc = session_init(s, &e);
    if (rc == 0)
        rc = add_allocators(s, o, &e);
    if (rc == 0)
        rc = session_read(s, path, o->memory_bytes, &e);
    if (rc == 0)
        rc = session_run(s, &e);
    if (rc < 0) {
        session_release(s);
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : strerror(-rc));
    }
    return EXIT_DONE;
}
