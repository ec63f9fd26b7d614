/* SPDX-License-Identifier: MIT */
/* The help text of a command, from its table of options. */
#include <stdio.h>
#include <string.h>

#include "apps/arguments/help.h"
#include "apps/arguments/value.h"
#include "apps/output/terminal.h"
#include "apps/output/wrap.h"

enum {
    INDENT = 2,
    NARROWEST = 36,
    NARROW = 60,
    WIDE = 100,
    STACKED = 6
}; /* STACKED: the help of an option is below it */

const argument help_common[] = {
    {.name = "In every command", .type = ARGUMENT_HEADING},
    {"config", ARGUMENT_TEXT, 0, "FILE",
     .help = "read options from FILE, one 'name = value' a line, as if given here; @FILE is the same"},
    {"help", ARGUMENT_FLAG, .help = "print this help"},
    {0},
};

void help_left(const argument *row, char *text, size_t size)
{
    char letter[] = {'-', row->letter, ',', ' ', '\0'};
    snprintf(text, size, row->alone ? "%s--%s%s[%s]" : "%s--%s%s%s", row->letter ? letter : "", row->name,
             row->value ? " " : "", row->value ? row->value : "");
}

void help_right(const argument *row, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", row->help);
    const char *before = " (";
    if (row->type == ARGUMENT_CHOICE || row->type == ARGUMENT_NAME) {
        const char *word;
        for (int i = 0; (word = argument_choice(row, i)) && used < size; i++, before = ", ") {
            used += (size_t)snprintf(text + used, size - used, "%s%s", before, word);
        }
        before = "; ";
    }
    if (row->fallback && used < size) {
        used += (size_t)snprintf(text + used, size - used, "%sdefault: %s", before, row->fallback);
        before = "; ";
    }
    if (before[0] == ';' && used < size) snprintf(text + used, size - used, ")");
}

static void print_row(const terminal *out, const argument *row, int column, int width)
{
    char left[HELP_LEFT], right[HELP_RIGHT];
    if (row->type == ARGUMENT_HEADING) {
        printf("\n%s%s%s\n", terminal_escape(out, TERMINAL_BOLD), row->name, terminal_escape(out, TERMINAL_PLAIN));
        return;
    }
    help_left(row, left, sizeof left);
    help_right(row, right, sizeof right);
    int at = printf("%*s%s", INDENT, "", left);
    if (at + 2 > column) {
        putchar('\n');
        at = 0;
    }
    wrap_print(stdout, right, at, column, width);
}

void arguments_help(const command_usage *usage)
{
    terminal out = terminal_of(stdout);
    const char *bold = terminal_escape(&out, TERMINAL_BOLD), *plain = terminal_escape(&out, TERMINAL_PLAIN);
    int width = out.width < NARROWEST ? NARROWEST : out.width > WIDE ? WIDE : out.width;
    char left[HELP_LEFT];
    const argument *row;

    printf("%sUsage:%s sdlf %s %s\n\n", bold, plain, usage->command, usage->synopsis);
    wrap_print(stdout, usage->text, 0, 0, width);
    int column = 0;
    for (int i = 0; (row = arguments_row(usage, i, NULL)); i++) {
        if (row->type == ARGUMENT_HEADING) continue;
        help_left(row, left, sizeof left);
        int length = (int)strlen(left) + INDENT + 2;
        if (length > column && length <= 36) column = length;
    }
    if (width < NARROW) column = STACKED;
    for (int i = 0; (row = arguments_row(usage, i, NULL)); i++) print_row(&out, row, column, width);
    for (row = help_common; row->name; row++) print_row(&out, row, column, width);
    if (usage->epilogue) usage->epilogue();
    if (usage->examples) printf("\n%sExamples%s\n%s", bold, plain, usage->examples);
}
