/* sdlf generate: a network of characters is trained for a moment, and writes on. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

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
               "at each position of a sequence, found 10 in samples 1x28x28");
}

int main(void)
{
    RUN(make_weights);
    RUN(the_text_is_learnt);
    RUN(draws_depend_on_the_seed);
    RUN(calculators_agree);
    RUN(nonsense_is_refused);
    return test_summary();
}
