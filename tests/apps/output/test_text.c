/* SPDX-License-Identifier: MIT */
/* Tables, wrapped text and the size of what is printed. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/quote.h"
#include "apps/output/table.h"
#include "apps/output/terminal.h"
#include "apps/output/wrap.h"

/* The output of `print`. */
static const char *captured(void (*print)(FILE *))
{
    static char text[4096];
    FILE *file = tmpfile();
    print(file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void print_table(FILE *file)
{
    terminal out = {.file = file, .width = 80};
    table *t = table_create("layer|empty|>parameters|note");
    table_cell(t, "%s", "conv2d");
    table_cell(t, "%s", "");
    table_cell(t, "%s", "832");
    table_cell(t, "%s", "");
    table_cell(t, "%s", "f\u00e4c");
    table_cell(t, "%s", "");
    table_cell(t, "%s", "6,423,552");
    table_cell(t, "%s", "x");
    table_rule(t);
    table_cell(t, "total");
    table_cell(t, "%s", "");
    table_cell(t, "%s", "6,424,384");
    table_cell(t, "%s", "");
    table_print(t, &out, 2);
    table_free(t);
}

static void tables_line_up(void)
{
    CHECK_TEXT(captured(print_table), "  layer   parameters  note\n"
                                      "  conv2d         832\n"
                                      "  f\u00e4c      6,423,552  x\n"
                                      "  ------------------------\n"
                                      "  total    6,424,384\n");
}

static void print_wrapped(FILE *file)
{
    wrap_print(file, "one two three four\nfive", 0, 4, 14);
    wrap_print(file, "incomprehensibilities are long", 2, 4, 14);
}

static void text_wraps(void)
{
    CHECK_TEXT(captured(print_wrapped), "    one two\n    three four\n    five\n"
                                        "  incomprehensibilities\n    are long\n");
}

static void columns_are_counted(void)
{
    CHECK_EQUAL(terminal_columns("abc"), 3);
    CHECK_EQUAL(terminal_columns("f\u00e4c"), 3);
    CHECK_EQUAL(terminal_columns("\033[1mabc\033[0m"), 3);
    CHECK_EQUAL(terminal_columns(""), 0);
}

static const char *cleaned(const char *text)
{
    static char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    terminal_clean(copy);
    return copy;
}

static void nothing_steers_the_terminal(void)
{
    CHECK_TEXT(cleaned("a\033[31mb\n\x7f"), "a?[31mb??");
    CHECK_TEXT(cleaned("a\xc2\x9b"
                       "31mb"),
               "a??31mb"); /* CSI as one character */
    CHECK_TEXT(cleaned("\u00e4\u00a0\u20ac"), "\u00e4\u00a0\u20ac");
    CHECK_TEXT(cleaned("\xc2"), "\xc2");
}

static void check_quoted(const char *word, const char *expected)
{
    char *quoted = quote_word(word);
    CHECK_TEXT(quoted, expected);
    free(quoted);
}

static void words_are_quoted_for_a_shell(void)
{
    check_quoted("runs/a-1_b.safetensors", "runs/a-1_b.safetensors");
    check_quoted("n\u00e4he", "n\u00e4he");
    check_quoted("two words", "'two words'");
    check_quoted("it's $HOME", "'it'\\''s $HOME'");
    check_quoted("~/x*", "'~/x*'");
    check_quoted("", "''");
}

int main(void)
{
    RUN(tables_line_up);
    RUN(text_wraps);
    RUN(words_are_quoted_for_a_shell);
    RUN(columns_are_counted);
    RUN(nothing_steers_the_terminal);
    return test_summary();
}
