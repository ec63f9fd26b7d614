/* What a buffer holds, in words: listings say it of the copies between memory spaces. */
#include "framework/plan/plan_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/input.h"

/* WHAT and the name of the thing it is of. */
typedef struct words {
    const char *what, *name;
} words;

static bool holds(const sdlf_tensor *tensor, int buffer)
{
    return sdlf_tensor_present(tensor) && tensor->buffer == buffer;
}

static words of_feed(const plan_feed *feed, int buffer)
{
    if (holds(&feed->rate, buffer)) return (words){"the ", "learning rate"};
    if (holds(&feed->step, buffer)) return (words){"the ", "step's number"};
    if (holds(&feed->index, buffer)) return (words){"the ", "batch's indices"};
    return (words){NULL, NULL};
}

/* Outputs come first: a view has the memory of the layer that computes it. */
static words of_value(const sdlf_plan *plan, int buffer)
{
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        const char *name = node->layer->name;
        bool is_input = node->layer->type == &sdlf_input_layer_class;
        for (int j = 0; j < node->signature.output_count; j++) {
            if (!holds(&plan->values[node->first_value + j].tensor, buffer)) continue;
            return (words){is_input ? "input " : "output of ", name};
        }
        for (int j = 0; j < node->signature.saved_count; j++) {
            if (holds(&node->saved[j], buffer)) return (words){"what is kept by ", name};
        }
    }
    for (int i = 0; i < plan->node_count; i++) {
        const plan_node *node = &plan->nodes[i];
        for (int j = 0; j < node->signature.output_count; j++) {
            if (holds(&plan->values[node->first_value + j].gradient, buffer))
                return (words){"gradient by the output of ", node->layer->name};
        }
        for (int j = 0; j < node->signature.parameter_count; j++) {
            if (holds(&node->parameter_gradient[j], buffer))
                return (words){"gradient of ", plan->model->parameters[node->first_parameter + j].name};
        }
    }
    return (words){NULL, NULL};
}

/* What no rule names: memory of the layer that writes it. */
static words of_writer(const sdlf_plan *plan, int buffer)
{
    for (int i = 0; i < plan->step_count; i++) {
        if (plan_step_writes(&plan->steps[i], buffer))
            return (words){"what is kept by ", plan->nodes[plan->steps[i].node].layer->name};
    }
    return (words){"scratch ", "memory"};
}

char *plan_describe_buffer(const sdlf_plan *plan, int buffer)
{
    const plan_buffer *b = &plan->buffers[buffer];
    words w = {NULL, NULL};
    if (b->kind == BUFFER_PARAMETER) w = (words){"", plan->model->parameters[b->parameter].name};
    if (b->kind == BUFFER_STATE) w = (words){"optimizer state of ", plan->model->parameters[b->parameter].name};
    if (holds(&plan->metrics, buffer)) w = (words){"the ", "sums of the loss"};
    if (w.name == NULL && plan->feed.present) w = of_feed(&plan->feed, buffer);
    if (w.name == NULL) w = of_value(plan, buffer);
    if (w.name == NULL) w = of_writer(plan, buffer);
    size_t length = strlen(w.what) + strlen(w.name) + 1;
    char *text = malloc(length);
    if (text != NULL) snprintf(text, length, "%s%s", w.what, w.name);
    return text;
}
