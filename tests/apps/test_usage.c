/* SPDX-License-Identifier: MIT */
/* The sdlf program without a network: help, versions, and usage errors. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"
#include "framework/aliases.h"
#include "framework/layer_words.h"

static const char *const commands[] = {"train", "eval", "predict", "info", "bench", "parity"};

static void version_is_told(void)
{
    const program *p = SDLF(0, "--version");
    CHECK_TEXT(p->out, "sdlf " SDLF_VERSION "\n");
    CHECK_TEXT(p->err, "");
}

static void help_is_there(void)
{
    const program *p = SDLF(0, "--help");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) CHECK_SAYS(p, commands[i]);
    CHECK_TEXT(p->err, "");
    CHECK_SAYS(SDLF(0, "help"), "Usage: sdlf COMMAND");
    CHECK_SAYS(SDLF(0, "-h"), "Usage: sdlf COMMAND");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        p = SDLF(0, commands[i], "--help");
        CHECK_SAYS(p, "Usage: sdlf ");
        CHECK_SAYS(p, commands[i]);
        CHECK_SAYS(p, strcmp(commands[i], "parity") == 0 ? "--a CALC[:MATH]" : "--calculator NAME");
        CHECK_SAYS(p, "Examples");
        CHECK_TEXT(p->err, "");
        CHECK(strstr(p->out, "\033[") == NULL); /* no colours in a pipe */
        CHECK_SAYS(SDLF(0, "help", commands[i]), "Usage: sdlf ");
    }
    CHECK_SAYS(SDLF(0, "help", "bench", "conv"), "Usage: sdlf bench conv");
    CHECK_SAYS(SDLF(0, "help", "gcn", "train"), "Usage: sdlf gcn train");
    CHECK_SAYS(SDLF(2, "help", "train", "digits"), "unexpected 'digits'");
}

/* No line of any help text exceeds the width of a terminal. */
static void help_is_narrow(void)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const program *p = SDLF(0, commands[i], "--help");
        for (const char *line = p->out; *line;) {
            size_t length = strcspn(line, "\n");
            CHECK(length <= 80);
            line += length + (line[length] == '\n');
        }
    }
}

static void help_lists_what_there_is(void)
{
    const program *p = SDLF(0, "train", "--help");
    const char *name;
    for (int i = 0; (name = sdlf_network_builtin_name(i)); i++) CHECK_SAYS(p, name);
    for (int i = 0; sdlf_dataset_class_at(i); i++) CHECK_SAYS(p, sdlf_dataset_class_at(i)->name);
    for (int i = 0; sdlf_optimizer_class_at(i); i++) CHECK_SAYS(p, sdlf_optimizer_class_at(i)->name);
    for (int i = 0; sdlf_calculator_class_at(i); i++) CHECK_SAYS(p, sdlf_calculator_class_at(i)->name);
    for (int i = 0; sdlf_schedule_names[i]; i++) CHECK_SAYS(p, sdlf_schedule_names[i]);
    CHECK_SAYS(p, "--weight-decay X");
}

/* Exit code 2, nothing on standard output, and a hint. */
#define CHECK_WRONG(text, ...) check_wrong(__LINE__, (text), (const char *const[]){__VA_ARGS__, NULL})
static void check_wrong(int line, const char *text, const char *const *words)
{
    const program *p = sdlf_run(__FILE__, line, 2, words);
    program_check_says(__FILE__, line, p, text);
    test_check_text(p->out, "", __FILE__, line, "standard output");
}

