// What `heaptape --version` prints.
#ifndef HEAPTAPE_CLI_VERSION_H
#define HEAPTAPE_CLI_VERSION_H

#include <stdbool.h>
#include <stdio.h>

// One line; with `verbose`, one more per fact: compiler, architecture, features, libraries (the version that is loaded and,
// where it differs, the one that heaptape was built with), and where heaptape's own files are.
void version_print(FILE *to, bool verbose);

#endif
