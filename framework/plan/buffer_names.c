/* SPDX-License-Identifier: MIT */
/* Descriptions of buffer contents, for the copies between memory spaces in listings. */
#include "framework/plan/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/input_layer.h"

/* The first description of a buffer is kept. */
static void describe(plan_words *words, const sdlf_tensor *tensor, const char *what, const char *name)
{
    if (!sdlf_tensor_present(tensor) || words[tensor->buffer].name != NULL) return;
    words[tensor->buffer] = (plan_words){what, name};
}

static void describe_saved(const sdlf_plan *plan, plan_words *words)
{
    describe(words, &plan->metrics, "the ", "sums of the loss");
    describe(words, &plan->loss_scale, "the ", "loss scale");
    for (int i = 1; i < plan->buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        bool state = buffer->kind == BUFFER_STATE;
        if (words[i].name != NULL || (buffer->kind != BUFFER_PARAMETER && !state)) continue;
        words[i] = (plan_words){state ? "optimizer state of " : "", plan->model->parameters[buffer->parameter].name};
    }
    describe(words, &plan->feed.rate, "the ", "learning rate");
    describe(words, &plan->feed.step, "the ", "step's number");
    describe(words, &plan->feed.index, "the ", "batch's indices");
}

/* Layer outputs come first: a view shares the memory of the layer that computes it. */
static void name_values(const sdlf_plan *plan, plan_words *words)
{
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        bool is_input = node->layer->type == &sdlf_input_layer_class;
        for (int j = 0; j < node->output_count; j++)
            describe(words, &plan->values[node->first_value + j].tensor, is_input ? "input " : "output of ",
                     node->layer->name);
        for (int j = 0; j < node->saved_count; j++)
            describe(words, &plan->saved[node->first_saved + j], "what is kept by ", node->layer->name);
    }
}

static void name_gradients(const sdlf_plan *plan, plan_words *words)
{
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        for (int j = 0; j < node->output_count; j++)
            describe(words, &plan->values[node->first_value + j].gradient, "output gradient of ", node->layer->name);
    }
    for (int i = 0; i < plan->model->parameter_count && plan->gradients != NULL; i++)
        describe(words, &plan->gradients[i], "gradient of ", plan->model->parameters[i].name);
}

plan_words *plan_name_buffers(const sdlf_plan *plan)
{
    plan_words *words = calloc((size_t)plan->buffer_count, sizeof *words);
    if (words == NULL) return NULL;
    describe_saved(plan, words);
    name_values(plan, words);
    name_gradients(plan, words);
    return words;
}

char *plan_join_words(plan_words words)
{
    size_t length = strlen(words.what) + strlen(words.name) + 1;
    char *text = malloc(length);
    if (text != NULL) snprintf(text, length, "%s%s", words.what, words.name);
    return text;
}
