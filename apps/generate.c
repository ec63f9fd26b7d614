/* SPDX-License-Identifier: MIT */
/* sdlf generate: continues a text, one character at a time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/random.h>
#include <sdlf/sdlf.h>

#include "apps/arguments/arguments.h"
#include "apps/command.h"
#include "apps/generate_cached.h"
#include "apps/input/network.h"
#include "apps/output/json.h"
#include "apps/output/number.h"
#include "apps/system/interrupt.h"
#include "apps/system/machine.h"
#include "apps/system/memory.h"

typedef struct settings {
    const char *weights, *text, *calculator;
    int64_t tokens, top_k, seed;
    double temperature;
    machine_choice choice;
    bool json, whole_window;
} settings;

static const argument table_of_arguments[] = {
    {.name = "Options", .type = ARGUMENT_HEADING},
    {"weights", ARGUMENT_TEXT, offsetof(settings, weights), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .required = true, .help = "a safetensors file, as train --net char_gpt --data text:FILE writes it"},
    {"text", ARGUMENT_TEXT, offsetof(settings, text), "TEXT", .may_be_empty = true,
     .help = "text to continue, in characters that the network knows (default, or if it is empty: a new line, or the "
             "network's first character)"},
    {"tokens", ARGUMENT_INT, offsetof(settings, tokens), "N", .minimum = 1, .maximum = 1000000, .fallback = "200",
     .help = "characters to add"},
    {"temperature", ARGUMENT_FLOAT, offsetof(settings, temperature), "X", .minimum = 0, .maximum = 100, .fallback = "1",
     .help = "below 1, likely characters become likelier; 0: always the likeliest"},
    {"top-k", ARGUMENT_INT, offsetof(settings, top_k), "N", .minimum = 1, .maximum = 1000000,
     .help = "draw among the N likeliest (default: among all)"},
    {"seed", ARGUMENT_INT, offsetof(settings, seed), "N", .minimum = 0, .maximum = 9007199254740992.0, .fallback = "1",
     .help = "random seed: the same seed gives the same text"},
    {"whole-window", ARGUMENT_FLAG, offsetof(settings, whole_window),
     .help = "recompute all positions for each character, instead of caching keys and values: beyond the network's "
             "length each character then sees as many before it as the network can"},
    {"calculator", ARGUMENT_NAME, offsetof(settings, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"threads", ARGUMENT_INT, offsetof(settings, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {0},
};

static const argument output_arguments[] = {
    {"json", ARGUMENT_FLAG, offsetof(settings, json), .help = "print JSON"},
    {0},
};

/* The character of a class. */
typedef struct character {
    const char *name; /* borrowed from the model: "\\n" */
    char text[4];
    int bytes; /* of text */
} character;

typedef struct session {
    settings set;
    machine machine;
    sdlf_calculator *calculator;
    sdlf_model *model;
    sdlf_plan *plan;
    const char *input, *output;
    int64_t length; /* positions that the network sees */
    int classes;
    sdlf_scores kind;      /* of the output */
    character *characters; /* of each class */
    int32_t *token;        /* the text so far */
    int64_t count;
    float *window, *scores; /* (length), (length,classes) */
    double *weight;         /* (classes) */
    memory_text text;       /* the generated text, for JSON */
    cached_network *cached; /* NULL: the whole window is computed for each character */
    int64_t first, seen;    /* the first token of its cached positions, and their number */
} session;

/* ---- characters ---- */

