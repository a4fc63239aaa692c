#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
        return 2;
    free(malloc(10));
    write(1, "alive\n", 6);
    return 0;
}
