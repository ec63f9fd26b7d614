/* SPDX-License-Identifier: MIT */
/* A model of one node, built by the test, and a check of its result. */
#ifndef SDLF_TESTS_ONNX_ONE_NODE_H
#define SDLF_TESTS_ONNX_ONE_NODE_H

#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"

enum { ONE_FLOAT = 1, ONE_UINT8 = 2, ONE_INT8 = 3, ONE_INT32 = 6, ONE_INT64 = 7, ONE_BOOL = 9, ONE_DOUBLE = 11 };
enum { ONE_MOST = 16, ONE_INPUTS = 5, ONE_ATTRIBUTES = 6 };

/* An input; type 0: omitted. */
typedef struct one_input {
    int type, rank;
    int64_t dim[4];
    double value[ONE_MOST];
    bool constant;
} one_input;

/* An attribute: integers (one without `list`), a text, or a list of floats. */
typedef struct one_attribute {
    const char *name, *text;
    int64_t integer[4];
    int list; /* number of elements; 0: a single integer */
    float real[4];
    int reals; /* number of floats; 0: not floats; -1: a single float */
} one_attribute;

typedef struct one_model {
    const char *type;  /* of ai.onnx.ml if so prefixed */
    int opset, output; /* the output's type */
    one_input input[ONE_INPUTS];
    one_attribute attribute[ONE_ATTRIBUTES];
} one_model;

static inline int64_t one_count(const one_input *input)
{
    int64_t count = 1;
    for (int i = 0; i < input->rank; i++) count *= input->dim[i];
    return count;
}

static inline sdlf_dtype one_dtype(int type)
{
    switch (type) {
    case ONE_UINT8: return SDLF_UINT8;
    case ONE_INT8: return SDLF_INT8;
    case ONE_INT32: return SDLF_INT32;
    case ONE_INT64: return SDLF_INT64;
    case ONE_BOOL: return SDLF_BOOL;
    case ONE_DOUBLE: return SDLF_FLOAT64;
    default: return SDLF_FLOAT32;
    }
}

static inline const char *one_name(int input)
{
    static const char *const names[ONE_INPUTS] = {"a", "b", "c", "d", "e"};
    return names[input];
}

static inline void one_add_input(bytes *graph, bytes *node, const one_input *input, int number)
{
    unsigned char elements[ONE_MOST * 8];
    bytes tensor = {.size = 0};
    bytes_text(node, 1, input->type != 0 ? one_name(number) : "");
    if (input->type == 0) return;
    if (!input->constant) {
        bytes_typed_info(graph, 11, one_name(number), input->type, input->dim, input->rank);
        return;
    }
    sdlf_dtype dtype = one_dtype(input->type);
    sdlf_convert(dtype, elements, SDLF_FLOAT64, input->value, one_count(input));
    for (int i = 0; i < input->rank; i++) bytes_number(&tensor, 1, (uint64_t)input->dim[i]);
    bytes_number(&tensor, 2, (uint64_t)input->type);
    bytes_text(&tensor, 8, one_name(number));
    bytes_field(&tensor, 9, elements, (size_t)one_count(input) * sdlf_dtype_size(dtype));
    bytes_message(graph, 5, &tensor);
}

