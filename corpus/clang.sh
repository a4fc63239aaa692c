# clang++ -O2 -c of a generated file with templates of the standard library.
programs='clang++-14 awk'
packages='clang-14 libstdc++-12-dev'
licence='Apache-2.0 WITH LLVM-exception'

run() {
  awk -v n=$((3 * size / 100 + 1)) 'BEGIN {
    print "#include <algorithm>\n#include <functional>\n#include <map>\n#include <regex>\n#include <string>"
    print "#include <unordered_map>\n#include <vector>"
    for (i = 0; i < n; i++) {
      printf "template <int N> struct t%d { std::string name; std::vector<t%d<N - 1>> parts; };\n", i, i
      printf "template <> struct t%d<0> { std::map<std::string, int> m; };\n", i
      printf "size_t f%d(const std::vector<std::string> &in) {\n", i
      printf "  std::unordered_map<std::string, std::vector<t%d<%d>>> m;\n", i, i % 9 + 1
      printf "  for (auto &s : in) if (std::regex_match(s, std::regex(\"[a-z]{%d}.*\"))) m[s].emplace_back();\n", i + 1
      printf "  std::vector<std::pair<std::string, size_t>> v;\n"
      printf "  for (auto &[k, e] : m) v.emplace_back(k, e.size());\n"
      printf "  std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return a.second * %d < b.second; });\n", i + 2
      printf "  return v.empty() ? 0 : v.front().second;\n}\n"
    }
  }' >input.cc
  record clang++-14 -std=c++17 -O2 -g -c -o output.o input.cc
}
