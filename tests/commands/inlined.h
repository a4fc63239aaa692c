// Containers whose functions are inlined into inlined.cc. Without headers of the C++ library, the
// program compiles in a fifth of the time.
#pragma once
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

namespace shop
{
template <typename T> class Vector
{
    T *all = nullptr;
    size_t n = 0, capacity = 0;

    void grow()
    {
        capacity = capacity ? 2 * capacity : 4;
        T *bigger = static_cast<T *>(malloc(capacity * sizeof(T)));
        if (!bigger)
            abort();
        if (all)
            memcpy(static_cast<void *>(bigger), all, n * sizeof(T));
        free(all);
        all = bigger;
    }

  public:
    void push(const T &value)
    {
        if (n == capacity)
            grow();
        all[n++] = value;
    }
    void clear()
    {
        free(all);
        all = nullptr;
        n = capacity = 0;
    }
    T &operator[](size_t i)
    {
        if (i >= n)
            abort();
        return all[i];
    }
    size_t size() const
    {
        return n;
    }
};

template <typename Key, typename Value> struct Map {
    struct Pair {
        Key key;
        Value value;
    };
    Vector<Pair> pairs;

    Value &find(Key key)
    {
        for (size_t i = 0; i < pairs.size(); i++) {
            if (pairs[i].key == key)
                return pairs[i].value;
        }
        pairs.push(Pair{key, Value{}});
        return pairs[pairs.size() - 1].value;
    }
    template <typename Function> void each(Function function)
    {
        for (size_t i = 0; i < pairs.size(); i++)
            function(pairs[i].key, pairs[i].value);
    }
};
} // namespace shop
