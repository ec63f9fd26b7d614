/* SPDX-License-Identifier: MIT */
/* A decoder that runs step by step, with its key-value cache updated in place: PyTorch's export, compared with
 * onnxruntime's values; and a state that does not grow. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/layers.h>
#include <sdlf/sdlf.h>

#include "onnx/fixtures.h"
#include "onnx/hostile.h"

enum { STEPS = 12, VOCABULARY = 11 };

static sdlf_calculator *calculator;

static const sdlf_state states[] = {{"past_key_values.0.key", "present.0.key", 0},
                                    {"past_key_values.0.value", "present.0.value", 0},
                                    {"past_key_values.1.key", "present.1.key", 0},
                                    {"past_key_values.1.value", "present.1.value", 0}};

static sdlf_status open_decoder(sdlf_stateful **decoder, int64_t length, int64_t capacity)
{
    const sdlf_onnx_dimension length_of_step = {"sequence_length", length};
    return sdlf_stateful_create(decoder, onnx_fixture("decoder", "model.onnx"),
                                &(sdlf_stateful_options){.calculator = calculator,
                                                         .states = states,
                                                         .state_count = 4,
                                                         .capacity = capacity,
                                                         .dimensions = &length_of_step,
                                                         .dimension_count = 1});
}

static bool step(sdlf_stateful *decoder, const int64_t *token, float *logits)
{
    sdlf_plan *plan;
    return CHECK_OK(sdlf_stateful_prepare(decoder, &plan)) &&
           CHECK_OK(sdlf_plan_write(plan, "input_ids", token, SDLF_INT64, sizeof *token)) &&
           CHECK_OK(sdlf_stateful_run(decoder)) &&
           CHECK_OK(sdlf_plan_read(plan, "logits", logits, SDLF_FLOAT32, VOCABULARY * sizeof *logits));
}

static void compare(const float *found, const float *expected, int count)
{
    for (int i = 0; i < count; i++) CHECK_CLOSE((double)found[i], (double)expected[i], 1e-4);
}

/* Each step gives onnxruntime's results of the same step, and bitwise the same again after rewinding. */
static void steps_are_those_of_onnxruntime(void)
{
    sdlf_stateful *decoder;
    sdlf_tensor tokens, logits;
    float found[STEPS][VOCABULARY], again[VOCABULARY];
    CHECK_OK(sdlf_tensor_read_file(&tokens, onnx_fixture("decoder", "tokens.npy")));
    CHECK_OK(sdlf_tensor_read_file(&logits, onnx_fixture("decoder", "logits.npy")));
    const int64_t *token = tokens.data;
    if (!CHECK_OK(open_decoder(&decoder, 1, STEPS))) return;
    CHECK_EQUAL(sdlf_stateful_step(decoder), 1);
    for (int i = 0; i < STEPS && step(decoder, &token[i], found[i]); i++) {
        CHECK_EQUAL(sdlf_stateful_length(decoder), i + 1);
        compare(found[i], (const float *)logits.data + i * VOCABULARY, VOCABULARY);
    }
    sdlf_plan *plan;
    CHECK_FAILS(sdlf_stateful_prepare(decoder, &plan), SDLF_ERROR_SHAPE, "12 positions of 12");
    CHECK_OK(sdlf_stateful_rewind(decoder, 5));
    step(decoder, &token[5], again);
    CHECK(memcmp(again, found[5], sizeof again) == 0);
    CHECK_OK(sdlf_stateful_rewind(decoder, 0));
    step(decoder, &token[0], again);
    CHECK(memcmp(again, found[0], sizeof again) == 0);
    CHECK_FAILS(sdlf_stateful_rewind(decoder, 2), SDLF_ERROR_ARGUMENT, "2 of 1 positions");
    sdlf_stateful_free(decoder);
    sdlf_tensor_release(&tokens, NULL);
    sdlf_tensor_release(&logits, NULL);
}

/* Count the bytes that the copies of a step write, and the bytes that all its operations move. */
static void count_bytes(const sdlf_plan *plan, int64_t *copied, int64_t *moved)
{
    *copied = *moved = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info info = sdlf_plan_step_info(plan, i);
        *moved += info.cost.bytes;
        if (strcmp(info.operation, "copy") == 0) *copied += info.cost.bytes;
    }
}

