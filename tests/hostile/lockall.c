#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{
    free(malloc(10));
    struct rlimit l = {12 << 20, 12 << 20};
    setrlimit(RLIMIT_MEMLOCK, &l);
    setgid(65534);
    setuid(65534);
    int r = mlockall(MCL_CURRENT);
    printf("mlockall %s\n", r ? strerror(errno) : "ok");
    return 0;
}
