/* SPDX-License-Identifier: MIT */
/* Train a network on the program's own arrays: two spirals in the plane, 600 points in memory, no file and no copy.
 *
 *     own_arrays
 *
 * Tests on 200 other points, and draws the regions of the two classes. */
#include <math.h>
#include <stdio.h>

#include <sdlf/sdlf.h>

enum { TRAIN = 600, TEST = 200, SIDE = 24 };

static float train_points[TRAIN][2], test_points[TEST][2];
static int32_t train_labels[TRAIN], test_labels[TEST];

/* Point i is on arm i % 2 of the spiral, at a random distance drawn from the seed. */
static void draw(float (*points)[2], int32_t *labels, int count, uint64_t seed)
{
    for (int i = 0; i < count; i++) {
        sdlf_philox random = sdlf_philox4x32(seed, (uint64_t)i, 0, 0);
        float t = sdlf_uniform_from_word(random.word[0]), angle = 6 * t + 3.14159265f * (float)(i % 2);
        points[i][0] = (t + 0.1f) * cosf(angle);
        points[i][1] = (t + 0.1f) * sinf(angle);
        labels[i] = i % 2;
    }
}

/* A data set is a plain struct: it borrows the arrays. */
static sdlf_dataset dataset_of(float (*points)[2], int32_t *labels, int count)
{
    return (sdlf_dataset){
        .samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count, 2), points),
        .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(count), labels),
        .class_count = 2,
        .scale = 1, /* samples are used unchanged */
    };
}

static sdlf_model *describe(void)
{
    sdlf_model *net = sdlf_model_create("spirals");
    sdlf_node x = sdlf_input(net, "point", SDLF_FLOAT32, sdlf_shape(2));
    for (int i = 0; i < 2; i++)
        x = sdlf_tanh(net, sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 32}));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 2});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

static void show(const sdlf_progress *now, void *user)
{
    (void)user;
    if (now->event == SDLF_PROGRESS_EPOCH && now->epoch % 20 == 0)
        printf("epoch %d/%d  loss %.3f  test %.1f%%\n", now->epoch, now->epochs, now->loss, 100 * now->test_accuracy);
}

/* Draws the plane as the network classifies it: SIDE x SIDE points in one batch. */
static sdlf_status draw_plane(sdlf_model *net)
{
    static float points[SIDE * SIDE][2], scores[SIDE * SIDE][2];
    for (int i = 0; i < SIDE * SIDE; i++) {
        points[i][0] = 2.4f * (float)(i % SIDE) / (SIDE - 1) - 1.2f;
        points[i][1] = 1.2f - 2.4f * (float)(i / SIDE) / (SIDE - 1);
    }
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_calculator_open(&cpu, "cpu", NULL);
    if (status == SDLF_OK)
        status = sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = SIDE * SIDE, .forward = cpu});
    if (status == SDLF_OK) status = sdlf_plan_write(plan, "point", points, SDLF_FLOAT32, sizeof points);
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    if (status == SDLF_OK) status = sdlf_plan_read(plan, "class", scores, SDLF_FLOAT32, sizeof scores);
    for (int i = 0; i < SIDE * SIDE && status == SDLF_OK; i++)
        printf("%s%s", scores[i][1] > scores[i][0] ? "##" : "..", i % SIDE == SIDE - 1 ? "\n" : "");
    sdlf_plan_free(plan);
    sdlf_calculator_close(cpu);
    return status;
}

int main(void)
{
    draw(train_points, train_labels, TRAIN, 1);
    draw(test_points, test_labels, TEST, 2);
    sdlf_dataset train = dataset_of(train_points, train_labels, TRAIN);
    sdlf_dataset test = dataset_of(test_points, test_labels, TEST);
    sdlf_model *net = describe();
    sdlf_trainer *trainer = NULL;
    sdlf_trainer_options options = {.batch = 50, .epochs = 100, .callback = show};
    options.optimizer = sdlf_adam(.beta1 = 0.9);
    options.schedule = sdlf_one_cycle(.peak = 0.02f);
    sdlf_status status = sdlf_trainer_create(&trainer, net, &train, &test, &options);
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    sdlf_trainer_free(trainer);
    if (status == SDLF_OK) status = draw_plane(net);
    if (status != SDLF_OK) fprintf(stderr, "own_arrays: %s\n", sdlf_error_message());
    sdlf_model_free(net);
    return status == SDLF_OK ? 0 : 1;
}
