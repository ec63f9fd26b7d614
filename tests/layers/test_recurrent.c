/* SPDX-License-Identifier: MIT */
/* lstm and gru: gradients, rejected inputs, and both ends of a sequence. */
#include "layers/gradients.h"

static sdlf_node build_lstm(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_lstm(model, x[0], options);
}

static sdlf_node build_gru(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_gru(model, x[0], options);
}

static sdlf_node build_lstm_from(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node c0 = sdlf_unary(model, x[1], &(sdlf_unary_options){.function = SDLF_UNARY_SOFTSIGN});
    return sdlf_lstm_from(model, x[0], x[1], c0, options);
}

static sdlf_node build_gru_from(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_gru_from(model, x[0], x[1], options);
}

/* A state that is the same for all samples. */
static sdlf_node build_gru_from_one(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node one = sdlf_value(model, &(sdlf_value_options){.shape = sdlf_shape(1, 3), .trainable = true});
    return sdlf_gru_from(model, x[0], one, options);
}

/* And one for all of their units. */
static sdlf_node build_gru_from_number(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node one = sdlf_value(model, &(sdlf_value_options){.shape = sdlf_shape(1, 1), .trainable = true});
    return sdlf_gru_from(model, x[0], one, options);
}

/* Both directions side by side, in two layers. */
static sdlf_node build_both(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_recurrent_options forward = *(const sdlf_recurrent_options *)options, backward = forward;
    backward.reverse = true;
    const sdlf_node ways[] = {sdlf_lstm(model, x[0], &forward), sdlf_gru(model, x[0], &backward)};
    sdlf_node y = sdlf_concat(model, ways, 2, &(sdlf_concat_options){.axis = 2});
    return sdlf_gru(model, y, &(sdlf_recurrent_options){.units = 2, .last = true});
}

static void gradients_match(void)
{
    const sdlf_recurrent_options plain = {.units = 3}, last = {.units = 2, .last = true, .reverse = true},
                                 bare = {.units = 2, .no_bias = true, .reverse = true};
    const layer_case cases[] = {
        {.what = "lstm", .build = build_lstm, .options = &plain, .input = {sdlf_shape(2, 4, 3)}},
        {.what = "last of an lstm", .build = build_lstm, .options = &last, .input = {sdlf_shape(2, 3, 3)}},
        {.what = "lstm without bias", .build = build_lstm, .options = &bare, .input = {sdlf_shape(2, 3, 2)}},
        {.what = "gru", .build = build_gru, .options = &plain, .input = {sdlf_shape(2, 4, 3)}},
        {.what = "last of a gru", .build = build_gru, .options = &last, .input = {sdlf_shape(2, 3, 3)}},
        {.what = "gru without bias", .build = build_gru, .options = &bare, .input = {sdlf_shape(2, 3, 2)}},
        {.what = "lstm from states",
         .build = build_lstm_from,
         .options = &plain,
         .input = {sdlf_shape(2, 4, 3), sdlf_shape(2, 3)},
         .input_count = 2},
        {.what = "last of an lstm from states",
         .build = build_lstm_from,
         .options = &last,
         .input = {sdlf_shape(2, 3, 3), sdlf_shape(2, 2)},
         .input_count = 2},
        {.what = "gru from a state",
         .build = build_gru_from,
         .options = &plain,
         .input = {sdlf_shape(2, 4, 3), sdlf_shape(2, 3)},
         .input_count = 2},
        {.what = "gru without bias from a state",
         .build = build_gru_from,
         .options = &bare,
         .input = {sdlf_shape(2, 3, 2), sdlf_shape(2, 2)},
         .input_count = 2},
        {.what = "gru from one state", .build = build_gru_from_one, .options = &plain, .input = {sdlf_shape(2, 4, 3)}},
        {.what = "gru from one number",
         .build = build_gru_from_number,
         .options = &plain,
         .input = {sdlf_shape(2, 4, 3)}},
        {.what = "both ways", .build = build_both, .options = &plain, .input = {sdlf_shape(2, 3, 2)}, .unit = 0.25},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

static void nonsense_is_refused(void)
{
    sdlf_recurrent_options units = {.units = 4};
    check_refused(build_lstm, NULL, sdlf_shape(3, 4), SDLF_ERROR_ARGUMENT, "units: expected 1");
    check_refused(build_gru, &units, sdlf_shape(3), SDLF_ERROR_SHAPE, "expected an input (N,T,C)");
    check_refused(build_lstm, &units, sdlf_shape(1025, 1), SDLF_ERROR_SHAPE,
                  "1025 steps, which are unrolled: expected 1 to 1024");
    check_integers_refused(build_gru, &units, sdlf_shape(3, 4));
    check_output(build_lstm, &units, sdlf_shape(3, 8), sdlf_shape(3, 4));
    units.last = true;
    check_output(build_gru, &units, sdlf_shape(3, 8), sdlf_shape(4));
}

int main(void)
{
    RUN(gradients_match);
    RUN(nonsense_is_refused);
    return test_summary();
}
