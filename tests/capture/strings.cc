// Allocates strings in libstdc++, which most distributions compile without frame pointers.
#include <string>
#include <vector>

__attribute__((noinline)) std::vector<std::string> make_strings(int n)
{
    std::vector<std::string> all;
    for (int i = 0; i < n; i++)
        all.push_back(std::string(1000, 'x') + std::to_string(i));
    return all;
}

int main()
{
    return make_strings(1000).size() != 1000;
}
