/* SPDX-License-Identifier: MIT */
/* Parsing of table-driven options. help.c prints the table, value.c parses one value. */
#include "apps/arguments/arguments.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <sdlf/suggest.h>

#include "apps/arguments/config.h"
#include "apps/arguments/value.h"
#include "apps/input/bytes.h"
#include "apps/output/terminal.h"

static arguments_outcome report_mistake(const char *command, const char *origin, const char *format, va_list values)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, values);
    terminal_error(command, "%s%s%s", origin ? origin : "", origin ? ": " : "", text);
    fprintf(stderr, "'sdlf%s%s --help' lists the options.\n", command ? " " : "", command ? command : "");
    return ARGUMENTS_WRONG;
}

arguments_outcome arguments_wrong(const char *command, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    arguments_outcome outcome = report_mistake(command, NULL, format, values);
    va_end(values);
    return outcome;
}

/* The same for the current word, with the file and line that it comes from. */
__attribute__((format(printf, 2, 3))) static arguments_outcome wrong(const arguments *a, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    arguments_outcome outcome = report_mistake(a->usage->command, a->origin, format, values);
    va_end(values);
    return outcome;
}

const argument *arguments_row(const command_usage *usage, int index, size_t *offset)
{
    for (const argument_part *part = usage->parts; part->rows; part++) {
        for (const argument *row = part->rows; row->name; row++) {
            if (index-- > 0) continue;
            if (offset) *offset = part->offset;
            return row;
        }
    }
    return NULL;
}

/* The position of an option over all parts, or -1. */
static int find_option(const command_usage *usage, const char *name)
{
    const argument *row;
    for (int i = 0; (row = arguments_row(usage, i, NULL)); i++) {
        if (row->type != ARGUMENT_HEADING && strcmp(row->name, name) == 0) return i;
    }
    return -1;
}

bool arguments_has(const arguments *a, const char *name)
{
    return find_option(a->usage, name) >= 0;
}

bool arguments_given(const arguments *a, const char *name)
{
    int index = find_option(a->usage, name);
    assert(index >= 0);
    return a->given[index];
}

static bool is_origin(const char *word)
{
    return strncmp(word, CONFIG_ORIGIN, strlen(CONFIG_ORIGIN)) == 0;
}

static arguments_outcome unknown_option(const arguments *a, const char *name)
{
    sdlf_suggestion s = {.word = name};
    const argument *row;
    for (int i = 0; (row = arguments_row(a->usage, i, NULL)); i++) {
        if (row->type != ARGUMENT_HEADING) sdlf_suggest(&s, row->name);
    }
    const char *more = a->usage->unknown ? a->usage->unknown : "";
    return s.best ? wrong(a, "unknown option '--%s' (did you mean '--%s'?)%s", name, s.best, more)
                  : wrong(a, "unknown option '--%s'%s", name, more);
}

/* If `place` holds "-", checks that it is allowed. Standard input is read after all words have been parsed. */
static arguments_outcome note_standard(arguments *a, argument_standard standard, const char *option, const char **place)
{
    if (strcmp(*place, "-") != 0 || standard == ARGUMENT_STANDARD_OUTPUT) return ARGUMENTS_OK;
    if (standard == ARGUMENT_NO_STANDARD)
        return wrong(a,
                     "%s%s'-' would be standard input or output, which cannot be used here (a file of that "
                     "name is ./-)",
                     option, *option ? " " : "");
    if (a->from_standard && a->from_standard != place && strcmp(*a->from_standard, "-") == 0)
        return wrong(a, "'-' is given for two inputs, but standard input can be read only once");
    a->from_standard = place;
    return ARGUMENTS_OK;
}

/* An output described as FILE.png must not be named .jpg; a name without extension may be anything. */
static arguments_outcome check_ending(const arguments *a, const argument *row, const char *path)
{
    if (row->standard != ARGUMENT_STANDARD_OUTPUT || strncmp(row->value, "FILE.", 5) != 0) return ARGUMENTS_OK;
    const char *wanted = row->value + 4, *name = strrchr(path, '/');
    const char *found = strrchr(name ? name : path, '.');
    if (!found || strcasecmp(found, wanted) == 0) return ARGUMENTS_OK;
    return wrong(a, "--%s %s: expected a name that ends in %s", row->name, path, wanted);
}

/* Checks an option that has been stored, if it is text. */
static arguments_outcome note_option(arguments *a, const argument *row, void *member)
{
    char option[80];
    snprintf(option, sizeof option, "--%s", row->name);
    if (row->type == ARGUMENT_TEXT) {
        arguments_outcome outcome = check_ending(a, row, *(const char **)member);
        return outcome == ARGUMENTS_OK ? note_standard(a, row->standard, option, member) : outcome;
    }
    if (row->type != ARGUMENT_LIST) return ARGUMENTS_OK;
    argument_list *list = member;
    return note_standard(a, row->standard, option, &list->item[list->count - 1]);
}

