/* SPDX-License-Identifier: MIT */
/* The choice of the calculator: impossible choices end with one clear line; a GPU is used if there is one. */
#include "testing.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/program.h"

#define SMALL "--net", small_network(), "--data", "digits:600,3"

static bool is_built_in(const char *name)
{
    for (int i = 0; sdlf_calculator_class_at(i); i++) {
        if (strcmp(sdlf_calculator_class_at(i)->name, name) == 0) return true;
    }
    return false;
}

static bool cuda_works(void)
{
    for (int i = 0; test_calculator_class_at(i); i++) {
        if (strcmp(test_calculator_class_at(i)->name, "cuda") == 0) return true;
    }
    return false;
}

/* Check that there is one line on standard error and nothing else. */
static void check_one_line(const program *p, const char *text)
{
    CHECK_SAYS(p, text);
    CHECK_TEXT(p->out, "");
    const char *end = strchr(p->err, '\n');
    CHECK(strncmp(p->err, "sdlf ", 5) == 0 && end && end[1] == '\0');
}

static void choices_that_are_none(void)
{
#define CHOICE "--calculator", "reference"
    const char *commands[] = {"train", "bench", "info", NULL};
    for (int i = 0; commands[i]; i++) {
        const program *p = SDLF(2, commands[i], "--net", small_network(), CHOICE, "--math", "tf32");
        check_one_line(p, "--math tf32: the reference calculator computes only in fp32");
        p = SDLF(2, commands[i], "--net", small_network(), CHOICE, "--device", "1");
        check_one_line(p, "--device 1: the reference calculator has no devices to choose from");
        CHECK_SAYS(SDLF(2, commands[i], "--math", "fp8"), "expected one of fp32, tf32, fp16, bf16");
        CHECK_SAYS(SDLF(2, commands[i], "--device", "-1"), "--device");
    }
    const char *weights = test_path("weights.safetensors");
    SDLF(0, "train", SMALL, CHOICE, "--epochs", "1", "--out", weights);
    check_one_line(SDLF(2, "eval", "--weights", weights, CHOICE, "--math", "bf16"), "computes only in fp32");
    check_one_line(SDLF(2, "predict", "--weights", weights, CHOICE, "--math", "fp16", "x.png"), "only in fp32");
    static const float nothing[28 * 28];
    const char *image = test_path("x.npy");
    sdlf_tensor x = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 1, 28, 28), (void *)nothing);
    CHECK_OK(sdlf_tensor_write_file(&x, image));
    check_one_line(SDLF(2, "run", weights, CHOICE, "--math", "fp16", "--input", image), "only in fp32");
    SDLF(0, "run", weights, CHOICE, "--math", "fp32", "--input", image);
    SDLF(0, "eval", "--weights", weights, CHOICE, "--math", "fp32", "--device", "0");
}

static void a_gpu_that_is_not_there(void)
{
    if (cuda_works()) {
        test_skip("there is a GPU");
        return;
    }
    const char *weights = test_path("weights.safetensors");
    if (!is_built_in("cuda")) {
        static const char *const absent = "calculator 'cuda' is not in this build: it was made without CUDA";
        check_one_line(SDLF(1, "train", SMALL, "--no-save", "--calculator", "cuda"), absent);
        check_one_line(SDLF(1, "bench", "placement"), absent);
        check_one_line(SDLF(1, "bench", "epoch"), absent);
        check_one_line(SDLF(1, "parity", "--b", "cuda"), absent);
        CHECK_SAYS(SDLF(0, "info"), "not in this build: it was made without CUDA");
        return;
    }
    check_one_line(SDLF(1, "train", SMALL, "--no-save", "--calculator", "cuda"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "train", SMALL, "--no-save", "--calculator", "cudnn"), "calculator 'cudnn'");
    check_one_line(SDLF(1, "train", SMALL, "--no-save", "--forward", "cuda"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "train", SMALL, "--no-save", "--place", "relu=cuda"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "info", "--net", "mlp", "--calculator", "cuda"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "bench", "--calculator", "cuda"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "bench", "placement"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "bench", "epoch"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "parity", "--b", "cuda:tf32"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "eval", "--weights", weights, "--calculator", "cuda"), "calculator 'cuda': ");
    check_one_line(SDLF(1, "predict", "--weights", weights, "--calculator", "cuda", "x.png"), "calculator 'cuda': ");
    CHECK_SAYS(SDLF(0, "info"), "not here: ");
}