/* The bytes of the UTF-8 character at `text`, by its first byte; bytes after an invalid one are not checked. */
static int character_bytes(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    int bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, found = 1;
    while (found < bytes && ((unsigned char)text[found] & 0xc0) == 0x80) found++;
    return found;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses a class name of data set text, or returns false: one printable character, or "\\n", "\\t", "\\r", "\\\\",
 * "\\x1f". */
static bool read_character(character *to, const char *name)
{
    static const char escaped[] = "ntr\\", meant[] = "\n\t\r\\";
    int length = (int)strlen(name), high, low;
    *to = (character){.name = name};
    if (length == 2 && name[0] == '\\' && strchr(escaped, name[1])) {
        to->text[0] = meant[strchr(escaped, name[1]) - escaped];
        to->bytes = 1;
    } else if (length == 4 && name[0] == '\\' && name[1] == 'x' && (high = hex_digit(name[2])) >= 0 &&
               (low = hex_digit(name[3])) >= 0 && (16 * high + low < 32 || 16 * high + low == 127)) {
        to->text[0] = (char)(16 * high + low);
        to->bytes = 1;
    } else if (length > 0 && name[0] != '\\' && character_bytes(name) == length && (unsigned char)name[0] >= 32 &&
               name[0] != 127 && (length == 1) == ((unsigned char)name[0] < 128)) {
        memcpy(to->text, name, (size_t)length);
        to->bytes = length;
    }
    return to->bytes > 0;
}

/* The class of the first character of a text; -1: none. Text contains no zero bytes. */
static int find_class(const session *s, const char *text)
{
    for (int i = 0; i < s->classes; i++) {
        const character *c = &s->characters[i];
        if (c->text[0] && strncmp(text, c->text, (size_t)c->bytes) == 0) return i;
    }
    return -1;
}

static sdlf_status read_vocabulary(session *s)
{
    int count = sdlf_model_class_count(s->model);
    s->characters = memory_allocate((size_t)count * sizeof *s->characters + 1);
    for (; s->classes < count; s->classes++) {
        character *c = &s->characters[s->classes];
        const char *name = sdlf_model_class_name(s->model, s->classes);
        if (!read_character(c, name))
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: class %d, '%s', is not a character", s->set.weights, s->classes,
                             name);
        int before = find_class(s, c->text);
        if (c->text[0] && before >= 0)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: classes %d and %d are both '%s'", s->set.weights, before,
                             s->classes, name);
    }
    if (count > 0) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected the characters that the network knows, found no classes",
                     s->set.weights);
}

static sdlf_status read_text(session *s)
{
    const char *text = s->set.text ? s->set.text : "";
    s->token = memory_allocate((strlen(text) + 1 + (size_t)s->set.tokens) * sizeof *s->token);
    for (const char *at = text; *at;) {
        int class = find_class(s, at);
        if (class < 0)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--text: byte %zu: the network has not seen the character '%.*s'",
                             (size_t)(at - text), character_bytes(at), at);
        s->token[s->count++] = class;
        at += s->characters[class].bytes;
    }
    if (s->count > 0) return SDLF_OK;
    int line = find_class(s, "\n");
    s->token[s->count++] = line < 0 ? 0 : line;
    return SDLF_OK;
}

/* ---- drawing ---- */

