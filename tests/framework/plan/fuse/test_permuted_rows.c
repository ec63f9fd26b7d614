/* SPDX-License-Identifier: MIT */
/* Permuting copies of rows before and after GEMMs are eliminated if other copies can permute instead, and only then. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

/* Samples, tokens and heads; a head's depth equals the number of heads, so that only strides distinguish the axes. */
enum { BATCH = 3, TOKENS = 5, HEADS = 4, DEPTH = 4, WIDTH = HEADS * DEPTH, COUNT = BATCH * TOKENS * WIDTH };

/* As in torch.nn.MultiheadAttention: sequence first, with parts of a wide product read; and back. Then similar
 * patterns. */
enum {
    ENCODER,     /* copy, product, copies of its parts; copy of heads, product, copy */
    BEFORE,      /* only the first */
    BEHIND,      /* only the second */
    ROWS_READ,   /* the copy's result is also read elsewhere */
    RESULT_READ, /* the product's result is, by an operation that is no copy */
    FLATTENED,   /* a part of the result has tokens and samples as one axis */
    OTHER_ROWS,  /* the copy does not permute the product's rows */
    NO_COPY,     /* the rows that are multiplied come from no copy */
    FORMS
};

static sdlf_node turned(sdlf_model *net, sdlf_node x, sdlf_shape order)
{
    return sdlf_transpose(net, x, &(sdlf_transpose_options){.order = order});
}

static sdlf_node reshaped(sdlf_model *net, sdlf_node x, sdlf_shape shape)
{
    return sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = shape, .whole = true});
}

static sdlf_node product(sdlf_model *net, sdlf_node x, int units)
{
    return sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = units, .axis = -1});
}

static sdlf_node plus(sdlf_model *net, sdlf_node x, float number)
{
    return sdlf_binary(net, &x, 1, &(sdlf_binary_layer_options){.function = SDLF_LAYER_ADD, .scalar = number});
}

/* Sequence first, (TOKENS,BATCH,WIDTH), to (BATCH,TOKENS,WIDTH), after a product of the heads' output. */
static sdlf_node projected(sdlf_model *net, sdlf_node heads, int form)
{
    sdlf_node x = heads; /* (BATCH,HEADS,TOKENS,DEPTH) */
    if (form != NO_COPY) x = turned(net, x, sdlf_shape(2, 0, 1, 3));
    x = reshaped(net, x, sdlf_shape(TOKENS, BATCH, WIDTH));
    return turned(net, product(net, x, WIDTH), sdlf_shape(1, 0, 2));
}

static sdlf_model *make(int form)
{
    sdlf_model *net = sdlf_model_create("rows");
    sdlf_node image = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(BATCH, TOKENS, WIDTH)), y;
    image = reshaped(net, image, sdlf_shape(BATCH, TOKENS, WIDTH));
    sdlf_node rows =
        form == OTHER_ROWS ? turned(net, image, sdlf_shape(0, 2, 1)) : turned(net, image, sdlf_shape(1, 0, 2));
    if (form == BEHIND || form == NO_COPY) {
        y = turned(net, reshaped(net, plus(net, image, 1), sdlf_shape(BATCH, TOKENS, HEADS, DEPTH)),
                   sdlf_shape(0, 2, 1, 3));
    } else if (form == OTHER_ROWS) {
        y = turned(net, product(net, reshaped(net, rows, sdlf_shape(BATCH, WIDTH, TOKENS)), TOKENS),
                   sdlf_shape(0, 2, 1));
        y = turned(net, reshaped(net, y, sdlf_shape(BATCH, TOKENS, HEADS, DEPTH)), sdlf_shape(0, 2, 1, 3));
    } else {
        y = product(net, rows, 2 * WIDTH);
        if (form == RESULT_READ) sdlf_output(net, "sum", plus(net, y, 1));
        if (form == ROWS_READ) sdlf_output(net, "sum", plus(net, rows, 1));
        y = form == FLATTENED ? reshaped(net, y, sdlf_shape(TOKENS * BATCH, 2 * WIDTH)) : y;
        const int columns = form == FLATTENED ? 1 : 2;
        const sdlf_slice_options part = {
            .axes = sdlf_shape(columns), .start = sdlf_shape(WIDTH), .end = sdlf_shape(2 * WIDTH)};
        y = sdlf_slice(net, y, &part);
        y = reshaped(net, y, sdlf_shape(TOKENS, BATCH, HEADS, DEPTH));
        y = turned(net, y, sdlf_shape(1, 2, 0, 3));
    }
    y = form == BEFORE || form == OTHER_ROWS ? reshaped(net, plus(net, y, 1), sdlf_shape(BATCH, TOKENS, WIDTH))
                                             : projected(net, y, form);
    sdlf_output(net, "y", plus(net, y, 2));
    CHECK_OK(sdlf_model_build(net, 5));
    return net;
}

/* Copies that remain in host memory, where elementwise operations read the source of a copy directly. On a device one more may remain. */
static const int left[FORMS] = {1, 0, 0, 2, 2, 2, 2, 1};

