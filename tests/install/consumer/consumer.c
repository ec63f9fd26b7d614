/* SPDX-License-Identifier: MIT */
/* A program outside the tree, on the installed headers and library: it makes a network, runs it on every calculator of
 * the build, reads a network file and writes one of C, so that all that the library needs must be linked. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

static const char text[] = "{\"name\": \"tiny\", \"input\": {\"name\": \"x\", \"shape\": [1, 6, 6]}, \"layers\": ["
                           "{\"type\": \"conv2d\", \"filters\": 4, \"kernel\": 3}, {\"type\": \"relu\"},"
                           "{\"type\": \"fully_connected\", \"units\": 3}, {\"type\": \"softmax\"}]}";

/* Scores of one picture; SDLF_ERROR_DEVICE where the calculator's device is not there; errors are printed. */
static sdlf_status run(const char *calculator_name, float scores[3])
{
    float x[36];
    for (int i = 0; i < 36; i++) x[i] = (float)(i % 7 - 3);
    sdlf_model *model = NULL;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status = sdlf_network_parse(&model, text, strlen(text), "consumer");
    if (status == SDLF_OK) status = sdlf_calculator_open(&calculator, calculator_name, NULL);
    if (status == SDLF_OK)
        status = sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 1, .forward = calculator});
    if (status == SDLF_OK) status = sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, sizeof x);
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    if (status == SDLF_OK)
        status = sdlf_plan_read(plan, sdlf_model_output_name(model, 0), scores, SDLF_FLOAT32, 3 * sizeof *scores);
    if (status != SDLF_OK) fprintf(stderr, "%s: %s\n", calculator_name, sdlf_error_message());
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
    return status;
}

static sdlf_status write_c(void)
{
    sdlf_model *model = NULL;
    sdlf_status status = sdlf_network_parse(&model, text, strlen(text), "consumer");
    if (status == SDLF_OK) status = sdlf_model_build(model, 1);
    if (status == SDLF_OK) status = sdlf_model_to_c(model, "tiny.c", NULL, NULL);
    if (status != SDLF_OK) fprintf(stderr, "%s\n", sdlf_error_message());
    sdlf_model_free(model);
    return status;
}

int main(void)
{
    printf("sdlf %s\n", SDLF_VERSION);
    float expected[3] = {0};
    for (int i = 0; sdlf_calculator_class_at(i) != NULL; i++) {
        const char *name = sdlf_calculator_class_at(i)->name;
        float scores[3] = {0};
        sdlf_status status = run(name, scores);
        if (status == SDLF_ERROR_DEVICE || status == SDLF_ERROR_UNSUPPORTED) continue; /* not on this machine */
        if (status != SDLF_OK) return 1;
        printf("%-10s %.6f %.6f %.6f\n", name, scores[0], scores[1], scores[2]);
        if (i == 0) memcpy(expected, scores, sizeof expected);
        for (int j = 0; j < 3; j++)
            if (!(fabsf(scores[j] - expected[j]) < 1e-5f)) return 1;
    }
    return write_c() != SDLF_OK;
}
