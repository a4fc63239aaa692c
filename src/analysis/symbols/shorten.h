// Abbreviates names of functions.
#pragma once

#include <stddef.h>

enum { SHORTEN_BYTES = 256 };

// Returns the name if it has at most `max` < SHORTEN_BYTES bytes. Otherwise writes an abbreviation
// to `to` and returns `to`. The abbreviation omits the following parts, in this order, until the
// rest fits: the parameters, "f(…)"; template arguments, "f<…>(…)", the innermost arguments first;
// the return type; and the outer scopes, "…::f<…>(…)". If a single identifier is still too long,
// the identifier is cut and ends with "…".
const char *shorten_name(const char *name, size_t max, char to[SHORTEN_BYTES]);
