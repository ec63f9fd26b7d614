/* SPDX-License-Identifier: MIT */
/* See usage.h. */
#include "apps/train/usage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/arguments/onnx.h"
#include "apps/input/network.h"
#include "apps/input/samples.h"
#include "apps/pictures/preprocess.h"
#include "apps/system/memory.h"
#include "apps/train/session.h"

static const argument data_arguments[] = {
    {.name = "Data and network", .type = ARGUMENT_HEADING},
    {"data", ARGUMENT_TEXT, offsetof(train_settings, data), "SET", .fallback = "digits",
     .help = "the data set, see below"},
    {"test-data", ARGUMENT_TEXT, offsetof(train_settings, test_data), "SET",
     .help = "what to test on (default: the test half of --data)"},
    {"size", ARGUMENT_TEXT, offsetof(train_settings, size), "HxW",
     .help = "what pictures of a folder are scaled to, 224 or 240x320 (default: the network's input, or their own, "
             "which must be the same for all)"},
    {"normalize", ARGUMENT_CHOICE, offsetof(train_settings, normalize), "KIND", .choices = preprocess_kind_names,
     .fallback = "auto",
     .help = "mean and deviation of the channels: those in the network's file, else the data's own (auto); imagenet, "
             "cifar10, tf, unit and none as for predict"},
    {"strict", ARGUMENT_FLAG, offsetof(train_settings, strict), .help = "refuse pictures that cannot be read"},
    {"workers", ARGUMENT_INT, offsetof(train_settings, workers), "N", .minimum = 1, .maximum = 64,
     .help = "threads that decode pictures of a folder (default: one for each processor)"},
    {"cache", ARGUMENT_INT, offsetof(train_settings, cache), "MB", .minimum = 1, .maximum = 1e9,
     .help = "decoded pictures, and their masks, to keep in memory, for each half; others are decoded whenever they "
             "are needed (default: all are kept)"},
    {"no-test", ARGUMENT_FLAG, offsetof(train_settings, no_test), .help = "do not test after each epoch"},
    {"device-data", ARGUMENT_INT, offsetof(train_settings, device_data), "MB", .minimum = 1, .maximum = 1e9,
     .help = "training data that a GPU may hold; larger sets are copied to it batch by batch (default: as much as "
             "fits)"},
    {"net", ARGUMENT_TEXT, offsetof(train_settings, net), "NAME", .standard = ARGUMENT_STANDARD_INPUT,
     .fallback = "simple_cnn",
     .help = "a network from the list below, made for the data's shape and classes, FILE.json or FILE.onnx"},
    {"from", ARGUMENT_TEXT, offsetof(train_settings, from), "FILE", .standard = ARGUMENT_STANDARD_INPUT,
     .help = "begin with the network and weights of a safetensors or ONNX file (transfer learning); if the data have a "
             "different number of classes, its last layer is replaced"},
    {"freeze", ARGUMENT_TEXT, offsetof(train_settings, freeze), "LIST",
     .help = "parameters to freeze, separated by commas; conv2d.* matches all names that begin so, and trunk all but "
             "those of the layer of the scores"},
    {"unfreeze", ARGUMENT_TEXT, offsetof(train_settings, unfreeze), "LIST",
     .help = "parameters to train that the network would freeze"},
    {0},
};

static const char *const keep_names[] = {"last", "best", "best-loss", NULL}; /* sdlf_keep */

static const argument output_arguments[] = {
    {.name = "Output", .type = ARGUMENT_HEADING},
    {"out", ARGUMENT_TEXT, offsetof(train_settings, out), "FILE", .letter = 'o',
     .help = "keep weights and training state here after each epoch (default: NETWORK.safetensors, if there is none)"},
    {"resume", ARGUMENT_TEXT, offsetof(train_settings, resume), "FILE",
     .help = "continue where FILE stopped, with its network, data and options; --epochs adds some if all are done"},
    {"keep", ARGUMENT_CHOICE, offsetof(train_settings, keep), "WHICH", .choices = keep_names, .fallback = "last",
     .help = "the epoch whose weights are kept: the last, or the best in the test, by accuracy or by loss"},
    {"patience", ARGUMENT_INT, offsetof(train_settings, patience), "N", .minimum = 1, .maximum = 100000,
     .help = "stop after N epochs without a better test (default: go on to the last epoch)"},
    {"no-save", ARGUMENT_FLAG, offsetof(train_settings, no_save), .help = "save nothing"},
    {"log", ARGUMENT_TEXT, offsetof(train_settings, log), "FILE",
     .help = "write a JSON object a line: start, steps, epochs, end. --resume appends to the file; otherwise a log of "
             "an earlier run is kept as FILE.1, or the next free number"},
    {"log-steps", ARGUMENT_INT, offsetof(train_settings, log_steps), "N", .minimum = 0, .maximum = 1e9,
     .fallback = "50", .help = "steps between two lines in the log, or values for TensorBoard; 0: only epochs"},
    {"tensorboard", ARGUMENT_TEXT, offsetof(train_settings, tensorboard), "DIR",
     .help = "write an event file there: curves, options, samples, the network's graph and the confusion matrix; "
             "'tensorboard --logdir DIR' shows it"},
    {"histograms", ARGUMENT_FLAG, offsetof(train_settings, histograms),
     .help = "with --tensorboard: histograms of each parameter after each epoch"},
    {"gradient-histograms", ARGUMENT_FLAG, offsetof(train_settings, gradient_histograms),
     .help = "with --tensorboard: histograms of each parameter's gradient after each epoch, over one batch: the first "
             "samples, unaugmented, with the network in inference mode"},
    {"serve", ARGUMENT_FLAG, offsetof(train_settings, serve),
     .help = "show a page of live curves in the browser of this machine, with buttons that save and stop; its address "
             "is printed"},
    {"port", ARGUMENT_INT, offsetof(train_settings, port), "N", .minimum = 0, .maximum = 65535, .fallback = "0",
     .help = "with --serve: the page's port on 127.0.0.1; 0: a free one"},
    {"confusion", ARGUMENT_FLAG, offsetof(train_settings, confusion), .help = "print the confusion matrix at the end"},
    {"quiet", ARGUMENT_FLAG, offsetof(train_settings, quiet), .help = "print only errors"},
    {"dry-run", ARGUMENT_FLAG, offsetof(train_settings, dry_run),
     .help =
         "check everything, print what would be trained, every option and the command that repeats the run, and write "
         "nothing"},
    {0},
};

