/* SPDX-License-Identifier: MIT */
/* Dataset: samples and labels in host memory. Loader: batches of them, shuffled, augmented and normalised, prepared
 * ahead of time on a thread of its own.
 *
 * Threads: an open data set does not change, and any thread may read it; one thread at a time uses a loader.
 * Ownership: data sets and loaders are the caller's. A loader borrows its data set; the batches it returns belong to it
 * and are valid until the next call.
 * Errors: a status with a message (status.h) that names the file and the byte. */
#ifndef SDLF_DATASET_H
#define SDLF_DATASET_H

#include <sdlf/calculator.h>
#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_dataset_class sdlf_dataset_class;

/* The part of a data set to load. */
typedef enum sdlf_split { SDLF_SPLIT_TRAIN = 0, SDLF_SPLIT_TEST } sdlf_split;

/* Write sample `index` to `to`: elements of samples.dtype, in the shape of `samples` without its first
 * dimension. Called on loader threads, concurrently if there are several loaders or `readers`. The same index
 * must give the same sample. Any status other than SDLF_OK ends loading, with the message left by sdlf_fail. */
typedef sdlf_status sdlf_sample_reader(void *context, int64_t index, void *to);

/* A range of rows and of columns of a sample (C,H,W): first, and last + 1; neither is empty. */
typedef struct sdlf_sample_part {
    int rows[2], columns[2];
} sdlf_sample_part;

/* The same if only this part of the sample is used; the rest of `to` may be left unwritten. */
typedef sdlf_status sdlf_sample_part_reader(void *context, int64_t index, const sdlf_sample_part *part, void *to);

typedef struct sdlf_dataset {
    const sdlf_dataset_class *type;
    char *name;          /* "digits (procedural, seed 1)", "mnist (DIR)"; NULL in a program's own: "without a name" */
    sdlf_tensor samples; /* (M,C,H,W) or (M,F), uint8 or float32, host memory, owned */
    sdlf_tensor
        labels; /* host memory, owned: int32 (M), each in [0, class_count); (M,T) for sequences (M,T); (M,H,W) for the
                   pixels of images (M,C,H,W), -1 where ignored; or float targets, float32 (M,K), finite */
    int class_count;   /* for float targets: K */
    float mean, scale; /* normalisation by a loader, (x - mean) * scale, if channels.count is 0 */
    sdlf_channel_normalization channels;
    char **
        class_names; /* class_count names of classes or targets, owned (the array and each name); NULL: they are numbers */
    sdlf_fit fit;    /* how images were fitted to the samples' size */
    int64_t unread;      /* number of unreadable files that were skipped */
    char **unread_files; /* for each of them, in order, the message, which names the file; owned; NULL: there is none */
    const char *unread_why;   /* the first of these messages; NULL: there is none */
    sdlf_sample_reader *read; /* produces samples that are not in memory: samples.data is NULL; NULL: all are */
    void *read_context;
    int readers;                         /* number of loader threads that call it concurrently; 0: one */
    void (*free_context)(void *context); /* called by sdlf_dataset_free; optional */
    sdlf_sample_part_reader
        *read_part; /* called instead of `read` if augmentation uses only part of a sample; optional */
    bool held_out;  /* the test part was held out of data without a split of its own */
    /* Produces the labels of a sample, in the shape of `labels` without its first dimension, if labels.data is NULL. Called like `read`,
     * with read_context. See sdlf_dataset_read_labels. */
    sdlf_sample_reader *read_labels;
    void *reserved[3]; /* zero; reserved for new members */
} sdlf_dataset;

