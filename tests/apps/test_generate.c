/* SPDX-License-Identifier: MIT */
/* sdlf generate: a character-level network is trained briefly, and continues a text. */
#include "testing.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"

static char weights[600], data[700];

static void make_weights(void)
{
    static const char line[] = "one two three four five six seven eight nine ten\n";
    char text[40 * sizeof line] = "", path[600];
    for (int i = 0; i < 40; i++) strcat(text, line);
    snprintf(path, sizeof path, "%s", test_path("words.txt"));
    snprintf(weights, sizeof weights, "%s", test_path("words.safetensors"));
    snprintf(data, sizeof data, "text:%s,length=16", path);
    test_write_file(path, text, strlen(text));
    const program *p = SDLF(0, "train", "--net", "char_gpt", "--data", data, "--epochs", "4", "--batch", "4",
                            "--optimizer", "adamw", "--learning-rate", "0.003", "--out", weights);
    CHECK_SAYS(p, "perplexity");
    CHECK_SAYS(p, "char_gpt");
    CHECK(strstr(p->out, "mistaken for") == NULL); /* no table of all characters */
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights), "right");
    char shorter[700];
    snprintf(shorter, sizeof shorter, "text:%s,length=12", path);
    CHECK_SAYS(SDLF(1, "eval", "--weights", weights, "--data", shorter), "have 12: text:FILE,length=16");
}

static void the_text_is_learnt(void)
{
    const program *p =
        SDLF(0, "generate", "--weights", weights, "--text", "one two", "--tokens", "20", "--temperature", "0");
    CHECK_TEXT(p->out, "one two three four five six\n");
}

static void draws_depend_on_the_seed(void)
{
    char first[64];
    const program *p =
        SDLF(0, "generate", "--weights", weights, "--tokens", "40", "--temperature", "20", "--seed", "5");
    snprintf(first, sizeof first, "%.60s", p->out);
    CHECK(strlen(first) == 41);
    p = SDLF(0, "generate", "--weights", weights, "--tokens", "40", "--temperature", "20", "--seed", "5");
    CHECK_TEXT(p->out, first);
    p = SDLF(0, "generate", "--weights", weights, "--tokens", "40", "--temperature", "20", "--seed", "6");
    CHECK(strcmp(p->out, first) != 0);
    p = SDLF(0, "generate", "--weights", weights, "--text", "six", "--tokens", "6", "--temperature", "20", "--top-k",
             "1", "--json");
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK_TEXT(json_string_value(json_object_get(json, "text")), "six");
    CHECK_TEXT(json_string_value(json_object_get(json, "generated")), " seven");
    json_decref(json);
}

/* Cached keys and values give the same text as the whole window, up to the network's length; and the text continues
 * beyond it. */
/* Without a text and with an empty one it begins the same way. */
static void an_empty_text_is_none(void)
{
    char first[64];
    snprintf(first, sizeof first, "%.60s", SDLF(0, "generate", "--weights", weights, "--tokens", "20")->out);
    CHECK_TEXT(SDLF(0, "generate", "--weights", weights, "--tokens", "20", "--text", "")->out, first);
    CHECK_TEXT(SDLF(0, "generate", "--weights", weights, "--tokens", "20", "--text=")->out, first);
}

static void kept_positions_give_the_same_text(void)
{
    char whole[64];
    const program *p = SDLF(0, "generate", "--weights", weights, "--text", "one", "--tokens", "13", "--temperature",
                            "3", "--whole-window");
    snprintf(whole, sizeof whole, "%.60s", p->out);
    CHECK(strlen(whole) == 17);
    p = SDLF(0, "generate", "--weights", weights, "--text", "one", "--tokens", "13", "--temperature", "3");
    CHECK_TEXT(p->out, whole);
    p = SDLF(0, "generate", "--weights", weights, "--text", "one", "--tokens", "200", "--temperature", "0");
    CHECK(strlen(p->out) == 204);
}