static void wrong_usage_is_said(void)
{
    const char *const none[] = {NULL};
    CHECK_SAYS(sdlf_run(__FILE__, __LINE__, 2, none), "Usage: sdlf COMMAND");
    CHECK_WRONG("there is no command 'trian' (did you mean 'train'?)", "trian");
    CHECK_WRONG("there is no command 'version' (did you mean '--version'?)", "version");
    CHECK_WRONG("there is no option '--hlep' (did you mean '--help'?)", "--hlep");
    CHECK_WRONG("there is no command 'xyzzy'\n", "xyzzy");
    CHECK_WRONG("there is no option '--verbose'", "--verbose");
    CHECK_WRONG("unknown option '--epoch' (did you mean '--epochs'?)", "train", "--epoch", "3");
    CHECK_WRONG("--batch 0: expected a whole number from 1 to 1,000,000", "train", "--batch", "0");
    CHECK_WRONG("--batch 1e9: expected a whole number", "train", "--batch", "1e9");
    CHECK_WRONG("--learning-rate 0: expected a number", "train", "--learning-rate", "0");
    CHECK_WRONG("--learning-rate -0.1: expected a number", "train", "--learning-rate", "-0.1");
    CHECK_WRONG("--learning-rate 1e30: expected a number", "train", "--learning-rate", "1e30");
    CHECK_WRONG("--learning-rate nan: expected a number", "train", "--learning-rate", "nan");
    CHECK_WRONG("--momentum 1.5: expected a number", "train", "--momentum", "1.5");
    CHECK_WRONG("--optimizer sdg: expected one of sgd,", "train", "--optimizer", "sdg");
    CHECK_WRONG("--schedule sine: expected one of constant,", "train", "--schedule", "sine");
    CHECK_WRONG("--calculator abacus: expected one of", "train", "--calculator", "abacus");
    CHECK_WRONG("--weights FILE is missing", "eval");
    CHECK_WRONG("unexpected 'digits'", "train", "digits");
    CHECK_WRONG("there is no benchmark 'netwrok' (did you mean 'network'?)", "bench", "netwrok");
    CHECK_WRONG("a network is given with --net: sdlf bench --net lenet5", "bench", "lenet5");
    CHECK_WRONG("a network is given with --net: sdlf bench --net x.json", "bench", "x.json");
    CHECK_WRONG("--steps needs --net", "info", "--steps");
    CHECK_WRONG("--calculator needs --net", "info", "--json", "--calculator", "cpu");
}

/* Option names of other programs. */
static void what_others_call_it_is_understood(void)
{
    CHECK_WRONG("unknown option '--lr' (did you mean '--learning-rate'?)", "train", "--lr", "0.1");
    CHECK_WRONG("unknown option '--lr' (did you mean '--learning-rate'?)", "train", "--lr=0.1");
    CHECK_WRONG("unknown option '--batch-size' (did you mean '--batch'?)", "train", "--batch-size", "32");
    CHECK_WRONG("unknown option '--batch_size' (did you mean '--batch'?)", "bench", "--batch_size", "32");
    CHECK_WRONG("unknown option '--optim' (did you mean '--optimizer'?)", "train", "--optim", "adam");
    CHECK_WRONG("unknown option '--num-epochs' (did you mean '--epochs'?)", "train", "--num-epochs", "3");
    CHECK_WRONG("unknown option '--output' (did you mean '--out'?)", "train", "--output", "x");
    CHECK_WRONG("unknown option '--gpu' (did you mean '--calculator'?)", "train", "--gpu");
    CHECK_WRONG("unknown option '--wd' (did you mean '--weight-decay'?)", "train", "--wd", "0.1");
    CHECK_WRONG("unknown option '--model' (did you mean '--net'?)", "train", "--model", "mlp");
    CHECK_WRONG("unknown option '--workers' (did you mean '--threads'?)", "predict", "--workers", "2");
    CHECK_WRONG("--calculator gpu: expected one of", "train", "--calculator", "gpu");
    CHECK_WRONG("there is no command 'test' (did you mean 'eval'?)", "test");
    CHECK_WRONG("there is no network 'LeNet-5' and no such file (did you mean 'lenet5'?)", "train", "--net", "LeNet-5");
    const char *path = test_path("torch.json");
    static const char net[] = "{\"input\": {\"name\": \"x\", \"shape\": [4]}, \"layers\": [{\"type\": \"gelu\"}]}",
                      field[] = "{\"input\": {\"name\": \"x\", \"shape\": [4]}, \"layers\": ["
                                "{\"type\": \"fully_connected\", \"out_features\": 3}]}";
    test_write_file(path, net, sizeof net - 1);
    CHECK_SAYS(SDLF(1, "info", "--net", path), "(did you mean 'unary' with \"function\": \"gelu\"?)");
    test_write_file(path, field, sizeof field - 1);
    CHECK_SAYS(SDLF(1, "info", "--net", path), "unknown field 'out_features' (did you mean 'units'?)");
}

