// Calls malloc like code without frame pointers, where the frame pointer register contains a number
// that is not an address. On other architectures, only prints the same output.
#include <stdio.h>
#include <stdlib.h>

#ifdef __x86_64__
void *odd_malloc(size_t size);
__asm__("odd_malloc:\n"
        "push %rbp\n"
        "movabs $0x445344554f4c4300, %rbp\n"
        "call malloc@plt\n"
        "pop %rbp\n"
        "ret\n");
#else
#define odd_malloc malloc
#endif

int main(void)
{
    for (int i = 0; i < 1000; i++)
        free(odd_malloc(100));
    puts("done");
    return 0;
}
