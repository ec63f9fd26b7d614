/* Trajectories of the optimisers, with and without clipping, against PyTorch's. */
#include "torch/fixtures.h"

enum { MAXIMUM_WEIGHTS = 16 };

/* The factor that brings the gradients' norm down to clip_norm, by the operations that a plan uses for it. */
static void clip(sdlf_calculator *calculator, float clip_norm, const sdlf_tensor *g, const sdlf_tensor *scale)
{
    float squares = 0;
    sdlf_tensor sum = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), &squares);
    CHECK_OK(sdlf_calculator_run(calculator, &(sdlf_operation){
                                                 .kind = SDLF_REDUCE,
                                                 .in = {*g},
                                                 .out = {sum},
                                                 .reduce = {.function = SDLF_REDUCE_SUM_SQUARES, .axis = 0},
                                             }));
    CHECK_OK(sdlf_calculator_run(calculator, &(sdlf_operation){
                                                 .kind = SDLF_CLIP_SCALE,
                                                 .in = {sum},
                                                 .out = {*scale},
                                                 .clip = {.max_norm = clip_norm},
                                             }));
}

static void check_case(const json_t *c, sdlf_calculator *calculator)
{
    const char *name = fixture_text(c, "optimizer");
    sdlf_optimizer optimizer = {.type = sdlf_optimizer_class_find(name)};
    if (!CHECK(optimizer.type != NULL)) return;
    fixture_options(json_object_get(c, "options"), optimizer.type->fields, &optimizer.options);
    CHECK_OK(sdlf_optimizer_complete(&optimizer));
    float clip_norm = (float)fixture_number(c, "clip_norm", 0), rate = 0, scale = 1;
    float weight[MAXIMUM_WEIGHTS], gradient[MAXIMUM_WEIGHTS], state[3][MAXIMUM_WEIGHTS] = {{0}};
    int64_t step = 0, count = fixture_floats(json_object_get(c, "start"), weight, MAXIMUM_WEIGHTS);
    sdlf_operation update = {.kind = SDLF_FILL};
    optimizer.type->update(&optimizer, true, &update);
    update.in[0] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count), gradient);
    update.in[1] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), &rate);
    if (clip_norm > 0) update.in[2] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), &scale);
    if (sdlf_operation_class_of(update.kind)->in[3].name != NULL)
        update.in[3] = sdlf_tensor_view(SDLF_INT64, sdlf_shape(1), &step);
    update.out[0] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count), weight);
    for (int index = 0; index < optimizer.type->state_count(&optimizer); index++)
        update.out[1 + index] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(count), state[index]);
    for (; step < (int64_t)json_array_size(json_object_get(c, "rates")); step++) {
        char part[32];
        rate = (float)json_number_value(json_array_get(json_object_get(c, "rates"), (size_t)step));
        fixture_floats(json_array_get(json_object_get(c, "gradients"), (size_t)step), gradient, MAXIMUM_WEIGHTS);
        if (clip_norm > 0) clip(calculator, clip_norm, &update.in[0], &update.in[2]);
        if (!CHECK_OK(sdlf_calculator_run(calculator, &update))) return;
        snprintf(part, sizeof part, "weights after step %d", (int)step + 1);
        /* options are floats: 1 - 0.99f is off by 1e-6 of itself, and rmsprop's first steps, ten rates long, by half of that */
        if (!fixture_close(json_array_get(json_object_get(c, "weights"), (size_t)step), weight, count, 1e-6, 5e-7, name,
                           part))
            return;
    }
}

static void trajectories_agree(void)
{
    json_t *root = fixtures_open("torch_optimizers.json"), *c;
    size_t index;
    for (int which = 0; test_calculator_class_at(which) != NULL; which++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(which)->name, NULL));
        json_array_foreach(json_object_get(root, "cases"), index, c) check_case(c, calculator);
        sdlf_calculator_close(calculator);
    }
    json_decref(root);
}

int main(void)
{
    RUN(trajectories_agree);
    return test_summary();
}
