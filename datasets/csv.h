/* SPDX-License-Identifier: MIT */
/* A table of numbers in a text file, as a data set. */
#ifndef SDLF_DATASETS_CSV_H
#define SDLF_DATASETS_CSV_H

#include <sdlf/dataset.h>

/* ---- text (csv_text.c) ---- */

/* The cells of CSV (RFC 4180): separated by commas, semicolons or tabs, whichever the first line has most of; quoted or
 * not; lines end in LF or CRLF, and empty ones are passed over. */
typedef struct csv_text {
    const char *name; /* for messages; borrowed */
    char *at, *end;   /* what is left */
    int64_t line;     /* that `at` stands in, from 1 */
    char separator;
    bool in_row; /* more cells follow in the row */
} csv_text;

/* Begin at the first of `size` bytes, which a read to the end must find followed by a 0. `bytes` are the caller's, and
 * changed while cells are taken. */
csv_text csv_begin(char *bytes, size_t size, const char *name);

/* Go to the next row; false: there is none. */
bool csv_next_row(csv_text *text);

/* The next cell of the row (while in_row), without quotes and with a 0 at its end, blanks around it left out. Only
 * where `change` is set may the text not be gone through again. Errors: SDLF_ERROR_FORMAT (a quote that is not closed,
 * a 0 in the text). */
sdlf_status csv_take_cell(csv_text *text, char **cell, size_t *length, bool change);

/* A number in C's decimal form and nothing else? */
bool csv_number(const char *cell, double *number);

/* ---- the data set ---- */

typedef struct csv_options {
    /* Name or number, from 1, of the column with the labels, or two of them with .. between; NULL: the one that is
     * named so, else the last. */
    const char *label;
    sdlf_shape sample; /* of a sample; a scalar: the row of numbers */
    bool all;          /* both halves are all rows */
    bool targets;      /* labels are numbers: float targets */
    bool unlabelled;   /* samples only */
} csv_options;

/* Samples, labels and classes of a table of `size` bytes with a 0 behind them, which are changed. Errors:
 * SDLF_ERROR_FORMAT with `name`, line and column; SDLF_ERROR_MEMORY. */
sdlf_status csv_take(sdlf_dataset *dataset, char *bytes, size_t size, const char *name, const csv_options *options,
                     sdlf_split split);

/* ---- labels (csv_labels.c) ---- */

typedef struct csv_table {
    const char *name;
    const csv_options *options;
    int64_t rows, columns;    /* without the header */
    int64_t label, label_end; /* columns label to label_end - 1 */
    bool targets;             /* they are numbers */
    bool header;
    char **column; /* names, owned (an array; the names lie in the text); of a header */
    char **cell;   /* labels of the rows that are kept and of the others, owned likewise */
    bool *kept;
} csv_table;

/* The classes of all rows and the labels of those that are kept, from their cells; of float targets the names. Errors:
 * SDLF_ERROR_FORMAT, SDLF_ERROR_MEMORY. */
sdlf_status csv_take_labels(sdlf_dataset *dataset, const csv_table *t);

#endif
