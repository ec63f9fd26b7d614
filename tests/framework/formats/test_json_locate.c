/* SPDX-License-Identifier: MIT */
/* Line numbers of positions in JSON texts. */
#include "testing.h"

#include <string.h>

#include "framework/formats/json_locate.h"

static const char text[] = "\n"
                           "{ \"name\": \"x\",\n"                  /* 2 */
                           "  \"tricky\\\"}]\": [\"]\", {\"a\":\n" /* 3 */
                           "      {}}, \"\\\\\"],\n"               /* 4 */
                           "  \"layers\": [\n"                     /* 5 */
                           "    {\"type\": \"relu\"},\n"           /* 6 */
                           "    -1.5e3, true,\n"                   /* 7 */
                           "    {\n"                               /* 8 */
                           "      \"type\": \"conv2d\",\n"         /* 9 */
                           "      \"ker\\u006eel\":\n"             /* 10 */
                           "        [3,\n"                         /* 11 */
                           "         5]\n"                         /* 12 */
                           "    }\n"                               /* 13 */
                           "  ], \"empty\": [ ], \"none\": {},\n"  /* 14 */
                           "  \"last\": null }\n";                 /* 15 */

static int line_of(const json_place *place)
{
    return json_locate(text, strlen(text), place);
}

static void finds_members_and_elements(void)
{
    const json_place layers = {.key = "layers"}, third = {&layers, NULL, 3}, kernel = {&third, "kernel", 0};
    CHECK_EQUAL(line_of(NULL), 2);
    CHECK_EQUAL(line_of(&(json_place){.key = "name"}), 2);
    CHECK_EQUAL(line_of(&(json_place){.key = "tricky\"}]"}), 3);
    CHECK_EQUAL(line_of(&layers), 5);
    CHECK_EQUAL(line_of(&(json_place){&layers, NULL, 0}), 6);
    CHECK_EQUAL(line_of(&(json_place){&layers, NULL, 2}), 7);
    CHECK_EQUAL(line_of(&third), 8);
    CHECK_EQUAL(line_of(&(json_place){&third, "type", 0}), 9);
    CHECK_EQUAL(line_of(&kernel), 10);
    CHECK_EQUAL(line_of(&(json_place){&kernel, NULL, 1}), 12);
    CHECK_EQUAL(line_of(&(json_place){.key = "last"}), 15);
}

static void missing_places_have_the_line_around_them(void)
{
    const json_place layers = {.key = "layers"}, third = {&layers, NULL, 3}, empty = {.key = "empty"},
                     none = {.key = "none"};
    CHECK_EQUAL(line_of(&(json_place){.key = "nowhere"}), 2);
    CHECK_EQUAL(line_of(&(json_place){&layers, NULL, 4}), 5);
    CHECK_EQUAL(line_of(&(json_place){&layers, "key", 0}), 5);
    CHECK_EQUAL(line_of(&(json_place){&third, "stride", 0}), 8);
    CHECK_EQUAL(line_of(&(json_place){&empty, NULL, 0}), 14);
    CHECK_EQUAL(line_of(&(json_place){&none, "x", 0}), 14);
}

static void all_elements_in_one_pass(void)
{
    const json_place layers = {.key = "layers"}, empty = {.key = "empty"}, name = {.key = "name"};
    int lines[5];
    json_locate_elements(text, strlen(text), &layers, lines, 5);
    static const int expected[] = {6, 7, 7, 8, 5};
    for (int i = 0; i < 5; i++) CHECK_EQUAL(lines[i], expected[i]);
    json_locate_elements(text, strlen(text), &empty, lines, 1);
    CHECK_EQUAL(lines[0], 14);
    json_locate_elements(text, strlen(text), &name, lines, 1);
    CHECK_EQUAL(lines[0], 2);
}

/* Truncated texts are never passed to it, but it must not read beyond them. */
static void stays_inside(void)
{
    const json_place layers = {.key = "layers"}, third = {&layers, NULL, 3}, kernel = {&third, "kernel", 0};
    for (size_t length = 0; length < strlen(text); length++) {
        int lines[8];
        CHECK(json_locate(text, length, &kernel) >= 1);
        json_locate_elements(text, length, &layers, lines, 8);
    }
}

int main(void)
{
    RUN(finds_members_and_elements);
    RUN(missing_places_have_the_line_around_them);
    RUN(all_elements_in_one_pass);
    RUN(stays_inside);
    return test_summary();
}
