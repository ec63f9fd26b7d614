/* SPDX-License-Identifier: MIT */
/* Optimizers whose updates are several operations, muon and lars: steps compared with ones computed here, on every
 * calculator. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/trainer_history.h"

enum { N = 6, IN = 8, HIDDEN = 4, OUT = 6, LARGEST = 64 };

/* A matrix that is wider than high, and one that is higher than wide. */
static sdlf_model *make_model(void)
{
    sdlf_model *model = sdlf_model_create("matrices");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(IN));
    x = sdlf_tanh(model, sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "a", .units = HIDDEN}));
    sdlf_output(model, "class",
                sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "b", .units = OUT}));
    CHECK_OK(sdlf_model_build(model, 2));
    return model;
}

static void write_batch(sdlf_plan *plan)
{
    float x[N * IN];
    int32_t labels[N];
    for (int i = 0; i < N * IN; i++) x[i] = (float)(i * 37 % 29) / 15 - 1;
    for (int i = 0; i < N; i++) labels[i] = i % OUT;
    CHECK_OK(sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x));
    CHECK_OK(sdlf_plan_write(plan, "labels", labels, SDLF_INT32, sizeof labels));
}

/* The gradient of a fresh model. */
static void gradient_of(sdlf_model *model, const char *parameter, float *gradient)
{
    sdlf_calculator *calculator = test_open("reference");
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    CHECK_OK(sdlf_plan_create(
        &plan, model,
        &(sdlf_plan_options){.batch = N, .mode = SDLF_TRAIN, .forward = calculator, .gradients_only = true}));
    write_batch(plan);
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(sdlf_plan_backward(plan));
    CHECK_OK(sdlf_plan_gradient(plan, parameter, &binding));
    test_download(&binding, gradient);
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
}

/* The matrix X of the Newton-Schulz iteration, rows x columns, in double. */
static void orthogonalize(double *x, int rows, int columns, int steps)
{
    double norm = 0, a[LARGEST], aa[LARGEST], next[LARGEST];
    for (int i = 0; i < rows * columns; i++) norm += x[i] * x[i];
    for (int i = 0; i < rows * columns; i++) x[i] /= sqrt(norm);
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++) {
                a[i * rows + j] = 0;
                for (int k = 0; k < columns; k++) a[i * rows + j] += x[i * columns + k] * x[j * columns + k];
            }
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++) {
                aa[i * rows + j] = -4.775 * a[i * rows + j];
                for (int k = 0; k < rows; k++) aa[i * rows + j] += 2.0315 * a[i * rows + k] * a[k * rows + j];
            }
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                next[i * columns + j] = 3.4445 * x[i * columns + j];
                for (int k = 0; k < rows; k++) next[i * columns + j] += aa[i * rows + k] * x[k * columns + j];
            }
        for (int i = 0; i < rows * columns; i++) x[i] = next[i];
    }
}

static double norm_of(const float *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += (double)x[i] * (double)x[i];
    return fmax(sqrt(sum), 1e-3);
}

/* The value of parameter `name` after one step with this rate, from value w and gradient g. */
static double wanted(const sdlf_optimizer *optimizer, const float *w, const float *g, int rows, int columns, int at)
{
    const double rate = 0.25, decay = 0.1;
    bool matrix = columns > 1;
    bool orthogonal = optimizer->type->form == SDLF_UPDATE_ORTHOGONAL;
    const sdlf_muon_options *muon = &optimizer->options.muon;
    double rest = orthogonal && muon->rest_momentum > 0 ? muon->rest_momentum : muon->momentum;
    if (orthogonal && muon->filters_only) /* no filter is among them */
        return (double)w[at] - rate * (1 + rest) * ((double)g[at] + (matrix ? decay * (double)w[at] : 0));
    if (orthogonal && matrix) {
        double x[LARGEST], unit = muon->unit_filters ? sqrt(rows) / norm_of(w, rows * columns) : 1;
        for (int i = 0; i < rows * columns; i++) x[i] = (double)g[i];
        orthogonalize(x, rows, columns,
                      muon->newton_schulz > 0 ? muon->newton_schulz : 5); /* momentum only scales g: no effect */
        return (1 - rate * decay) * unit * (double)w[at] - rate * sqrt(fmax(1, (double)rows / columns)) * x[at];
    }
    if (!matrix) /* sgd; of muon Nesterov's: g + 0.9 g */
        return (double)w[at] - rate * (orthogonal ? 1 + rest : 1) * (double)g[at];
    double norms[2] = {norm_of(w, rows * columns), norm_of(g, rows * columns)};
    double trust = 0.01 * norms[0] / (norms[1] + decay * norms[0]);
    return (double)w[at] - rate * trust * ((double)g[at] + decay * (double)w[at]);
}

