/* SPDX-License-Identifier: MIT */
/* docs/reference/operations.md lists every kind of operation with its operands. This test compares the list with the
 * kinds' own tables.
 *
 *     test_framework_operations_page --write
 *
 * writes the page. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/fusion.h>

static const char path[] = SDLF_SOURCE_DIR "/docs/reference/operations.md";
static const char head[] =
    "# Operations\n\n"
    "Written by the target `pages` from the tables of `framework/operations/`.\n\n"
    "Layers describe themselves in these operations, and calculators compute them; formulas, shapes and options are "
    "the\n"
    "contracts of `framework/include/sdlf/operations/kinds.h`. Operands are in order: `name?` is optional, `name!` is\n"
    "updated in place, `name*` is a sparse matrix. \"NHWC\": images may lie channels last; \"16 bits\": float16 or "
    "bfloat16\n"
    "storage is in the contract.\n\n"
    "| operation | inputs | outputs | |\n|---|---|---|---|\n";

static const char fused[] = "\n## Fusions\n\n"
                            "Groups of these that calculators take as one (`calculators/fusions/`).\n\n"
                            "| operation | inputs | outputs | |\n|---|---|---|---|\n";

static void print_operands(FILE *out, const sdlf_operand *operand)
{
    for (int i = 0; operand[i].name != NULL; i++)
        fprintf(out, "%s`%s%s%s%s`", i > 0 ? ", " : "", operand[i].name, operand[i].optional ? "?" : "",
                operand[i].updated ? "!" : "", operand[i].sparse ? "*" : "");
}

static void print_row(FILE *out, const sdlf_operation_class *type)
{
    fprintf(out, "| `%s` | ", type->name);
    print_operands(out, type->in);
    fprintf(out, " | ");
    print_operands(out, type->out);
    fprintf(out, " | %s%s%s |\n", type->channels_last != 0 ? "NHWC" : "",
            type->channels_last != 0 && type->storage != 0 ? ", " : "", type->storage != 0 ? "16 bits" : "");
}

static void print_page(FILE *out)
{
    const sdlf_fusion *fusion;
    fprintf(out, "%s", head);
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++)
        if (kind != SDLF_FUSED) print_row(out, sdlf_operation_class_of((sdlf_operation_kind)kind));
    fprintf(out, "%s", fused);
    for (int i = 0; (fusion = sdlf_fusion_at(i)) != NULL; i++) print_row(out, &fusion->type);
}

static void page_lists_every_operation(void)
{
    enum { LIMIT = 1 << 18 };
    char *page = calloc(1, LIMIT), *list = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "rb"), *out = open_memstream(&list, &size);
    if (CHECK(file != NULL && out != NULL && page != NULL)) {
        CHECK(fread(page, 1, LIMIT - 1, file) > 0);
        print_page(out);
        fflush(out);
        if (!CHECK(strcmp(page, list) == 0))
            printf("    docs/reference/operations.md is not what the target `pages` writes\n");
    }
    if (file != NULL) fclose(file);
    if (out != NULL) fclose(out);
    free(list);
    free(page);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--write") == 0) {
        FILE *out = fopen(path, "wb");
        if (out != NULL) print_page(out);
        return out != NULL && fclose(out) == 0 ? 0 : 1;
    }
    RUN(page_lists_every_operation);
    return test_summary();
}
