#include "report/top/terminal.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// Escape sequences that enter and leave the alternate screen, without cursor and line wrapping.
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J",
                  leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";
static const int ending[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGPIPE,
                             SIGABRT, SIGSEGV, SIGBUS,  SIGFPE, SIGILL};
enum { N_ENDING = sizeof ending / sizeof *ending };

static struct termios before;
static bool has_keys;
static volatile sig_atomic_t begun, resized;

static void write_text(const char *text, size_t n)
{
    while (n) {
        ssize_t done = write(STDOUT_FILENO, text, n);
        if (done < 0 && errno != EINTR)
            return;
        text += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

// Like terminal_end, calls only functions that are safe in a signal handler.
static void set_modes(void)
{
    struct termios t = before;
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    t.c_cc[VMIN] = 0;
    t.c_cc[VTIME] = 0;
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
    write_text(enter, sizeof enter - 1);
    begun = 1;
}

void terminal_end(void)
{
    if (!begun)
        return;
    begun = 0;
    write_text(leave, sizeof leave - 1);
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

// SA_RESETHAND has restored the default action. The raised signal causes this action when the
// handler returns.
static void handle_end(int signal)
{
    terminal_end();
    raise(signal);
}

static void handle_stop(int signal)
{
    int error = errno;
    (void)signal;
    terminal_end();
    raise(SIGSTOP);
    // If the program continues in the background, the terminal belongs to another job, and setting
    // the modes stops this program again.
    set_modes();
    resized = 1;
    errno = error;
}

static void handle_resize(int signal)
{
    (void)signal;
    resized = 1;
}

void terminal_begin(void)
{
    struct sigaction ends = {.sa_handler = handle_end, .sa_flags = (int)SA_RESETHAND},
                     stops = {.sa_handler = handle_stop}, resizes = {.sa_handler = handle_resize};
    has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    atexit(terminal_end);
    for (unsigned i = 0; i < N_ENDING; i++) {
        struct sigaction old;
        // A signal that the parent ignores (nohup) stays ignored.
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ending[i], &ends, NULL);
    }
    sigaction(SIGTSTP, &stops, NULL);
    sigaction(SIGWINCH, &resizes, NULL);
    set_modes();
}

// Input that has not been returned as keys yet.
static char typed[64];
static size_t n_typed;

// Removes the next key from the input. The known escape sequences are "\033[A" to "\033[D", and
// "\033O…", which terminals in application mode send. Any other sequence is dropped together with
// the rest of the input.
static int take_key(void)
{
    static const int arrows[] = {TERMINAL_UP, TERMINAL_DOWN, TERMINAL_RIGHT, TERMINAL_LEFT};
    bool arrow =
        n_typed >= 3 && (typed[1] == '[' || typed[1] == 'O') && typed[2] >= 'A' && typed[2] <= 'D';
    bool escape = n_typed && typed[0] == '\033';
    int key = !n_typed  ? TERMINAL_NONE
              : !escape ? (unsigned char)typed[0]
              : arrow   ? arrows[typed[2] - 'A']
                        : TERMINAL_NONE;
    size_t n = !escape ? n_typed != 0 : arrow ? 3 : n_typed;
    n_typed -= n;
    memmove(typed, typed + n, n_typed);
    return key;
}

int terminal_key(uint64_t until_ns)
{
    for (;;) {
        sigset_t all, mask;
        int key = take_key();
        if (key)
            return key;
        uint64_t now = clock_monotonic_ns(), left = until_ns > now ? until_ns - now : 0;
        struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        struct pollfd of = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};
        // Signals stay blocked between the test of the flag and ppoll, so that no signal is missed.
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &mask);
        int ready = resized ? -1 : ppoll(&of, 1, &wait, &mask);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        if (resized) {
            resized = 0;
            return TERMINAL_RESIZED;
        }
        if (ready == 0)
            return TERMINAL_NONE;
        ssize_t n = ready > 0 ? read(STDIN_FILENO, typed, sizeof typed) : 0;
        n_typed = n > 0 ? (size_t)n : 0;
        // The terminal is closed.
        if (ready > 0 && n <= 0)
            has_keys = false;
    }
}

void terminal_size(unsigned *columns, unsigned *rows)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known && size.ws_col ? size.ws_col : 80;
    *rows = known && size.ws_row ? size.ws_row : 24;
}
