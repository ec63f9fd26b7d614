/* SPDX-License-Identifier: MIT */
/* Tables: columns are aligned, and long names are shortened if the terminal is too narrow. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include "apps/output/table.h"

/* Letters of two bytes. */
#define LETTERS "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F"

enum { ROWS = 3 };
static const char *const names[ROWS] = {
    "/features/conv.0/Conv+/features/conv.0/Clip+/features/conv.1/Conv+/features/Add",
    "/features/" LETTERS LETTERS "/" LETTERS LETTERS "/Mul",
    "relu",
};

/* The table's lines, as in a file. */
static const char *printed(bool interactive, int width, char *text, size_t size)
{
    FILE *file = tmpfile();
    terminal out = {.file = file, .interactive = interactive, .width = width};
    table *t = table_create("layer|type|>ms");
    for (int i = 0; i < ROWS; i++) {
        table_cell(t, "%s", names[i]);
        table_cell(t, "%s", i == 0 ? "conv2d+clip" : "other");
        table_cell(t, "%d.5", 1000 * i);
    }
    table_rule(t);
    table_cell(t, "total");
    table_cell(t, "%s", "");
    table_cell(t, "12");
    table_print(t, &out, 2);
    table_free(t);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The width of the widest line in columns. */
static int widest(const char *text)
{
    char line[2000];
    int most = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (terminal_columns(line) > most) most = terminal_columns(line);
    }
    return most;
}

static void files_have_all(void)
{
    char text[4000];
    printed(false, 40, text, sizeof text);
    for (int i = 0; i < ROWS; i++) CHECK(strstr(text, names[i]) != NULL);
    CHECK(strstr(text, "...") == NULL);
    CHECK_EQUAL(widest(text), 2 + (int)strlen(names[0]) + 2 + 11 + 2 + 6);
    char wide[4000];
    CHECK_TEXT(printed(true, 200, wide, sizeof wide), text); /* nor does a wide terminal cut anything */
}

static void long_names_give_way(void)
{
    char text[4000];
    printed(true, 60, text, sizeof text);
    CHECK_EQUAL(widest(text), 60);
    CHECK(strstr(text, "\n  /features/c...nv.1/Conv+/features/Add  conv2d+clip     0.5\n") != NULL);
    CHECK(strstr(text, "\n  relu                                   other        2000.5\n") != NULL);
    printed(true, 20, text, sizeof text); /* no narrower than is of use */
    CHECK_EQUAL(widest(text), 2 + 24 + 2 + 11 + 2 + 6);
    CHECK(strstr(text, "\n  /featur...\xC3\x9F/" LETTERS LETTERS "/Mul") != NULL); /* whole letters */
}

/* A name may be longer than any line. */
static void nothing_is_cut_unseen(void)
{
    static char name[3000], text[7000];
    memset(name, 'n', sizeof name - 1);
    FILE *file = tmpfile();
    table *t = table_create("layer|>ms");
    table_cell(t, "%s", name);
    table_cell(t, "1");
    table_print(t, &(terminal){.file = file, .width = 80}, 0);
    table_free(t);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    CHECK(strstr(text, name) != NULL);
}

/* A table with one or two optional columns and remarks, as printed on a terminal of that width. */
static const char *narrow(bool interactive, int width)
{
    static char text[1000];
    FILE *file = tmpfile();
    table *t = table_create("rung|>ms|->spread|>of floor|->moved|");
    for (int i = 0; i < 2; i++) {
        table_cell(t, "%s", i == 0 ? "naive" : "direct");
        table_cell(t, "%s", i == 0 ? "941.3" : "-");
        table_cell(t, "%s", i == 0 ? "9%" : "");
        table_cell(t, "%s", i == 0 ? "1%" : "");
        table_cell(t, "%s", i == 0 ? "1.00" : "");
        table_cell(t, "%s", i == 0 ? "" : "takes small images alone");
    }
    table_print(t, &(terminal){.file = file, .interactive = interactive, .width = width}, 2);
    table_free(t);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void what_can_be_spared_is(void)
{
    static const char whole[] = "  rung       ms  spread  of floor  moved\n"
                                "  naive   941.3      9%        1%   1.00\n"
                                "  direct      -                           takes small images alone\n";
    CHECK_TEXT(narrow(false, 20), whole);
    CHECK_TEXT(narrow(true, 66), whole);
    CHECK_TEXT(narrow(true, 65), "  rung       ms  spread  of floor  moved\n"
                                 "  naive   941.3      9%        1%   1.00\n"
                                 "  direct      -\n"
                                 "    takes small images alone\n");
    CHECK_TEXT(narrow(true, 39), "  rung       ms  spread  of floor\n" /* the last one first */
                                 "  naive   941.3      9%        1%\n"
                                 "  direct      -\n"
                                 "    takes small images alone\n");
    CHECK_TEXT(narrow(true, 26), "  rung       ms  of floor\n"
                                 "  naive   941.3        1%\n"
                                 "  direct      -\n"
                                 "    takes small images\n"
                                 "    alone\n");
}

int main(void)
{
    RUN(what_can_be_spared_is);
    RUN(files_have_all);
    RUN(long_names_give_way);
    RUN(nothing_is_cut_unseen);
    return test_summary();
}
