/* SPDX-License-Identifier: MIT */
/* docs/guides/network-files.md shows a network, which must be valid, and docs/reference/layers.md lists every layer and
 * option. This test compares the list with the layers' own tables.
 *
 *     test_framework_formats_network_docs --write
 *
 * writes the list between the two markers in the page. */
#include "testing.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>

static const char layers_page[] = SDLF_SOURCE_DIR "/docs/reference/layers.md";
static const char begin_mark[] = "<!-- layers: from here to the next mark, written by the target `pages` -->\n";
static const char end_mark[] = "<!-- end of layers -->\n";

/* ---- the list ---- */

static void print_number(FILE *out, double value)
{
    fprintf(out, fabs(value) < 1e9 && value == trunc(value) ? "%.0f" : "%g", value);
}

static void print_range(FILE *out, const char *what, const sdlf_field *field)
{
    fprintf(out, "%s from ", what);
    print_number(out, field->minimum);
    fprintf(out, " to ");
    print_number(out, field->maximum);
}

static void print_values(FILE *out, const sdlf_field *field)
{
    switch (field->type) {
    case SDLF_FIELD_INT: print_range(out, "integer", field); break;
    case SDLF_FIELD_PAIR: print_range(out, "one or two integers", field); break;
    case SDLF_FIELD_FLOAT:
    case SDLF_FIELD_DOUBLE: print_range(out, "number", field); break;
    case SDLF_FIELD_BOOL: fprintf(out, "`true` or `false`"); break;
    case SDLF_FIELD_CHOICE:
        for (int i = 0; field->choices[i] != NULL; i++)
            fprintf(out, "%s`\"%s\"`", i > 0 ? ", " : "", field->choices[i]);
        break;
    case SDLF_FIELD_SHAPE: print_range(out, "list of integers", field); break;
    }
}

static void print_default(FILE *out, const sdlf_field *field)
{
    bool number = field->type == SDLF_FIELD_INT || field->type == SDLF_FIELD_PAIR || field->type == SDLF_FIELD_FLOAT ||
                  field->type == SDLF_FIELD_DOUBLE;
    bool list = field->type == SDLF_FIELD_SHAPE;
    if (!field->zero_means_default && (list || (number && field->minimum > 0)))
        fprintf(out, "required");
    else if (list)
        fprintf(out, "`[]`");
    else if (number)
        print_number(out, field->zero_means_default ? field->fallback : 0);
    else
        fprintf(out, field->type == SDLF_FIELD_BOOL ? "`false`" : "`\"%s\"`",
                field->type == SDLF_FIELD_BOOL ? "" : field->choices[0]);
}

static void print_class(FILE *out, const sdlf_layer_class *type)
{
    fprintf(out, "\n### %s\n\n%c%s.", type->name, toupper((unsigned char)type->summary[0]), type->summary + 1);
    if (type->maximum_inputs > type->minimum_inputs)
        fprintf(out, " Takes %d to %d inputs.", type->minimum_inputs, type->maximum_inputs);
    else if (type->maximum_inputs != 1)
        fprintf(out, " Takes %d inputs.", type->maximum_inputs);
    fprintf(out, "\n");
    if (type->fields == NULL || type->fields[0].name == NULL) return;
    fprintf(out, "\n| option | value | default | |\n|---|---|---|---|\n");
    for (const sdlf_field *field = type->fields; field->name != NULL; field++) {
        fprintf(out, "| `%s` | ", field->name);
        print_values(out, field);
        fprintf(out, " | ");
        print_default(out, field);
        fprintf(out, " | %s |\n", field->help);
    }
}

static void print_layers(FILE *out)
{
    for (int i = 0; sdlf_layer_class_at(i) != NULL; i++) print_class(out, sdlf_layer_class_at(i));
    fprintf(out, "\n");
}

/* ---- the page ---- */

static char *read_page(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    enum { LIMIT = 1 << 20 };
    char *text = malloc(LIMIT);
    if (text != NULL) text[fread(text, 1, LIMIT - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void page_lists_every_layer_and_option(void)
{
    char *page = read_page(layers_page), *list = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);
    if (!CHECK(page != NULL) || !CHECK(out != NULL)) return;
    print_layers(out);
    fclose(out);
    char *begin = strstr(page, begin_mark), *end = strstr(page, end_mark);
    if (CHECK(begin != NULL && end != NULL)) {
        *end = '\0';
        const char *found = begin + strlen(begin_mark), *expected = list;
        int line = 1;
        for (; *found != '\0' && *found == *expected; found++, expected++) line += *found == '\n';
        if (!CHECK(*found == *expected))
            printf(
                "    line %d of the list: expected\n    %.*s\n    found\n    %.*s\n    The target `pages` writes it.\n",
                line, (int)strcspn(expected, "\n"), expected, (int)strcspn(found, "\n"), found);
    }
    free(list);
    free(page);
}

static bool write_layers_page(void)
{
    char *page = read_page(layers_page);
    char *begin = page != NULL ? strstr(page, begin_mark) : NULL, *end = page != NULL ? strstr(page, end_mark) : NULL;
    FILE *out = begin != NULL && end != NULL ? fopen(layers_page, "wb") : NULL;
    bool written = out != NULL;
    if (written) {
        fprintf(out, "%.*s%s", (int)(begin - page), page, begin_mark);
        print_layers(out);
        fputs(end, out);
        written = fclose(out) == 0;
    }
    free(page);
    return written;
}

static void example_reads(void)
{
    static const char fence[] = "```json\n{";
    char *page = read_page(SDLF_SOURCE_DIR "/docs/guides/network-files.md");
    char *begin = page != NULL ? strstr(page, fence) : NULL, *end = begin != NULL ? strstr(begin, "\n```") : NULL;
    sdlf_model *model = NULL;
    if (CHECK(end != NULL)) {
        begin += strlen(fence) - 1;
        CHECK_OK(sdlf_network_parse(&model, begin, (size_t)(end - begin), "example"));
        if (model != NULL) CHECK_EQUAL(sdlf_model_layer_count(model), 13);
    }
    sdlf_model_free(model);
    free(page);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--write") == 0) return write_layers_page() ? 0 : 1;
    RUN(example_reads);
    RUN(page_lists_every_layer_and_option);
    return test_summary();
}
