/* SPDX-License-Identifier: MIT */
/* One training of two graph convolutions, and its final accuracy. The recipe is in train.c. */
#include <math.h>
#include <stdlib.h>

#include "apps/gcn/train.h"
#include "apps/system/interrupt.h"
#include "framework/clock.h"

static sdlf_status make_model(gcn_training *s, uint64_t seed)
{
    sdlf_model *m = s->model = sdlf_model_create("gcn");
    const sdlf_dropout_options dropout = {.probability = (float)s->set.dropout};
    sdlf_node x = sdlf_input(m, "x", SDLF_FLOAT32, sdlf_shape(s->graph->features.shape.dim[1]));
    sdlf_node matrix = sdlf_sparse_input(m, "matrix");
    sdlf_node labels = sdlf_input(m, "labels", SDLF_INT32, SDLF_SCALAR);
    sdlf_node weights = sdlf_input(m, "weights", SDLF_FLOAT32, SDLF_SCALAR);
    x = sdlf_graph_conv(m, sdlf_dropout(m, x, &dropout), matrix,
                        &(sdlf_graph_conv_options){.units = (int)s->set.hidden, .no_bias = true});
    x = sdlf_graph_conv(m, sdlf_dropout(m, sdlf_relu(m, x), &dropout), matrix,
                        &(sdlf_graph_conv_options){.units = s->graph->class_count, .no_bias = true, .no_decay = true});
    sdlf_softmax_cross_entropy_weighted(m, x, labels, weights, NULL);
    sdlf_output(m, "class", sdlf_log_softmax(m, x));
    return sdlf_model_build(m, seed);
}

static sdlf_status make_plans(gcn_training *s, uint64_t seed)
{
    const sdlf_plan_constant constants[] = {
        {"x", s->graph->features}, {"matrix", s->matrix}, {"labels", s->graph->labels}, {"weights", s->weights}};
    sdlf_plan_options options = {.batch = s->graph->node_count,
                                 .mode = SDLF_TRAIN,
                                 .forward = s->calculator,
                                 .no_fusion = s->set.no_fusion,
                                 .optimizer = sdlf_adam(.weight_decay = s->set.decay),
                                 .seed = seed,
                                 .constants = constants,
                                 .constant_count = 4};
    sdlf_status status = sdlf_plan_create(&s->training, s->model, &options);
    options.mode = SDLF_INFER;
    options.reuse = s->training;
    return status == SDLF_OK ? sdlf_plan_create(&s->inference, s->model, &options) : status;
}

void gcn_train_free_run(gcn_training *s)
{
    sdlf_plan_free(s->inference);
    sdlf_plan_free(s->training);
    sdlf_model_free(s->model);
    s->inference = s->training = NULL;
    s->model = NULL;
}

/* Computes losses and accuracies of all splits with the current weights. */
static sdlf_status evaluate(gcn_training *s, gcn_outcome *result)
{
    sdlf_status status = sdlf_plan_synchronize(s->training);
    if (status == SDLF_OK && !sdlf_plan_is_current(s->inference)) { /* it holds prepacked weights */
        status = sdlf_plan_store_parameters(s->training);
        if (status == SDLF_OK) status = sdlf_plan_load_parameters(s->inference);
    }
    if (status == SDLF_OK) status = sdlf_plan_forward(s->inference);
    if (status == SDLF_OK)
        status = sdlf_plan_read(s->inference, "class", s->log_p, SDLF_FLOAT32,
                                s->graph->node_count * s->graph->class_count * (int64_t)sizeof *s->log_p);
    if (status != SDLF_OK) return status;
    const int32_t *labels = s->graph->labels.data;
    const uint8_t *parts = s->graph->parts.data;
    int classes = s->graph->class_count;
    double loss[4] = {0}, right[4] = {0}, count[4] = {0};
    for (int64_t n = 0; n < s->graph->node_count; n++) {
        const float *row = s->log_p + n * classes;
        int best = 0;
        for (int j = 1; j < classes; j++) best = row[j] > row[best] ? j : best;
        loss[parts[n]] -= (double)row[labels[n]];
        right[parts[n]] += best == labels[n];
        count[parts[n]]++;
    }
    for (int p = 0; p < 4; p++) {
        result->loss[p] = loss[p] / count[p];
        result->accuracy[p] = right[p] / count[p];
    }
    return isfinite(result->loss[SDLF_NODE_VALIDATE])
               ? SDLF_OK
               : sdlf_fail(SDLF_ERROR_NUMERIC, "the loss became %g", result->loss[SDLF_NODE_VALIDATE]);
}

/* True if the newest of `count` losses is above the mean of the `patience` ones before it. */
static bool has_risen(const double *losses, int64_t count, int64_t patience)
{
    if (patience == 0 || count <= patience) return false;
    double sum = 0;
    for (int64_t i = count - 1 - patience; i < count - 1; i++) sum += losses[i];
    return losses[count - 1] > sum / (double)patience;
}

sdlf_status gcn_train_once(gcn_training *s, uint64_t seed, gcn_outcome *result)
{
    double *losses = malloc((size_t)s->set.epochs * sizeof *losses), start = sdlf_clock();
    sdlf_status status = losses != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "no memory for the epochs' losses");
    if (status == SDLF_OK) status = make_model(s, seed);
    if (status == SDLF_OK) status = make_plans(s, seed);
    for (int64_t epoch = 0; epoch < s->set.epochs && status == SDLF_OK; epoch++) {
        /* a later training runs at least one epoch: there are results of earlier ones to show, and its weights to
         * write */
        if (interrupt_signal() != 0 && (epoch > 0 || s->done == 0)) break;
        status = sdlf_plan_step(s->training, (float)s->set.rate);
        if (status == SDLF_OK) status = evaluate(s, result);
        losses[epoch] = result->loss[SDLF_NODE_VALIDATE];
        result->epochs = epoch + 1;
        gcn_train_show_epoch(s, seed, result);
        if (has_risen(losses, epoch + 1, s->set.patience)) break;
    }
    result->seconds = sdlf_clock() - start;
    free(losses);
    return status;
}
