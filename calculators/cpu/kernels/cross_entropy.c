/* SPDX-License-Identifier: MIT */
/* softmax_cross_entropy, forward and backward. Contracts: <sdlf/operation.h>.
 *
 * Rows are partitioned into chunks of fixed size; each writes its sum of losses and its count of hits to the workspace,
 * and one thread adds these in order, in double. For N x C logits: N C exponentials, 8 N C bytes. */
#include <math.h>

#include "calculators/cpu/kernels/exponential.h"
#include "calculators/cpu/kernels/kernels.h"

enum { ROWS_PER_TASK = 64 };

typedef struct chunk_result {
    double loss, hits, counted, weighted;
} chunk_result;

typedef struct loss_context {
    const element *logits;
    const element *weights; /* NULL: none */
    const int32_t *labels;
    element *p;
    element *dlogits; /* NULL: not wanted */
    chunk_result *results;
    int64_t rows, classes;
    double smoothing;
    element factor; /* of gradients: dloss / N, or dloss with weights */
} loss_context;

static loss_context context_of(const sdlf_operation *operation)
{
    const sdlf_tensor *logits = &operation->in[0];
    return (loss_context){.logits = logits->data,
                          .labels = operation->in[1].data,
                          .weights = operation->in[3].data,
                          .p = output(operation, 0),
                          .results = operation->workspace.data,
                          .rows = logits->shape.dim[0],
                          .classes = logits->shape.dim[1],
                          .smoothing = (double)operation->cross_entropy.smoothing};
}

/* Writes p = softmax(x) and returns the row's loss: with z = x - max, -sum t log p = log sum exp z - sum t z. */
static double row_loss(element *p, const element *x, int64_t classes, int32_t label, double smoothing, double *hits)
{
    int64_t best = 0;
    for (int64_t i = 1; i < classes; i++) best = x[i] > x[best] ? i : best;
    element maximum = x[best];
    double all = 0;
    if (smoothing > 0) {
        for (int64_t i = 0; i < classes; i++) all += (double)(x[i] - maximum);
    }
#pragma omp simd
    for (int64_t i = 0; i < classes; i++) p[i] = exponential(x[i] - maximum);
    element sum = sum_run(p, classes), factor = 1 / sum;
#pragma omp simd
    for (int64_t i = 0; i < classes; i++) p[i] *= factor;
    if (label < 0 || label >= classes) return (double)NAN;
    *hits += best == label;
    double loss = log((double)sum) - (1 - smoothing) * (double)(x[label] - maximum);
    return smoothing > 0 ? loss - smoothing / (double)classes * all : loss;
}

/* dloss / N; with weights dloss, since they are applied later. */
static element factor_of(const loss_context *loss, element dloss)
{
    return loss->weights ? dloss : (element)((double)dloss / (double)loss->rows);
}

/* dlogits = (p - t) factor of row n */
static void row_gradient(const loss_context *loss, element *dlogits, const element *p, int64_t n)
{
    int32_t label = loss->labels[n];
    element factor = loss->weights ? loss->factor * loss->weights[n] : loss->factor;
    if (loss->weights && loss->weights[n] == 0) {
        memset(dlogits, 0, (size_t)loss->classes * sizeof *dlogits);
        return;
    }
    element spread = (element)(loss->smoothing / (double)loss->classes), peak = (element)(1 - loss->smoothing);
#pragma omp simd
    for (int64_t i = 0; i < loss->classes; i++) dlogits[i] = (p[i] - spread) * factor;
    if (label >= 0 && label < loss->classes) dlogits[label] = (p[label] - spread - peak) * factor;
}

static void forward_rows(void *context, int64_t index, int thread)
{
    const loss_context *loss = context;
    int64_t last = cpu_min((index + 1) * ROWS_PER_TASK, loss->rows);
    chunk_result result = {0};
    (void)thread;
    for (int64_t row = index * ROWS_PER_TASK; row < last; row++) {
        int64_t start = row * loss->classes;
        double hits = 0, value = row_loss(loss->p + start, loss->logits + start, loss->classes, loss->labels[row],
                                          loss->smoothing, &hits);
        if (loss->dlogits) row_gradient(loss, loss->dlogits + start, loss->p + start, row);
        if (loss->weights && loss->weights[row] == 0) continue;
        result.loss += value;
        result.hits += hits;
        result.counted += 1;
        if (loss->weights) result.weighted += (double)loss->weights[row] * value;
    }
    loss->results[index] = result;
}

int64_t softmax_cross_entropy_forward_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return cpu_divide_up(operation->in[0].shape.dim[0], ROWS_PER_TASK) * (int64_t)sizeof(chunk_result);
}

sdlf_status softmax_cross_entropy_forward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    loss_context loss = context_of(operation);
    int64_t tasks = cpu_divide_up(loss.rows, ROWS_PER_TASK);
    double *metrics = operation->out[2].data;
    chunk_result total = {0};
    if (sdlf_tensor_present(&operation->out[3])) {
        loss.dlogits = output(operation, 3);
        loss.factor = factor_of(&loss, input(operation, 2)[0]);
    }
    cpu_parallel(cpu_from(calculator), tasks, 4 * loss.rows * loss.classes, forward_rows, &loss);
    for (int64_t i = 0; i < tasks; i++) {
        total.loss += loss.results[i].loss;
        total.hits += loss.results[i].hits;
        total.counted += loss.results[i].counted;
        total.weighted += loss.results[i].weighted;
    }
    output(operation, 1)[0] = (element)(loss.weights ? total.weighted : total.loss / (double)loss.rows);
    if (metrics) {
        metrics[0] += total.loss;
        metrics[1] += total.hits;
        metrics[2] += total.counted;
    }
    return SDLF_OK;
}

static void backward_rows(void *context, int64_t index, int thread)
{
    const loss_context *loss = context;
    int64_t last = cpu_min((index + 1) * ROWS_PER_TASK, loss->rows);
    (void)thread;
    for (int64_t row = index * ROWS_PER_TASK; row < last; row++) {
        int64_t start = row * loss->classes;
        row_gradient(loss, loss->dlogits + start, loss->logits + start, row);
    }
}

sdlf_status softmax_cross_entropy_backward_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    loss_context loss = context_of(operation); /* here the first operand is p, the output dlogits */
    if (loss.rows == 0) return SDLF_OK;
    loss.dlogits = loss.p;
    loss.factor = factor_of(&loss, input(operation, 2)[0]);
    cpu_parallel(cpu_from(calculator), cpu_divide_up(loss.rows, ROWS_PER_TASK), loss.rows * loss.classes, backward_rows,
                 &loss);
    return SDLF_OK;
}
