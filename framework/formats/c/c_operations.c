/* SPDX-License-Identifier: MIT */
/* Maps operations to statements: a row per kind that exported networks may use, and the calls of kernels. */
#include "framework/formats/c/c_export.h"

#include <stdio.h>
#include <string.h>

/* ---- kernels ---- */

static int position_of(const char *kernel)
{
    int position = 0;
    while (strcmp(c_kernels[position].name, kernel) != 0) position++;
    return position;
}

void c_use(c_export *e, const char *kernel)
{
    e->kernels |= 1u << position_of(kernel);
}

bool c_uses(const c_export *e, const char *kernel)
{
    return e->kernels >> position_of(kernel) & 1;
}

/* Kernels process one sample: prints the head of a loop over all of them, and the address of sample n. */
static void begin_samples(c_export *e, int64_t samples)
{
    if (samples > 1) c_print(e, "    for (int n = 0; n < %lld; n++)\n    ", (long long)samples);
    c_print(e, "    ");
}

static c_name sample(const c_export *e, const sdlf_tensor *tensor, int64_t samples)
{
    char index[64] = "";
    if (samples > 1) snprintf(index, sizeof index, "n * %lld", (long long)(sdlf_tensor_count(tensor) / samples));
    return c_address(e, tensor, index);
}

static void refuse_epilogue(c_export *e, const c_step *step, const sdlf_activation *activation)
{
    if (activation->function != SDLF_IDENTITY || sdlf_tensor_present(&step->operation.in[3]))
        c_refuse(e, step->layer, "its product goes on in the same operation");
}

/* ---- windows ---- */

static void print_window(c_export *e, const sdlf_tensor *x, const sdlf_tensor *y, const sdlf_window2d *w, int groups)
{
    c_use(e, "window");
    c_print(
        e,
        "        &(const window){.channels = %d, .height = %d, .width = %d, .filters = %d, .rows = %d, .columns = %d,\n"
        "                        .groups = %d, .size = {%d, %d}, .stride = {%d, %d}, .dilation = {%d, %d}, "
        ".padding = {%d, %d}}",
        (int)x->shape.dim[1], (int)x->shape.dim[2], (int)x->shape.dim[3], (int)y->shape.dim[1], (int)y->shape.dim[2],
        (int)y->shape.dim[3], groups, w->size[0], w->size[1], w->stride[0], w->stride[1], w->dilation[0],
        w->dilation[1], w->padding_before[0], w->padding_before[1]);
}

/* The bias of a convolution or GEMM, which may come from the normalisation after it. */
static c_name bias_of(const c_export *e, const c_step *step, const sdlf_tensor *bias)
{
    if (e->state[step->layer].norm >= 0) return c_weights(e, step->layer, "bias");
    return c_address(e, bias, "");
}

static void print_conv2d(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    int64_t samples = o->in[0].shape.dim[0];
    refuse_epilogue(e, step, &o->conv2d.activation);
    c_use(e, "conv2d");
    begin_samples(e, samples);
    c_print(e, "conv2d(%s, %s, %s, %s,\n", sample(e, &o->in[0], samples).text, c_address(e, &o->in[1], "").text,
            bias_of(e, step, &o->in[2]).text, sample(e, &o->out[0], samples).text);
    print_window(e, &o->in[0], &o->out[0], &o->conv2d.window, o->conv2d.groups);
    c_print(e, ");\n");
}

static void print_conv_transpose2d(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    int64_t samples = o->in[0].shape.dim[0];
    c_use(e, "conv_transpose2d");
    begin_samples(e, samples);
    c_print(e, "conv_transpose2d(%s, %s, %s,\n", sample(e, &o->in[0], samples).text, c_address(e, &o->in[1], "").text,
            sample(e, &o->out[0], samples).text);
    print_window(e, &o->in[0], &o->out[0], &o->conv2d.window, o->conv2d.groups);
    c_print(e, ");\n");
}

static void print_pool(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    int64_t samples = o->in[0].shape.dim[0];
    bool mean = o->kind == SDLF_AVG_POOL2D_FORWARD;
    const char *kernel = mean ? "avg_pool2d" : "max_pool2d";
    c_use(e, kernel);
    begin_samples(e, samples);
    c_print(e, "%s(%s, %s,\n", kernel, sample(e, &o->in[0], samples).text, sample(e, &o->out[0], samples).text);
    print_window(e, &o->in[0], &o->out[0], &o->pool2d.window, 1);
    c_print(e, mean ? ", %d);\n" : ");\n", o->pool2d.count_padding);
}