static void check_form(sdlf_calculator *calculator, int form)
{
    static float x[COUNT], found[2][COUNT];
    sdlf_model *net = make(form);
    int copies[2] = {0};
    fill_random(x, COUNT, 4);
    for (int parts = 0; parts < 2; parts++) {
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = 1, .forward = calculator, .no_fusion = parts != 0};
        if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
            copies[parts] = count_steps(plan, "copy");
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", found[parts]));
        }
        sdlf_plan_free(plan);
    }
    bool on_host = strcmp(calculator->space, SDLF_HOST_SPACE) == 0;
    CHECK(copies[0] >= left[form] && copies[0] <= left[form] + !on_host);
    for (int i = 0; i < COUNT; i++)
        CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5 * (1 + fabs((double)found[1][i])));
    sdlf_model_free(net);
}

static void copies_of_rows_are_left_out(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        for (int form = 0; form < FORMS; form++) check_form(calculator, form);
        sdlf_calculator_close(calculator);
    }
}

/* Rows that are both operands: they determine the order of the result's rows and columns. */
static void products_of_rows_by_themselves_stay(void)
{
    enum { ROWS = TOKENS * BATCH };
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float x[COUNT], found[2][ROWS * ROWS];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = sdlf_model_create("gram");
        sdlf_node image = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(BATCH, TOKENS, WIDTH));
        sdlf_node rows = turned(net, reshaped(net, image, sdlf_shape(BATCH, TOKENS, WIDTH)), sdlf_shape(1, 0, 2));
        rows = reshaped(net, rows, sdlf_shape(ROWS, WIDTH));
        sdlf_node y = sdlf_matmul(net, rows, rows, &(sdlf_matmul_options){.transpose_b = true});
        y = turned(net, reshaped(net, y, sdlf_shape(TOKENS, BATCH, ROWS)), sdlf_shape(1, 0, 2));
        sdlf_output(net, "y", plus(net, y, 1));
        CHECK_OK(sdlf_model_build(net, 5));
        fill_random(x, COUNT, 6);
        for (int parts = 0; parts < 2; parts++) {
            sdlf_plan *plan = NULL;
            sdlf_plan_options options = {.batch = 1, .forward = calculator, .no_fusion = parts != 0};
            if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
                CHECK_OK(test_plan_write(plan, "x", x));
                CHECK_OK(sdlf_plan_forward(plan));
                CHECK_OK(test_plan_read(plan, "y", found[parts]));
            }
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < ROWS * ROWS; i++) CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* torch.nn.MultiheadAttention with batch-first sequences: nothing is copied if attention is a single operation. */
static sdlf_node heads_of(sdlf_model *net, sdlf_node all, int part)
{
    const sdlf_slice_options columns = {
        .axes = sdlf_shape(2), .start = sdlf_shape(part * WIDTH), .end = sdlf_shape((part + 1) * WIDTH)};
    sdlf_node x = reshaped(net, sdlf_slice(net, all, &columns), sdlf_shape(TOKENS, BATCH * HEADS, DEPTH));
    return reshaped(net, turned(net, x, sdlf_shape(1, 0, 2)), sdlf_shape(BATCH, HEADS, TOKENS, DEPTH));
}

static sdlf_model *multi_head_attention(void)
{
    sdlf_model *net = sdlf_model_create("attention");
    sdlf_node image = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(BATCH, TOKENS, WIDTH));
    image = reshaped(net, image, sdlf_shape(BATCH, TOKENS, WIDTH));
    sdlf_node all = product(net, turned(net, image, sdlf_shape(1, 0, 2)), 3 * WIDTH);
    sdlf_node q = heads_of(net, all, 0), v = heads_of(net, all, 2);
    sdlf_node k = turned(net, heads_of(net, all, 1), sdlf_shape(0, 1, 3, 2));
    sdlf_node scores = sdlf_matmul(net, q, k, NULL);
    scores =
        sdlf_binary(net, &scores, 1, &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY, .scalar = 0.5f});
    const sdlf_softmax_options along_keys = {.axis = 3};
    sdlf_node p = sdlf_model_add(net, sdlf_layer_class_find("softmax"), &along_keys, &scores, 1);
    sdlf_output(net, "y", sdlf_add(net, projected(net, sdlf_matmul(net, p, v, NULL), ENCODER), image));
    CHECK_OK(sdlf_model_build(net, 5));
    return net;
}

static void multi_head_attention_copies_nothing(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float x[COUNT], found[2][COUNT];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        const bool has = calculator->type->kernel[SDLF_ATTENTION_FORWARD].run != NULL;
        sdlf_model *net = multi_head_attention();
        fill_random(x, COUNT, 7);
        for (int parts = 0; parts < 2; parts++) {
            sdlf_plan *plan = NULL;
            sdlf_plan_options options = {.batch = 1, .forward = calculator, .no_fusion = parts != 0};
            if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
                if (has && !parts) CHECK_EQUAL(count_steps(plan, "attention_forward"), 1);
                if (has && !parts) CHECK_EQUAL(count_steps(plan, "copy"), 0);
                if (has && !parts) CHECK_EQUAL(count_steps(plan, "add"), 0);
                CHECK_OK(test_plan_write(plan, "x", x));
                CHECK_OK(sdlf_plan_forward(plan));
                CHECK_OK(test_plan_read(plan, "y", found[parts]));
            }
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < COUNT; i++) CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(multi_head_attention_copies_nothing);
    RUN(products_of_rows_by_themselves_stay);
    RUN(copies_of_rows_are_left_out);
    return test_summary();
}
