/* SPDX-License-Identifier: MIT */
/* Integers of sizes that SDLF lacks: computed in larger ones if that is exact, else rejected; and inputs without
 * elements, whose values are all known. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/bytes.h"
#include "onnx/fixtures.h"

enum {
    FLOAT = 1,
    UINT8 = 2,
    INT8 = 3,
    UINT16 = 4,
    INT16 = 5,
    INT32 = 6,
    INT64 = 7,
    BOOL = 9,
    UINT32 = 12,
    UINT64 = 13,
    E4M3FN = 17,
    E5M2FNUZ = 20,
    UINT4 = 21,
    INT4 = 22,
    E2M1 = 23,
    E8M0 = 24,
    UINT2 = 25,
    INT2 = 26
};

/* y = `type`(a, b) with these element types, of three elements each (or `count`); an attribute. */
typedef struct one_node {
    const char *type;
    int a, b, y; /* element types; b 0: absent */
    const char *attribute;
    uint64_t value;
    bool one; /* b is one value for all */
} one_node;

static sdlf_status import_node(sdlf_model **model, const one_node *wanted, int64_t count)
{
    bytes node = {.size = 0}, graph = {.size = 0}, file = {.size = 0}, set = {.size = 0};
    bytes_text(&node, 1, "a");
    if (wanted->b != 0) bytes_text(&node, 1, "b");
    bytes_text(&node, 2, "y");
    bytes_text(&node, 4, wanted->type);
    if (wanted->attribute != NULL) {
        bytes attribute = {.size = 0};
        bytes_text(&attribute, 1, wanted->attribute);
        bytes_number(&attribute, 3, wanted->value);
        bytes_number(&attribute, 20, 2);
        bytes_message(&node, 5, &attribute);
    }
    bytes_message(&graph, 1, &node);
    bytes_typed_info(&graph, 11, "a", wanted->a, &count, 1);
    if (wanted->b != 0) bytes_typed_info(&graph, 11, "b", wanted->b, (const int64_t[]){wanted->one ? 1 : 3}, 1);
    bytes_typed_info(&graph, 12, "y", wanted->y, NULL, 0);
    bytes_number(&set, 2, 26);
    bytes_message(&file, 8, &set);
    bytes_message(&file, 7, &graph);
    test_write_file(test_path("narrow.onnx"), file.data, file.size);
    return sdlf_model_from_onnx(model, test_path("narrow.onnx"), NULL);
}