static void check_step(const char *calculator, sdlf_optimizer optimizer)
{
    static const struct {
        const char *name;
        int rows, columns;
    } parameters[] = {{"a.weight", HIDDEN, IN}, {"a.bias", HIDDEN, 1}, {"b.weight", OUT, HIDDEN}, {"b.bias", OUT, 1}};
    float before[4][LARGEST], gradient[4][LARGEST];
    sdlf_model *model = make_model();
    for (int p = 0; p < 4; p++) {
        memcpy(before[p], sdlf_model_find_parameter(model, parameters[p].name)->value.data,
               (size_t)(parameters[p].rows * parameters[p].columns) * sizeof(float));
        gradient_of(model, parameters[p].name, gradient[p]);
    }
    sdlf_calculator *opened = test_open(calculator);
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = N, .mode = SDLF_TRAIN, .forward = opened, .optimizer = optimizer};
    if (CHECK_OK(sdlf_plan_create(&plan, model, &options))) {
        write_batch(plan);
        CHECK_OK(sdlf_plan_step(plan, 0.25f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        for (int p = 0; p < 4; p++) {
            const float *after = sdlf_model_find_parameter(model, parameters[p].name)->value.data;
            int rows = parameters[p].rows, columns = parameters[p].columns;
            for (int i = 0; i < rows * columns; i++) /* the iteration amplifies rounding in float32 */
                CHECK_CLOSE(after[i], wanted(&optimizer, before[p], gradient[p], rows, columns, i), 2e-4);
        }
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(opened);
    sdlf_model_free(model);
}

static void steps(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) {
        check_step(type->name, sdlf_muon(.momentum = 0.9, .weight_decay = 0.1));
        check_step(type->name, sdlf_muon(.momentum = 0.9, .weight_decay = 0.1, .newton_schulz = 3, .unit_filters = true,
                                         .rest_momentum = 0.5));
        check_step(type->name, sdlf_muon(.momentum = 0.6, .weight_decay = 0.1, .filters_only = true));
        check_step(type->name, sdlf_lars(.momentum = 0.9, .weight_decay = 0.1, .trust = 0.01));
    }
}

/* Training that is stopped and resumed gives the same result, with any number of threads. */
static void check_resuming(sdlf_optimizer optimizer)
{
    sdlf_dataset data = synthetic_dataset(60, 1);
    sdlf_trainer_options options = base_options(NULL);
    options.optimizer = optimizer;
    options.epochs = 2;
    uint32_t hash = trained_hash(&data, options);
    options.threads = 1;
    CHECK_EQUAL(trained_hash(&data, options), hash);
    history seen = {.stop_after = 3};
    options.user = &seen;
    sdlf_model *model = synthetic_model();
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_INTERRUPTED, "stopped");
    seen.stop_after = 0;
    options.resume = true;
    CHECK_OK(train(model, &data, NULL, &options));
    CHECK_EQUAL(sdlf_model_hash(model), hash);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void stopping_changes_nothing(void)
{
    check_resuming(sdlf_muon(.weight_decay = 0.01));
    check_resuming(sdlf_lars(.weight_decay = 0.01));
}

/* A checkpoint from before muon had all of its options: missing options keep the old behaviour. */
static void older_checkpoints_go_on(void)
{
    static const char settings[] =
        "{\"optimizer\":{\"type\":\"muon\",\"momentum\":0.9,\"weight_decay\":0.5,\"decay_all\":false},\"schedule\":{"
        "\"type\":\"constant\",\"peak\":0.5,\"warmup\":0},\"trainer\":{\"clip_norm\":0,\"label_smoothing\":0},"
        "\"augment\":{\"seed\":\"1\"},\"math\":\"fp32\"}";
    sdlf_trainer_options options = {.batch = 1};
    sdlf_training_state state = {.present = true, .batch = 8, .epochs = 2, .seed = 1};
    snprintf(state.settings, sizeof state.settings, "%s", settings);
    if (!CHECK_OK(sdlf_trainer_restore_options(&options, &state))) return;
    const sdlf_muon_options *muon = &options.optimizer.options.muon;
    CHECK(muon->momentum == 0.9 && muon->rest_momentum == 0 && muon->newton_schulz == 5);
    CHECK(!muon->filters_only && !muon->unit_filters);
}

int main(void)
{
    RUN(older_checkpoints_go_on);
    RUN(steps);
    RUN(stopping_changes_nothing);
    return test_summary();
}