static void print_global_avg_pool2d(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    const int64_t *dim = o->in[0].shape.dim;
    c_use(e, "global_avg_pool2d");
    c_print(e, "    global_avg_pool2d(%s, %s, %d, %d);\n", c_address(e, &o->in[0], "").text,
            c_address(e, &o->out[0], "").text, (int)(dim[0] * dim[1]), (int)(dim[2] * dim[3]));
}

/* ---- matrix products ---- */

/* The statement of one matrix product; `a`, `b` and `y` as addresses. */
typedef struct product {
    c_name a, b, bias, y;
    long long rows, inner, columns;
    bool turn_a, turn_b;
} product;

static void print_product(c_export *e, const product *p)
{
    c_use(e, "matmul");
    c_print(e, "matmul(%s, %s, %s, %s, %lld, %lld, %lld, %lld, %lld, %lld, %lld);\n", p->a.text, p->b.text,
            p->bias.text, p->y.text, p->rows, p->inner, p->columns, p->turn_a ? 1 : p->inner, p->turn_a ? p->rows : 1,
            p->turn_b ? 1 : p->columns, p->turn_b ? p->inner : 1);
}

static void print_gemm(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    int64_t rows = o->out[0].shape.dim[0], columns = o->out[0].shape.dim[1];
    int64_t inner = o->in[0].shape.dim[o->gemm.transpose_a ? 0 : 1];
    refuse_epilogue(e, step, &o->gemm.activation);
    if (o->gemm.alpha != 1) c_refuse(e, step->layer, "its product is scaled");
    if (o->gemm.transpose_b && !o->gemm.transpose_a) {
        c_use(e, "fully_connected");
        begin_samples(e, rows);
        c_print(e, "fully_connected(%s, %s, %s, %s, %d, %d);\n", sample(e, &o->in[0], rows).text,
                c_address(e, &o->in[1], "").text, bias_of(e, step, &o->in[2]).text, sample(e, &o->out[0], rows).text,
                (int)inner, (int)columns);
        return;
    }
    c_print(e, "    ");
    print_product(e, &(product){c_address(e, &o->in[0], ""), c_address(e, &o->in[1], ""), bias_of(e, step, &o->in[2]),
                                c_address(e, &o->out[0], ""), (long long)rows, (long long)inner, (long long)columns,
                                o->gemm.transpose_a, o->gemm.transpose_b});
}

/* Prints all matrices of a batch, where either side may be broadcast. */
static void print_matmul(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    sdlf_tensor batch[3] = {o->in[0], o->in[1], o->out[0]};
    int last = o->out[0].shape.rank - 1;
    c_loops loops;
    for (int i = 0; i < 3; i++) {
        batch[i].shape.rank = last - 1;
        batch[i].shape.dim[last] = batch[i].shape.dim[last - 1] = 0;
    }
    c_open(e, &loops, (const sdlf_tensor *const[]){&batch[0], &batch[1], &batch[2]}, 3, false);
    c_print(e, "%s", c_indent(loops.depth).text);
    const int64_t *a = o->in[0].shape.dim, *y = o->out[0].shape.dim;
    print_product(e, &(product){c_address(e, &o->in[0], loops.index[0]),
                                c_address(e, &o->in[1], loops.index[1]),
                                {"NULL"},
                                c_address(e, &o->out[0], loops.index[2]),
                                (long long)y[last - 1],
                                (long long)a[o->matmul.transpose_a ? last - 1 : last],
                                (long long)y[last],
                                o->matmul.transpose_a,
                                o->matmul.transpose_b});
}

/* ---- normalisation ---- */

static void print_batch_norm(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    sdlf_shape x = o->in[0].shape;
    if (!c_is(e, step->layer, "batch_norm2d") || o->batch_norm.activation.function != SDLF_IDENTITY) {
        c_refuse(e, step->layer, "its normalisation is not a batch_norm2d layer's");
        return;
    }
    c_use(e, "scale_channels");
    begin_samples(e, x.dim[0]);
    c_print(e, "scale_channels(%s, %s, %s, %s, %d, %d);\n", sample(e, &o->in[0], x.dim[0]).text,
            c_weights(e, step->layer, "scale").text, c_weights(e, step->layer, "shift").text,
            sample(e, &o->out[0], x.dim[0]).text, (int)x.dim[1], (int)sdlf_shape_span(x, 2, x.rank));
}