/* With a larger capacity, copies move the same bytes; the increase is attention's keys and values, and its scores. */
static void keys_and_values_are_not_copied(void)
{
    int64_t copied[2], moved[2], capacity[2] = {STEPS - 2, STEPS};
    for (int i = 0; i < 2; i++) {
        sdlf_stateful *decoder;
        sdlf_plan *plan;
        if (!CHECK_OK(open_decoder(&decoder, 1, capacity[i]))) return;
        CHECK_OK(sdlf_stateful_prepare(decoder, &plan));
        count_bytes(plan, &copied[i], &moved[i]);
        sdlf_stateful_free(decoder);
    }
    CHECK_EQUAL(copied[0], copied[1]);
    CHECK(moved[1] > moved[0]);
}

/* The present is the past with new positions appended, in the same memory. */
static void the_present_lies_behind_the_past(void)
{
    sdlf_stateful *decoder;
    sdlf_plan *plan;
    sdlf_binding past, present;
    float logits[VOCABULARY], key[2 * 2 * 4];
    int64_t token = 3;
    if (!CHECK_OK(open_decoder(&decoder, 1, STEPS))) return;
    step(decoder, &token, logits);
    CHECK_OK(sdlf_stateful_prepare(decoder, &plan));
    CHECK_OK(sdlf_plan_input(plan, "past_key_values.0.key", &past));
    CHECK_OK(sdlf_plan_output(plan, "present.0.key", &present));
    CHECK(past.tensor.data == present.tensor.data);
    CHECK(sdlf_shape_equal(past.tensor.shape, sdlf_shape(1, 2, 1, 4)));
    CHECK(sdlf_shape_equal(present.tensor.shape, sdlf_shape(1, 2, 2, 4)));
    step(decoder, &token, logits);
    CHECK_OK(sdlf_plan_read(plan, "present.0.key", key, SDLF_FLOAT32, sizeof key));
    for (int head = 0; head < 2; head++)
        for (int i = 0; i < 8; i++)
            CHECK(key[8 * head + i] == ((const float *)present.tensor.data)[head * present.tensor.stride[1] + i]);
    sdlf_stateful_free(decoder);
}

/* Several tokens per step, masked by position, give the same as one by one. */
static void steps_of_several_tokens(void)
{
    sdlf_stateful *one, *three;
    sdlf_plan *plan;
    int64_t token[6] = {4, 1, 9, 0, 7, 2};
    float found[3][VOCABULARY], expected[6][VOCABULARY];
    if (!CHECK_OK(open_decoder(&one, 1, STEPS)) || !CHECK_OK(open_decoder(&three, 3, STEPS))) return;
    for (int i = 0; i < 6; i++) step(one, &token[i], expected[i]);
    for (int i = 0; i < 6; i += 3) {
        if (!CHECK_OK(sdlf_stateful_prepare(three, &plan))) break;
        CHECK_OK(sdlf_plan_write(plan, "input_ids", &token[i], SDLF_INT64, 3 * sizeof *token));
        CHECK_OK(sdlf_stateful_run(three));
        CHECK_OK(sdlf_plan_read(plan, "logits", found, SDLF_FLOAT32, sizeof found));
        compare(found[0], expected[i], 3 * VOCABULARY);
    }
    sdlf_stateful_free(one);
    sdlf_stateful_free(three);
}

/* h' = h + x, a sum over all steps. */
static sdlf_status make_sum(void *user, int64_t length, bool weights, sdlf_model **model)
{
    (void)user, (void)length, (void)weights;
    *model = sdlf_model_create("sum");
    sdlf_node x = sdlf_input(*model, "x", SDLF_FLOAT32, sdlf_shape(2)),
              h = sdlf_input(*model, "h", SDLF_FLOAT32, sdlf_shape(2));
    sdlf_output(*model, "next", sdlf_add(*model, x, h));
    return sdlf_model_status(*model);
}

