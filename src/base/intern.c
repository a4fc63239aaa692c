#include "base/intern.h"

#include "base/buf.h"
#include "base/seed.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void intern_release(struct intern *s)
{
    map_release(&s->numbers);
    free(s->texts);
    *s = (struct intern){0};
}

uint64_t intern_number(struct intern *s, const char *text, bool *is_new)
{
    uint64_t hash = XXH3_64bits_withSeed(text, strlen(text), seed_random()), found;
    while ((found = map_get(&s->numbers, hash)) && strcmp(s->texts[found - 1], text) != 0)
        hash++;
    *is_new = !found;
    if (found)
        return found;
    if (HT_GROW(&s->texts, &s->capacity, s->n + 1) < 0 || map_put(&s->numbers, hash, s->n + 1) < 0)
        return 0;
    s->texts[s->n++] = text;
    return s->n;
}
