#include "transfer/receive.h"

#include "cli/command.h"
#include "transfer/module.h"

struct receive_options {
    const char *listen, *folder, *token_file, *certificate, *key;
    uint64_t max_bytes;
    bool verbose;
};

#define AT(member) offsetof(struct receive_options, member)

static const struct option options[] = {
    {0, "listen", OPTION_STRING, "HOST:PORT", "127.0.0.1:8470",
     "accept connections on this address", AT(listen)},
    {0, "dir", OPTION_STRING, "DIR", NULL, "store the files below DIR", AT(folder)},
    {0, "token-file", OPTION_STRING, "FILE", NULL,
     "accept only uploads with one of the tokens in FILE", AT(token_file)},
    {0, "certificate", OPTION_STRING, "FILE", NULL, "use TLS with the certificate in FILE (PEM)",
     AT(certificate)},
    {0, "key", OPTION_STRING, "FILE", NULL, "use the private key in FILE (PEM) with --certificate",
     AT(key)},
    {0, "max-size", OPTION_SIZE, "SIZE", "1G", "refuse files that are larger than SIZE",
     AT(max_bytes), .min = 1, .max = INT64_MAX / 4},
    {'v', "verbose", OPTION_FLAG, NULL, NULL, "print a line for each file and each refusal",
     AT(verbose)},
    {0},
};

static int run_receive(const void *fields, char **argv)
{
    const struct receive_options *o = fields;
    const struct receive_settings how = {.listen = o->listen,
                                         .folder = o->folder,
                                         .token_file = o->token_file,
                                         .certificate = o->certificate,
                                         .key = o->key,
                                         .max_bytes = o->max_bytes,
                                         .verbose = o->verbose,
                                         .note = note_text};
    struct err e = {0};
    (void)argv;
    if (!o->folder)
        return usage_error(&cmd_receive, "--dir is missing");
    if (!o->certificate != !o->key)
        return usage_error(&cmd_receive, "--certificate and --key require each other");
    receive_function *receive =
        (receive_function *)module_load(RECEIVE_LIBRARY, "receive_run", "libmicrohttpd-dev", &e);
    if (!receive || receive(&how, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    return EXIT_DONE;
}

const struct command cmd_receive = {
    .name = "receive",
    .operands = "--dir DIR",
    .summary = "Store the recordings that other hosts upload",
    .examples =
        {
            {"Receive recordings of the same machine", "heaptape receive --dir recordings"},
            {"Receive them from other hosts, over TLS and with tokens",
             "heaptape receive --dir recordings --listen :8470 --token-file tokens \\\n"
             "    --certificate server.pem --key server.key"},
            {"Read the segments of one of them as one trace",
             "heaptape stat recordings/HOST/PROCESS"},
        },
    .options = options,
    .options_bytes = sizeof(struct receive_options),
    .min_operands = 0,
    .max_operands = 0,
    .run = run_receive,
};
