#include "report/doctor.h"

#include "base/printable.h"
#include "base/sort.h"
#include "cli/bar.h"
#include "cli/human.h"
#include "cli/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 25, BAR_CELLS = 16, LABEL_BYTES = 160, LABEL_COLUMNS = 40, MIN_ROWS = 3 };

struct owner_row {
    char label[LABEL_BYTES];
    uint64_t bytes;
};

// Prints a line or a paragraph. All lines but the first begin at column `indent`.
static void print_words(FILE *to, const char *text, size_t indent)
{
    words_print(to, text, indent, indent, NULL);
    putc('\n', to);
}

static void print_field(FILE *to, const char *name, const char *text)
{
    enum { NAME_COLUMNS = 9 };
    fprintf(to, "%-*s", NAME_COLUMNS, name);
    print_words(to, text, NAME_COLUMNS);
}

// Returns the name, without the directory, of the owner's largest mappings, or NULL.
static const char *largest_name(const struct look *l, enum look_owner o)
{
    for (size_t i = 0; i < l->n_names; i++) {
        const char *slash = strrchr(l->names[i].name, '/');
        // The kernel calls shared anonymous memory "/dev/zero (deleted)".
        if (l->names[i].owner == o && l->names[i].name[0] &&
            strncmp(l->names[i].name, "/dev/zero", 9) != 0)
            return slash ? slash + 1 : l->names[i].name;
    }
    return NULL;
}

// Returns a text with the number of live blocks and, if one block has most of the bytes, the size
// of that block.
static const char *blocks_text(const struct look_heap *h)
{
    char *text = human_buffer();
    bool one = h->blocks > 1 && h->largest_bytes > h->live_bytes / 2;
    snprintf(text, HUMAN_BYTES, "%s%s%s", human_items(h->blocks, "live block", "live blocks"),
             one ? ", the largest " : "", one ? human_size(h->largest_bytes) : "");
    return text;
}

static const char runtime_label[] = "heap of the runtime, mappings";

static void set_label(struct owner_row *row, const struct look *l, enum look_owner o)
{
    static const char *const labels[LOOK_OWNERS] = {
        [LOOK_FREE] = "free pages: malloc_trim(0) returns them",
        [LOOK_TOP] = "free pages at the ends of arenas",
        [LOOK_CACHED] = "freed blocks in caches of malloc",
        [LOOK_PINNED] = "free, in pages with live blocks",
        [LOOK_UNREAD] = "heap, its blocks are not known",
        [LOOK_RUNTIME] = runtime_label,
        [LOOK_JIT] = "generated code",
        [LOOK_ANONYMOUS] = "anonymous mappings outside malloc",
        [LOOK_SHARED] = "shared memory",
        [LOOK_FILES] = "files",
        [LOOK_OTHER] = "other",
    };
    const char *name = o == LOOK_SHARED || o == LOOK_FILES ? largest_name(l, o) : NULL;
    const char *text = labels[o];
    if (o == LOOK_LIVE && l->heap.has_statistics)
        text = "live blocks";
    else if (o == LOOK_FREE && l->heap.has_statistics)
        text = "free pages of the allocator";
    else if (o == LOOK_LIVE)
        text = blocks_text(&l->heap);
    else if (o == LOOK_STACKS)
        text = human_items(l->stacks, "thread stack", "thread stacks");
    else if (o == LOOK_ANONYMOUS && !l->heap.is_read && !l->heap.has_statistics)
        text = "anonymous mappings, with malloc's memory";
    snprintf(row->label, LABEL_BYTES, "%s%s%s", text, name ? ": mostly " : "", name ? name : "");
}

static size_t find_rows_of_facts(const struct verdict_facts *f,
                                 struct owner_row rows[VERDICT_OWNERS])
{
    size_t n = 0;
    for (unsigned i = 0; f->knows_resident && i < VERDICT_OWNERS; i++) {
        if (!(f->resident[i] >= 1))
            continue;
        rows[n].bytes = (uint64_t)f->resident[i];
        snprintf(rows[n++].label, LABEL_BYTES, "%s",
                 i == VERDICT_MAPPINGS && f->runtime ? runtime_label
                                                     : verdict_owner_texts[i].label);
    }
    return n;
}

static size_t find_rows(const struct look *l, struct owner_row rows[LOOK_OWNERS])
{
    size_t n = 0;
    for (unsigned i = 0; i < LOOK_OWNERS; i++) {
        rows[n].bytes = l->owners[i];
        set_label(&rows[n], l, i);
        n += rows[n].bytes > 0;
    }
    return n;
}

static void print_row(FILE *to, const struct owner_row *row, double rss)
{
    char bar[BAR_BYTES(BAR_CELLS)];
    double share = rss > 0 ? (double)row->bytes / rss : 0;
    bar_text(bar, BAR_CELLS, share < 1 ? share : 1);
    fprintf(to, "%10s %3.0f %%  %s%*s  ", human_size(row->bytes), 100 * share, bar,
            (int)(BAR_CELLS - words_columns(bar)), "");
    if (words_columns(row->label) <= LABEL_COLUMNS)
        printable_print(to, row->label, strlen(row->label));
    else {
        printable_print(to, row->label, printable_cut(row->label, LABEL_COLUMNS - 3));
        fputs("...", to);
    }
    putc('\n', to);
}

