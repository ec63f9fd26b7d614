/* SPDX-License-Identifier: MIT */
/* NULL pointers passed to functions for data sets, loaders, graphs, the trainer and evaluation. */
#include <math.h>

#include "framework/nulls/nulls.h"

static void data_sets(void)
{
    sdlf_dataset *data = NULL;
    sdlf_tensor tensor;
    REFUSED(sdlf_dataset_open(NULL, "digits", SDLF_SPLIT_TEST), "dataset");
    REFUSED(sdlf_dataset_open(&data, NULL, SDLF_SPLIT_TEST), "specification");
    CHECK(data == NULL);
    REFUSED(sdlf_dataset_open_with(NULL, "digits", SDLF_SPLIT_TEST, NULL), "dataset");
    REFUSED(sdlf_dataset_open_with(&data, NULL, SDLF_SPLIT_TEST, NULL), "specification");
    CHECK_OK(sdlf_dataset_open_with(&data, "digits:10", SDLF_SPLIT_TEST, NULL));
    REFUSED(sdlf_dataset_read_labels(data, 0, NULL), "to");
    sdlf_dataset_free(data);
    REFUSED(sdlf_dataset_check(NULL, SDLF_SPLIT_TEST), "specification");
    DOES_NOTHING(sdlf_dataset_free(NULL));
    DOES_NOTHING(sdlf_dataset_normalize_for(NULL, NULL));
    REFUSED(sdlf_dataset_read_labels(NULL, 0, &tensor), "dataset");
    REFUSED(sdlf_idx_read(NULL, test_path("x")), "tensor");
    REFUSED(sdlf_idx_read(&tensor, NULL), "path");
    REFUSED(sdlf_idx_parse(NULL, "", 0, "x"), "tensor");
    REFUSED(sdlf_idx_parse(&tensor, NULL, 0, "x"), "bytes");
    REFUSED(sdlf_idx_parse(&tensor, "", 0, NULL), "name");
}

static void images(void)
{
    float out[3];
    uint8_t pixel = 7;
    sdlf_image image, one = {1, 1, 1, &pixel};
    REFUSED(sdlf_image_decode(NULL, "", 0, "x", 0), "image");
    REFUSED(sdlf_image_decode(&image, NULL, 0, "x", 0), "bytes");
    REFUSED(sdlf_image_decode(&image, "", 0, NULL, 0), "name");
    REFUSED(sdlf_image_read(NULL, test_path("x"), 0), "image");
    REFUSED(sdlf_image_read(&image, NULL, 0), "path");
    DOES_NOTHING(sdlf_image_release(NULL));
    REFUSED(sdlf_image_resize(NULL, 1, 1, 3, &one, 0, 0, 1, 1), "out");
    REFUSED(sdlf_image_resize(out, 1, 1, 3, NULL, 0, 0, 1, 1), "image");
    REFUSED(sdlf_image_resize(out, 1, 1, 3, &(sdlf_image){.width = 1, .height = 1, .channels = 1}, 0, 0, 1, 1),
            "image->pixels");
}

static void loaders(void)
{
    sdlf_dataset *data = NULL;
    sdlf_loader *loader = NULL;
    sdlf_batch batch;
    const sdlf_loader_options options = {.batch = 2};
    int32_t order[4] = {9, 9, 9, 9};
    uint64_t keys[4];
    CHECK_OK(sdlf_dataset_open(&data, "digits:10", SDLF_SPLIT_TEST));
    REFUSED(sdlf_loader_create(NULL, data, &options), "loader");
    REFUSED(sdlf_loader_create(&loader, NULL, &options), "dataset");
    REFUSED(sdlf_loader_create(&loader, data, NULL), "options");
    CHECK(loader == NULL);
    DOES_NOTHING(sdlf_loader_free(NULL));
    REFUSED(sdlf_loader_seek(NULL, 0, 0), "loader");
    REFUSED(sdlf_loader_next(NULL, &batch), "loader");
    GIVES(sdlf_loader_batches(NULL), 0);
    GIVES(sdlf_loader_memory(NULL), 0);
    CHECK_OK(sdlf_loader_create(&loader, data, &options));
    REFUSED(sdlf_loader_next(loader, NULL), "batch");
    DOES_NOTHING(sdlf_shuffle_order(NULL, keys, 4, 1, 0));
    DOES_NOTHING(sdlf_shuffle_order(order, NULL, 4, 1, 0));
    CHECK(order[0] == 9);
    sdlf_loader_free(loader);
    sdlf_dataset_free(data);
}