/* No alias refers to a removed option: each target is in some help text, or an option of a layer. */
static void aliases_mean_what_there_is(void)
{
    static const char *const helps[] = {"train", "eval", "run", "export"};
    static char all[4 * PROGRAM_TEXT];
    size_t used = 0;
    for (size_t i = 0; i < sizeof helps / sizeof helps[0]; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s", SDLF(0, helps[i], "--help")->out);
    snprintf(all + used, sizeof all - used, "%s", SDLF(0, "--help")->out);
    for (const sdlf_alias *alias = sdlf_aliases; alias->written != NULL; alias++) {
        char option[64], word[64], calculator[64];
        snprintf(option, sizeof option, "--%s ", alias->meant);
        snprintf(word, sizeof word, "  %s ", alias->meant);
        snprintf(calculator, sizeof calculator, " %s,", alias->meant);
        bool is_there = strstr(all, option) || strstr(all, word) || strstr(all, calculator);
        if (!CHECK(is_there || is_of_a_layer(alias->meant))) printf("  %s\n", alias->meant);
    }
}

static void options_that_do_not_go_together(void)
{
    CHECK_WRONG("--beta1 is an option of adam, adamw, but the optimizer is sgd", "train", "--beta1", "0.9");
    CHECK_WRONG("--decay-all needs --weight-decay", "train", "--decay-all");
    CHECK_WRONG("--gamma has no meaning for --schedule cosine", "train", "--schedule", "cosine", "--gamma", "0.5");
    CHECK_WRONG("there is no network 'simple_cn' and no such file (did you mean 'simple_cnn'?)", "train", "--net",
                "simple_cn");
    CHECK_WRONG("a safetensors file holds weights", "train", "--net", "x.safetensors");
    CHECK_WRONG("to train an ONNX file, use --net", "train", "--resume", "x.onnx");
    CHECK_WRONG("--out x and --no-save contradict", "train", "--out", "x", "--no-save");
    CHECK_WRONG("--test-data digits:9 and --no-test contradict", "train", "--test-data", "digits:9", "--no-test");
    CHECK_WRONG("--net mlp cannot be combined with x.onnx", "eval", "--weights", "x.onnx", "--net", "mlp");
    CHECK_WRONG("there is no network 'unet' and no such file; built in are", "train", "--net", "unet");
    CHECK_WRONG("has no layer 'conv9'", "info", "--net", "mlp", "--place", "conv9=reference");
    CHECK_WRONG("expected LAYER=CALC", "info", "--net", "mlp", "--place", "relu");
    CHECK_WRONG("expected LAYER=CALC", "info", "--net", "mlp", "--place", "relu=sideways:reference");
    CHECK_WRONG("there is no calculator 'abacus'", "info", "--net", "mlp", "--place", "relu=abacus");
}

/* On a narrow terminal the description of an option is below it, and no line is wrapped by the terminal. */
static void help_fits_the_terminal(void)
{
    static program p; /* too large for the stack of some */
    p = (program){.terminal = true, .columns = 40};
    program_run(&p, (const char *const[]){"eval", "--help", NULL});
    CHECK_EQUAL(p.code, 0);
    CHECK_SAYS(&p, "\n  --weights FILE\r\n      a safetensors file");
    const char *options = strstr(p.out, "Options"), *end = strstr(p.out, "Examples");
    for (const char *line = options; CHECK(line && end) && line < end; line = strchr(line, '\n') + 1) {
        if (!CHECK(strcspn(line, "\r\n") <= 40)) printf("  %.*s\n", (int)strcspn(line, "\r\n"), line);
    }
}

int main(void)
{
    RUN(version_is_told);
    RUN(help_is_there);
    RUN(help_fits_the_terminal);
    RUN(help_is_narrow);
    RUN(help_lists_what_there_is);
    RUN(wrong_usage_is_said);
    RUN(what_others_call_it_is_understood);
    RUN(aliases_mean_what_there_is);
    RUN(options_that_do_not_go_together);
    return test_summary();
}
