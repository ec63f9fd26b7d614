/* SPDX-License-Identifier: MIT */
/* The manual page of a command, in roff (man(7)), from its table of options. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/version.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/help.h"

/* Prints text escaped for roff. */
static void put_text(const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

/* "bench conv" is the page sdlf-bench-conv. */
static void put_title(const char *name, bool upper)
{
    fputs(upper ? "SDLF\\-" : "sdlf\\-", stdout);
    for (; *name; name++) {
        if (*name == ' ')
            fputs("\\-", stdout);
        else
            putchar(upper ? toupper((unsigned char)*name) : *name);
    }
}

static void put_option(const argument *row)
{
    char left[HELP_LEFT], right[HELP_RIGHT];
    if (row->type == ARGUMENT_HEADING) {
        fputs(".SS ", stdout);
        put_text(row->name);
        putchar('\n');
        return;
    }
    help_left(row, left, sizeof left);
    help_right(row, right, sizeof right);
    fputs(".TP\n.B ", stdout);
    put_text(left);
    putchar('\n');
    put_text(right);
    putchar('\n');
}

/* Prints the first sentence, or the text before a colon. */
static void put_first_sentence(const char *text)
{
    const char *end = strstr(text, ". "), *colon = strchr(text, ':');
    if (colon && (!end || colon < end)) end = colon;
    size_t length = end ? (size_t)(end - text) : strlen(text);
    if (length > 0 && text[length - 1] == '.') length--;
    char copy[400];
    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    copy[0] = (char)tolower((unsigned char)copy[0]);
    put_text(copy);
}

void arguments_manual(const command_usage *usage)
{
    const argument *row;
    fputs(".TH ", stdout);
    put_title(usage->command, true);
    fputs(" 1 \"\" \"sdlf " SDLF_VERSION "\" \"SDLF\"\n.SH NAME\n", stdout);
    put_title(usage->command, false);
    fputs(" \\- ", stdout);
    put_first_sentence(usage->text);
    fputs("\n.SH SYNOPSIS\n.B sdlf ", stdout);
    put_text(usage->command);
    fputs("\n", stdout);
    put_text(usage->synopsis);
    fputs("\n.SH DESCRIPTION\n", stdout);
    put_text(usage->text);
    fputs("\n.SH OPTIONS\n", stdout);
    for (int i = 0; (row = arguments_row(usage, i, NULL)); i++) put_option(row);
    for (row = help_common; row->name; row++) put_option(row);
    if (usage->epilogue) {
        fputs(".SH NAMES\n.nf\n", stdout);
        usage->epilogue();
        fputs(".fi\n", stdout);
    }
    if (usage->examples) {
        fputs(".SH EXAMPLES\n.nf\n", stdout);
        put_text(usage->examples);
        fputs(".fi\n", stdout);
    }
    fputs(".SH FILES\nOutput files are written whole or not at all, except for logs and event files, which grow "
          "while a command runs. "
          "\\- in place of a file means standard input or output where the options say so.\n"
          ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nit failed: the last line on standard error says why\n.TP\n.B "
          "2\nusage error: an invalid option, "
          "name or combination\n.TP\n.B 3\nparity: the results differ\n.TP\n.B "
          "128+N\nstopped by signal N\n"
          ".SH SEE ALSO\n.BR sdlf (1)\n",
          stdout);
}