static const argument shared_training_arguments[] = {
    {"gradient-dtype", ARGUMENT_CHOICE, offsetof(train_settings, gradient_dtype), "TYPE",
     .choices = train_gradient_dtypes, .fallback = "float32",
     .help =
         "type gradients are rounded to before they are added over the ranks: bfloat16 and float16 halve the bytes"},
    {"shard-states", ARGUMENT_FLAG, offsetof(train_settings, shard_states),
     .help = "each rank holds a part of the optimizer's states and updates that part of the weights (ZeRO 1)"},
    {"sync-batch-norm", ARGUMENT_FLAG, offsetof(train_settings, training.sync_batch_norm),
     .help = "batch normalisation with the statistics of the whole batch (default: of each rank's part)"},
    {0},
};

static void epilogue(void)
{
    terminal out = terminal_of(stdout);
    samples_print_list(&out);
    network_print_list();
}

void train_usage_make(train_usage *made, optimizer_rows *optimizers)
{
    optimizer_rows_make(optimizers);
    const argument_part parts[] = {
        {data_arguments, 0},
        {dimension_arguments, offsetof(train_settings, dimensions)},
        {training_arguments, offsetof(train_settings, training)},
        {optimizers->row, offsetof(train_settings, optimizer)},
        {schedule_arguments, offsetof(train_settings, training)},
        {augmentation_arguments, offsetof(train_settings, training)},
        {execution_arguments, offsetof(train_settings, execution)},
        {machine_arguments, offsetof(train_settings, execution.choice)},
        {rank_arguments, offsetof(train_settings, ranks)},
        {shared_training_arguments, 0},
        {output_arguments, 0},
    };
    static_assert(sizeof parts / sizeof parts[0] < TRAIN_PARTS, "and the end");
    *made = (train_usage){.usage = {0}};
    memcpy(made->parts, parts, sizeof parts);
    made->usage = (command_usage){
        .command = "train",
        .synopsis = "[options]",
        .text = "Train a network on labelled pictures and keep its weights. Without options it learns digits that it "
                "draws itself, in under a minute. Ctrl-C keeps what was learnt so far; a second one ends at once.",
        .parts = made->parts,
        .epilogue = epilogue,
        .examples = "  sdlf train\n"
                    "  sdlf train --data mnist:/data --net lenet5 --epochs 10\n"
                    "  sdlf train --data folder:flowers --size 64 --net resnet18 --augment-flip\n"
                    "  sdlf train --data folder:flowers --from mobilenetv2.onnx --freeze trunk\n"
                    "  sdlf train --epochs 10 --log run.jsonl --tensorboard runs/first\n"
                    "  sdlf train --epochs 50 --serve\n"
                    "  sdlf train --resume lenet5.safetensors --epochs 20\n"
                    "  sdlf train --optimizer adamw --weight-decay 0.01 --schedule cosine\n"
                    "  sdlf train --data folder:flowers --calculator cuda --devices 0,1\n"
                    "  sdlf train --data text:book.txt --net char_gpt --optimizer adamw\n",
    };
}

arguments_outcome train_usage_check(int count, char *const *words)
{
    train_settings *set = memory_allocate(sizeof *set);
    optimizer_rows *optimizers = memory_allocate(sizeof *optimizers);
    train_usage usage;
    arguments given;
    train_usage_make(&usage, optimizers);
    char **moved = memory_allocate((size_t)(count + 1) * sizeof *moved);
    memcpy(moved, words, (size_t)count * sizeof *moved);
    arguments_outcome outcome = arguments_check(&given, &usage.usage, count, moved, set);
    free(moved);
    free(optimizers);
    free(set);
    return outcome;
}