// Replaces the rows after the first `max` rows with their sum. The sum also includes rows below 1
// %, except the first three rows.
static size_t fold_rows(struct owner_row *rows, size_t n, size_t max, uint64_t rss)
{
    size_t kept = 0;
    uint64_t rest = 0;
    while (kept < n && kept < max && (kept < MIN_ROWS || rows[kept].bytes >= rss / 100))
        kept++;
    if (n - kept < 2 && n <= max)
        return n;
    kept -= kept == max;
    for (size_t i = kept; i < n; i++)
        rest += rows[i].bytes;
    rows[kept].bytes = rest;
    strcpy(rows[kept].label, "the rest");
    return kept + 1;
}

static void print_owners(FILE *to, const struct doctor *d, size_t max)
{
    struct owner_row rows[LOOK_OWNERS + (int)VERDICT_OWNERS];
    size_t n = d->is_file ? find_rows_of_facts(&d->facts, rows) : find_rows(&d->last, rows);
    double rss = d->is_file ? d->facts.rss_bytes : (double)d->last.rss_bytes;
    HT_SORT(rows, n, SORT_DOWN(struct owner_row, bytes));
    n = fold_rows(rows, n, max, rss > 0 ? (uint64_t)rss : 0);
    for (size_t i = 0; i < n; i++)
        print_row(to, &rows[i], rss);
    if (n)
        putc('\n', to);
}

static void print_sure(FILE *to, const struct verdict *v)
{
    static const char *const words[] = {
        [VERDICT_SURE] = "yes", [VERDICT_LIKELY] = "likely", [VERDICT_UNSURE] = "no"};
    char text[VERDICT_BECAUSE_BYTES + 16];
    snprintf(text, sizeof text, "%s%s%s", words[v->sure], v->because[0] ? ". " : "", v->because);
    print_field(to, "sure", text);
}

static void print_saves(FILE *to, double bytes)
{
    char text[64];
    snprintf(text, sizeof text, "up to %s", human_size((uint64_t)bytes));
    print_field(to, "saves", text);
}

// Returns the owner whose bytes changed most in the same direction as RSS.
static enum look_owner find_changed(const struct doctor *d, bool grew)
{
    enum look_owner most = LOOK_LIVE;
    int64_t change = 0;
    for (unsigned i = 0; i < LOOK_OWNERS; i++) {
        int64_t here = (int64_t)(d->last.owners[i] - d->first.owners[i]) * (grew ? 1 : -1);
        most = here > change ? i : most;
        change = here > change ? here : change;
    }
    return most;
}

static void print_watched(FILE *to, const struct doctor *d)
{
    char text[400];
    struct owner_row row;
    double s = (double)(d->last.time_ns - d->first.time_ns) / 1e9;
    uint64_t from = d->first.rss_bytes, now = d->last.rss_bytes;
    bool grew = now > from;
    size_t n = 0;
    if (d->facts.rss.shape == GROWTH_UNKNOWN)
        n = (size_t)snprintf(text, sizeof text,
                             s * 1e9 < GROWTH_MIN_NS ? "not judged, %.0f s are too short: "
                                                     : "not judged, too few samples in %.0f s: ",
                             s > 1 ? s : 1);
    else
        n = (size_t)snprintf(text, sizeof text,
                             "%s in %.0f s: ", growth_shape_name(d->facts.rss.shape), s);
    if (now == from) {
        snprintf(text + n, sizeof text - n, "RSS is the same.");
    } else {
        set_label(&row, &d->last, find_changed(d, grew));
        // Omit the count of blocks or stacks, and the explanation after the colon or comma.
        const char *label = row.label + strspn(row.label, "0123456789 ");
        snprintf(text + n, sizeof text - n, "RSS %s by %s to %s, most of it in %.*s.",
                 grew ? "grew" : "fell", human_size(grew ? now - from : from - now),
                 human_size(now), (int)strcspn(label, ":,"), label);
    }
    print_field(to, "growth", text);
}

static void print_all(FILE *to, const struct doctor *d, size_t rows, size_t notes)
{
    const struct verdict *v = &d->verdict;
    print_words(to, d->title, 0);
    putc('\n', to);
    print_words(to, v->text, 0);
    putc('\n', to);
    print_owners(to, d, rows);
    if (v->remedy[0])
        print_field(to, "remedy", v->remedy);
    if (v->saves_bytes > 0)
        print_saves(to, v->saves_bytes);
    print_sure(to, v);
    if (!d->is_file)
        print_watched(to, d);
    for (size_t i = 0; i < notes; i++)
        print_field(to, i ? "" : "note", d->notes[i]);
    char next[sizeof d->next + 100];
    snprintf(next, sizeof next, "%s%s%s%s", d->next, d->effect ? " (" : "",
             d->effect ? d->effect : "", d->effect ? ")" : "");
    if (d->next[0])
        print_field(to, "next", next);
}

static unsigned count_lines(const char *text)
{
    unsigned n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

// Prints the text. If the text does not fit on one screen, omits first the smallest owners and then
// the last notes.
int doctor_print(const struct doctor *d)
{
    size_t rows = LOOK_OWNERS, notes = d->n_notes;
    for (bool fits = false; !fits;) {
        char *text = NULL;
        size_t n = 0;
        FILE *to = open_memstream(&text, &n);
        if (to)
            print_all(to, d, rows, notes);
        if (!to || fclose(to) != 0) {
            free(text);
            return -ENOMEM;
        }
        fits = count_lines(text) <= MAX_LINES || (rows == MIN_ROWS && !notes);
        if (fits)
            fputs(text, stdout);
        else if (rows > MIN_ROWS)
            rows--;
        else
            notes--;
        free(text);
    }
    return 0;
}
