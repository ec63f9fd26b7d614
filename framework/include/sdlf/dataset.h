/* SPDX-License-Identifier: MIT */
/* Dataset: samples and labels in host memory. Loader: batches of them, shuffled, augmented, normalised, made ahead of time
 * on a thread of its own.
 *
 * Threads: a data set that is open does not change, and any thread may read it; one thread at a time uses a loader.
 * Ownership: a data set and a loader are the caller's; a loader borrows its data set, and what it hands out is its own until the next
 * call.
 * Errors: a status with a message (status.h) that names the file and the byte. */
#ifndef SDLF_DATASET_H
#define SDLF_DATASET_H

#include <sdlf/calculator.h>
#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_dataset_class sdlf_dataset_class;

/* Which half of a data set that comes in two. */
typedef enum sdlf_split { SDLF_SPLIT_TRAIN = 0, SDLF_SPLIT_TEST } sdlf_split;

/* Write sample `index` to `to`: as many elements as samples.shape says without its first dimension, of samples.dtype. Called by loaders on
 * their threads, several at once where there are several loaders or `readers`. The same index must give the same
 * sample. Another status than SDLF_OK ends the loading with the message that sdlf_fail left. */
typedef sdlf_status sdlf_sample_reader(void *context, int64_t index, void *to);

/* Rows and columns of a sample (C,H,W): the first, and the one behind the last; at least one each. */
typedef struct sdlf_sample_part {
    int rows[2], columns[2];
} sdlf_sample_part;

/* The same, where only this part of the sample is looked at: what else lies at `to` may stay as it is. */
typedef sdlf_status sdlf_sample_part_reader(void *context, int64_t index, const sdlf_sample_part *part, void *to);

typedef struct sdlf_dataset {
    const sdlf_dataset_class *type;
    char *name;          /* "digits (procedural, seed 1)", "mnist (DIR)"; NULL in a program's own: "without a name" */
    sdlf_tensor samples; /* (M,C,H,W) or (M,F), uint8 or float32, host memory, owned */
    sdlf_tensor
        labels; /* host memory, owned: (M) int32, each in [0, class_count); of sequences, samples (M,T), (M,T) int32; of
                   each pixel of pictures (M,C,H,W), (M,H,W) int32, -1 where none counts; or float targets, finite: (M,K) float32 */
    int class_count;   /* of targets: K */
    float mean, scale; /* how a loader normalises, (x - mean) * scale, where channels.count is 0 */
    sdlf_channel_normalization channels;
    char **
        class_names; /* class_count names, owned (an array, and each), of classes or of targets; NULL: they are numbers */
    sdlf_fit fit;    /* how pictures were scaled to the samples' size */
    int64_t unread;      /* files that could not be read and were left out */
    char **unread_files; /* the message of each of them, in their order, which names it; owned; NULL: there are none */
    const char *unread_why;   /* the first of these messages; NULL: there is none */
    sdlf_sample_reader *read; /* makes samples that are not in memory: samples.data is NULL then; NULL: they are */
    void *read_context;
    int readers;                         /* threads of a loader that call it at once; 0: one */
    void (*free_context)(void *context); /* called by sdlf_dataset_free; optional */
    sdlf_sample_part_reader
        *read_part; /* called instead of `read` where augmentation leaves out some of a sample; optional */
    bool held_out;  /* the test half was held out of data that are not in two parts */
    /* Makes the labels of a sample, as `labels` says without its first dimension, where labels.data is NULL; called as `read` is, with
     * read_context. See sdlf_dataset_read_labels. */
    sdlf_sample_reader *read_labels;
    void *reserved[3]; /* zero: room for members to come */
} sdlf_dataset;

