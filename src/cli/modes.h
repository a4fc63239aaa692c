// The modes of a command: selects one row of a table and rejects the options that do not go with it.
#ifndef HEAPTAPE_CLI_MODES_H
#define HEAPTAPE_CLI_MODES_H

#include "cli/command.h"

enum { MODES_MAX_OPTIONS = 64 };

// Returns the first row of `modes` that the command line selects, or NULL after it printed a usage error. Bit i of `given`
// is set if the command line sets row i of the command's options to another value than its default.
const struct command_mode *modes_select(const struct command *c, const struct command_mode *modes,
                                        const void *fields, uint64_t given, int operands);

#endif
