#include <errno.h>
#include <stdio.h>
int main(void)
{
    int e = errno;
    printf("errno at main: %d\n", e);
    return 0;
}