/* What is requested of a data set; zeroed: as its files are. */
typedef struct sdlf_dataset_options {
    int channels, height, width; /* of a sample, for sets of pictures of any size (folder); 0: as the files are */
    bool outline;                /* shapes, classes and names are enough: samples.data and labels.data may be NULL */
    bool targets;                /* labels are numbers, of any set that has some (csv, npz, npy): float targets */
    /* Samples only, of npy:FILE (an array of them, or of one) and csv:FILE (all columns; or, where there is one
     * more than `sample` takes, all but the label's, whose name or number class_names then has): labels are all 0, of
     * one class, and nothing is measured to normalise by. */
    bool unlabelled;
    bool
        whole; /* of data that are not in two parts (csv, npz, npy) all samples, of which else a fifth is held out for testing */
    sdlf_shape sample; /* what the network takes; a scalar: not known. Arrays (npy, npz) that fit are read as such */
    bool strict;       /* a picture that cannot be read is an error, and not left out */
    int threads;       /* that make the samples, which do not depend on it; 0: one for each processor */
    int64_t
        cache; /* bytes of samples to keep in memory, of sets that read the others when they are needed (folder, segmentation); 0: all are kept */
    /* Called on any of these threads, one call at a time, when `done` of `count` pictures are read. Optional. */
    void (*progress)(void *context, int64_t done, int64_t count);
    void *progress_context;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_dataset_options;

struct sdlf_dataset_class {
    const char *name;    /* "mnist": what stands before the colon of `mnist:DIR` */
    const char *summary; /* one line with the argument's form */
    /* Load a split. `argument` is what stood after the colon, or NULL. Fills name, samples, labels, class_count, the
     * normalisation and what else it knows of a zeroed dataset; sdlf_dataset_free releases whatever it filled, also after a failure. */
    sdlf_status (*load)(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options);
    /* What can be said against an argument before anything is read or drawn; fails as `load` would. Optional; NULL: nothing can. */
    sdlf_status (*check)(const char *argument, sdlf_split split);
    void *reserved[4]; /* zero: room for members to come */
};

/* Open "NAME" or "NAME:ARGUMENT". The dataset is the caller's. Errors name the file and the byte at fault. */
sdlf_status sdlf_dataset_open(sdlf_dataset **dataset, const char *specification, sdlf_split split);
/* The same with options (NULL: none). */
sdlf_status sdlf_dataset_open_with(sdlf_dataset **dataset, const char *specification, sdlf_split split,
                                   const sdlf_dataset_options *options);
void sdlf_dataset_free(sdlf_dataset *dataset);
/* The labels of one sample, wherever they are, to `to`, as many as labels.shape says without its first dimension. Errors: those of read_labels, and
 * SDLF_ERROR_FORMAT where it made labels that are no classes (of pixels also -1), or targets that are not finite. */
sdlf_status sdlf_dataset_read_labels(const sdlf_dataset *dataset, int64_t index, void *to);
/* Have loaders of it normalise as the model says; where it does not say, and takes tokens (sdlf_model_takes_tokens), not
 * at all; else as before. Trainers and evaluators do this with their own view of a data set. */
void sdlf_dataset_normalize_for(sdlf_dataset *dataset, const sdlf_model *model);
/* Would it open, as far as can be told without reading or drawing it: is the name known, the argument well-formed, are the
 * files there? For programs that have other things to prepare first. Errors: those of sdlf_dataset_open. */
sdlf_status sdlf_dataset_check(const char *specification, sdlf_split split);
const sdlf_dataset_class *sdlf_dataset_class_at(int index);

/* Read one IDX file, plain or gzip, of unsigned bytes: a host tensor (uint8) of its shape, which the caller releases
 * with sdlf_tensor_release(tensor, NULL). Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (file and byte), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_idx_read(sdlf_tensor *tensor, const char *path);
/* The same from memory; `name` stands for the file in messages. */
sdlf_status sdlf_idx_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name);

/* ---- loader ---- */

typedef struct sdlf_loader sdlf_loader;

/* Samples of a batch that are mixed in pairs, the first with the last and so on, and their labels with them. A sample keeps the share s of
 * itself, at least half: of its values (mixup, https://arxiv.org/abs/1710.09412), or of its area (cutmix, pictures (C,H,W), beside a box of the other's
 * pixels; https://arxiv.org/abs/1905.04899). s = max(l, 1 - l) with l from Beta(a, a), a being the member's value, in (0, 2]; 0: off. With both,
 * chance picks one for each sample. Drawn from Philox(seed, 64 sample + attempt, SDLF_STREAM_MIX, epoch). */