/* Reads one option: row `index`, with the value in the same word, or NULL. Moves *at past a value in the next word. */
static arguments_outcome read_option(arguments *a, int index, const char *value, int count, char **words, int *at,
                                     void *settings)
{
    size_t offset;
    const argument *row = arguments_row(a->usage, index, &offset);
    void *member = (char *)settings + offset + row->offset;
    a->given[index] = true;
    if (row->type == ARGUMENT_FLAG) {
        if (value) return wrong(a, "--%s takes no value, found '%s'", row->name, value);
        *(bool *)member = true;
        return ARGUMENTS_OK;
    }
    bool stands_alone = a->origin || *at + 1 == count || (words[*at + 1][0] == '-' && words[*at + 1][1] != '\0');
    if (!value && row->alone && stands_alone) value = row->alone;
    if (!value) {
        value = *at + 1 < count ? words[*at + 1] : NULL;
        if (value && (a->origin || is_origin(value))) value = NULL; /* a line of a file has its own */
        if (!value) return wrong(a, "--%s needs a value: %s", row->name, argument_expected(row).text);
        if (strncmp(value, "--", 2) == 0) {
            return wrong(a, "--%s needs a value, found the option '%s'; expected %s", row->name, value,
                         argument_expected(row).text);
        }
        (*at)++;
    }
    if (!argument_store(row, value, member)) {
        sdlf_suggestion near = {.word = value};
        bool listed = row->type == ARGUMENT_CHOICE || row->type == ARGUMENT_NAME;
        for (int i = 0; listed && argument_choice(row, i); i++) sdlf_suggest(&near, argument_choice(row, i));
        return wrong(a, "--%s %s: expected %s%s", row->name, *value ? value : "''", argument_expected(row).text,
                     sdlf_suggestion_print(&near).text);
    }
    return note_option(a, row, member);
}

/* --name value or --name=value */
static arguments_outcome read_long(arguments *a, int count, char **words, int *at, void *settings)
{
    const char *text = words[*at] + 2, *equals = strchr(text, '=');
    char name[64];
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    if (length >= sizeof name) length = sizeof name - 1;
    memcpy(name, text, length);
    name[length] = '\0';
    int index = find_option(a->usage, name);
    if (index < 0) return unknown_option(a, name);
    return read_option(a, index, equals ? equals + 1 : NULL, count, words, at, settings);
}

/* -o value or -ovalue */
static arguments_outcome read_short(arguments *a, int count, char **words, int *at, void *settings)
{
    const char *word = words[*at];
    const argument *row;
    for (int i = 0; (row = arguments_row(a->usage, i, NULL)); i++) {
        if (row->letter && row->letter == word[1]) {
            return read_option(a, i, word[2] ? word + 2 : NULL, count, words, at, settings);
        }
    }
    return wrong(a, "unknown option '%s'; options begin with two dashes", word);
}

arguments_outcome arguments_check(arguments *a, const command_usage *usage, int count, char **words, void *settings)
{
    *a = (arguments){.usage = usage, .operand = (const char **)words};
    const argument *row;
    size_t offset;
    for (int i = 0; (row = arguments_row(usage, i, &offset)); i++) {
        assert(i < ARGUMENTS_MAX);
        if (row->fallback) argument_store(row, row->fallback, (char *)settings + offset + row->offset);
    }
    if (count > 0 && strcmp(words[0], "--complete") == 0) {
        arguments_complete(usage, count - 1, words + 1);
        return ARGUMENTS_HELP;
    }
    bool options_over = false;
    for (int at = 0; at < count; at++) {
        char *word = words[at];
        bool from_file = !options_over && is_origin(word) && at + 1 < count;
        a->origin = from_file ? word + strlen(CONFIG_ORIGIN) : NULL;
        if (from_file) word = words[++at];
        if (options_over || word[0] != '-' || word[1] == '\0') {
            if (a->operand_count == usage->operands_maximum) {
                return wrong(a, "unexpected '%s'%s", word,
                             usage->operands_maximum == 0 ? ": there are only options" : "");
            }
            a->operand[a->operand_count] = word;
            arguments_outcome outcome = note_standard(a, usage->operands_standard, "", &a->operand[a->operand_count]);
            if (outcome != ARGUMENTS_OK) return outcome;
            a->operand_count++;
        } else if (strcmp(word, "--") == 0) {
            options_over = true;
        } else if (strcmp(word, "--help=man") == 0) {
            arguments_manual(usage);
            return ARGUMENTS_HELP;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            arguments_help(usage);
            return ARGUMENTS_HELP;
        } else {
            arguments_outcome outcome =
                word[1] == '-' ? read_long(a, count, words, &at, settings) : read_short(a, count, words, &at, settings);
            if (outcome != ARGUMENTS_OK) return outcome;
        }
    }
    for (int i = 0; (row = arguments_row(usage, i, NULL)); i++) {
        if (row->required && !a->given[i]) {
            return arguments_wrong(usage->command, "--%s %s is missing: %s", row->name, row->value, row->help);
        }
    }
    if (a->operand_count < usage->operands_minimum) {
        return arguments_wrong(usage->command, "%s is missing", usage->operand_name);
    }
    return ARGUMENTS_OK;
}

arguments_outcome arguments_read(arguments *a, const command_usage *usage, int count, char **words, void *settings)
{
    arguments_outcome outcome = arguments_check(a, usage, count, words, settings);
    if (outcome != ARGUMENTS_OK) return outcome;
    bool wanted = a->from_standard && strcmp(*a->from_standard, "-") == 0; /* a later value may have replaced it */
    if (wanted && input_take_standard(a->from_standard) != SDLF_OK)
        return arguments_wrong(usage->command, "%s", sdlf_error_message());
    return ARGUMENTS_OK;
}
