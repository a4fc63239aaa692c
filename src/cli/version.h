#pragma once

#include <stdbool.h>
#include <stdio.h>

// Prints one line. With `verbose`, also prints the compiler, features, libraries and paths, each on
// a line. For a library, prints the loaded version and, if it differs, the version at build time.
void version_print(FILE *to, bool verbose);
