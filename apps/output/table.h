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

/* Headings are separated by '|'; one that begins with '>' marks a numeric column, which is aligned to the right, and
 * one that begins with '-' (or "->") an optional column. Ends the program when memory runs out. */
table *table_create(const char *headings);
void table_free(table *table);

/* The next cell, row by row. */
void table_cell(table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Separate the rows after this from those before by a line. */
void table_rule(table *table);

/* A column whose cells are all empty is left out. Each line is indented by `indent` spaces. If lines are wider than a
 * terminal, the texts of a last column without a heading go below their rows, optional columns are left out, the last
 * ones first, and texts of the widest columns, except for numbers, are cut in the middle; a file gets everything. */
void table_print(const table *table, const terminal *out, int indent);

#endif