static void a_gpu_that_is_there(void)
{
    if (!cuda_works()) {
        test_skip("no CUDA device");
        return;
    }
    const char *out = test_path("gpu.safetensors");
    const program *p = SDLF(0, "info");
    CHECK_SAYS(p, "compute capability");
    CHECK_SAYS(p, "kernels ");
    p = SDLF(0, "train", SMALL, "--calculator", "cuda", "--epochs", "1", "--math", "fp16", "--out", out);
    CHECK_SAYS(p, "math fp16");
    CHECK_SAYS(SDLF(2, "train", "--resume", out, "--calculator", "cuda", "--epochs", "2", "--math", "fp32"),
               "trained with math fp16, but fp32 is asked for");
    CHECK_SAYS(SDLF(2, "train", "--resume", out, "--epochs", "2"),
               "--math fp16: the cpu calculator computes only in fp32");
    CHECK_SAYS(SDLF(0, "train", "--resume", out, "--calculator", "cuda", "--epochs", "2", "--schedule", "one_cycle"),
               "math fp16");
    CHECK_SAYS(SDLF(0, "eval", "--weights", out, "--calculator", "cuda", "--math", "fp16"), "math fp16");
    CHECK_SAYS(SDLF(0, "eval", "--weights", out, "--calculator", "cuda"), "math fp32");
    CHECK_SAYS(SDLF(0, "bench", SMALL, "--calculator", "cuda", "--steps", "5", "--copy-size", "1MB"), "math fp32");
    SDLF(0, "train", SMALL, "--forward", "cuda", "--backward", "cpu", "--epochs", "1", "--no-save");
    CHECK_SAYS(SDLF(0, "info", "--net", small_network(), "--forward", "cuda", "--backward", "cpu", "--steps"),
               "copy cuda:0 to host");
    CHECK_SAYS(SDLF(0, "bench", SMALL, "--forward", "cuda", "--backward", "cpu", "--steps", "3", "--copy-size", "1MB"),
               "copies a step");
    CHECK_SAYS(SDLF(0, "bench", "placement", SMALL, "--batch", "16", "--iterations", "2"), "all on cuda");
    CHECK_SAYS(SDLF(0, "bench", "epoch", SMALL, "--batch", "16", "--steps", "5", "--repeats", "2"), "cuda fwd");
    CHECK_SAYS(SDLF(0, "parity", SMALL, "--b", "cuda"), "agree  no error above 2e-05");
    CHECK_SAYS(SDLF(0, "parity", SMALL, "--b", "cuda", "--dtype", "float64"), "agree  no error above 1e-10");
    CHECK_SAYS(SDLF(0, "parity", "--net", "lenet5", "--a", "cuda", "--b", "cuda:tf32"), "agree  no error above 1e-02");
    if (is_built_in("cudnn")) {
        CHECK_SAYS(SDLF(0, "train", SMALL, "--calculator", "cudnn", "--epochs", "1", "--no-save"), "cuDNN 9.");
        CHECK_SAYS(SDLF(0, "parity", SMALL, "--a", "cudnn", "--b", "reference"), "agree");
        CHECK_SAYS(SDLF(2, "train", SMALL, "--forward", "cuda", "--backward", "cudnn", "--no-save"),
                   "two calculators in the memory of cuda:0");
    } else {
        check_one_line(SDLF(1, "train", SMALL, "--no-save", "--calculator", "cudnn"), "is not in this build");
    }
    SDLF(0, "train", SMALL, "--place", "relu=cuda", "--place", "dropout=forward:cuda,backward:cpu", "--epochs", "1",
         "--no-save");
    CHECK_SAYS(SDLF(2, "info", "--net", "mlp", "--calculator", "cuda", "--device", "900"), "no CUDA device 900");
}

/* With and without a GPU: cuDNN has no bf16 mode for float32 tensors, so requesting it is an error. */
static void bf16_is_not_cudnns(void)
{
    if (!is_built_in("cudnn")) {
        test_skip("this build has no cudnn");
        return;
    }
    check_one_line(SDLF(1, "train", SMALL, "--no-save", "--calculator", "cudnn", "--math", "bf16"), "not in bf16");
}

int main(void)
{
    RUN(choices_that_are_none);
    RUN(a_gpu_that_is_not_there);
    RUN(a_gpu_that_is_there);
    RUN(bf16_is_not_cudnns);
    return test_summary();
}
