/* SPDX-License-Identifier: MIT */
/* Tables whose columns line up. */
#include "apps/output/table.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/wrap.h"
#include "apps/system/memory.h"

enum { MAX_COLUMNS = 260, GAP = 2, LEAST = 24 /* of a column that is narrowed */ };

struct table {
    char *headings; /* one allocation; heading[i] point into it */
    const char *heading[MAX_COLUMNS];
    bool right[MAX_COLUMNS], spare[MAX_COLUMNS];
    int columns;
    char **cell;
    int cells, capacity;
    int rule; /* the row below the line; -1: none */
};

table *table_create(const char *headings)
{
    table *t = memory_allocate(sizeof *t);
    *t = (table){.headings = memory_copy_text(headings), .rule = -1};
    char *rest = t->headings;
    while (rest && t->columns < MAX_COLUMNS) { /* not strtok: headings may be empty */
        char *word = strsep(&rest, "|");
        t->spare[t->columns] = *word == '-';
        word += *word == '-';
        t->right[t->columns] = *word == '>';
        t->heading[t->columns++] = *word == '>' ? word + 1 : word;
    }
    return t;
}

void table_free(table *t)
{
    if (!t) return;
    for (int i = 0; i < t->cells; i++) free(t->cell[i]);
    free(t->cell);
    free(t->headings);
    free(t);
}

void table_cell(table *t, const char *format, ...)
{
    if (t->cells == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->cell = memory_resize(t->cell, (size_t)t->capacity * sizeof *t->cell);
    }
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int length = vsnprintf(NULL, 0, format, values);
    char *text = memory_allocate((size_t)(length > 0 ? length : 0) + 1);
    vsnprintf(text, (size_t)(length > 0 ? length : 0) + 1, format, again);
    va_end(again);
    va_end(values);
    t->cell[t->cells++] = text;
}

void table_rule(table *t)
{
    t->rule = t->cells / t->columns;
}

/* The width that a column needs; 0: it is empty and left out. */
static int width_of(const table *t, int column)
{
    int width = 0;
    for (int i = column; i < t->cells; i += t->columns) {
        int cell = terminal_columns(t->cell[i]);
        if (cell > width) width = cell;
    }
    int heading = terminal_columns(t->heading[column]);
    return width > 0 && heading > width ? heading : width;
}

/* The total width of all columns, with text columns limited to `most`. */
static int total_of(const table *t, const int *width, int most)
{
    int total = -GAP;
    for (int c = 0; c < t->columns; c++) {
        int taken = !t->right[c] && width[c] > most ? most : width[c];
        total += taken > 0 ? taken + GAP : 0;
    }
    return total;
}

/* Remarks come last, in a column without a heading. Returns whether they are too wide for the terminal and go below
 * their row. */
static bool remarks_go_below(const table *t, const terminal *out, int *width, int indent)
{
    int last = t->columns - 1;
    bool below = out->interactive && last > 0 && t->heading[last][0] == '\0' && width[last] > 0 &&
                 indent + total_of(t, width, INT_MAX) > out->width;
    if (below) width[last] = 0;
    return below;
}

/* On a terminal that is too narrow, drops optional columns, the last ones first, then narrows the widest text columns.
 * Returns the total width. */
static int fit(const table *t, const terminal *out, int *width, int indent)
{
    for (int c = t->columns - 1; c >= 0 && out->interactive; c--) {
        if (t->spare[c] && indent + total_of(t, width, LEAST) > out->width) width[c] = 0;
    }
    int total = total_of(t, width, INT_MAX);
    for (; out->interactive && indent + total > out->width; total--) {
        int widest = -1;
        for (int c = 0; c < t->columns; c++) {
            if (!t->right[c] && width[c] > LEAST && (widest < 0 || width[c] > width[widest])) widest = c;
        }
        if (widest < 0) break;
        width[widest]--;
    }
    return total;
}

/* The byte offset of a column of UTF-8 text. */
static int byte_of(const char *text, int column)
{
    int at = 0;
    for (int c = -1; text[at] != '\0'; at++) {
        c += ((unsigned char)text[at] & 0xC0) != 0x80;
        if (c == column) break;
    }
    return at;
}

/* Prints text; if wider than `width` columns (more than three), it is cut with dots in the middle. */
static void print_cell(FILE *file, const char *text, int width)
{
    int columns = terminal_columns(text), head = (width - 3) / 3; /* long names differ at their ends */
    if (columns <= width || strchr(text, '\033') != NULL)
        fputs(text, file);
    else
        fprintf(file, "%.*s...%s", byte_of(text, head), text, text + byte_of(text, columns - (width - 3 - head)));
}

/* Prints one line; trailing spaces are not written. */
static void print_line(const table *t, FILE *file, const char *const *text, const int *width, int indent)
{
    int blanks = indent;
    for (int c = 0; c < t->columns; c++) {
        if (width[c] == 0) continue;
        int columns = terminal_columns(text[c]), pad = columns < width[c] ? width[c] - columns : 0;
        if (t->right[c]) blanks += pad;
        if (*text[c]) {
            fprintf(file, "%*s", blanks, "");
            print_cell(file, text[c], width[c]);
            blanks = 0;
        }
        blanks += GAP + (t->right[c] ? 0 : pad);
    }
    fputc('\n', file);
}

void table_print(const table *t, const terminal *out, int indent)
{
    int width[MAX_COLUMNS];
    for (int c = 0; c < t->columns; c++) width[c] = width_of(t, c);
    bool below = remarks_go_below(t, out, width, indent);
    int total = fit(t, out, width, indent);
    fputs(terminal_escape(out, TERMINAL_DIM), out->file);
    print_line(t, out->file, t->heading, width, indent);
    fputs(terminal_escape(out, TERMINAL_PLAIN), out->file);
    for (int row = 0; row < t->cells / t->columns; row++) {
        if (row == t->rule) {
            fprintf(out->file, "%s%*s", terminal_escape(out, TERMINAL_DIM), indent, "");
            for (int i = 0; i < total; i++) fputc('-', out->file);
            fprintf(out->file, "%s\n", terminal_escape(out, TERMINAL_PLAIN));
        }
        const char *const *cell = (const char *const *)t->cell + (size_t)row * (size_t)t->columns;
        print_line(t, out->file, cell, width, indent);
        const char *remark = cell[t->columns - 1];
        if (below && *remark) wrap_print(out->file, remark, 0, indent + GAP, out->width);
    }
}
