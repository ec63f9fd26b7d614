/* SPDX-License-Identifier: MIT */
/* Suggestions for misspelt words. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "framework/aliases.h"
#include "framework/layer_words.h"

static const char *suggested(const char *word)
{
    static const char *const known[] = {"epochs", "batch",     "learning-rate", "label-smoothing",
                                        "log",    "plan-file", "device-data",   "device",
                                        "top",    "crop",      "nesterov",      "net"};
    sdlf_suggestion s = {.word = word};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) sdlf_suggest(&s, known[i]);
    return s.best;
}

static void near_words_are_suggested(void)
{
    CHECK_TEXT(suggested("epoch"), "epochs");
    CHECK_TEXT(suggested("bacth"), "batch"); /* adjacent letters swapped */
    CHECK_TEXT(suggested("learning_rate"), "learning-rate");
    CHECK_TEXT(suggested("learn"), "learning-rate"); /* an abbreviation */
    CHECK_TEXT(suggested("nte"), "net");
    CHECK_TEXT(suggested("quiet"), NULL);
    CHECK_TEXT(suggested("devic"), "device"); /* two abbreviations: the shorter */
    CHECK_TEXT(suggested("cop"), "crop");     /* one letter either way: the same beginning */
    CHECK_TEXT(suggested("nes"), "nesterov");
    CHECK_TEXT(suggested("network"), "net"); /* more than there is */
    CHECK_TEXT(suggested("batch-size"), "batch");
    CHECK_TEXT(suggested("num-epochs"), "epochs");
    CHECK_TEXT(suggested("log-file"), "log");
    CHECK_TEXT(suggested("load"), NULL); /* half of it would have to change */
    CHECK_TEXT(suggested("file"), NULL);
    CHECK_TEXT(suggested("x"), NULL);
    CHECK_TEXT(suggested("a-word-that-is-much-longer-than-any-option-could-ever-be"), NULL);
    CHECK_TEXT(suggested("Batch_Size"), "batch");       /* case and dashes are ignored */
    CHECK_TEXT(suggested("learners"), "learning-rate"); /* the same root */
}

/* Names from other frameworks. */
static void layers_are_suggested(void)
{
    static const char *const pairs[][2] = {
        {"Conv2d", "conv2d"},
        {"convolution", "conv2d"},
        {"MaxPool2d", "max_pool2d"},
        {"BatchNorm2d", "batch_norm2d"},
        {"ReLU", "relu"},
        {"Linear", "fully_connected"},
        {"nn.Linear", "fully_connected"},
        {"Dense", "fully_connected"},
        {"Conv2D", "conv2d"},
        {"ConvTranspose2d", "conv_transpose2d"},
        {"maxpool", "max_pool2d"},
        {"MaxPooling2D", "max_pool2d"},
        {"AvgPool2d", "avg_pool2d"},
        {"AdaptiveAvgPool2d", "global_avg_pool2d"},
        {"BatchNorm", "batch_norm2d"},
        {"BatchNormalization", "batch_norm2d"},
        {"LayerNorm", "layer_norm"},
        {"Dropout", "dropout"},
        {"Flatten", "flatten"},
        {"Concatenate", "concat"},
        {"CrossEntropyLoss", "softmax_cross_entropy"},
        {"rely", "relu"},
        {"fullyconnected", "fully_connected"},
        {"LogSoftmax", "log_softmax"},
        {"soft_max", "softmax"},
        {"zzz", NULL},
        {"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
         "nnnnnnnnnnnnnnnnnnnnn",
         NULL}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        sdlf_suggestion near = {.word = pairs[i][0]};
        for (int j = 0; sdlf_layer_class_at(j) != NULL; j++) sdlf_suggest(&near, sdlf_layer_class_at(j)->name);
        CHECK_TEXT(near.best, pairs[i][1]);
    }
}

/* Aliases of layers and their options are in normalised form, and refer to existing names; the program's are tested
 * with the program. */
static void aliases_mean_something(void)
{
    int of_layers = 0;
    for (const sdlf_alias *alias = sdlf_aliases; alias->written != NULL; alias++) {
        sdlf_suggestion near = {.word = alias->written};
        sdlf_suggest(&near, alias->meant);
        CHECK_TEXT(near.best, alias->meant);
        if (!CHECK(strpbrk(alias->written, "-_ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL)) printf("  %s\n", alias->written);
        of_layers += is_of_a_layer(alias->meant);
    }
    CHECK(of_layers > 60);
}

static void meaning_counts_more_than_letters(void)
{
    sdlf_suggestion near = {.word = "gpu"};
    sdlf_suggest(&near, "gpus");
    sdlf_suggest(&near, "calculator");
    CHECK_TEXT(near.best, "calculator");
    near = (sdlf_suggestion){.word = "Max-Pool2D"};
    sdlf_suggest(&near, "max_pool2");
    sdlf_suggest(&near, "max_pool2d");
    CHECK_TEXT(near.best, "max_pool2d");
}

static void the_text_is_an_end_of_a_message(void)
{
    sdlf_suggestion near = {.word = "rely"};
    CHECK_TEXT(sdlf_suggestion_print(&near).text, "");
    sdlf_suggest(&near, "relu");
    CHECK_TEXT(sdlf_suggestion_print(&near).text, " (did you mean 'relu'?)");
}

int main(void)
{
    RUN(near_words_are_suggested);
    RUN(layers_are_suggested);
    RUN(aliases_mean_something);
    RUN(meaning_counts_more_than_letters);
    RUN(the_text_is_an_end_of_a_message);
    return test_summary();
}
