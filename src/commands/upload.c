#include "transfer/upload.h"

#include "cli/command.h"
#include "transfer/upload_options.h"

#include <stdlib.h>

struct upload_command {
    const char *token_file;
    const char *s3;
    uint64_t timeout_ns, wait_ns;
    bool verbose;
};

#define AT(member) offsetof(struct upload_command, member)

static const struct option options[] = {
    {0, "token-file", OPTION_STRING, "FILE", NULL, "send the token in the first line of FILE",
     AT(token_file)},
    {0, "s3", OPTION_PARSED, "REGION", NULL, "sign requests for S3, for REGION or $AWS_REGION",
     AT(s3), .bare = "", .parse = upload_options_parse_s3},
    {0, "timeout", OPTION_SECONDS, "SECONDS", "60", "cancel a request that stalls for SECONDS",
     AT(timeout_ns), .min = 1, .max = OPTION_MAX_NS},
    {0, "wait", OPTION_SECONDS, "SECONDS", "60", "stop after SECONDS without a successful upload",
     AT(wait_ns), .min = 1, .max = OPTION_MAX_NS},
    {'v', "verbose", OPTION_FLAG, NULL, NULL, "print a line for each file", AT(verbose)},
    {0},
};

static int run_upload(const void *fields, char **argv)
{
    const struct upload_command *o = fields;
    struct upload_result r;
    struct err e = {0};
    struct upload_settings how = {.folder = argv[0],
                                  .token_file = o->token_file,
                                  .timeout_ns = o->timeout_ns,
                                  .timeout_option = "--timeout",
                                  .wait_ns = o->wait_ns,
                                  .added = -1,
                                  .note = note_text,
                                  .verbose = o->verbose};
    char *url = upload_url(argv[1], &e);
    if (!url)
        return usage_error(&cmd_upload, "%s", e.text);
    how.url = url;
    if (upload_options_complete(&how, o->s3, &e) < 0 || upload_run(&how, &r, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (r.files || !r.left_files)
        note("uploaded %s, %s, to %s", human_items(r.files, "file", "files"), human_size(r.bytes),
             url);
    if (r.left_files)
        die(EXIT_FAILED, "%s: %s not uploaded, %s", how.folder,
            human_items(r.left_files, "file was", "files were"), human_size(r.left_bytes));
    free(url);
    return EXIT_DONE;
}

const struct command cmd_upload = {
    .name = "upload",
    .operands = "DIR URL",
    .summary = "Upload the traces in a directory and delete them",
    .examples =
        {
            {"Upload the segments that 'heaptape record -o URL' left",
             "heaptape upload ~/.local/state/heaptape/upload https://traces.example.com"},
            {"Send a token, and stop after five minutes without success",
             "heaptape upload --token-file token --wait 300 spool \\\n"
             "    https://traces.example.com"},
            {"Upload to a bucket of S3", "heaptape upload --s3=eu-central-1 spool \\\n"
                                         "    https://bucket.s3.eu-central-1.amazonaws.com"},
        },
    .options = options,
    .options_bytes = sizeof(struct upload_command),
    .min_operands = 2,
    .max_operands = 2,
    .run = run_upload,
};