/* How to load a data set; zeroed: as its files are. */
typedef struct sdlf_dataset_options {
    int channels, height, width; /* of a sample, for data sets of images of any size (folder); 0: as in the files */
    bool outline;                /* load only shapes, classes and names: samples.data and labels.data may be NULL */
    bool targets;                /* read labels as float targets, where the data set has numbers (csv, npz, npy) */
    /* Load samples only, from npy:FILE (an array of samples, or a single one) or csv:FILE (all columns; or, if there is
     * one more than `sample` needs, all but the label's, whose name or index is then in class_names). All labels are 0,
     * of a single class, and no normalisation is computed. */
    bool unlabelled;
    bool
        whole; /* load all samples of data without a split (csv, npz, npy); otherwise a fifth is held out for testing */
    sdlf_shape sample; /* the network's input shape; a scalar: unknown. Arrays (npy, npz) that match it are read so */
    bool strict;       /* an image that cannot be read is an error; otherwise it is skipped */
    int threads;       /* that produce the samples, without affecting their values; 0: one per CPU core */
    int64_t
        cache; /* bytes of samples to keep in memory, for data sets that can read the rest on demand (folder, segmentation); 0: keep all */
    /* Called on any of these threads, one call at a time, when `done` of `count` images have been read. Optional. */
    void (*progress)(void *context, int64_t done, int64_t count);
    void *progress_context;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_dataset_options;

struct sdlf_dataset_class {
    const char *name;    /* "mnist": the part of `mnist:DIR` before the colon */
    const char *summary; /* one line with the argument's form */
    /* Load a split. `argument` is the part after the colon, or NULL. Sets name, samples, labels, class_count, the normalisation
     * and other known members of a zeroed dataset; sdlf_dataset_free releases whatever has been set, also after a failure. */
    sdlf_status (*load)(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options);
    /* Check an argument before anything is read or generated; fails as `load` would. Optional; NULL: no check. */
    sdlf_status (*check)(const char *argument, sdlf_split split);
    void *reserved[4]; /* zero; reserved for new members */
};

/* Open "NAME" or "NAME:ARGUMENT". The dataset is the caller's. Errors name the file and the byte at fault. */
sdlf_status sdlf_dataset_open(sdlf_dataset **dataset, const char *specification, sdlf_split split);
/* The same with options (NULL: none). */
sdlf_status sdlf_dataset_open_with(sdlf_dataset **dataset, const char *specification, sdlf_split split,
                                   const sdlf_dataset_options *options);
void sdlf_dataset_free(sdlf_dataset *dataset);
/* Write the labels of one sample to `to`, in the shape of `labels` without its first dimension. Errors: those of read_labels;
 * SDLF_ERROR_FORMAT if it produced labels that are not classes (for pixels, -1 is allowed) or targets that are not finite. */
sdlf_status sdlf_dataset_read_labels(const sdlf_dataset *dataset, int64_t index, void *to);
/* Set the normalisation of its loaders: the model's, if known; none, if the model takes tokens
 * (sdlf_model_takes_tokens); else unchanged. Trainers and evaluators apply this to their own view of a data set. */
void sdlf_dataset_normalize_for(sdlf_dataset *dataset, const sdlf_model *model);
/* Check whether it would open, without reading or generating it: whether the name is known, the argument is well-formed
 * and the files exist. For programs with other preparations to do first. Errors: those of sdlf_dataset_open. */
sdlf_status sdlf_dataset_check(const char *specification, sdlf_split split);
const sdlf_dataset_class *sdlf_dataset_class_at(int index);

/* Read an IDX file of unsigned bytes, plain or gzip, into a new host tensor (uint8). The caller releases it with
 * sdlf_tensor_release(tensor, NULL). Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (file and byte), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_idx_read(sdlf_tensor *tensor, const char *path);
/* The same from memory; `name` replaces the file name in messages. */
sdlf_status sdlf_idx_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name);

/* ---- loader ---- */

typedef struct sdlf_loader sdlf_loader;

/* Mixing of samples, and of their labels, in pairs within a batch: the first with the last and so on. A sample keeps a share s >= 1/2 of
 * itself: of its values (mixup, https://arxiv.org/abs/1710.09412), or of its area (cutmix, for images (C,H,W): a box is replaced by the
 * other image's pixels, https://arxiv.org/abs/1905.04899). s = max(l, 1 - l) with l from Beta(a, a), where a is the member's value, in (0,
 * 2]; 0: off. With both, one is chosen at random for each sample. Drawn from Philox(seed, 64 sample + attempt, SDLF_STREAM_MIX, epoch). */
