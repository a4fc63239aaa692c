#include "convert/sites.h"

void sites_release(struct sites *s)
{
    map_release(&s->numbers);
    workload_sites_release(&s->sites);
}

uint32_t sites_number(struct sites *s, uint64_t id)
{
    uint64_t number = map_get(&s->numbers, id);
    if (!number) {
        number = s->numbers.n + 1;
        if (number >= UINT32_MAX || map_put(&s->numbers, id, number) < 0)
            return 0;
    }
    return (uint32_t)number;
}
