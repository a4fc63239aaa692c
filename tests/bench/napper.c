// Naps for 0.2 ms and does nothing else, until it is killed: what a program loses to another processor that is not idle.
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

int main(void)
{
    const struct timespec nap = {.tv_nsec = 200000};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1ul);
    for (;;)
        nanosleep(&nap, 0);
}
