#include "commands/replay_options.h"

#include "cli/options.h"
#include "cli/paths.h"
#include "cli/span.h"
#include "convert/open.h"
#include "replay/real.h"
#include "report/text/replay.h"
#include "report/text/watch.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define IDLE_NS (10 * CLOCK_NS_PER_S)

// Returns true if a value between the commas is empty.
static bool has_empty_item(const char *values)
{
    while (*values && *values != ',') {
        values += strcspn(values, ",");
        if (!*values)
            return false;
        values++;
    }
    return true;
}

int replay_check_sweeps(const struct command *c, const struct option_list *sweeps)
{
    for (size_t i = 0; i < sweeps->n; i++) {
        const char *sweep = sweeps->items[i], *equals = strchr(sweep, '=');
        if (!equals || equals == sweep || has_empty_item(equals + 1))
            return usage_error(c, "--sweep %s: expected VARIABLE=VALUE,VALUE...", sweep);
        for (size_t k = 0; k < i; k++) {
            if (strncmp(sweeps->items[k], sweep, (size_t)(equals - sweep) + 1) == 0)
                return usage_error(c,
                                   "--sweep %.*s is given twice; separate its values with commas",
                                   (int)(equals - sweep), sweep);
        }
    }
    return EXIT_DONE;
}

struct each_swept {
    const struct option_list *sweeps;
    int (*add)(void *context, const char *spec, struct err *e);
    void *context;
};

// Adds the combinations of sweep `i` and later sweeps.
static int add_swept(const struct each_swept *s, const char *spec, size_t i, struct err *e)
{
    const struct option_list *sweeps = s->sweeps;
    if (i == sweeps->n)
        return s->add(s->context, spec, e);
    const char *sweep = sweeps->items[i], *value = strchr(sweep, '=') + 1;
    int rc = 0;
    while (rc == 0 && value) {
        char *with = NULL;
        if (asprintf(&with, "%s,%.*s=%.*s", spec, (int)strcspn(sweep, "="), sweep,
                     (int)strcspn(value, ","), value) < 0)
            return err_no_memory(e, NULL);
        rc = add_swept(s, with, i + 1, e);
        free(with);
        value = strchr(value, ',');
        if (value)
            value++;
    }
    return rc;
}

int replay_each_swept(const struct option_list *sweeps, const char *spec,
                      int (*add)(void *context, const char *spec, struct err *e), void *context,
                      struct err *e)
{
    return add_swept(&(struct each_swept){sweeps, add, context}, spec, 0, e);
}

void replay_find_own(const char *name, char path[PATH_MAX])
{
    int rc = paths_find(name, path, PATH_MAX);
    if (rc < 0)
        die(EXIT_FAILED, "%s: not found where heaptape was installed: %s", name, strerror(-rc));
}

// Adds an allocator. `guard` is heaptape's own checking allocator, which is used only if it is
// named.
static int add_to_session(void *session, const char *spec, struct err *e)
{
    static const char guard[] = "guard";
    char path[PATH_MAX], *with;
    size_t n = strcspn(spec, ",");
    if (n != strlen(guard) || strncmp(spec, guard, n) != 0)
        return replay_session_add(session, spec, e);
    replay_find_own("libheaptape-guard.so", path);
    if (asprintf(&with, "%s%s", path, spec + n) < 0)
        return err_no_memory(e, NULL);
    int rc = replay_session_add(session, with, e);
    free(with);
    return rc;
}

static int add_allocators(struct replay_session *s, const struct option_list *allocators,
                          const struct option_list *sweeps, struct err *e)
{
    int rc = 0;
    if (!allocators->n)
        return replay_each_swept(sweeps, allocator_preloaded() ?: "glibc", add_to_session, s, e);
    for (size_t i = 0; rc == 0 && i < allocators->n; i++)
        rc = replay_each_swept(sweeps, allocators->items[i], add_to_session, s, e);
    return rc;
}

static uint64_t idle_ns(const struct replay_options *o)
{
    return o->idle.given || !(o->speed > 0) ? o->idle.ns : IDLE_NS;
}

int replay_parse_idle(const char *text, void *field)
{
    struct replay_idle *idle = field;
    int rc = span_parse_seconds(text, &idle->ns);
    idle->given = true;
    return rc == 0 && idle->ns > REPLAY_MAX_IDLE_NS ? -ERANGE : rc;
}

int replay_parse_cpus(const char *text, void *field)
{
    struct replay_cpus *cpus = field;
    cpus->text = text;
    CPU_ZERO(&cpus->set);
    for (;;) {
        char *end;
        if (!isdigit((unsigned char)*text))
            return -EINVAL;
        unsigned long from = strtoul(text, &end, 10), to = from;
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1]))
                return -EINVAL;
            to = strtoul(end + 1, &end, 10);
        }
        if (from > to)
            return -EINVAL;
        if (to >= CPU_SETSIZE)
            return -ERANGE;
        for (unsigned long i = from; i <= to; i++)
            CPU_SET(i, &cpus->set);
        if (!*end)
            return 0;
        if (*end != ',')
            return -EINVAL;
        text = end + 1;
    }
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

// If LD_PRELOAD names an allocator that -a does not name, prints a warning, because users may
// expect the preloaded allocator to be measured.
static void note_preloaded(const struct replay_session *s, const struct option_list *allocators)
{
    const char *preloaded = allocators->n ? allocator_preloaded() : NULL;
    char *path = preloaded ? realpath(preloaded, NULL) : NULL;
    bool chosen = false;
    for (size_t i = 0; path && i < s->n_results; i++)
        chosen |=
            s->results[i].allocator.library && strcmp(s->results[i].allocator.library, path) == 0;
    if (path && !chosen)
        note("the allocator %s in LD_PRELOAD is not used, because -a names another one", path);
    free(path);
}

