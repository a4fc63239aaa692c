#include "record/parcel.h"

#include "base/buf.h"

#include <stdlib.h>

struct parcel *parcel_new(void)
{
    struct parcel *p = calloc(1, sizeof *p);
    if (p)
        p->words = malloc(sizeof *p->words * PARCEL_WORDS);
    if (p && p->words)
        return p;
    free(p);
    return NULL;
}

void parcel_clear(struct parcel *p)
{
    for (size_t i = 0; i < p->n_pieces; i++) {
        if (p->pieces[i].kind == PIECE_PROCESS || p->pieces[i].kind == PIECE_PROCESS_END)
            trace_process_release(&p->pieces[i].process);
    }
    p->n_pieces = 0;
    p->n_words = p->n_samples = 0;
}

void parcel_free(struct parcel *p)
{
    parcel_clear(p);
    free(p->pieces);
    free(p->words);
    free(p);
}

struct piece *parcel_add(struct parcel *p, enum piece_kind kind)
{
    if (HT_GROW(&p->pieces, &p->capacity, p->n_pieces + 1) < 0)
        return NULL;
    struct piece *piece = &p->pieces[p->n_pieces++];
    *piece = (struct piece){.kind = kind};
    return piece;
}