static void a_state_that_does_not_grow(void)
{
    const sdlf_state state = {"h", "next", 0};
    sdlf_stateful *sum;
    sdlf_plan *plan;
    float x[2] = {1, 2}, next[2];
    if (!CHECK_OK(sdlf_stateful_create_with(
            &sum, make_sum, NULL,
            &(sdlf_stateful_options){.calculator = calculator, .states = &state, .state_count = 1})))
        return;
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(sdlf_stateful_prepare(sum, &plan));
        CHECK_OK(sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x));
        CHECK_OK(sdlf_stateful_run(sum));
        CHECK_OK(sdlf_plan_read(plan, "next", next, SDLF_FLOAT32, sizeof next));
        CHECK(next[0] == (float)i && next[1] == (float)(2 * i));
    }
    CHECK_FAILS(sdlf_stateful_rewind(sum, 1), SDLF_ERROR_ARGUMENT, "can only be reset");
    CHECK_OK(sdlf_stateful_rewind(sum, 0));
    CHECK_OK(sdlf_stateful_run(sum));
    CHECK_OK(sdlf_plan_read(plan, "next", next, SDLF_FLOAT32, sizeof next));
    CHECK(next[0] == 1);
    sdlf_stateful_free(sum);
}

static void wrong_states_are_refused(void)
{
    static const struct {
        sdlf_state state;
        sdlf_status status;
        const char *message;
    } wrong[] = {{{"past", "present.0.key", 0}, SDLF_ERROR_ARGUMENT, "no such input"},
                 {{"past_key_values.0.key", "present", 0}, SDLF_ERROR_ARGUMENT, "no such output"},
                 {{"past_key_values.0.key", "present.0.value", 0}, SDLF_ERROR_SHAPE, "a Concat of the input"},
                 {{"past_key_values.0.key", "logits", 0}, SDLF_ERROR_SHAPE, "expected an output of the input's shape"}};
    const sdlf_onnx_dimension length_of_step[] = {{"sequence_length", 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sdlf_state list[4] = {wrong[i].state, states[1], states[2], states[3]};
        sdlf_stateful *decoder;
        sdlf_onnx_shape shape = {"past_key_values.0.key", sdlf_shape(1, 2, 1, 4)};
        sdlf_status status = sdlf_stateful_create(&decoder, onnx_fixture("decoder", "model.onnx"),
                                                  &(sdlf_stateful_options){.calculator = calculator,
                                                                           .states = list,
                                                                           .state_count = 4,
                                                                           .dimensions = length_of_step,
                                                                           .dimension_count = 1,
                                                                           .shapes = &shape,
                                                                           .shape_count = 1});
        CHECK_FAILS(status, wrong[i].status, wrong[i].message);
        CHECK(decoder == NULL);
    }
}

/* y = the sum of all x so far. */
static sdlf_status make_growing(void *user, int64_t length, bool weights, sdlf_model **model)
{
    (void)user, (void)weights;
    *model = sdlf_model_create("growing");
    if (*model == NULL) return SDLF_ERROR_MEMORY;
    sdlf_node part[] = {sdlf_input(*model, "past", SDLF_FLOAT32, sdlf_shape(length, 2)),
                        sdlf_input(*model, "x", SDLF_FLOAT32, sdlf_shape(1, 2))};
    sdlf_node all = sdlf_concat(*model, part, 2, NULL);
    sdlf_output(*model, "present", all);
    sdlf_output(*model, "y", sdlf_reduce(*model, all, &(sdlf_reduce_options){.axes = sdlf_shape(1)}));
    return sdlf_model_status(*model);
}

static sdlf_status make_one(void *context)
{
    const sdlf_state state = {"past", "present", 0};
    sdlf_stateful *growing = NULL;
    float x[2] = {1, 2}, y[2] = {0};
    sdlf_plan *plan;
    (void)context;
    sdlf_status status = sdlf_stateful_create_with(
        &growing, make_growing, NULL,
        &(sdlf_stateful_options){.calculator = calculator, .states = &state, .state_count = 1, .capacity = 20});
    for (int i = 1; i < 4 && status == SDLF_OK; i++) {
        status = sdlf_stateful_prepare(growing, &plan);
        if (status == SDLF_OK) status = sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x);
        if (status == SDLF_OK) status = sdlf_stateful_run(growing);
        if (status == SDLF_OK) status = sdlf_plan_read(plan, "y", y, SDLF_FLOAT32, sizeof y);
        if (status == SDLF_OK) CHECK(y[0] == (float)i && y[1] == 2 * (float)i);
    }
    sdlf_stateful_free(growing);
    return status;
}

static void memory_runs_out(void)
{
    test_every_allocation("a state that grows", make_one, NULL);
}

/* ---- a mask that grows with the states ---- */

