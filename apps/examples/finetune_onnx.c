/* SPDX-License-Identifier: MIT */
/* Fine-tune a network from an ONNX file: only a new head for other classes is trained, all other parameters are frozen.
 *
 *     finetune_onnx FILE.onnx            learns digits that SDLF draws itself
 *     finetune_onnx FILE.onnx folder:DIR learns pictures, a folder for each class
 *
 * Writes finetuned.safetensors, from which training can continue, and finetuned.onnx for other programs. */
#include <stdio.h>

#include <sdlf/sdlf.h>

/* Freezes all layers but the head. */
static sdlf_status freeze_trunk(sdlf_model *net)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < sdlf_model_parameter_count(net) && status == SDLF_OK; i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        if (parameter->spec.trainable && sdlf_model_parameter_matches(net, i, "trunk"))
            status = sdlf_model_freeze(net, parameter->name, true);
    }
    return status;
}

/* Opens data resized to the network's input. */
static sdlf_status open_data(sdlf_dataset **data, const sdlf_model *net, const char *name, sdlf_split split)
{
    sdlf_shape sample = sdlf_model_node_shape(net, sdlf_model_input(net, 0));
    if (sample.rank != 4)
        return sdlf_fail(SDLF_ERROR_SHAPE, "expected a network for pictures (N,C,H,W), found an input %s",
                         sdlf_shape_print(sample).text);
    sdlf_dataset_options options = {.channels = (int)sample.dim[1]};
    options.height = (int)sample.dim[2], options.width = (int)sample.dim[3];
    return sdlf_dataset_open_with(data, name, split, &options);
}

static void show(const sdlf_progress *now, void *user)
{
    (void)user;
    if (now->event != SDLF_PROGRESS_EPOCH) return;
    printf("epoch %d/%d  loss %.3f  test %.1f%%\n", now->epoch, now->epochs, now->loss, 100 * now->test_accuracy);
    fflush(stdout);
}

int main(int count, char **words)
{
    if (count < 2) {
        fprintf(stderr, "Usage: finetune_onnx FILE.onnx [DATA]\n");
        return 2;
    }
    const char *name = count > 2 ? words[2] : "digits";
    sdlf_model *net = NULL;
    sdlf_dataset *train = NULL, *test = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_trainer_options options = {.batch = 32, .epochs = 3, .callback = show};
    options.optimizer = sdlf_adam(.beta1 = 0.9);
    options.schedule = sdlf_one_cycle(.peak = 0.01f);

    sdlf_status status = sdlf_model_from_onnx(&net, words[1], NULL);
    if (status == SDLF_OK) status = open_data(&train, net, name, SDLF_SPLIT_TRAIN);
    if (status == SDLF_OK) status = open_data(&test, net, name, SDLF_SPLIT_TEST);
    if (status == SDLF_OK) status = sdlf_model_replace_head(net, train->class_count, 1);
    if (status == SDLF_OK) status = freeze_trunk(net);
    if (status == SDLF_OK)
        printf("%lld parameters learn %d classes\n", (long long)sdlf_model_trainable_count(net), train->class_count);
    if (status == SDLF_OK) status = sdlf_trainer_create(&trainer, net, train, test, &options);
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    sdlf_trainer_free(trainer);
    if (status == SDLF_OK) status = sdlf_model_save(net, "finetuned.safetensors");
    if (status == SDLF_OK) status = sdlf_model_to_onnx(net, "finetuned.onnx", NULL, NULL);
    if (status != SDLF_OK) fprintf(stderr, "finetune_onnx: %s\n", sdlf_error_message());
    sdlf_dataset_free(train);
    sdlf_dataset_free(test);
    sdlf_model_free(net);
    return status == SDLF_OK ? 0 : 1;
}