typedef struct sdlf_mixing {
    float mixup, cutmix;
} sdlf_mixing;

typedef struct sdlf_loader_options {
    int64_t batch;             /* required */
    bool shuffle;              /* a new order each epoch: see sdlf_shuffle_order */
    sdlf_augmentation augment; /* where its seed is 0, `seed` is used */
    sdlf_mixing mixing;
    sdlf_auto_augment automatic; /* before `augment` */
    uint64_t seed;
    bool no_prefetch; /* make each batch on demand, on the caller's thread */
    /* Of each batch only a rank's part, [count rank / ranks, count (rank + 1) / ranks): `batch` is that of all ranks. Where that is empty (in a
     * shorter last batch) the part is one sample, which the rank is to count as none. `mixing` pairs the samples of the whole batch. 0 ranks: all
     * of it. */
    int rank, ranks;
    /* Batches lie in memory that this calculator uploads from fastest, where its queues have such (pinned) and enough of it; borrowed until the
     * loader is freed. A batch is in use until such uploads of it are done, which are queued: wait for them before the next call that hands its
     * memory back: sdlf_loader_next, also past the end of an epoch, sdlf_loader_seek and sdlf_loader_free. sdlf_loader_create and sdlf_loader_free
     * use the calculator: call them on the thread that uses it, and before it is closed. NULL: any memory. */
    sdlf_calculator *calculator;
    void *reserved[3]; /* zero: room for members to come */
} sdlf_loader_options;

/* A batch in host memory, valid until the next call. The last of an epoch may be shorter (`count` < batch). */
typedef struct sdlf_batch {
    sdlf_tensor samples; /* (count,C,H,W) float32, normalised */
    sdlf_tensor labels;  /* (count) int32, (count,T) or (count,H,W) int32, or (count,K) float32 */
    int64_t count;
    /* Where samples are mixed, of classes (float targets are mixed themselves): what each was mixed with, (count) int32, and the share that
     * it kept of itself, (count) float32; else absent. */
    sdlf_tensor second_labels, shares;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_batch;

/* The loader borrows the data set; free with sdlf_loader_free (accepts NULL; joins the thread). Errors:
 * SDLF_ERROR_ARGUMENT (batch), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_loader_create(sdlf_loader **loader, const sdlf_dataset *dataset, const sdlf_loader_options *options);
void sdlf_loader_free(sdlf_loader *loader);

/* Go to batch `first` (up to and including sdlf_loader_batches: the end) of epoch `epoch` (32 bits, not negative); a new
 * loader stands at batch 0 of epoch 0. The samples of any batch depend only on (seed, epoch, position). */
sdlf_status sdlf_loader_seek(sdlf_loader *loader, int64_t epoch, int64_t first);

/* The next batch of the epoch; count 0 past its end, where sdlf_loader_seek goes on to another. Allocates nothing. Reports
 * what went wrong on the loader's thread. */
sdlf_status sdlf_loader_next(sdlf_loader *loader, sdlf_batch *batch);

int64_t sdlf_loader_batches(const sdlf_loader *loader);

/* Bytes that it holds: batches, the order of an epoch, scratch space. */
int64_t sdlf_loader_memory(const sdlf_loader *loader);

/* The order of an epoch: `order[0 .. count - 1]` becomes a permutation: the samples sorted by the 64-bit keys
 * word[1] 2^32 + word[0] of Philox(seed, sample, SDLF_STREAM_SHUFFLE, epoch), equal keys by sample. `keys` is scratch space
 * of `count`. */
void sdlf_shuffle_order(int32_t *order, uint64_t *keys, int64_t count, uint64_t seed, uint32_t epoch);

#ifdef __cplusplus
}
#endif
#endif