/* Steps of several tokens, each with the mask of all positions so far, give onnxruntime's results token by token. */
static void masked_steps(int64_t each)
{
    sdlf_stateful *decoder = NULL;
    sdlf_tensor tokens, mask, logits;
    float found[STEPS * VOCABULARY];
    sdlf_plan *plan;
    sdlf_binding binding;
    const sdlf_onnx_dimension length_of_step = {"sequence_length", each};
    CHECK_OK(sdlf_tensor_read_file(&tokens, onnx_fixture("masked_decoder", "tokens.npy")));
    CHECK_OK(sdlf_tensor_read_file(&mask, onnx_fixture("masked_decoder", "mask.npy")));
    CHECK_OK(sdlf_tensor_read_file(&logits, onnx_fixture("masked_decoder", "logits.npy")));
    CHECK_OK(sdlf_stateful_create(&decoder, onnx_fixture("masked_decoder", "model.onnx"),
                                  &(sdlf_stateful_options){.calculator = calculator,
                                                           .states = states,
                                                           .state_count = 4,
                                                           .capacity = STEPS,
                                                           .dimensions = &length_of_step,
                                                           .dimension_count = 1}));
    for (int64_t at = 0; decoder != NULL && at < STEPS; at += each) {
        const int64_t *token = (const int64_t *)tokens.data + at, *known = mask.data;
        float *to = found + at * VOCABULARY;
        if (!CHECK_OK(sdlf_stateful_prepare(decoder, &plan))) break;
        CHECK_OK(sdlf_plan_input(plan, "attention_mask", &binding));
        CHECK(sdlf_shape_equal(binding.tensor.shape, sdlf_shape(1, at + each)));
        CHECK_OK(sdlf_plan_write(plan, "input_ids", token, SDLF_INT64, each * (int64_t)sizeof *token));
        CHECK_OK(sdlf_plan_write(plan, "attention_mask", known, SDLF_INT64, (at + each) * (int64_t)sizeof *known));
        CHECK_OK(sdlf_stateful_run(decoder));
        CHECK_OK(sdlf_plan_read(plan, "logits", to, SDLF_FLOAT32, each * VOCABULARY * (int64_t)sizeof *to));
        CHECK_EQUAL(sdlf_stateful_step(decoder), each);
    }
    /* the logits of a masked token are unused: in a step with other tokens it also sees the masked positions */
    if (decoder != NULL)
        compare(found + 3 * VOCABULARY, (const float *)logits.data + 3 * VOCABULARY, (STEPS - 3) * VOCABULARY);
    sdlf_stateful_free(decoder);
    sdlf_tensor_release(&tokens, NULL);
    sdlf_tensor_release(&mask, NULL);
    sdlf_tensor_release(&logits, NULL);
}

static void masks_grow(void)
{
    masked_steps(1);
    masked_steps(4);
}

/* A file that no library would write. */
static void a_name_that_a_file_has_often(void)
{
    hostile_graph graph = {.data = NULL};
    hostile_node(&graph, "Identity", "x", "y", 0);
    for (int i = 0; i < 600; i++) {
        bytes input = {.size = 0};
        bytes_value_info(&input, 11, "past", (const int64_t[]){1, 4}, 2);
        hostile_append(&graph, input.data, input.size);
    }
    const sdlf_state past = {"past", "y", 0};
    sdlf_stateful *decoder = NULL;
    CHECK(sdlf_stateful_create(&decoder, hostile_write(&graph, "often.onnx", "y", 1),
                               &(sdlf_stateful_options){.calculator = calculator, .states = &past, .state_count = 1}) !=
          SDLF_OK);
    sdlf_stateful_free(decoder);
}

int main(void)
{
    static const char *const names[] = {"reference", "cpu"};
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sdlf_calculator_open(&calculator, names[i], NULL));
        RUN(steps_are_those_of_onnxruntime);
        RUN(keys_and_values_are_not_copied);
        RUN(the_present_lies_behind_the_past);
        RUN(steps_of_several_tokens);
        RUN(masks_grow);
        RUN(a_state_that_does_not_grow);
        RUN(wrong_states_are_refused);
        RUN(a_name_that_a_file_has_often);
        if (i == 1) RUN(memory_runs_out);
        sdlf_calculator_close(calculator);
    }
    return test_summary();
}