static int compare_down(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Sets all but the k largest to 0; of equals the first are kept. */
static void keep_top_k(double *weight, int count, int64_t k)
{
    if (k == 0 || k >= count) return;
    double *sorted = memory_allocate((size_t)count * sizeof *sorted);
    memcpy(sorted, weight, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_down);
    int64_t equals = k; /* equal to the k-th, that are kept */
    for (int i = 0; i < count; i++) equals -= weight[i] > sorted[k - 1];
    for (int i = 0; i < count; i++)
        if (weight[i] < sorted[k - 1] || (weight[i] == sorted[k - 1] && equals-- <= 0)) weight[i] = 0;
    free(sorted);
}

/* Draws a class from the scores with random draw `number`; -1 if scores are NaN. */
static int32_t draw(session *s, const float *score, int64_t number)
{
    double sum = 0, largest = -INFINITY, temperature = s->set.temperature;
    int best = 0;
    for (int i = 0; i < s->classes; i++) {
        s->weight[i] = s->kind == SDLF_SCORES_PROBABILITIES ? log((double)score[i]) : (double)score[i];
        if (isnan(s->weight[i])) return -1;
        if (s->weight[i] > largest) largest = s->weight[best = i];
    }
    if (!isfinite(largest)) return -1;
    if (temperature == 0) return best;
    for (int i = 0; i < s->classes; i++) s->weight[i] = exp((s->weight[i] - largest) / temperature);
    keep_top_k(s->weight, s->classes, s->set.top_k);
    for (int i = 0; i < s->classes; i++) sum += s->weight[i];
    uint32_t word = sdlf_philox4x32((uint64_t)s->set.seed, (uint64_t)number, 1, 0).word[0];
    double left = (double)sdlf_uniform_from_word(word) * sum;
    for (int i = 0; i < s->classes; i++) {
        left -= s->weight[i];
        if (left < 0 && s->weight[i] > 0) return i;
    }
    return best;
}

/* ---- the network ---- */

static sdlf_status prepare(session *s)
{
    sdlf_binding input, output;
    sdlf_status status = machine_open_one(&s->machine, &s->set.choice, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = network_open_weights(&s->model, s->set.weights, NULL, NULL);
    if (status == SDLF_OK) status = read_vocabulary(s);
    if (status == SDLF_OK) status = read_text(s);
    if (status == SDLF_OK)
        status = sdlf_plan_create(&s->plan, s->model, &(sdlf_plan_options){.batch = 1, .forward = s->calculator});
    if (status != SDLF_OK) return status;
    s->input = sdlf_model_input_count(s->model) == 1
                   ? sdlf_model_layer(s->model, sdlf_model_input(s->model, 0).layer)->name
                   : "";
    s->output = sdlf_model_output_name(s->model, 0);
    s->kind = sdlf_model_layer(s->model, sdlf_model_output(s->model, 0).layer)->type->scores;
    status = sdlf_plan_input(s->plan, s->input, &input);
    if (status == SDLF_OK) status = sdlf_plan_output(s->plan, s->output, &output);
    if (status != SDLF_OK) return status;
    s->length = input.tensor.shape.dim[1];
    bool fits = input.tensor.shape.rank == 2 && input.tensor.dtype == SDLF_FLOAT32 &&
                sdlf_shape_equal(output.tensor.shape, sdlf_shape(1, s->length, s->classes));
    if (!fits)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: expected scores of %d characters at each position, found %s of %s",
                         s->set.weights, s->classes, sdlf_shape_print(output.tensor.shape).text,
                         sdlf_shape_print(input.tensor.shape).text);
    s->window = memory_allocate((size_t)s->length * sizeof *s->window);
    s->scores = memory_allocate((size_t)(s->length * s->classes) * sizeof *s->scores);
    s->weight = memory_allocate((size_t)s->classes * sizeof *s->weight);
    return SDLF_OK;
}

static sdlf_status compute(session *s)
{
    int64_t bytes = s->length * (int64_t)sizeof *s->window;
    sdlf_status status = sdlf_plan_write(s->plan, s->input, s->window, SDLF_FLOAT32, bytes);
    if (status == SDLF_OK) status = sdlf_plan_forward(s->plan);
    if (status != SDLF_OK) return status;
    return sdlf_plan_read(s->plan, s->output, s->scores, SDLF_FLOAT32, bytes * s->classes);
}

/* Checks that scores do not depend on later positions, which are not known yet: changing the end of the input leaves
 * earlier scores bitwise equal. */
static sdlf_status check_causal(session *s)
{
    int64_t length = s->length, count = length * s->classes;
    float *before = memory_allocate((size_t)count * sizeof *before);
    sdlf_status status = SDLF_OK;
    for (int64_t i = 0; i < length; i++) s->window[i] = (float)(i * 7 % s->classes);
    status = compute(s);
    memcpy(before, s->scores, (size_t)count * sizeof *before);
    for (int64_t first = length - 1; first > 0 && status == SDLF_OK; first /= 2) { /* changes all from there on */
        for (int64_t i = first; i < length; i++) s->window[i] = (float)((i * 7 + 1) % s->classes);
        status = compute(s);
        if (status == SDLF_OK && memcmp(before, s->scores, (size_t)(first * s->classes) * sizeof *before) != 0)
            status = sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                               "%s: network '%s' is not causal: scores of a position depend on what follows it, which "
                               "is not known while a text is written",
                               s->set.weights, sdlf_model_name(s->model));
    }
    free(before);
    return status;
}

/* Prints a character; on a terminal, control characters are shown by name. */
static void put_character(session *s, const character *c)
{
    unsigned char first = (unsigned char)c->text[0];
    bool obeyed = first != '\n' && first != '\t' && (first < 32 || first == 127) && isatty(STDOUT_FILENO);
    FILE *to = s->set.json ? s->text.file : stdout;
    if (obeyed && !s->set.json)
        fputs(c->name, to);
    else
        fwrite(c->text, 1, (size_t)c->bytes, to);
    if (!s->set.json) fflush(to);
}

/* Scores the next character by running the whole window. The position that is read does not depend on the tokens after
 * the text so far. */
