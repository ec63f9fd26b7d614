/* SPDX-License-Identifier: MIT */
/* Train a small convolutional network on handwritten digits, test it, and save it.
 *
 *     train_mnist                   learns digits that SDLF draws itself
 *     train_mnist mnist:DIR         learns MNIST, whose four files are in DIR
 *
 * The weights go to train_mnist.safetensors, which `sdlf predict --weights` can use. */
#include <stdio.h>

#include <sdlf/sdlf.h>

/* Builds a graph node by node. Errors are kept in the model and reported when it is used. */
static sdlf_model *build_network(void)
{
    sdlf_model *net = sdlf_model_create("train_mnist");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 28, 28)); /* the batch comes with the plan */
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 16, .kernel = {5, 5}, .padding = {2, 2}});
    x = sdlf_relu(net, x);
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 32, .kernel = {5, 5}, .padding = {2, 2}});
    x = sdlf_relu(net, x);
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 128});
    x = sdlf_relu(net, x);
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 10});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

/* Called after every step and every epoch. */
static void show(const sdlf_progress *now, void *user)
{
    (void)user;
    if (now->event != SDLF_PROGRESS_EPOCH) return;
    printf("epoch %d/%d  loss %.3f  accuracy %.1f%%  test %.2f%%  %.1f s\n", now->epoch, now->epochs, now->loss,
           100 * now->accuracy, 100 * now->test_accuracy, now->seconds);
    fflush(stdout);
}

/* Prints the recall of each class, one line each. */
static sdlf_status print_recall(sdlf_model *net, const sdlf_dataset *test)
{
    sdlf_calculator *cpu = NULL;
    sdlf_evaluation result = {0};
    sdlf_status status = sdlf_calculator_open(&cpu, "cpu", NULL);
    if (status == SDLF_OK) status = sdlf_evaluate(&result, net, test, cpu, 0);
    for (int label = 0; status == SDLF_OK && label < result.class_count; label++) {
        const int64_t *row = &result.confusion[label * result.class_count];
        int64_t samples = 0;
        for (int other = 0; other < result.class_count; other++) samples += row[other];
        if (samples == 0) continue;
        printf("  %d  %6.2f%% of %d\n", label, 100.0 * (double)row[label] / (double)samples, (int)samples);
    }
    sdlf_evaluation_release(&result);
    sdlf_calculator_close(cpu);
    return status;
}

int main(int count, char **words)
{
    const char *data = count > 1 ? words[1] : "digits";
    sdlf_model *net = build_network();
    sdlf_dataset *train = NULL, *test = NULL;
    sdlf_trainer *trainer = NULL;

    sdlf_status status = sdlf_dataset_open(&train, data, SDLF_SPLIT_TRAIN);
    if (status == SDLF_OK) status = sdlf_dataset_open(&test, data, SDLF_SPLIT_TEST);
    if (status == SDLF_OK) {
        status = sdlf_trainer_create(&trainer, net, train, test,
                                     &(sdlf_trainer_options){.batch = 64,
                                                             .epochs = 2,
                                                             .optimizer = sdlf_sgd(.momentum = 0.9),
                                                             .schedule = sdlf_one_cycle(.peak = 0.05f),
                                                             .callback = show});
    }
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    if (status == SDLF_OK) status = print_recall(net, test);
    if (status == SDLF_OK) status = sdlf_model_save(net, "train_mnist.safetensors");
    if (status != SDLF_OK) fprintf(stderr, "train_mnist: %s\n", sdlf_error_message());

    sdlf_trainer_free(trainer);
    sdlf_dataset_free(train);
    sdlf_dataset_free(test);
    sdlf_model_free(net);
    return status == SDLF_OK ? 0 : 1;
}
