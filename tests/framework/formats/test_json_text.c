/* SPDX-License-Identifier: MIT */
/* JSON texts: the parsed values, compared with jansson's own parser; rejected texts with error positions; lack of
 * memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/json_text.h"
#include "testing.h"

static const char *const good[] = {
    "{}",
    "[]",
    " [ 1 , -2 , 0 , -0 , 9223372036854775807 , -9223372036854775808 ] ",
    "[0.5, -1.25e3, 1E-7, 1e+2, 0e0, 4.9e-324, 1.7976931348623157e308, 1e-400, 0.1000000000000000055511151231257827]",
    "[true, false, null]",
    "{\"a\": {\"b\": [{}, [], \"\", {\"a\": 1}]}, \"\": \"c\"}",
    "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20ac\\uD83D\\uDE00\"]",
    "[\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\", \"\x7F\"]",
    "\t{\r\n\"tab and lines\"\n:\t[\r]\n}\n",
};

static void values_are_jansson_s(void)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        json_text_error error = {.line = 0};
        json_t *found = NULL, *expected = json_loads(good[i], JSON_REJECT_DUPLICATES, NULL);
        sdlf_status status = json_text_parse(&found, good[i], strlen(good[i]), &error);
        if (!CHECK_EQUAL(status, SDLF_OK) || !CHECK(expected != NULL) || !CHECK(json_equal(found, expected)))
            printf("    %s: %s\n", good[i], error.text);
        json_decref(found);
        json_decref(expected);
    }
}

/* Top-level scalars, which jansson accepts only on request. */
static void a_text_is_one_value(void)
{
    json_text_error error;
    json_t *found = NULL;
    CHECK_EQUAL(json_text_parse(&found, "-12.5 ", 6, &error), SDLF_OK);
    CHECK_CLOSE(json_real_value(found), -12.5, 0);
    json_decref(found);
    CHECK_EQUAL(json_text_parse(&found, "\"x\\ny\"...", 6, &error), SDLF_OK); /* no byte beyond the length is read */
    CHECK_TEXT(json_string_value(found), "x\ny");
    json_decref(found);
}

static void what_is_wrong_is_told(void)
{
    static const struct {
        const char *text, *message;
        int line, column;
    } bad[] = {
        {"", "expected a value, found the end", 1, 1},
        {"{\n\"a\" 1}", "expected ':', found '1'", 2, 5},
        {"[1 2]", "expected ',' or ']', found '2'", 1, 4},
        {"[1,]", "expected a value, found ']'", 1, 4},
        {"{\"a\": 1,}", "expected a key in quotes, found '}'", 1, 9},
        {"{a: 1}", "expected a key in quotes, found 'a'", 1, 2},
        {"[\n1\n,\n\"a\"\n\xFF", "expected ',' or ']', found byte 0xff", 5, 1},
        {"[1] x", "expected the end, found 'x'", 1, 5},
        {"[tru]", "expected a value, found 't'", 1, 2},
        {"{\"a\": 1, \"b\": 2,\n \"a\": 3}", "the key 'a' occurs twice", 2, 2},
        {"[\"abc", "a string does not end", 1, 6},
        {"[\"abc\\", "a string has an invalid escape", 1, 6},
        {"[\"\\x\"]", "invalid escape", 1, 3},
        {"[\"\\u12g4\"]", "invalid escape", 1, 3},
        {"[\"\\u12\"]", "invalid escape", 1, 3},
        {"[\"\\u0000\"]", "invalid escape", 1, 3},
        {"[\"\\ud800\"]", "invalid escape", 1, 3},
        {"[\"\\ud800\\u0041\"]", "invalid escape", 1, 3},
        {"[\"\\udc00\"]", "invalid escape", 1, 3},
        {"[\"a\nb\"]", "control character 0x0a", 1, 4},
        {"[\"\xC0\x80\"]", "not UTF-8", 1, 2},
        {"[01]", "a number is malformed", 1, 2},
        {"[1.]", "a number is malformed", 1, 2},
        {"[.5]", "expected a value, found '.'", 1, 2},
        {"[1e]", "a number is malformed", 1, 2},
        {"[-]", "a number is malformed", 1, 2},
        {"[+1]", "expected a value, found '+'", 1, 2},
        {"[9223372036854775808]", "more than 64 bits", 1, 2},
        {"[1e309]", "too large", 1, 2},
        {"[NaN]", "expected a value, found 'N'", 1, 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_text_error error = {.line = 0};
        json_t *found = NULL;
        bool told = CHECK_EQUAL(json_text_parse(&found, bad[i].text, strlen(bad[i].text), &error), SDLF_ERROR_FORMAT) &&
                    CHECK(strstr(error.text, bad[i].message) != NULL) && CHECK_EQUAL(error.line, bad[i].line) &&
                    CHECK_EQUAL(error.column, bad[i].column);
        if (!told) printf("    %s: %d:%d: %s\n", bad[i].text, error.line, error.column, error.text);
        CHECK(found == NULL && json_loads(bad[i].text, JSON_REJECT_DUPLICATES, NULL) == NULL);
    }
}

/* Every proper prefix of a valid text is rejected, and nothing beyond it is read. */
static void cut_texts_are_refused(void)
{
    const char *text = "{\"a\": [1.5e2, true, \"\\u00e9\\uD83D\\uDE00\"], \"b\": null}";
    for (size_t length = 0; length < strlen(text); length++) {
        json_text_error error;
        json_t *found = NULL;
        char *cut = malloc(length + 1); /* so that a sanitizer detects reads beyond it */
        if (cut == NULL) return;
        memcpy(cut, text, length);
        CHECK_EQUAL(json_text_parse(&found, cut, length, &error), SDLF_ERROR_FORMAT);
        CHECK(found == NULL);
        free(cut);
    }
}

static sdlf_status parse_names(void *context)
{
    static const char text[] = "{\"max_pool2d_2\": \"a name that is longer than any token before it\", \"n\": "
                               "[12345678901234567, 1.5, \"\\u0041 name that is even longer than the one before it\"]}";
    json_text_error error;
    json_t *found = NULL;
    sdlf_status status = json_text_parse(&found, text, sizeof text - 1, &error);
    if (status == SDLF_OK) {
        const json_t *name = json_object_get(found, "max_pool2d_2"), *list = json_object_get(found, "n");
        CHECK_TEXT(json_string_value(name), "a name that is longer than any token before it");
        CHECK_EQUAL(json_integer_value(json_array_get(list, 0)), 12345678901234567);
        CHECK_TEXT(json_string_value(json_array_get(list, 2)), "A name that is even longer than the one before it");
    }
    json_decref(found);
    (void)context;
    return status;
}

/* Nothing is lost silently: either the text is read completely, or the error is lack of memory. */
static void memory_that_runs_out_is_noticed(void)
{
    json_set_alloc_funcs(malloc, free); /* so that the JSON library's allocations are counted and fail too */
    test_every_allocation("a JSON text", parse_names, NULL);
}

int main(void)
{
    RUN(values_are_jansson_s);
    RUN(a_text_is_one_value);
    RUN(what_is_wrong_is_told);
    RUN(cut_texts_are_refused);
    RUN(memory_that_runs_out_is_noticed);
    return test_summary();
}
