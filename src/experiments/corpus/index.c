#include "experiments/corpus/index.h"

#include "base/buf.h"
#include "base/fio.h"
#include "base/json.h"
#include "report/json/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 16 << 20, MAX_NAME = 100 };

// A key of an entry and its offset in the struct.
struct member {
    const char *key;
    bool in_machine, is_text;
    size_t offset;
};
#define TEXT(member, in_machine) {#member, in_machine, true, offsetof(struct corpus_entry, member)},
#define NUMBER(member, in_machine)                                                                 \
    {#member, in_machine, false, offsetof(struct corpus_entry, member)},
static const struct member members[] = {CORPUS_TEXTS(TEXT) CORPUS_NUMBERS(NUMBER){NULL}};

static char **text_of(const struct corpus_entry *entry, const struct member *m)
{
    return (char **)((uintptr_t)entry + m->offset);
}

static uint64_t *number_of(const struct corpus_entry *entry, const struct member *m)
{
    return (uint64_t *)((uintptr_t)entry + m->offset);
}

void corpus_entry_release(struct corpus_entry *entry)
{
    for (const struct member *m = members; m->key; m++) {
        if (m->is_text)
            free(*text_of(entry, m));
    }
    *entry = (struct corpus_entry){0};
}

void corpus_index_release(struct corpus_index *x)
{
    for (size_t i = 0; i < x->n; i++)
        corpus_entry_release(&x->entries[i]);
    free(x->entries);
    *x = (struct corpus_index){0};
}

// Returns true if the name is valid. The name of an entry is also a file name.
static bool is_name(const char *name)
{
    return *name && strlen(name) <= MAX_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

static int bad_key(const char *path, size_t number, const char *key, struct err *e)
{
    return err_set(e, -EBADMSG, "%s: is not an index of a corpus: entry %zu has no valid '%s'",
                   path, number, key);
}

static int read_text(struct corpus_entry *entry, const struct member *m, const struct json_value *v)
{
    const char *text = json_value_string(v);
    bool may_lack =
        m->in_machine || strcmp(m->key, "version") == 0 || strcmp(m->key, "sha256") == 0;
    if (!text)
        return may_lack && json_value_kind(v) == JSON_VALUE_NULL ? 0 : -EBADMSG;
    *text_of(entry, m) = strdup(text);
    return *text_of(entry, m) ? 0 : -ENOMEM;
}

static int read_entry(struct corpus_entry *entry, const struct json_value *v, const char *path,
                      size_t number, struct err *e)
{
    const struct json_value *machine = json_value_get(v, "machine");
    int rc = 0;
    for (const struct member *m = members; m->key; m++) {
        const struct json_value *value = json_value_get(m->in_machine ? machine : v, m->key);
        bool known = json_value_kind(value) == JSON_VALUE_INTEGER && json_value_number(value) >= 0;
        if (m->is_text)
            rc = read_text(entry, m, value);
        else if (!known && json_value_kind(value) != JSON_VALUE_NULL)
            rc = -EBADMSG;
        else
            *number_of(entry, m) = known ? json_value_u64(value) : UINT64_MAX;
        if (rc < 0)
            return rc == -ENOMEM ? err_no_memory(e, NULL) : bad_key(path, number, m->key, e);
    }
    return is_name(entry->name) ? 0 : bad_key(path, number, "name", e);
}

static int read_entries(struct corpus_index *x, const char *path, const struct json_value *root,
                        struct err *e)
{
    const struct json_value *entries = json_value_get(root, "entries");
    if (!json_value_is_array(entries))
        return err_set(e, -EBADMSG,
                       "%s: is not an index of a corpus, at byte 0: it has no 'entries'", path);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_value_length(entries); i++) {
        struct corpus_entry entry = {0};
        rc = read_entry(&entry, json_value_at(entries, i), path, i + 1, e);
        if (rc == 0 && (rc = corpus_index_put(x, &entry)) < 0)
            err_no_memory(e, NULL);
        corpus_entry_release(&entry);
    }
    return rc;
}

int corpus_index_read(struct corpus_index *x, const char *path, struct err *e)
{
    struct buf text = {0};
    struct json_value *root = NULL;
    int rc = input_read_file(path, &text, MAX_BYTES, "an index of a corpus", e)
                 ?: json_value_parse(&root, path, (const char *)text.data, text.size, e)
                 ?: document_check_version(root, path, e)
                 ?: read_entries(x, path, root, e);
    json_value_free(root);
    buf_release(&text);
    return rc;
}

int corpus_index_put(struct corpus_index *x, struct corpus_entry *entry)
{
    size_t at = 0;
    while (at < x->n && strcmp(x->entries[at].name, entry->name) < 0)
        at++;
    if (at < x->n && strcmp(x->entries[at].name, entry->name) == 0) {
        corpus_entry_release(&x->entries[at]);
    } else {
        if (HT_GROW(&x->entries, &x->capacity, x->n + 1) < 0)
            return -ENOMEM;
        memmove(x->entries + at + 1, x->entries + at, (x->n++ - at) * sizeof *x->entries);
    }
    x->entries[at] = *entry;
    *entry = (struct corpus_entry){0};
    return 0;
}

const struct corpus_entry *corpus_index_find(const struct corpus_index *x, const char *name)
{
    for (size_t i = 0; i < x->n; i++) {
        if (strcmp(x->entries[i].name, name) == 0)
            return &x->entries[i];
    }
    return NULL;
}

static void print_members(struct json *j, const struct corpus_entry *entry, bool of_machine)
{
    for (const struct member *m = members; m->key; m++) {
        if (m->in_machine != of_machine)
            continue;
        if (m->is_text || *number_of(entry, m) == UINT64_MAX)
            json_put_string(j, m->key, m->is_text ? *text_of(entry, m) : NULL);
        else
            json_put_u64(j, m->key, *number_of(entry, m));
    }
}

bool corpus_index_wants(const char *const *names, size_t n, const char *name)
{
    bool wanted = n == 0;
    for (size_t i = 0; i < n; i++)
        wanted |= strcmp(names[i], name) == 0;
    return wanted;
}

void corpus_index_print(const struct corpus_index *x, const char *const *names, size_t n, FILE *to)
{
    struct json j = {.to = to, .pretty = true};
    json_begin_document(&j);
    json_put_array(&j, "entries");
    for (size_t i = 0; i < x->n; i++) {
        if (!corpus_index_wants(names, n, x->entries[i].name))
            continue;
        json_begin_object(&j);
        print_members(&j, &x->entries[i], false);
        json_put_object(&j, "machine");
        print_members(&j, &x->entries[i], true);
        json_end_object(&j);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
}

int corpus_index_write(const struct corpus_index *x, const char *path, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    struct output out = {.fd = -1};
    FILE *f = open_memstream(&text, &n);
    if (f)
        corpus_index_print(x, NULL, 0, f);
    int rc = f && fclose(f) == 0 ? output_open(&out, path, OUTPUT_ASIDE | OUTPUT_FORCE, e)
                                 : err_no_memory(e, NULL);
    if (rc == 0)
        rc = output_finish(&out, output_write(&out, text, n, e), e);
    free(text);
    return rc;
}
