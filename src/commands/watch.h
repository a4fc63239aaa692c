// How a command shows that a trace is converted: a line of progress and notes, on stderr.
#ifndef HEAPTAPE_COMMANDS_WATCH_H
#define HEAPTAPE_COMMANDS_WATCH_H

#include "convert/process.h"

// Static; valid until the next call.
const struct convert_watch *watch_conversion(void);

#endif