void replay_note_unread(const struct allocator *a, const struct allocator *previous)
{
    char name[128], of_previous[128];
    if (!allocator_find_unread(a, name, sizeof name) ||
        (previous && strcmp(a->name, previous->name) == 0 &&
         allocator_find_unread(previous, of_previous, sizeof of_previous) &&
         strcmp(name, of_previous) == 0))
        return;
    note("%s does not read the tunable %s: correct or remove the tunable", a->name, cli_text(name));
}

// Prints the sender of the signal, and restores the default action. An allocator under test may
// also send signals.
static void print_signal(int number, siginfo_t *info, void *context)
{
    char digits[11], *digit = digits + sizeof digits;
    for (uint32_t pid = (uint32_t)info->si_pid; pid; pid /= 10)
        *--digit = (char)('0' + pid % 10);
    struct iovec line[] = {{"heaptape: SIGTERM from process ", 31},
                           {digit, (size_t)(digits + sizeof digits - digit)},
                           {" ended the replay\n", 18}};
    ssize_t n = writev(STDERR_FILENO, line, sizeof line / sizeof *line);
    (void)n;
    (void)context;
    raise(number);
}

static void watch_signal(void)
{
    struct sigaction a = {.sa_sigaction = print_signal, .sa_flags = SA_SIGINFO | (int)SA_RESETHAND},
                     old;
    if (sigaction(SIGTERM, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGTERM, &a, NULL);
}

void replay_prepare(char player[PATH_MAX], char null_library[PATH_MAX])
{
    replay_find_own("heaptape-replay", player);
    replay_find_own("libheaptape-null.so", null_library);
    watch_signal();
}

void replay_workload(struct replay_session *s, struct replay_settings *how,
                     const struct option_list *allocators, const struct option_list *sweeps,
                     const char *path)
{
    char player[PATH_MAX], null_library[PATH_MAX];
    struct workload_file w = {.in.fd = -1};
    struct err e = {0};
    replay_prepare(player, null_library);
    how->player = player;
    how->null_library = null_library;
    how->quiet = cli_common.quiet;
    replay_session_init(s, how);
    int rc = add_allocators(s, allocators, sweeps, &e);
    if (rc == 0)
        note_preloaded(s, allocators);
    for (size_t i = 0; rc == 0 && i < s->n_results; i++)
        replay_note_unread(&s->results[i].allocator, i ? &s->results[i - 1].allocator : NULL);
    const struct convert_open_options open = {.twice = true, .watch = watch_conversion()};
    if (rc == 0)
        rc = convert_open(&w, path, &open, &e) ?: replay_session_read(s, path, &w, &e);
    if (rc < 0 || !replay_session_needs_input(s))
        workload_file_close(&w);
    if (rc == 0 && plan_facts(s->plan)->unproved)
        note("%s: " WORKLOAD_UNPROVED, path);
    if (rc == 0)
        rc = replay_session_run(s, &e);
    workload_file_close(&w);
    if (rc < 0 && s->n_failed && !s->n_results) {
        replay_print_failed(s);
        exit(EXIT_FAILED);
    }
    if (rc < 0) {
        replay_session_release(s);
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : strerror(-rc));
    }
}

char **replay_choose_program(const struct replay_session *s, char *const given[])
{
    size_t n = 0;
    while (given[n])
        n++;
    char **argv = n ? calloc(n + 1, sizeof *argv) : replay_real_recorded(s);
    if (n && argv)
        memcpy(argv, given, n * sizeof *argv);
    if (!argv)
        die(EXIT_FAILED, "%s: the command line was not recorded; pass it after --", s->workload);
    return argv;
}

int replay_options_run(const struct command *c, const struct replay_options *o, const char *path,
                       void (*print)(struct replay_session *s, const struct replay_options *o))
{
    struct replay_session session;
    int code = replay_check_sweeps(c, &o->sweeps);
    if (code != EXIT_DONE)
        return code;
    // The players inherit the CPU affinity.
    if (o->cpus.text && sched_setaffinity(0, sizeof o->cpus.set, &o->cpus.set) < 0)
        die(EXIT_FAILED, "--cpus %s: %s", o->cpus.text,
            errno == EINVAL ? "heaptape is not allowed to run on these CPUs" : strerror(errno));
    struct replay_settings how = {
        .placement_events = o->placement_events,
        .runs = (unsigned)o->runs,
        .touch = o->touch,
        .threads = o->threads,
        .speed = o->speed,
        .timeout_ns = o->timeout_ns,
        .idle_ns = idle_ns(o),
        .memory_bytes = o->memory_bytes,
        .stats_every = o->stats_every,
        .trim_every = o->trim_every,
        .verify = o->verify,
        .add_recorded = o->add_recorded,
        .keep_going = o->keep_going,
        .latency = o->latency,
        .internal_fragmentation = o->internal_fragmentation,
        .fragmentation = o->fragmentation,
        .no_cache = !o->cache,
    };
    replay_workload(&session, &how, &o->allocators, &o->sweeps, path);
    print(&session, o);
    fflush(stdout);
    replay_print_failed(&session);
    code = session.n_failed ? EXIT_FAILED : EXIT_DONE;
    replay_session_release(&session);
    return code;
}
