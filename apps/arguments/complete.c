/* SPDX-License-Identifier: MIT */
/* Completions of the last word of a command line, for shells. Each line is a word, a tab and its description; a line
 * with only "files" where a file is expected. */
#include <stdio.h>
#include <string.h>

#include "apps/arguments/arguments.h"
#include "apps/arguments/help.h"
#include "apps/arguments/value.h"

static const argument *find_row(const command_usage *usage, const char *word)
{
    const argument *row;
    for (int i = 0; (row = arguments_row(usage, i, NULL)); i++) {
        char letter[] = {'-', row->letter, '\0'};
        bool named = strncmp(word, "--", 2) == 0 && strcmp(word + 2, row->name) == 0;
        if (row->type != ARGUMENT_HEADING && (named || (row->letter && strcmp(word, letter) == 0))) return row;
    }
    for (row = help_common; row->name; row++)
        if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, row->name) == 0) return row;
    return NULL;
}

/* Prints an option with its help, without the details. */
static void put_option(const argument *row, const char *begun)
{
    char word[80];
    snprintf(word, sizeof word, "--%s", row->name);
    if (row->type == ARGUMENT_HEADING || strncmp(word, begun, strlen(begun)) != 0) return;
    printf("%s\t%.*s\n", word, (int)strcspn(row->help, ":;("), row->help);
}

void arguments_complete(const command_usage *usage, int count, char **words)
{
    const char *begun = count > 0 ? words[count - 1] : "";
    const argument *row = count > 1 ? find_row(usage, words[count - 2]) : NULL;
    if (row && row->type != ARGUMENT_FLAG) {
        const char *word;
        bool listed = row->type == ARGUMENT_CHOICE || row->type == ARGUMENT_NAME;
        for (int i = 0; listed && (word = argument_choice(row, i)); i++)
            if (strncmp(word, begun, strlen(begun)) == 0) printf("%s\t\n", word);
        if (row->type == ARGUMENT_TEXT || row->type == ARGUMENT_LIST) puts("files");
        return;
    }
    if (begun[0] == '-') {
        for (int i = 0; (row = arguments_row(usage, i, NULL)); i++) put_option(row, begun);
        for (row = help_common; row->name; row++) put_option(row, begun);
    } else if (usage->operands_maximum > 0) {
        puts("files");
    }
}
