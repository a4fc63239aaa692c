// Calls in inlined functions of templates, classes, lambdas and namespaces, for inlined.bats.
#include "inlined.h"

// Inserts N values; each is inserted in one more level of inlined functions.
template <int N, typename Map>
__attribute__((always_inline)) static inline void insert(Map &map, int key)
{
    map.find(key + N).push(key);
    if constexpr (N > 1)
        insert<N - 1>(map, key);
}

template <typename Key, typename Value> __attribute__((noinline)) static size_t fill(int n)
{
    shop::Map<Key, shop::Vector<Value>> map;
    size_t size = 0;
    for (int i = 0; i < n; i++)
        insert<12>(map, i);
    map.each([&size](Key, shop::Vector<Value> &vector) {
        size += vector.size();
        vector.clear();
    });
    map.pairs.clear();
    return size;
}

int main(int argc, char **)
{
    return fill<int, short>(argc) + fill<long, double>(argc) + fill<unsigned char, char>(argc) +
               fill<short, int>(argc) ==
           0;
}