/* Labels of positions are classes of the last axis. */
static void calculators_agree(void)
{
    CHECK_SAYS(SDLF(0, "parity", "--weights", weights, "--data", data, "--batch", "2"), "agree");
}

static void nonsense_is_refused(void)
{
    char other[600];
    char others[700];
    snprintf(others, sizeof others, "%s", test_path("others.txt"));
    test_write_file(others, "Quick brown foxes jump over lazy dogs; Quick brown foxes jump over lazy dogs.\n", 78);
    snprintf(others, sizeof others, "text:%s,length=16", test_path("others.txt"));
    CHECK_SAYS(SDLF(2, "train", "--from", weights, "--data", others, "--no-save"), "has other characters");
    CHECK_SAYS(SDLF(2, "train", "--net", "char_gpt", "--data", data, "--normalize", "unit", "--no-save"),
               "samples are characters");
    CHECK_SAYS(SDLF(2, "generate", "--weights", weights, "--text", "one 2"),
               "byte 4: the network has not seen the character '2'");
    CHECK_SAYS(SDLF(2, "generate"), "--weights");
    snprintf(other, sizeof other, "%s", test_path("digits.safetensors"));
    SDLF(0, "train", "--net", small_network(), "--data", "digits:100", "--epochs", "1", "--out", other);
    CHECK_SAYS(SDLF(1, "generate", "--weights", other), "expected the characters that the network knows");
    CHECK_SAYS(SDLF(1, "train", "--net", "char_gpt", "--data", "digits:100", "--no-save"),
               "expects sequences of tokens, found samples 1x28x28");
}

/* A network from a separate file, trained briefly on the text. */
static const char *train_file(const char *name, const char *layers)
{
    char path[600];
    static char out[600];
    snprintf(path, sizeof path, "%s.json", test_path(name));
    snprintf(out, sizeof out, "%s.safetensors", test_path(name));
    char text[1200];
    snprintf(text, sizeof text,
             "{\"name\": \"%s\", \"input\": {\"name\": \"tokens\", \"shape\": [16]}, \"layers\": [%s]}", name, layers);
    test_write_file(path, text, strlen(text));
    SDLF(0, "train", "--net", path, "--data", data, "--epochs", "8", "--batch", "4", "--optimizer", "adamw",
         "--learning-rate", "0.01", "--out", out, "--quiet");
    return out;
}

/* 16 characters: a new line, a space, and 14 letters. */
static void a_recurrent_network_learns(void)
{
    const char *file = train_file(
        "lstm", "{\"type\": \"embedding\", \"vocabulary\": 16, \"units\": 16}, {\"type\": \"lstm\", \"units\": 48}, "
                "{\"type\": \"fully_connected\", \"units\": 16, \"axis\": -1}");
    const program *p =
        SDLF(0, "generate", "--weights", file, "--text", "one two", "--tokens", "20", "--temperature", "0");
    CHECK_TEXT(p->out, "one two three four five six\n");
}

/* A network that reads backwards sees the following characters, so it cannot generate. */
static void what_sees_ahead_is_refused(void)
{
    const char *file = train_file(
        "ahead", "{\"type\": \"embedding\", \"vocabulary\": 16, \"units\": 8}, {\"type\": \"gru\", \"units\": 8, "
                 "\"reverse\": true}, {\"type\": \"fully_connected\", \"units\": 16, \"axis\": -1}");
    CHECK_SAYS(SDLF(1, "generate", "--weights", file), "network 'ahead' is not causal");
}

/* A softmax along the positions does not give probabilities of the classes at each position. */
static void other_axes_are_refused(void)
{
    static const char net[] =
        "{\"name\": \"across\", \"input\": {\"name\": \"tokens\", \"shape\": [16]}, \"layers\": [{\"type\": "
        "\"embedding\", "
        "\"vocabulary\": 16, \"units\": 16}, {\"type\": \"softmax\", \"name\": \"share\", \"axis\": 1}]}";
    char path[600];
    snprintf(path, sizeof path, "%s", test_path("across.json"));
    test_write_file(path, net, strlen(net));
    CHECK_SAYS(SDLF(1, "train", "--net", path, "--data", data, "--no-save"),
               "softmax 'share' is along axis 1, expected axis -1, the classes");
}

