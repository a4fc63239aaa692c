// Selects the mode of a command, and rejects options that the mode does not accept.
#ifndef HEAPTAPE_CLI_MODES_H
#define HEAPTAPE_CLI_MODES_H

#include "cli/command.h"

enum { MODES_MAX_OPTIONS = 64 };

// Returns the first row of `modes` that the command line selects, or NULL after a usage error. Bit
// i of `given` is set if option i of the command differs from its default.
const struct command_mode *modes_select(const struct command *c, const struct command_mode *modes,
                                        const void *fields, uint64_t given, int operands);

#endif
