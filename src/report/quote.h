// Text as JSON, for files that cannot include base/json.h because json-c has the same names.
#ifndef HEAPTAPE_REPORT_QUOTE_H
#define HEAPTAPE_REPORT_QUOTE_H

// The text in quotes, valid UTF-8 whatever it was, for the caller to free. NULL when out of memory.
char *quote_json(const char *text);

#endif
