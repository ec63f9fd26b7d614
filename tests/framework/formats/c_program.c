/* SPDX-License-Identifier: MIT */
/* See c_program.h. */
#include "framework/formats/c_program.h"

#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = EXPORT_CASE_MOST };

/* The arguments of the function: inputs on which an output depends, and outputs that are not losses. */
typedef struct arguments {
    const sdlf_tensor *tensor[2 * MOST];
    const char *name[2 * MOST];
    int inputs, count;
} arguments;

static arguments arguments_of(const sdlf_model *model, const export_run_values *values)
{
    static bool live[10000];
    arguments a = {.inputs = 0};
    memset(live, 0, sizeof live);
    for (int i = 0; i < sdlf_model_output_count(model); i++) {
        int layer = sdlf_model_output(model, i).layer;
        if (!sdlf_model_layer(model, layer)->type->is_loss) live[layer] = true;
    }
    for (int i = sdlf_model_layer_count(model) - 1; i >= 0; i--)
        for (int k = 0; live[i] && k < sdlf_model_layer_input_count(model, i); k++)
            live[sdlf_model_layer_input(model, i, k).layer] = true;
    for (int i = 0; i < sdlf_model_input_count(model); i++) {
        int layer = sdlf_model_input(model, i).layer;
        if (!live[layer]) continue;
        a.name[a.count] = sdlf_model_layer(model, layer)->name;
        a.tensor[a.count] = export_run_input(values, a.name[a.count]);
        a.count++;
    }
    a.inputs = a.count;
    for (int i = 0; i < sdlf_model_output_count(model); i++) {
        if (sdlf_model_layer(model, sdlf_model_output(model, i).layer)->type->is_loss) continue;
        a.name[a.count] = sdlf_model_output_name(model, i);
        a.tensor[a.count] = export_run_output(values, a.name[a.count]);
        a.count++;
    }
    return a;
}

static const char *type_of(const sdlf_tensor *tensor)
{
    switch (tensor->dtype) {
    case SDLF_UINT8: return "uint8_t";
    case SDLF_INT8: return "int8_t";
    case SDLF_INT32: return "int32_t";
    case SDLF_INT64: return "int64_t";
    case SDLF_BOOL: return "bool";
    default: return "float";
    }
}

/* A program around the function, which reads inputs, writes outputs, and runs twice, the first time on zeros, so that
 * state left over from a run is detected. */
static bool build_program(const char *name, const arguments *a)
{
    static char text[1 << 16], command[4096];
    size_t used = 0, size = sizeof text;
    used += (size_t)snprintf(text, size, "#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\nvoid %s_run(",
                             name);
    for (int i = 0; i < a->count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%s *", i > 0 ? ", " : "", i < a->inputs ? "const " : "",
                                 type_of(a->tensor[i]));
    used += (size_t)snprintf(text + used, size - used, ");\n");
    for (int i = 0; i < a->count; i++)
        used += (size_t)snprintf(text + used, size - used, "static %s a%d[%lld];\n", type_of(a->tensor[i]), i,
                                 (long long)sdlf_tensor_count(a->tensor[i]));
    used += (size_t)snprintf(text + used, size - used, "int main(void)\n{\n    for (int run = 0; run < 2; run++) {\n");
    for (int i = 0; i < a->inputs; i++)
        used += (size_t)snprintf(text + used, size - used,
                                 "        if (run == 1 && fread(a%d, sizeof a%d, 1, stdin) != 1) return 1;\n", i, i);
    used += (size_t)snprintf(text + used, size - used, "        %s_run(", name);
    for (int i = 0; i < a->count; i++)
        used += (size_t)snprintf(text + used, size - used, "%sa%d", i > 0 ? ", " : "", i);
    used += (size_t)snprintf(text + used, size - used, ");\n    }\n");
    for (int i = a->inputs; i < a->count; i++)
        used += (size_t)snprintf(text + used, size - used, "    fwrite(a%d, sizeof a%d, 1, stdout);\n", i, i);
    used += (size_t)snprintf(text + used, size - used, "    return 0;\n}\n");
    test_write_file(test_path("main.c"), text, used);
    char program[600], net[600];
    snprintf(program, sizeof program, "%s", test_path("program"));
    snprintf(net, sizeof net, "%s", test_path("net.c"));
    snprintf(command, sizeof command,
             "%s -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Werror "
             "-pedantic -O1 -o '%s' '%s' '%s' -lm",
             SDLF_CC, program, net, test_path("main.c"));
    return used < size && system(command) == 0;
}

static bool run_program(const arguments *a)
{
    char command[2048], in[600], out[600];
    snprintf(in, sizeof in, "%s", test_path("in.raw"));
    snprintf(out, sizeof out, "%s", test_path("out.raw"));
    FILE *file = fopen(in, "wb");
    if (file == NULL) return false;
    for (int i = 0; i < a->inputs; i++) fwrite(a->tensor[i]->data, (size_t)sdlf_tensor_bytes(a->tensor[i]), 1, file);
    fclose(file);
    snprintf(command, sizeof command, SDLF_EMULATOR " '%s' < '%s' > '%s'", test_path("program"), in, out);
    return system(command) == 0;
}

static void check_output(FILE *file, const sdlf_model *model, const char *name, const sdlf_tensor *expected)
{
    size_t size = sdlf_dtype_size(expected->dtype);
    int64_t wrong = -1;
    double value = NAN, wanted = NAN;
    for (int64_t i = 0; i < sdlf_tensor_count(expected); i++) {
        unsigned char element[8];
        const unsigned char *right = (const unsigned char *)expected->data + (size_t)i * size;
        bool same = fread(element, size, 1, file) == 1;
        sdlf_convert(SDLF_FLOAT64, &value, expected->dtype, element, 1);
        sdlf_convert(SDLF_FLOAT64, &wanted, expected->dtype, right, 1);
        if (expected->dtype != SDLF_FLOAT32)
            same = same && memcmp(element, right, size) == 0;
        else if (isnan(wanted) || isinf(wanted))
            same = same && (isnan(wanted) ? isnan(value) : value == wanted);
        else
            same = same && fabs(value - wanted) <= 1e-5 * (1 + fabs(wanted));
        if (!same && wrong < 0) {
            wrong = i;
            printf("    %s, %s (%s %s): element %lld is %.9g, expected %.9g\n", sdlf_model_name(model), name,
                   sdlf_dtype_name(expected->dtype), sdlf_shape_print(expected->shape).text, (long long)i, value,
                   wanted);
        }
    }
    CHECK(wrong < 0);
}

void c_program_check(sdlf_model *model, const export_run_values *values)
{
    sdlf_c_exported result;
    arguments a = arguments_of(model, values);
    if (!CHECK_OK(sdlf_model_to_c(model, test_path("net.c"), NULL, &result))) return;
    if (!CHECK(build_program(result.name, &a)) || !CHECK(run_program(&a))) {
        printf("    %s\n", sdlf_model_name(model));
        return;
    }
    FILE *file = fopen(test_path("out.raw"), "rb");
    if (!CHECK(file != NULL)) return;
    for (int i = a.inputs; i < a.count; i++) check_output(file, model, a.name[i], a.tensor[i]);
    fclose(file);
}

void c_program_check_model(sdlf_model *model)
{
    export_run_values values;
    if (CHECK_OK(export_case_run(&values, model, 1, NULL))) c_program_check(model, &values);
    export_run_release(&values);
}