typedef struct sdlf_mixing {
    float mixup, cutmix;
} sdlf_mixing;

typedef struct sdlf_loader_options {
    int64_t batch;             /* required */
    bool shuffle;              /* draw a new order each epoch: see sdlf_shuffle_order */
    sdlf_augmentation augment; /* if its seed is 0, `seed` is used */
    sdlf_mixing mixing;
    sdlf_auto_augment automatic; /* before `augment` */
    uint64_t seed;
    bool no_prefetch; /* prepare each batch on demand, on the caller's thread */
    /* Return only a rank's part of each batch, [count rank / ranks, count (rank + 1) / ranks); `batch` is the size over all ranks. If the
     * part is empty (in a shorter last batch), one sample is returned, which the rank must not count. `mixing` pairs the samples of the
     * whole batch. 0 ranks: the whole batch. */
    int rank, ranks;
    /* Keep batches in the memory from which this calculator uploads fastest (pinned), if its queues provide it and there is
     * enough; borrowed until the loader is freed. Queued uploads from a batch must be complete before the next call that may reuse
     * its memory: sdlf_loader_next, also past the end of an epoch, sdlf_loader_seek and sdlf_loader_free. sdlf_loader_create and
     * sdlf_loader_free use the calculator: call them on the thread that uses it, and before it is closed. NULL: any memory. */
    sdlf_calculator *calculator;
    void *reserved[3]; /* zero; reserved for new members */
} sdlf_loader_options;

/* A batch in host memory, valid until the next call. The last one of an epoch may be shorter (`count` < batch). */
typedef struct sdlf_batch {
    sdlf_tensor samples; /* (count,C,H,W) float32, normalised */
    sdlf_tensor labels;  /* (count) int32, (count,T) or (count,H,W) int32, or (count,K) float32 */
    int64_t count;
    /* If samples with class labels are mixed: the label of the other sample, (count) int32, and the share that
     * each sample kept of itself, (count) float32. Otherwise absent; float targets are mixed directly. */
    sdlf_tensor second_labels, shares;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_batch;

/* Create a loader, which borrows the data set. Free it with sdlf_loader_free (accepts NULL; joins the thread). Errors:
 * SDLF_ERROR_ARGUMENT (batch), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_loader_create(sdlf_loader **loader, const sdlf_dataset *dataset, const sdlf_loader_options *options);
void sdlf_loader_free(sdlf_loader *loader);

/* Go to batch `first` (at most sdlf_loader_batches, the end) of epoch `epoch` (32 bits, not negative). A new loader is
 * at batch 0 of epoch 0. The samples of a batch depend only on (seed, epoch, position). */
sdlf_status sdlf_loader_seek(sdlf_loader *loader, int64_t epoch, int64_t first);

/* Get the next batch of the epoch. At its end, count is 0; call sdlf_loader_seek to start another one. Allocates
 * nothing. Returns errors of the loader's thread. */
sdlf_status sdlf_loader_next(sdlf_loader *loader, sdlf_batch *batch);

int64_t sdlf_loader_batches(const sdlf_loader *loader);

/* The loader's memory in bytes: batches, the order of an epoch, scratch space. */
int64_t sdlf_loader_memory(const sdlf_loader *loader);

/* Compute the sample order of an epoch. order[0 .. count - 1] becomes a permutation: the samples sorted by the 64-bit
 * keys word[1] 2^32 + word[0] of Philox(seed, sample, SDLF_STREAM_SHUFFLE, epoch), ties by sample. `keys` is scratch
 * space for `count` elements. */
void sdlf_shuffle_order(int32_t *order, uint64_t *keys, int64_t count, uint64_t seed, uint32_t epoch);

#ifdef __cplusplus
}
#endif
#endif
