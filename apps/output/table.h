/* SPDX-License-Identifier: MIT */
/* Tables whose columns line up. Cells are collected, then printed with every column as wide as its widest cell.
 *
 *     table *t = table_create("layer|>parameters|>MFLOP");
 *     table_cell(t, "%s", name); table_cell(t, "%s", ...); ...
 *     table_print(t, &out, 2);
 *     table_free(t);
 */
#ifndef SDLF_APPS_OUTPUT_TABLE_H
#define SDLF_APPS_OUTPUT_TABLE_H

#include "apps/output/terminal.h"

typedef struct table table;

/* Headings separated by '|'; one that begins with '>' stands over a column of numbers, which is set to the right, and
 * one that begins with '-' (or "->") over one that can be spared. Ends the program when memory is out. */
table *table_create(const char *headings);
void table_free(table *table);

/* The next cell, row by row. */
void table_cell(table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The rows after this are set off by a line from those before. */
void table_rule(table *table);

/* A column whose every cell is empty is left out. `indent` spaces stand before each line. Where lines are wider than a
 * terminal, the texts of a last column without a heading go below their rows, columns that can be spared are left out,
 * the last ones first, and texts of the widest columns, except for numbers, are cut in the middle; a file has all. */
void table_print(const table *table, const terminal *out, int indent);

#endif
