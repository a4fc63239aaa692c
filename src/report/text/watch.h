// Progress and notes of libraries on standard error.
#pragma once

#include "convert/process.h"

// Starts the progress line for `what`, for example "import". Returns a static watch with this line
// and with notes.
const struct convert_watch *watch_begin(const char *what);
const struct convert_watch *watch_conversion(void);

// Returns a static watch with notes and without progress.
const struct convert_watch *watch_notes(void);