static sdlf_status score_window(session *s, const float **scores)
{
    int64_t seen = s->count < s->length ? s->count : s->length;
    for (int64_t i = 0; i < s->length; i++) s->window[i] = i < seen ? (float)s->token[s->count - seen + i] : 0;
    *scores = s->scores + (seen - 1) * s->classes;
    return compute(s);
}

/* The same with the KV cache, computing only new positions. When the network's length is full, its second half is
 * recomputed as the beginning: at most two positions are computed per character on average, however long the text. */
static sdlf_status score_cached(session *s, const float **scores)
{
    sdlf_status status = SDLF_OK;
    *scores = s->scores;
    int64_t wanted = s->count - s->first;
    if (wanted > s->length) {
        s->first = s->count - (s->length + 1) / 2;
        s->seen = 0;
        wanted = s->count - s->first;
    }
    for (; s->seen < wanted && status == SDLF_OK; s->seen++)
        status = cached_network_step(s->cached, s->token[s->first + s->seen], s->seen, s->scores);
    return status;
}

/* Generates one character. */
static sdlf_status step(session *s, int64_t number)
{
    const float *scores;
    sdlf_status status = s->cached != NULL ? score_cached(s, &scores) : score_window(s, &scores);
    if (status != SDLF_OK) return status;
    int32_t drawn = draw(s, scores, number);
    if (drawn < 0)
        return sdlf_fail(SDLF_ERROR_NUMERIC, "%s: the scores of character %lld are not finite", s->set.weights,
                         (long long)number + 1);
    s->token[s->count++] = drawn;
    put_character(s, &s->characters[drawn]);
    return SDLF_OK;
}

static sdlf_status generate(session *s)
{
    sdlf_status status = prepare(s);
    if (status == SDLF_OK) status = check_causal(s);
    if (status != SDLF_OK) return status;
    if (!s->set.whole_window) s->cached = cached_network_create(s->model, s->calculator, s->length, s->classes);
    const char *begin = s->set.text ? s->set.text : "";
    int64_t begun = s->count;
    if (s->set.json && !memory_text_open(&s->text)) memory_exhausted();
    if (!s->set.json) fputs(begin, stdout);
    interrupt_waits();
    for (int64_t i = 0; i < s->set.tokens && status == SDLF_OK && interrupt_signal() == 0; i++) status = step(s, i);
    if (!s->set.json) putchar('\n');
    if (s->set.json && !memory_text_close(&s->text)) memory_exhausted();
    if (status != SDLF_OK) return status;
    interrupt_say(!s->set.json, " after %s characters", number_count(s->count - begun).text);
    if (!s->set.json) return SDLF_OK;
    return json_print_measured(json_pack("{ss so so so}", "version", SDLF_VERSION, "weights", json_text(s->set.weights),
                                         "text", json_text(begin), "generated", json_text(s->text.text)));
}

static int run(int count, char **words)
{
    session s = {.model = NULL};
    arguments given;
    static const argument_part parts[] = {
        {table_of_arguments, 0}, {machine_arguments, offsetof(settings, choice)}, {output_arguments, 0}, {0}};
    static const command_usage usage = {
        .command = "generate",
        .synopsis = "--weights FILE [options]",
        .text = "Continue a text, a character at a time, with a network that predicts the next one.",
        .parts = parts,
        .examples = "  sdlf train --net char_gpt --data text:book.txt --optimizer adamw\n"
                    "  sdlf generate --weights char_gpt.safetensors --text 'The ' --temperature 0.8\n",
    };
    switch (arguments_read(&given, &usage, count, words, &s.set)) {
    case ARGUMENTS_HELP: return COMMAND_OK;
    case ARGUMENTS_WRONG: return COMMAND_USAGE;
    case ARGUMENTS_OK: break;
    }
    int code = command_conclude("generate", generate(&s));
    cached_network_free(s.cached);
    sdlf_plan_free(s.plan);
    sdlf_model_free(s.model);
    machine_close(&s.machine);
    free(s.text.text);
    free(s.characters);
    free(s.token);
    free(s.window);
    free(s.scores);
    free(s.weight);
    return code;
}

const command generate_command = {
    .name = "generate", .summary = "continue a text with a character-level network", .run = run};
