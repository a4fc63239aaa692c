// Sleeps for 0.2 ms in a loop until it is killed. Measures the effect of another CPU that is not
// idle.
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