static void print_normalize(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    const sdlf_tensor *scale = &o->in[1], *shift = &o->in[2];
    int64_t channels = sdlf_tensor_present(scale)   ? sdlf_tensor_count(scale)
                       : sdlf_tensor_present(shift) ? sdlf_tensor_count(shift)
                                                    : 1;
    c_use(e, "normalize");
    c_print(e, "    normalize(%s, %s, %s, %s,\n              %s, %s, %lld, %lld, %lld, %lld, %s);\n",
            c_address(e, &o->in[0], "").text, c_address(e, scale, "").text, c_address(e, shift, "").text,
            c_address(e, &o->out[0], "").text, c_address(e, &o->out[1], "").text, c_address(e, &o->out[2], "").text,
            (long long)(sdlf_tensor_count(&o->in[0]) / o->normalize.length), (long long)o->normalize.length,
            (long long)o->normalize.inner, (long long)channels, c_number(o->normalize.epsilon).text);
}

static void print_softmax(c_export *e, const c_step *step)
{
    const sdlf_operation *o = &step->operation;
    const char *kernel = o->kind == SDLF_SOFTMAX_FORWARD ? "softmax" : "log_softmax";
    sdlf_shape x = o->in[0].shape;
    int axis = o->softmax.axis;
    c_use(e, kernel);
    c_print(e, "    %s(%s, %s, %d, %d, %d);\n", kernel, c_address(e, &o->in[0], "").text,
            c_address(e, &o->out[0], "").text, (int)sdlf_shape_span(x, 0, axis), (int)x.dim[axis],
            (int)sdlf_shape_span(x, axis + 1, x.rank));
}

/* ---- the table ---- */

typedef struct c_printer {
    void (*print)(c_export *e, const c_step *step);
    bool in_place; /* elementwise: its output may alias an input */
} c_printer;

static const c_printer printers[SDLF_OPERATION_COUNT] = {
    [SDLF_FILL] = {.print = c_print_fill},
    [SDLF_COPY] = {.print = c_print_copy, .in_place = true},
    [SDLF_SELECT] = {.print = c_print_select, .in_place = true},
    [SDLF_GATHER] = {.print = c_print_gather},
    [SDLF_ACTIVATION_FORWARD] = {.print = c_print_activation, .in_place = true},
    [SDLF_BINARY] = {.print = c_print_binary, .in_place = true},
    [SDLF_ADD] = {.print = c_print_sum, .in_place = true},
    [SDLF_REDUCE] = {.print = c_print_reduce},
    [SDLF_ARG_REDUCE] = {.print = c_print_arg_reduce},
    [SDLF_TOP_K] = {.print = c_print_top_k},
    [SDLF_RESAMPLE] = {.print = c_print_resample},
    [SDLF_CONV2D_FORWARD] = {.print = print_conv2d},
    [SDLF_CONV2D_BACKWARD_INPUT] = {.print = print_conv_transpose2d},
    [SDLF_MAX_POOL2D_FORWARD] = {.print = print_pool},
    [SDLF_AVG_POOL2D_FORWARD] = {.print = print_pool},
    [SDLF_GLOBAL_AVG_POOL2D_FORWARD] = {.print = print_global_avg_pool2d},
    [SDLF_GEMM] = {.print = print_gemm},
    [SDLF_MATMUL] = {.print = print_matmul},
    [SDLF_BATCH_NORM2D_INFER] = {.print = print_batch_norm, .in_place = true},
    [SDLF_NORMALIZE_FORWARD] = {.print = print_normalize},
    [SDLF_SOFTMAX_FORWARD] = {.print = print_softmax},
    [SDLF_LOG_SOFTMAX_FORWARD] = {.print = print_softmax},
};

bool c_supports(sdlf_operation_kind kind)
{
    return printers[kind].print != NULL;
}

bool c_runs_in_place(sdlf_operation_kind kind)
{
    return printers[kind].in_place;
}

void c_print_operation(c_export *e, const c_step *step)
{
    if (c_ok(e)) printers[step->operation.kind].print(e, step);
}
