/* SPDX-License-Identifier: MIT */
/* Loops over views. Axes along which every operand has a uniform stride are merged into one loop; indices are written
 * as expressions of the loop variables, "784 + i * 12 + j". */
#include "framework/formats/c/c_export.h"

#include <stdio.h>
#include <string.h>

static const char variables[] = "ijklmnop";

/* The remaining axes, outermost first. */
typedef struct walk {
    int rank;
    int64_t dim[SDLF_MAX_RANK];
    int64_t stride[C_OPERANDS][SDLF_MAX_RANK];
} walk;

static walk walk_of(const sdlf_tensor *const *tensor, int count)
{
    walk w = {.rank = 0};
    const sdlf_shape *shape = NULL;
    for (int i = 0; i < count; i++)
        if (sdlf_tensor_present(tensor[i])) shape = &tensor[i]->shape;
    for (int axis = 0; shape != NULL && axis < shape->rank; axis++) {
        bool goes_on = w.rank > 0;
        if (shape->dim[axis] == 1) continue;
        for (int i = 0; i < count && goes_on; i++)
            if (sdlf_tensor_present(tensor[i]))
                goes_on = w.stride[i][w.rank - 1] == tensor[i]->stride[axis] * shape->dim[axis];
        if (!goes_on) w.dim[w.rank++] = 1;
        w.dim[w.rank - 1] *= shape->dim[axis];
        for (int i = 0; i < count; i++)
            if (sdlf_tensor_present(tensor[i])) w.stride[i][w.rank - 1] = tensor[i]->stride[axis];
    }
    return w;
}

static void print_index(char *text, size_t size, const walk *w, int operand)
{
    size_t used = 0;
    text[0] = '\0';
    for (int axis = 0; axis < w->rank && used < size; axis++) {
        long long stride = (long long)w->stride[operand][axis];
        const char *sign = stride < 0 ? "- " : used > 0 ? "+ " : "";
        if (stride == 0) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s%c", used > 0 ? " " : "", sign, variables[axis]);
        if (stride != 1 && stride != -1 && used < size)
            used += (size_t)snprintf(text + used, size - used, " * %lld", stride < 0 ? -stride : stride);
    }
}

c_name c_indent(int depth)
{
    c_name spaces;
    snprintf(spaces.text, sizeof spaces.text, "%*s", depth * 4, "");
    return spaces;
}

void c_open(c_export *e, c_loops *loops, const sdlf_tensor *const *tensor, int count, bool braces)
{
    walk w = walk_of(tensor, count);
    *loops = (c_loops){.depth = 1 + w.rank, .braces = braces};
    for (int axis = 0; axis < w.rank; axis++)
        c_print(e, "%sfor (int %c = 0; %c < %lld; %c++)%s\n", c_indent(1 + axis).text, variables[axis], variables[axis],
                (long long)w.dim[axis], variables[axis], braces && axis == w.rank - 1 ? " {" : "");
    if (braces && w.rank == 0) {
        c_print(e, "    {\n");
        loops->depth = 2;
    }
    for (int i = 0; i < count; i++) print_index(loops->index[i], sizeof loops->index[i], &w, i);
}

void c_close(c_export *e, const c_loops *loops)
{
    if (loops->braces) c_print(e, "%s}\n", c_indent(loops->depth - 1).text);
}
