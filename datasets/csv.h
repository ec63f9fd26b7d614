/* SPDX-License-Identifier: MIT */
/* A table of numbers in a text file, as a data set. */
#ifndef SDLF_DATASETS_CSV_H
#define SDLF_DATASETS_CSV_H

#include <sdlf/dataset.h>

/* ---- text (csv_text.c) ---- */

/* A CSV reader (RFC 4180). Cells are separated by commas, semicolons or tabs, whichever is most frequent in the first
 * line, and may be quoted. Lines end in LF or CRLF; empty lines are skipped. */
typedef struct csv_text {
    const char *name; /* for messages; borrowed */
    char *at, *end;   /* unread text */
    int64_t line;     /* number of the line of `at`, from 1 */
    char separator;
    bool in_row; /* more cells follow in the row */
} csv_text;

/* Begin at the first of `size` bytes; a NUL must follow the last. `bytes` belongs to the caller and is modified while
 * cells are read. */
csv_text csv_begin(char *bytes, size_t size, const char *name);

/* Advance to the next row. False: there is none. */
bool csv_next_row(csv_text *text);

/* Read the next cell of the row (while in_row), without the blanks around it. With `change`, quotes are removed and the
 * cell is NUL-terminated in place, so that the text cannot be read again; without, the text is unchanged. Errors:
 * SDLF_ERROR_FORMAT (an unclosed quote, a NUL in the text). */
sdlf_status csv_take_cell(csv_text *text, char **cell, size_t *length, bool change);

/* True if the cell is a number in C's decimal form and nothing else. */
bool csv_number(const char *cell, double *number);

/* ---- the data set ---- */

typedef struct csv_options {
    /* Name or number (from 1) of the label column, or a range of two joined by ".."; NULL: the column with a usual
     * label name ("label", "class", ...), else the last. */
    const char *label;
    sdlf_shape sample; /* sample shape; a scalar: the row of numbers */
    bool all;          /* each half holds all rows */
    bool targets;      /* labels are numbers: float targets */
    bool unlabelled;   /* samples only */
} csv_options;

/* Read samples, labels and classes from a table of `size` bytes, NUL-terminated and modified in place. Errors:
 * SDLF_ERROR_FORMAT with `name`, line and column; SDLF_ERROR_MEMORY. */
sdlf_status csv_take(sdlf_dataset *dataset, char *bytes, size_t size, const char *name, const csv_options *options,
                     sdlf_split split);

/* ---- labels (csv_labels.c) ---- */

typedef struct csv_table {
    const char *name;
    const csv_options *options;
    int64_t rows, columns;    /* without the header */
    int64_t label, label_end; /* columns label to label_end - 1 */
    bool targets;             /* labels are numbers */
    bool header;
    char **column; /* names from the header; the array is owned, the names point into the text */
    char **cell;   /* label cells of all rows, kept or not; owned likewise */
    bool *kept;
} csv_table;

/* Derive the classes from the label cells of all rows and the labels of the kept ones; for float targets, only their
 * names. Errors: SDLF_ERROR_FORMAT, SDLF_ERROR_MEMORY. */
sdlf_status csv_take_labels(sdlf_dataset *dataset, const csv_table *t);

#endif