/* All weights equal: all scores are equal, and the first of them is chosen. NaN is reported. */
static void ties_and_no_numbers(void)
{
    const float values[] = {0, NAN};
    for (int i = 0; i < 2; i++) {
        sdlf_model *model = NULL;
        char path[600];
        snprintf(path, sizeof path, "%s", test_path("filled.safetensors"));
        CHECK_OK(sdlf_model_open(&model, weights));
        for (int p = 0; p < sdlf_model_parameter_count(model); p++) {
            sdlf_tensor *value = &sdlf_model_parameter(model, p)->value;
            for (int64_t e = 0; e < sdlf_tensor_count(value); e++) ((float *)value->data)[e] = values[i];
        }
        CHECK_OK(sdlf_model_save(model, path));
        sdlf_model_free(model);
        if (i == 0) {
            CHECK_TEXT(SDLF(0, "generate", "--weights", path, "--text", "one", "--tokens", "3", "--top-k", "1")->out,
                       "one\n\n\n\n");
            CHECK_TEXT(
                SDLF(0, "generate", "--weights", path, "--text", "one", "--tokens", "2", "--temperature", "0")->out,
                "one\n\n\n");
        } else {
            CHECK_SAYS(SDLF(1, "generate", "--weights", path), "the scores of character 1 are not finite");
        }
    }
}

/* Replace a text in the file by another one of the same length. */
static const char *altered(const char *from, const char *to)
{
    static char path[600];
    static char bytes[1000000];
    snprintf(path, sizeof path, "%s", test_path("lying.safetensors"));
    FILE *file = fopen(test_path("lstm.safetensors"), "rb"); /* which is small */
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0, length = strlen(from);
    if (file) fclose(file);
    bool found = false;
    for (size_t at = 0; at + length <= size && !found; at++) {
        found = memcmp(bytes + at, from, length) == 0;
        if (found) memcpy(bytes + at, to, length);
    }
    CHECK(found);
    test_write_file(path, bytes, size);
    return path;
}

static void lying_vocabularies_are_refused(void)
{
    CHECK_SAYS(SDLF(1, "generate", "--weights", altered("\\\"e\\\", \\\"f\\\"", "\\\"e\\\", \\\"e\\\"")),
               "are both 'e'");
    CHECK_SAYS(SDLF(1, "generate", "--weights", altered("\\\"e\\\", \\\"f\\\"", "\\\"ee\\\",\\\"f\\\"")),
               "'ee', is not a character");
}

static void what_is_said_of_text(void)
{
    const program *p = SDLF(0, "data", data);
    CHECK(strstr(p->out, "100.0%") == NULL && strstr(p->out, "full white") == NULL);
    CHECK_SAYS(p, "18.4%"); /* of e among all */
    CHECK_SAYS(SDLF(0, "eval", "--weights", weights), "tokens/s");
    CHECK_SAYS(SDLF(2, "train", "--net", "char_gpt", "--data", data, "--augment-flip", "--no-save"),
               "--augment-flip changes pictures, but samples of text");
    CHECK_SAYS(SDLF(2, "generate", "--weights", weights, "--text", "one \xc3\xa9te"), "the character '\xc3\xa9'");
}

int main(void)
{
    RUN(make_weights);
    RUN(the_text_is_learnt);
    RUN(draws_depend_on_the_seed);
    RUN(an_empty_text_is_none);
    RUN(kept_positions_give_the_same_text);
    RUN(calculators_agree);
    RUN(nonsense_is_refused);
    RUN(a_recurrent_network_learns);
    RUN(what_sees_ahead_is_refused);
    RUN(other_axes_are_refused);
    RUN(ties_and_no_numbers);
    RUN(lying_vocabularies_are_refused);
    RUN(what_is_said_of_text);
    return test_summary();
}