static void graphs(void)
{
    sdlf_graph *graph = NULL;
    sdlf_tensor matrix;
    const sdlf_graph_matrix_options options = {.self_loops = true};
    REFUSED(sdlf_graph_open(NULL, "random"), "graph");
    REFUSED(sdlf_graph_open(&graph, NULL), "specification");
    CHECK(graph == NULL);
    DOES_NOTHING(sdlf_graph_free(NULL));
    REFUSED(sdlf_graph_matrix(NULL, &(sdlf_graph){.node_count = 0}, &options), "matrix");
    REFUSED(sdlf_graph_matrix(&matrix, NULL, &options), "graph");
}

static void trainers(void)
{
    sdlf_dataset *data = NULL;
    sdlf_model *net = NULL;
    sdlf_trainer *trainer = NULL;
    const char *space = "none";
    sdlf_trainer_options options = {.batch = 4};
    CHECK_OK(sdlf_dataset_open(&data, "digits:20", SDLF_SPLIT_TRAIN));
    CHECK_OK(sdlf_network_builtin(&net, "lenet5"));
    REFUSED(sdlf_trainer_create(NULL, net, data, NULL, &options), "trainer");
    NO_MODEL(sdlf_trainer_create(&trainer, NULL, data, NULL, &options));
    REFUSED(sdlf_trainer_create(&trainer, net, NULL, NULL, &options), "train");
    CHECK(trainer == NULL);
    options.placement_count = 1;
    CHECK_FAILS(sdlf_trainer_create(&trainer, net, data, NULL, &options), SDLF_ERROR_ARGUMENT,
                "options->placement is NULL");
    options.placement = &(sdlf_trainer_placement){.layer = NULL, .forward = "cpu"};
    CHECK_FAILS(sdlf_trainer_create(&trainer, net, data, NULL, &options), SDLF_ERROR_ARGUMENT,
                "options->placement[0].layer is NULL");
    DOES_NOTHING(sdlf_trainer_free(NULL));
    REFUSED(sdlf_trainer_run(NULL), "trainer");
    DOES_NOTHING(sdlf_trainer_stop(NULL));
    REFUSED(sdlf_trainer_restore_options(NULL, sdlf_model_training_state(net)), "options");
    REFUSED(sdlf_trainer_restore_options(&options, NULL), "state");
    GIVES(sdlf_trainer_memory(NULL), 0);
    GIVES(sdlf_trainer_best_epoch(NULL, NULL, NULL), 0);
    GIVES(sdlf_trainer_data_place(NULL, &space), SDLF_DATA_LOADED);
    GIVES(sdlf_trainer_data_place(NULL, NULL), SDLF_DATA_LOADED);
    GIVES(sdlf_trainer_plan(NULL), NULL);
    CHECK_OK(sdlf_trainer_create(&trainer, net, data, NULL, NULL)); /* no tests, all defaults */
    sdlf_trainer_free(trainer);
    sdlf_model_free(net);
    sdlf_dataset_free(data);
}

/* A user-defined data set with missing parts. */
static void a_data_set_without_samples(void)
{
    sdlf_model *net = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_loader *loader = NULL;
    sdlf_dataset empty = {.name = NULL};
    CHECK_OK(sdlf_network_builtin(&net, "lenet5"));
    nulls_begin("a data set that is empty");
    sdlf_status status = sdlf_trainer_create(&trainer, net, &empty, NULL, NULL);
    CHECK(status != SDLF_OK && strstr(sdlf_error_message(), "(null)") == NULL);
    status = sdlf_loader_create(&loader, &empty, &(sdlf_loader_options){.batch = 2});
    CHECK(status != SDLF_OK && strstr(sdlf_error_message(), "(null)") == NULL);
    sdlf_model_free(net);
}