/* Run on three values a and b, and compare three outputs, all as float64. */
static void check_run(const one_node *wanted, const double *a, const double *b, const double *expected)
{
    sdlf_model *model = NULL;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    unsigned char elements[32];
    double found[3] = {NAN, NAN, NAN};
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    if (CHECK_OK(import_node(&model, wanted, 3)) &&
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        for (int i = 0; i < (wanted->b != 0 ? 2 : 1); i++) {
            const char *name = i == 0 ? "a" : "b";
            CHECK_OK(sdlf_plan_input(plan, name, &binding));
            sdlf_convert(binding.tensor.dtype, elements, SDLF_FLOAT64, i == 0 ? a : b, 3);
            CHECK_OK(test_plan_write(plan, name, elements));
        }
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_output(plan, "y", &binding));
        CHECK_OK(test_plan_read(plan, "y", elements));
        sdlf_convert(SDLF_FLOAT64, found, binding.tensor.dtype, elements, 3);
        for (int i = 0; i < 3; i++)
            if (!CHECK(found[i] == expected[i]))
                printf("    %s: element %d is %g, expected %g\n", wanted->type, i, found[i], expected[i]);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void what_stays_in_range_is_exact(void)
{
    const double low[] = {-32768, 5, 7}, other[] = {32767, 4, 7}, large[] = {4294967295.0, 16777217, 3},
                 less[] = {4294967294.0, 16777218, 4}, x[] = {2, 3, -2}, y[] = {3, 2, 2};
    check_run(&(one_node){"Max", INT16, INT16, INT16, NULL, 0, false}, low, other, (const double[]){32767, 5, 7});
    check_run(&(one_node){"Min", UINT32, UINT32, UINT32, NULL, 0, false}, large, less,
              (const double[]){4294967294.0, 16777217, 3});
    check_run(&(one_node){"Less", UINT32, UINT32, 9, NULL, 0, false}, large, less, (const double[]){0, 1, 1});
    check_run(&(one_node){"Pow", FLOAT, UINT32, FLOAT, NULL, 0, false}, x, y, (const double[]){8, 9, 4});
    check_run(&(one_node){"Cast", UINT16, 0, INT64, "to", INT64, false}, other, NULL, other);
    check_run(&(one_node){"Clip", UINT32, 0, UINT32, NULL, 0, false}, large, NULL, large);
    check_run(&(one_node){"Relu", INT16, 0, INT16, NULL, 0, false}, low, NULL, (const double[]){0, 5, 7});
}

/* The parity of exponents is kept even if float32 cannot represent them. */
static void large_exponents(void)
{
    const double base[] = {-1, -2, 3}, odd[] = {16777217, -16777217, -16777219}, even[] = {1LL << 40, 2, 3};
    check_run(&(one_node){"Pow", FLOAT, INT64, FLOAT, NULL, 0, false}, base, odd, (const double[]){-1, 0, 0});
    check_run(&(one_node){"Pow", FLOAT, INT64, FLOAT, NULL, 0, false}, base, even, (const double[]){1, 4, 27});
    check_run(&(one_node){"Pow", FLOAT, INT32, FLOAT, NULL, 0, false}, base, odd, (const double[]){-1, 0, 0});
}

/* Casts of integers to smaller ones keep the low bits, as in the standard. */
static void smaller_integers_keep_low_bits(void)
{
    const double x[] = {300, -1, -2147483648.0}, wide[] = {4294967296.0 * 5 + 7, -2147483649.0, 2147483648.0},
                 u16[] = {65535, 300, 200}, u32[] = {4294967295.0, 70000, 2147483648.0}, low[] = {-128, -1, 5};
    check_run(&(one_node){"Cast", INT32, 0, UINT8, "to", UINT8, false}, x, NULL, (const double[]){44, 255, 0});
    check_run(&(one_node){"Cast", INT32, 0, INT8, "to", INT8, false}, x, NULL, (const double[]){44, -1, 0});
    check_run(&(one_node){"Cast", INT64, 0, INT32, "to", INT32, false}, wide, NULL,
              (const double[]){7, 2147483647, -2147483648.0});
    check_run(&(one_node){"Cast", INT64, 0, UINT8, "to", UINT8, false}, wide, NULL, (const double[]){7, 255, 0});
    check_run(&(one_node){"Cast", UINT16, 0, INT8, "to", INT8, false}, u16, NULL, (const double[]){-1, 44, -56});
    check_run(&(one_node){"Cast", UINT32, 0, INT32, "to", INT32, false}, u32, NULL,
              (const double[]){-1, 70000, -2147483648.0});
    check_run(&(one_node){"Cast", INT8, 0, UINT8, "to", UINT8, false}, low, NULL, (const double[]){128, 255, 5});
    check_run(&(one_node){"Cast", INT8, 0, INT32, "to", INT32, false}, low, NULL, low);
}

static void quantised_values_saturate(void)
{
    const double x[] = {1e9, -7.6, 40000}, scale[] = {1, 1, 1};
    check_run(&(one_node){"QuantizeLinear", FLOAT, FLOAT, INT16, "output_dtype", INT16, true}, x, scale,
              (const double[]){32767, -8, 32767});
    check_run(&(one_node){"QuantizeLinear", FLOAT, FLOAT, UINT16, "output_dtype", UINT16, true}, x, scale,
              (const double[]){65535, 0, 40000});
    check_run(&(one_node){"DequantizeLinear", UINT16, FLOAT, FLOAT, NULL, 0, true}, (const double[]){65535, 0, 1},
              (const double[]){2, 2, 2}, (const double[]){131070, 0, 2});
}

/* Integers of two bytes and less: the low bits, interpreted with their sign. */
static void casts_wrap_around(void)
{
    const double x[] = {-9.7, 7.9, 70000}, y[] = {40000, -3, 300}, z[] = {-3, 300, 0};
    check_run(&(one_node){"Cast", FLOAT, 0, INT4, "to", INT4, false}, x, NULL, (const double[]){7, 7, 0});
    check_run(&(one_node){"Cast", FLOAT, 0, UINT4, "to", UINT4, false}, x, NULL, (const double[]){7, 7, 0});
    check_run(&(one_node){"Cast", FLOAT, 0, INT2, "to", INT2, false}, x, NULL, (const double[]){-1, -1, 0});
    check_run(&(one_node){"Cast", INT32, 0, UINT2, "to", UINT2, false}, y, NULL, (const double[]){0, 1, 0});
    check_run(&(one_node){"Cast", INT64, 0, INT16, "to", INT16, false}, y, NULL, (const double[]){-25536, -3, 300});
    check_run(&(one_node){"Cast", FLOAT, 0, UINT16, "to", UINT16, false}, x, NULL, (const double[]){65527, 7, 4464});
    check_run(&(one_node){"BitCast", INT16, 0, UINT16, "to", UINT16, false}, z, NULL, (const double[]){65533, 300, 0});
}

/* Ties to even; values beyond the largest become the largest, or the type's special value. */
static void small_floats_are_rounded(void)
{
    const double x[] = {17, 449, -0.0009765625}, y[] = {1e30, -19, 27}, z[] = {0.25, -5, 2.5}, w[] = {3, 0.75, 1e-3};
    check_run(&(one_node){"Cast", FLOAT, 0, E4M3FN, "to", E4M3FN, false}, x, NULL, (const double[]){16, 448, 0});
    check_run(&(one_node){"Cast", FLOAT, 0, E5M2FNUZ, "to", E5M2FNUZ, false}, y, NULL,
              (const double[]){57344, -20, 28});
    check_run(&(one_node){"Cast", FLOAT, 0, E2M1, "to", E2M1, false}, z, NULL, (const double[]){0, -4, 2});
    check_run(&(one_node){"Cast", FLOAT, 0, E8M0, "to", E8M0, false}, w, NULL,
              (const double[]){4, 1, 0.0009765625 * 2});
    check_run(&(one_node){"QuantizeLinear", FLOAT, FLOAT, E4M3FN, "output_dtype", E4M3FN, true}, y,
              (const double[]){2, 2, 2}, (const double[]){448, -10, 14});
    check_run(&(one_node){"QuantizeLinear", FLOAT, FLOAT, INT4, "output_dtype", INT4, true}, y,
              (const double[]){2, 2, 2}, (const double[]){7, -8, 7});
}

/* Sums, differences and products wrap around as the type itself does. */
static void arithmetic_wraps_around(void)
{
    const double a[] = {32767, -32768, 300}, b[] = {1, 1, 300}, c[] = {65535, 0, 300}, d[] = {1, 1, 300},
                 e[] = {4294967295.0, 0, 70000}, f[] = {1, 1, 70000};
    check_run(&(one_node){"Add", INT16, INT16, INT16, NULL, 0, false}, a, b, (const double[]){-32768, -32767, 600});
    check_run(&(one_node){"Mul", INT16, INT16, INT16, NULL, 0, false}, a, b, (const double[]){32767, -32768, 24464});
    check_run(&(one_node){"Sub", UINT16, UINT16, UINT16, NULL, 0, false}, c, d, (const double[]){65534, 65535, 0});
    check_run(&(one_node){"Mul", UINT32, UINT32, UINT32, NULL, 0, false}, e, f,
              (const double[]){4294967295.0, 0, 605032704});
}

static void what_could_leave_it_is_refused(void)
{
    sdlf_model *model = NULL;
    CHECK_FAILS(import_node(&model, &(one_node){"Abs", INT16, 0, INT16, NULL, 0, false}, 3), SDLF_ERROR_UNSUPPORTED,
                "of int16, whose range its result could leave");
    CHECK_FAILS(import_node(&model, &(one_node){"Pow", UINT16, FLOAT, UINT16, NULL, 0, false}, 3),
                SDLF_ERROR_UNSUPPORTED, "of uint16, whose range its result could leave");
    CHECK_FAILS(import_node(&model, &(one_node){"Max", UINT64, UINT64, UINT64, NULL, 0, false}, 3),
                SDLF_ERROR_UNSUPPORTED, "elements of uint64, which are not supported");
    CHECK_FAILS(import_node(&model, &(one_node){"Cast", FLOAT, 0, UINT64, "to", UINT64, false}, 3),
                SDLF_ERROR_UNSUPPORTED, "to uint64");
    CHECK_FAILS(import_node(&model, &(one_node){"Abs", E4M3FN, 0, E4M3FN, NULL, 0, false}, 3), SDLF_ERROR_UNSUPPORTED,
                "of float8e4m3fn, whose range its result could leave");
    CHECK_FAILS(import_node(&model, &(one_node){"Add", INT4, INT4, INT4, NULL, 0, false}, 3), SDLF_ERROR_UNSUPPORTED,
                "of int4, whose range its result could leave");
}

/* The reduction of an empty set is the initial value of a longer one. */
static void nothing_is_known(void)
{
    static const struct {
        const char *type;
        int of;
        double expected;
    } reductions[] = {{"ReduceSum", FLOAT, 0},
                      {"ReduceProd", FLOAT, 1},
                      {"ReduceMax", FLOAT, -INFINITY},
                      {"ReduceMin", FLOAT, INFINITY},
                      {"ReduceL2", FLOAT, 0},
                      {"ReduceLogSum", FLOAT, -INFINITY},
                      {"ReduceL1", FLOAT, 0},
                      {"ReduceSumSquare", FLOAT, 0},
                      {"ReduceLogSumExp", FLOAT, -INFINITY},
                      {"ReduceMax", BOOL, 0},
                      {"ReduceMin", BOOL, 1},
                      {"ReduceMax", INT8, -128},
                      {"ReduceMax", INT16, -32768},
                      {"ReduceMin", UINT16, 65535},
                      {"ReduceMin", UINT8, 255},
                      {"ReduceMax", INT32, -2147483648.0},
                      {"ReduceMin", UINT32, 4294967295.0}};
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        int of = reductions[i].of;
        sdlf_model *model = NULL;
        sdlf_plan *plan = NULL;
        sdlf_binding binding;
        int64_t element = 0;
        double y = NAN;
        if (CHECK_OK(import_node(&model, &(one_node){reductions[i].type, of, 0, of, NULL, 0, false}, 0)) &&
            CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(sdlf_plan_output(plan, "y", &binding));
            CHECK_OK(test_plan_read(plan, "y", &element));
            sdlf_convert(SDLF_FLOAT64, &y, binding.tensor.dtype, &element, 1);
            if (!CHECK(y == reductions[i].expected)) printf("    %s: %g\n", reductions[i].type, y);
        }
        sdlf_plan_free(plan);
        sdlf_model_free(model);
    }
    sdlf_calculator_close(calculator);
    sdlf_model *model = NULL;
    CHECK_FAILS(import_node(&model, &(one_node){"ReduceMean", FLOAT, 0, FLOAT, NULL, 0, false}, 0),
                SDLF_ERROR_UNSUPPORTED, "of an input without elements");
    CHECK_FAILS(import_node(&model, &(one_node){"Relu", FLOAT, 0, FLOAT, NULL, 0, false}, 0), SDLF_ERROR_UNSUPPORTED,
                "");
}

/* An output without elements has its shape and its type. */
static void nothing_comes_out(void)
{
    sdlf_calculator *calculator = NULL;
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    if (CHECK_OK(import_node(&model, &(one_node){"Identity", INT32, 0, INT32, NULL, 0, false}, 0)) &&
        CHECK_OK(sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_output(plan, "y", &binding));
        CHECK_TEXT(sdlf_shape_print(binding.tensor.shape).text, "0");
        CHECK_EQUAL(binding.tensor.dtype, SDLF_INT32);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(what_stays_in_range_is_exact);
    RUN(large_exponents);
    RUN(smaller_integers_keep_low_bits);
    RUN(quantised_values_saturate);
    RUN(arithmetic_wraps_around);
    RUN(casts_wrap_around);
    RUN(small_floats_are_rounded);
    RUN(what_could_leave_it_is_refused);
    RUN(nothing_is_known);
    RUN(nothing_comes_out);
    return test_summary();
}
