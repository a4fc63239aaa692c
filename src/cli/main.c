#include "cli/command.h"
#include "cli/generate.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/suggest.h"
#include "cli/version.h"
#include "cli/wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

// heaptape itself needs up to 200 KiB of stack. The libraries that it calls need more.
#define STACK_BYTES (1ul << 20)

static const struct command *find_command(const char *name)
{
    for (const struct command *const *c = cli_commands; *c; c++) {
        if (strcmp((*c)->name, name) == 0)
            return *c;
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    struct suggest s;
    suggest_init(&s, name, strlen(name));
    for (const struct command *const *c = cli_commands; *c; c++)
        suggest_offer(&s, (*c)->name);
    suggest_offer(&s, "help");
    return usage_error(NULL,
                       s.best ? "unknown command '%s'; did you mean '%s'?" : "unknown command '%s'",
                       name, s.best);
}

static bool use_color(enum options_color when)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (when != COLOR_AUTO)
        return when == COLOR_ALWAYS;
    if ((no && *no) || !term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(STDOUT_FILENO);
}

static bool prints_json(const struct command *c, const char *fields)
{
    for (const struct option *o = c->options; o && o->name; o++) {
        if (o->type == OPTION_FLAG && strcmp(o->name, "json") == 0)
            return *(const bool *)(fields + o->offset);
    }
    return false;
}

static int run_command(const struct command *c, int argc, char **argv)
{
    _Alignas(max_align_t) char fields[OPTIONS_MAX_BYTES];
    struct options_shared common;
    if (c->options_bytes > sizeof fields)
        die(EXIT_FAILED, "the options of '%s' do not fit", c->name);
    int n = options_parse(c, fields, &common, argc, argv);
    int code = EXIT_USAGE;
    if (n >= 0 && common.help) {
        wrap_lines();
        help_print_command(stdout, c);
        code = EXIT_DONE;
    } else if (n >= 0) {
        cli_common.quiet = common.quiet;
        cli_common.is_program = common.is_program;
        cli_common.color = use_color(common.color);
        memcpy(cli_common.modes, common.modes, sizeof common.modes);
        if (c->prints_text && !prints_json(c, fields))
            wrap_lines();
        cli_common.n_operands = n;
        code = c->run(fields, argv);
    }
    options_release(c, fields);
    return code;
}

// Internal operands of `heaptape help` for tools/generate, in addition to --man [COMMAND].
static const struct generated {
    const char *option;
    void (*put)(FILE *to);
} generated[] = {
    {"--bash", generate_bash},
    {"--fish", generate_fish},
    {"--zsh", generate_zsh},
    {"--kinds", generate_kinds},
};

static bool put_generated(const char *option)
{
    for (size_t i = 0; i < sizeof generated / sizeof *generated; i++) {
        if (strcmp(option, generated[i].option) == 0) {
            generated[i].put(stdout);
            return true;
        }
    }
    return false;
}

static int print_man(int argc, char **argv)
{
    const struct command *c = argc > 1 ? find_command(argv[1]) : NULL;
    if (argc > 1 && !c)
        return unknown_command(argv[1]);
    generate_man(stdout, c);
    return EXIT_DONE;
}

static int run_help(int argc, char **argv)
{
    if (argc && strcmp(argv[0], "--man") == 0)
        return print_man(argc, argv);
    if (argc && put_generated(argv[0]))
        return EXIT_DONE;
    if (argc && argv[0][0] == '-')
        return usage_error(NULL, "unknown option '%s'", argv[0]);
    wrap_lines();
    if (argc == 0) {
        help_print_commands(stdout);
        return EXIT_DONE;
    }
    if (argc > 1)
        return usage_error(NULL, "unexpected operand '%s'", argv[1]);
    const struct command *c = find_command(argv[0]);
    if (!c)
        return unknown_command(argv[0]);
    help_print_command(stdout, c);
    return EXIT_DONE;
}

static int dispatch_command(int argc, char **argv)
{
    if (argc < 2) {
        cli_print_usage(stderr, NULL);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "help") == 0)
        return run_help(argc - 2, argv + 2);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return run_help(0, NULL);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        bool verbose = argc > 2 && strcmp(argv[2], "--verbose") == 0;
        if (argc > 2 + verbose)
            return usage_error(NULL, "unexpected operand '%s'", argv[2 + verbose]);
        version_print(stdout, verbose);
        return EXIT_DONE;
    }
    if (word[0] == '-')
        return usage_error(NULL, "unknown option '%s'", word);
    const struct command *c = find_command(word);
    return c ? run_command(c, argc - 2, argv + 2) : unknown_command(word);
}

// Opens /dev/null for each closed standard stream. Otherwise, the next file to be opened would get
// the stream's number and receive messages. The descriptors close on exec, so a traced program
// inherits closed streams. For standard output, /dev/null is opened read-only, so that writes still
// fail.
static void guard_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        int how = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", how | O_CLOEXEC) != fd)
            _exit(EXIT_FAILED);
    }
}

static struct main_call {
    int argc, code;
    char **argv;
    ucontext_t main, command;
} call;

static void run_call(void)
{
    call.code = dispatch_command(call.argc, call.argv);
}

// Returns a stack with a guard page if the main thread's stack may be too small (ulimit -s), or
// NULL.
static char *map_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= STACK_BYTES)
        return NULL;
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    return stack;
}

int main(int argc, char **argv)
{
    guard_standard_streams();
    call.argc = argc, call.argv = argv;
    char *stack = map_stack();
    if (stack && getcontext(&call.command) == 0) {
        call.command.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
        call.command.uc_link = &call.main;
        makecontext(&call.command, run_call, 0);
        swapcontext(&call.main, &call.command);
    } else {
        run_call();
    }
    int code = call.code;
    if (code == EXIT_DONE)
        cli_flush();
    return code;
}