/* A data set that declares samples but has none. */
static void a_data_set_without_memory(void)
{
    enum { COUNT = 4 };
    static uint8_t samples[COUNT * 28 * 28];
    static int32_t labels[COUNT];
    sdlf_calculator *reference = test_open("reference");
    for (int missing = 0; missing < 2; missing++) {
        const char *why = missing == 0 ? "samples.data is NULL" : "labels.data is NULL";
        sdlf_model *net = NULL;
        sdlf_trainer *trainer = NULL;
        sdlf_loader *loader = NULL;
        sdlf_plan *plan = NULL;
        sdlf_evaluation evaluation;
        sdlf_dataset data = {.class_count = 10, .scale = 1};
        data.samples = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(COUNT, 1, 28, 28), missing == 0 ? NULL : samples);
        data.labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(COUNT), missing == 1 ? NULL : labels);
        sdlf_feed feed = {.samples = "image", .labels = "labels", .scale = 1};
        feed.sample_data = data.samples;
        feed.label_data = data.labels;
        CHECK_OK(sdlf_network_builtin(&net, "lenet5"));
        nulls_begin(why);
        CHECK_FAILS(sdlf_trainer_create(&trainer, net, &data, NULL, NULL), SDLF_ERROR_ARGUMENT, why);
        CHECK_FAILS(sdlf_evaluate(&evaluation, net, &data, reference, 0), SDLF_ERROR_ARGUMENT, why);
        CHECK_FAILS(sdlf_loader_create(&loader, &data, &(sdlf_loader_options){.batch = 2}), SDLF_ERROR_ARGUMENT, why);
        CHECK_FAILS(
            sdlf_plan_create(&plan, net,
                             &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = reference, .feed = &feed}),
            SDLF_ERROR_ARGUMENT, "are NULL");
        sdlf_model_free(net);
    }
    sdlf_calculator_close(reference);
}

static void evaluations(void)
{
    sdlf_calculator *reference = test_open("reference");
    sdlf_dataset *data = NULL;
    sdlf_model *net = NULL;
    sdlf_evaluation evaluation;
    CHECK_OK(sdlf_dataset_open(&data, "digits:10", SDLF_SPLIT_TEST));
    CHECK_OK(sdlf_network_builtin(&net, "lenet5"));
    REFUSED(sdlf_evaluate(NULL, net, data, reference, 0), "evaluation");
    NO_MODEL(sdlf_evaluate(&evaluation, NULL, data, reference, 0));
    REFUSED(sdlf_evaluate(&evaluation, net, NULL, reference, 0), "dataset");
    REFUSED(sdlf_evaluate(&evaluation, net, data, NULL, 0), "calculator");
    REFUSED(sdlf_evaluate_with(NULL, net, data, reference, NULL), "evaluation");
    NO_MODEL(sdlf_evaluate_with(&evaluation, NULL, data, reference, NULL));
    REFUSED(sdlf_evaluate_with(&evaluation, net, NULL, reference, NULL), "dataset");
    REFUSED(sdlf_evaluate_with(&evaluation, net, data, NULL, NULL), "calculator");
    CHECK(isnan(sdlf_evaluation_accuracy(NULL)) && isnan(sdlf_evaluation_f1(NULL)));
    CHECK(isnan(sdlf_evaluation_iou(NULL, 0)) && isnan(sdlf_evaluation_mean_iou(NULL)));
    CHECK(isnan(sdlf_evaluation_mae(NULL)) && isnan(sdlf_evaluation_rmse(NULL)));
    REFUSED(sdlf_evaluate_while(NULL, net, data, reference, 0, NULL, NULL), "evaluation");
    NO_MODEL(sdlf_evaluate_while(&evaluation, NULL, data, reference, 0, NULL, NULL));
    REFUSED(sdlf_evaluate_while(&evaluation, net, NULL, reference, 0, NULL, NULL), "dataset");
    REFUSED(sdlf_evaluate_while(&evaluation, net, data, NULL, 0, NULL, NULL), "calculator");
    DOES_NOTHING(sdlf_evaluation_release(NULL));
    sdlf_model_free(net);
    sdlf_dataset_free(data);
    sdlf_calculator_close(reference);
}

static void own_training(void)
{
    sdlf_trainer_options options = {.batch = 0};
    CHECK(!sdlf_network_builtin_training(NULL, "fast_cnn"));
    CHECK(!sdlf_network_builtin_training(&options, NULL));
    CHECK_EQUAL(options.batch, 0);
}

int main(void)
{
    RUN(data_sets);
    RUN(images);
    RUN(loaders);
    RUN(graphs);
    RUN(trainers);
    RUN(a_data_set_without_samples);
    RUN(a_data_set_without_memory);
    RUN(evaluations);
    RUN(own_training);
    return test_summary();
}
