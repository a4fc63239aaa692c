// Fields of CSV (RFC 4180).
#ifndef HEAPTAPE_TABLES_CSV_H
#define HEAPTAPE_TABLES_CSV_H

#include <stddef.h>
#include <stdio.h>

// A text as a field: in quotes where it has to be.
void tables_csv_text(FILE *to, const char *text, size_t n);

#endif
