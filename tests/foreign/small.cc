// Allocates in a way that can be counted by hand: g++ -O1 -g small.cc -o small; heaptrack ./small
#include <cstdlib>
#include <vector>

void *kept[100];

static inline void *leak(int i)
{
    return kept[i] = malloc(100);
}

__attribute__((noinline)) static void leaks()
{
    for (int i = 0; i < 100; i++)
        leak(i);
}

__attribute__((noinline)) static void grows()
{
    std::vector<int> v;
    for (int i = 0; i < 1000; i++)
        v.push_back(i);
}

__attribute__((noinline)) static void resizes()
{
    void *p = malloc(10);
    for (int i = 1; i < 50; i++)
        p = realloc(p, i * 1000);
    free(p);
}

int main()
{
    leaks();
    grows();
    resizes();
}
