# cc1, the C compiler proper, run by gcc -O2 -S on a generated file. -c would also run the
# assembler.
programs='gcc-12 awk'
packages='gcc-12 libc6-dev'
licence=GPL-3.0-or-later

run() {
  awk -v n=$((150 * size / 100 + 2)) 'BEGIN {
    print "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>"
    for (i = 0; i < n; i++) {
      printf "struct s%d { int a[%d]; struct s%d *next; double x; };\n", i, i % 17 + 1, i ? i - 1 : 0
      printf "int f%d(struct s%d *s, const char *text, int n) {\n  int sum = 0;\n", i, i
      printf "  for (int k = 0; k < n; k++) {\n    switch (text[k] %% 16) {\n"
      for (c = 0; c < 12; c++)
        printf "    case %d: sum += s->a[%d] * %d + (int)sqrt(s->x + k); break;\n", c, (c * 7) % (i % 17 + 1), c + i
      printf "    default: sum ^= (int)strtol(text + k, NULL, %d);\n    }\n  }\n", i % 30 + 2
      if (i)
        printf "  if (sum > %d && s->next) sum += f%d(s->next, text, n - 1);\n", i, i - 1
      printf "  printf(\"%%d %s\\n\", sum);\n  return sum;\n}\n", i
    }
  }' >input.c
  record gcc-12 -O2 -g -S -o output.s input.c
}
