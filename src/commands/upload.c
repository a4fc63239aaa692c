#include "transfer/upload.h"

#include "cli/command.h"
#include "transfer/upload_options.h"

#include <stdlib.h>

extern const struct command cmd_upload;

struct upload_command {
    const char *token_file;
    const char *s3;
    uint64_t wait_s;
    bool verbose;
};

static const struct option options[] = {
    {0, "token-file", OPTION_STRING, "FILE", NULL, UPLOAD_TOKEN_HELP, offsetof(struct upload_command, token_file)},
    {0, "s3", OPTION_PARSED, "REGION", NULL, UPLOAD_S3_HELP, offsetof(struct upload_command, s3), .bare = "",
     .parse = upload_options_parse_s3},
    {0, "wait", OPTION_NUMBER, "SECONDS", "60", "stop when nothing could be uploaded for SECONDS",
     offsetof(struct upload_command, wait_s), .min = 1, .max = UINT32_MAX},
    {'v', "verbose", OPTION_FLAG, NULL, NULL, "print a line for each file", offsetof(struct upload_command, verbose)},
    {0},
};

static int run_upload(const void *fields, int argc, char **argv)
{
    const struct upload_command *o = fields;
    struct upload_result r;
    struct err e = {0};
    char files[64], bytes[32];
    struct upload_settings how = {.folder = argv[0],
                                  .token_file = o->token_file,
                                  .wait_ns = o->wait_s * 1000000000u,
                                  .added = -1,
                                  .note = note_text,
                                  .verbose = o->verbose};
    (void)argc;
    char *url = upload_url(argv[1], &e);
    if (!url)
        return usage_error(&cmd_upload, "%s", e.text);
    how.url = url;
    if (upload_options_complete(&how, o->s3, &e) < 0 || upload_run(&how, &r, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (r.files || !r.left_files)
        note("uploaded %s, %s, to %s", human_plural(files, r.files, "file", "files"), human_bytes(bytes, r.bytes), url);
    if (r.left_files)
        die(EXIT_FAILED, "%s: %s not uploaded, %s", how.folder,
            human_plural(files, r.left_files, "file was", "files were"), human_bytes(bytes, r.left_bytes));
    free(url);
    return EXIT_DONE;
}

const struct command cmd_upload = {
    .name = "upload",
    .operands = "DIR URL",
    .summary = "Upload the traces of a folder and remove them from it",
    .description =
        "Uploads the files *.ht in DIR and the folders below it by PUT, each to URL and its path in DIR, the oldest of each folder "
        "first, and removes a file when the server has answered with a status of 200 to 299 after it had received the whole file. "
        "If the answer has no digest of the file, as those of 'heaptape receive' and S3 have, heaptape asks for its size by HEAD, and keeps "
        "a file of which the server has another size or which is missing there. That is how 'heaptape record -o URL' "
        "uploads its segments; DIR is then its spool, or a folder of it, where it was killed or the server was away.\n\n"
        "When the server does not answer, or with a status of 500 and more, 408, 425 or 429, heaptape tries again after 0.25 "
        "to 0.5 seconds, then after twice as long each time, up to a minute, until nothing could be uploaded for --wait SECONDS. A file that "
        "the server answers with 400, 409, 413, 415 or 422 stays in DIR, and the others are uploaded. Any other answer, such as 401, "
        "ends the command. Folders that a recording uploads now, or another 'heaptape upload', are left to it. Files that heaptape still writes stay.\n\n" UPLOAD_ENVIRONMENT
        "\n\nThe exit status is 0 when all files were uploaded, and 1 when some are left.",
    .options = options,
    .options_bytes = sizeof(struct upload_command),
    .min_operands = 2,
    .max_operands = 2,
    .run = run_upload,
};