static inline sdlf_status one_import(sdlf_model **model, const one_model *wanted)
{
    bytes node = {.size = 0}, graph = {.size = 0}, file = {.size = 0}, set = {.size = 0};
    int inputs = ONE_INPUTS;
    static const char learning[] = "ai.onnx.ml.";
    bool learns = strncmp(wanted->type, learning, sizeof learning - 1) == 0;
    while (inputs > 0 && wanted->input[inputs - 1].type == 0) inputs--;
    for (int i = 0; i < inputs; i++) one_add_input(&graph, &node, &wanted->input[i], i);
    bytes_text(&node, 2, "y");
    if (strcmp(wanted->type, "Split") == 0) bytes_text(&node, 2, "z");
    bytes_text(&node, 4, wanted->type + (learns ? sizeof learning - 1 : 0));
    if (learns) bytes_text(&node, 7, "ai.onnx.ml");
    for (int i = 0; i < ONE_ATTRIBUTES && wanted->attribute[i].name != NULL; i++) {
        const one_attribute *given = &wanted->attribute[i];
        bytes attribute = {.size = 0};
        bytes_text(&attribute, 1, given->name);
        if (given->text != NULL) bytes_text(&attribute, 4, given->text);
        if (given->reals > 0) bytes_field(&attribute, 7, given->real, (size_t)given->reals * sizeof(float));
        if (given->reals < 0) {
            bytes_varint(&attribute, 2 << 3 | 5);
            bytes_append(&attribute, given->real, sizeof(float));
        }
        for (int k = 0; given->text == NULL && given->reals == 0 && k < (given->list > 0 ? given->list : 1); k++)
            bytes_number(&attribute, given->list > 0 ? 8 : 3, (uint64_t)given->integer[k]);
        bytes_number(&attribute, 20,
                     given->text != NULL ? 3
                     : given->reals < 0  ? 1
                     : given->reals > 0  ? 6
                     : given->list > 0   ? 7
                                         : 2);
        bytes_message(&node, 5, &attribute);
    }
    bytes_message(&graph, 1, &node);
    bytes_typed_info(&graph, 12, "y", wanted->output, NULL, 0);
    bytes_number(&set, 2, (uint64_t)wanted->opset);
    bytes_message(&file, 8, &set);
    if (learns) {
        bytes of = {.size = 0};
        bytes_text(&of, 1, "ai.onnx.ml");
        bytes_number(&of, 2, 3);
        bytes_message(&file, 8, &of);
    }
    bytes_message(&file, 7, &graph);
    test_write_file(test_path("one.onnx"), file.data, file.size);
    return sdlf_model_from_onnx(model, test_path("one.onnx"), NULL);
}

/* Check that y has that shape ("2x3") and these elements, within 1e-6 each. */
static inline void one_check_with(const char *calculator_name, const one_model *wanted, const char *shape,
                                  const double *expected)
{
    sdlf_model *model = NULL;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    unsigned char elements[ONE_MOST * 8];
    double found[ONE_MOST] = {0};
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    if (CHECK_OK(one_import(&model, wanted)) &&
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        for (int i = 0; i < ONE_INPUTS; i++) {
            const one_input *input = &wanted->input[i];
            if (input->type == 0 || input->constant || sdlf_plan_input(plan, one_name(i), &binding) != SDLF_OK)
                continue;
            sdlf_convert(binding.tensor.dtype, elements, SDLF_FLOAT64, input->value, one_count(input));
            CHECK_OK(test_plan_write(plan, one_name(i), elements));
        }
        CHECK_OK(sdlf_plan_forward(plan));
        if (CHECK_OK(sdlf_plan_output(plan, "y", &binding)) &&
            CHECK_TEXT(sdlf_shape_print(binding.tensor.shape).text, shape) &&
            CHECK_OK(test_plan_read(plan, "y", elements))) {
            int64_t count = sdlf_tensor_count(&binding.tensor);
            sdlf_convert(SDLF_FLOAT64, found, binding.tensor.dtype, elements, count);
            for (int64_t i = 0; i < count; i++)
                if (!CHECK(found[i] == expected[i] || fabs(found[i] - expected[i]) <= 1e-6 * fabs(expected[i])))
                    printf("    %s on %s: element %lld is %.9g, expected %.9g\n", wanted->type, calculator_name,
                           (long long)i, found[i], expected[i]);
        }
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static inline void one_check(const one_model *wanted, const char *shape, const double *expected)
{
    one_check_with("reference", wanted, shape, expected);
    one_check_with("cpu", wanted, shape, expected);
}

static inline void one_check_refused(const one_model *wanted, sdlf_status status, const char *message)
{
    sdlf_model *model = NULL;
    if (!CHECK_FAILS(one_import(&model, wanted), status, message)) sdlf_model_free(model);
}

#endif
