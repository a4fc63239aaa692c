#include <cstdio>
#include <cstdlib>
#include <new>
int main()
{
    for (int i = 0; i < 5; i++) {
        int *p = new (std::nothrow) int[1500];
        __asm__ volatile("" ::"r"(p) : "memory");
        delete[] p;
    }
    return 0;
}
