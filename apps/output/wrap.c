/* SPDX-License-Identifier: MIT */
/* Text wrapped at spaces. */
#include "apps/output/wrap.h"

#include <stdbool.h>
#include <string.h>

void wrap_print(FILE *file, const char *text, int at, int indent, int width)
{
    fprintf(file, "%*s", at < indent ? indent - at : 0, "");
    int column = indent;
    bool line_begins = true;
    for (const char *word = text; *word;) {
        if (*word == '\n') {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
            line_begins = true;
            word++;
            continue;
        }
        int length = (int)strcspn(word, " \n");
        if (!line_begins && column + 1 + length > width) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
            line_begins = true;
        }
        column += fprintf(file, "%s%.*s", line_begins ? "" : " ", length, word);
        line_begins = false;
        word += length;
        if (*word == ' ') word++;
    }
    fputc('\n', file);
}
