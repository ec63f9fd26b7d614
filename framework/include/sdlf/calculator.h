/* SPDX-License-Identifier: MIT */
/* Calculator: HOW operations are computed, on one kind of hardware. Other frameworks call it a backend.
 *
 * A calculator class is a const table: functions to open and close a calculator, its memory functions, and one kernel
 * slot for each kind of operation. A calculator knows tensors and operations, but no layers, models, plans or files.
 *
 * Threads: one thread at a time uses a calculator and the plans on it; different calculators, also of the same class,
 * may be used in different threads. Classes and their list may be read and extended from any thread.
 * Ownership: a calculator is the caller's, to be closed after the plans and tensors that use it. Classes are borrowed
 * until the process ends.
 * Errors: a status with a message (status.h); SDLF_ERROR_DEVICE if a device failed. */
#ifndef SDLF_CALCULATOR_H
#define SDLF_CALCULATOR_H

#include <sdlf/operation.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_calculator_class sdlf_calculator_class;

/* How products of float32 operands may be computed where the hardware offers a choice. Accumulators and stored values
 * are always float32, so parameters keep every bit of an update. */
typedef enum sdlf_math {
    SDLF_MATH_FP32 = 0, /* IEEE single precision */
    SDLF_MATH_TF32,     /* operands rounded to 10 mantissa bits, on Tensor Cores */
    SDLF_MATH_FP16,     /* operands rounded to float16 */
    SDLF_MATH_BF16,     /* operands rounded to bfloat16 */
    SDLF_MATH_COUNT
} sdlf_math;

/* Names "fp32", "tf32", "fp16", "bf16", and the inverse (SDLF_MATH_COUNT for an unknown name). */
const char *sdlf_math_name(sdlf_math math);
sdlf_math sdlf_math_from_name(const char *name);

typedef struct sdlf_calculator_options {
    int threads;       /* 0: as many as the process may use */
    int device;        /* ordinal of the device, for calculators that have several */
    sdlf_math math;    /* calculators without a choice always compute in fp32 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_calculator_options;

/* Compute one operation. Its operands are bound, checked (sdlf_operation_check) and accepted by the slot's `supports`.
 * A kernel allocates nothing; its scratch space is operation->workspace. Work may be queued: results are complete after
 * `synchronize`. Fails only because of the device. */
typedef sdlf_status sdlf_kernel(sdlf_calculator *calculator, const sdlf_operation *operation);

/* What is known about an algorithm beside its name. */
typedef struct sdlf_algorithm_note {
    const char *summary; /* one line: how it computes */
    const char *takes;   /* the operations that it supports: "3x3 windows, stride 1"; NULL: any */
    /* It runs only when requested by name: "auto" never selects it, and it is not measured for plan files. For
     * baselines, and for algorithms that give up accuracy. */
    bool on_request;
} sdlf_algorithm_note;

typedef struct sdlf_kernel_slot {
    sdlf_kernel *run; /* NULL: this calculator lacks the operation; creating a plan that needs it fails */
    /* Returns whether `run` supports this operation. Optional; NULL: every operation that passes its check. */
    bool (*supports)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* Bytes of scratch space, 64-byte aligned. Optional; NULL: none. */
    int64_t (*workspace)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* Names of the algorithms, NULL-terminated, indexed by operation->algorithm; [0] is "auto". Optional. */
    const char *const *algorithms;
    /* A note on each algorithm, in the same order. Optional; NULL: none. */
    const sdlf_algorithm_note *notes;
    /* The full cost of operation->algorithm: its own arithmetic, every operand once, and every intermediate array,
     * written and read. Optional; NULL: the cost of the operation itself (sdlf_operation_cost). */
    sdlf_cost (*work)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* The index of the algorithm that "auto" selects for this operation. Optional; NULL: unknown. */
    int (*automatic)(const sdlf_calculator *calculator, const sdlf_operation *operation);

    /* `run` supports operands that are channels last, where the kind's contract allows them. False: only row-major
     * ones. */
    bool channels_last;
    /* `run` supports a mixture of channels-last and row-major operands, where the contract allows it. `supports`,
     * called with such a mixture, says which. False: none. */
    bool mixed;
    /* Returns whether channels last is faster for this operation, so that plans should use it. In training, they do
     * where such operations have three quarters of the calculator's FLOPs. Called with row-major operands;
     * operation->prepared is present, without memory, if weights will be prepacked. Optional; NULL: false. */
    bool (*prefers_channels_last)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* `run` supports operands in a storage type (16 bits, or float32 channels last with its weights), where the kind's
     * contract allows it. `supports` says which. False: none. */
    bool storage;

    /* Prepacking of constant operands, weights or a sparse matrix (`packed` of the operation's class), once for all
     * runs. `prepared` returns the size in bytes of the layout that `run` prefers (0: unchanged); `prepare` writes
     * that layout to operation->prepared, given the operation as it will run. `run` also works while
     * operation->prepared is absent. The workspace size may depend on it, so query that afterwards. In host memory,
     * `run` does not read the operands that the class marks `unread` while operation->prepared is present. Optional,
     * both or neither. */
    int64_t (*prepared)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    sdlf_kernel *prepare;

    void *reserved[2]; /* zero; members can be added here without breaking binary compatibility */
} sdlf_kernel_slot;

/* A fusion that a calculator declares, and its kernel; if `run` is NULL, the slot of SDLF_FUSED computes it. */
typedef struct sdlf_fused_slot {
    const sdlf_fusion *fusion; /* NULL ends a list */
    sdlf_kernel_slot slot;
} sdlf_fused_slot;

/* Queues: for devices that transfer memory while they compute, without blocking the host.
 *
 * Kernels, replays and the plain upload and download run in SDLF_QUEUE_COMPUTE. Work in one queue runs in order; the
 * two queues are synchronised only by fences. */
typedef enum sdlf_queue { SDLF_QUEUE_COMPUTE = 0, SDLF_QUEUE_TRANSFER } sdlf_queue;

/* A point in a queue. It has passed when all earlier work in the queue is done; a fence never set counts as passed. */
typedef struct sdlf_fence sdlf_fence;

typedef struct sdlf_queue_class {
    /* Allocate host memory for queued transfers. Free it only after they are done. */
    sdlf_status (*allocate_host)(sdlf_calculator *calculator, int64_t bytes, void **memory);
    void (*deallocate_host)(sdlf_calculator *calculator, void *memory);

    /* Let queued transfers use existing host memory. Optional, both or neither; NULL: not supported. Call unpin_host
     * once for each pin_host, when no transfer is queued. Fails if the system cannot pin more memory. */
    sdlf_status (*pin_host)(sdlf_calculator *calculator, void *memory, int64_t bytes);
    void (*unpin_host)(sdlf_calculator *calculator, void *memory);

    /* Queue a transfer. `host` is in memory from allocate_host, or pinned; it is read or written when the transfer
     * runs. */
    sdlf_status (*upload)(sdlf_calculator *calculator, sdlf_queue queue, void *to, const void *host, int64_t bytes);
    sdlf_status (*download)(sdlf_calculator *calculator, sdlf_queue queue, void *host, const void *from, int64_t bytes);

    /* Fences belong to the caller; fence_free accepts NULL. fence_set moves the fence behind everything that is in the
     * queue now. After fence_follow, later work in that queue waits for the fence at its current position. fence_wait
     * blocks the host, which sleeps. fence_passed returns without waiting whether the fence has passed; true if it was
     * never set. */
    sdlf_status (*fence_create)(sdlf_calculator *calculator, sdlf_fence **fence);
    void (*fence_free)(sdlf_calculator *calculator, sdlf_fence *fence);
    sdlf_status (*fence_set)(sdlf_calculator *calculator, sdlf_queue queue, sdlf_fence *fence);
    sdlf_status (*fence_follow)(sdlf_calculator *calculator, sdlf_queue queue, sdlf_fence *fence);
    sdlf_status (*fence_wait)(sdlf_calculator *calculator, sdlf_fence *fence);
    sdlf_status (*fence_passed)(sdlf_calculator *calculator, sdlf_fence *fence, bool *passed);
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_queue_class;

struct sdlf_calculator_class {
    const char *name;    /* "cpu" */
    const char *summary; /* one line for --help */
    size_t size;         /* of the object whose first member is an sdlf_calculator */
    bool has_math;       /* the math mode affects its results; false: it always computes in fp32 */

    /* The name of a registered class to inherit from. It computes, in the same memory, the kinds for which this class
     * has no `run`, and provides the other functions that are missing here (`open`, `close`, `describe`, those for
     * memory, `synchronize`). Each calculator of this class opens one of that class with the same options. That class
     * must not queue its work: of the library's, "reference" and "cpu" qualify. Optional; NULL: none. A calculator's
     * `type` is then a table made by sdlf_calculator_open, with all slots filled. */
    const char *inherits;

    /* The number of devices of this kind; sdlf_calculator_options.device selects one, 0 .. count - 1. Optional; NULL:
     * there is nothing to select, and the option is ignored. */
    int (*device_count)(void);

    /* Initialise a zeroed object; on failure, release everything it acquired. */
    sdlf_status (*open)(sdlf_calculator *calculator, const sdlf_calculator_options *options);
    void (*close)(sdlf_calculator *calculator);

    /* Write one line that describes what it runs on: "2 threads, avx512, gemm oneDNN 2.6". */
    void (*describe)(const sdlf_calculator *calculator, char *text, size_t size);

    /* Memory is aligned to at least 64 bytes. allocate(0) returns SDLF_OK with a valid pointer or NULL. */
    sdlf_status (*allocate)(sdlf_calculator *calculator, int64_t bytes, void **memory);
    void (*deallocate)(sdlf_calculator *calculator, void *memory);
    sdlf_status (*upload)(sdlf_calculator *calculator, void *to, const void *host, int64_t bytes);
    sdlf_status (*download)(sdlf_calculator *calculator, void *host, const void *from, int64_t bytes);
    sdlf_status (*synchronize)(sdlf_calculator *calculator); /* wait for all queued work */

    /* The type in which plans made up of convolutions and pooling like this operation should store activations and,
     * in training, their gradients, with images channels last: SDLF_FLOAT16, SDLF_BFLOAT16 or, in training only,
     * SDLF_FLOAT32. SDLF_NONE: the plan's own type, in the layout that kernels prefer. Optional; NULL:
     * SDLF_NONE. */
    sdlf_dtype (*storage)(const sdlf_calculator *calculator, const sdlf_operation *operation, bool training);

    /* Free and total memory in bytes. Optional; NULL: unknown. */
    sdlf_status (*memory_info)(sdlf_calculator *calculator, int64_t *available, int64_t *total);

    const sdlf_queue_class *queues; /* optional; NULL: one queue, and transfers block the host */

    /* Recording (on CUDA, graph capture): work queued between record_begin and record_end is not run but kept as one
     * unit, which each call of replay queues again, on the same memory. Optional, all four or none. Plans that run only
     * on such a calculator replay their passes, in inference too. After a failure nothing is being recorded. */
    sdlf_status (*record_begin)(sdlf_calculator *calculator);
    sdlf_status (*record_end)(sdlf_calculator *calculator, void **recording);
    sdlf_status (*replay)(sdlf_calculator *calculator, void *recording);
    void (*discard)(sdlf_calculator *calculator, void *recording);
    /* The number of operations beyond which longer recordings hardly reduce launch overhead. If training steps draw
     * their own batches, plans record several as one unit, up to this number. 0: one step per recording. */
    int longest_recording;

    /* Launch fusion: compute a prefix of `count` consecutive operations with fewer launches than one each. *done is the
     * number computed; 0 if the first two cannot be fused, and then nothing has been done. Outputs are as from the
     * slots, except that sums may be accumulated in another order. Operands are as for a slot's `run`. Memory that one
     * operation writes overlaps operands of another only if both are the same tensor, or if an operation overwrites an
     * input of its own (`may_alias`), which earlier operations may have read. Called by training plans. Optional; NULL:
     * none are fused. */
    sdlf_status (*run_together)(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count,
                                int *done);

    /* Copy from memory of the same device that belongs to another library, after all work queued on that device in any
     * stream. The copy is complete on return. Optional; NULL: not supported. */
    sdlf_status (*copy_from_device)(sdlf_calculator *calculator, void *to, const void *from, int64_t bytes);

    /* Fusions that plans may use, in addition to those of the inherited class. Optional; NULL: none. */
    const sdlf_fused_slot *fusions;

    void *reserved[2]; /* zero; members can be added here without breaking binary compatibility */

    /* The last member, because it grows with the number of operation kinds; sdlf_register_calculator knows how many a
     * table was compiled with. */
    sdlf_kernel_slot kernel[SDLF_OPERATION_COUNT];
};

#define SDLF_HOST_SPACE "host" /* the C heap */

struct sdlf_calculator {
    const sdlf_calculator_class *type;
    /* Calculators with equal `space` share memory: no copies between them are needed. Owned by the calculator, set by
     * `open`. */
    const char *space;
    sdlf_calculator *inherited; /* set by the library: computes the inherited kinds */
};

/* Open a calculator of the class named `name`. `options` may be NULL. The calculator is the caller's; close it after
 * every plan and tensor that uses it. Errors: SDLF_ERROR_ARGUMENT (unknown name: the message lists the known ones),
 * SDLF_ERROR_UNSUPPORTED (not in this build), SDLF_ERROR_DEVICE. */
sdlf_status sdlf_calculator_open(sdlf_calculator **calculator, const char *name,
                                 const sdlf_calculator_options *options);
void sdlf_calculator_close(sdlf_calculator *calculator);

/* Registered classes, in order; NULL past the end. */
const sdlf_calculator_class *sdlf_calculator_class_at(int index);

/* Register a class of the program under its name, after those of the library. Any thread may call this at any time.
 * The table is borrowed until the process ends. Registering the same table again has no effect. Errors:
 * SDLF_ERROR_ARGUMENT (the name is not a lower-case word or is taken, a member is missing, the inherited class does
 * not exist: the message says which), SDLF_ERROR_UNSUPPORTED (the program was compiled with the headers of a newer
 * library), SDLF_ERROR_MEMORY (64 are registered already). `size` is that of the table as compiled;
 * sdlf_register_calculator passes it. */
sdlf_status sdlf_register_calculator_sized(const sdlf_calculator_class *type, size_t size);
static inline sdlf_status sdlf_register_calculator(const sdlf_calculator_class *type)
{
    return sdlf_register_calculator_sized(type, sizeof(sdlf_calculator_class));
}

/* The default class: the fastest one that computes in host memory. */
const sdlf_calculator_class *sdlf_calculator_class_default(void);

/* Names of calculators that this build lacks, each with the reason; NULL past the end. */
const char *sdlf_calculator_unavailable(int index, const char **reason);

/* The slot of an operation, that of its kind or of its fusion; `run` may be NULL. NULL if the operation's kind is
 * invalid. sdlf_fused_slot_in returns the entry for a fusion in a list, or NULL. */
const sdlf_kernel_slot *sdlf_calculator_slot(const sdlf_calculator *calculator, const sdlf_operation *operation);
const sdlf_fused_slot *sdlf_fused_slot_in(const sdlf_fused_slot *list, const sdlf_fusion *fusion);

/* Returns whether the calculator has a kernel for this operation. The others return what the slot's member says. */
bool sdlf_calculator_supports(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t sdlf_calculator_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t sdlf_calculator_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool sdlf_calculator_prefers_channels_last(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_dtype sdlf_calculator_storage(const sdlf_calculator *calculator, const sdlf_operation *operation, bool training);

/* Check and compute one operation outside a plan. Allocates a temporary workspace if the kernel needs one. */
sdlf_status sdlf_calculator_run(sdlf_calculator *calculator, const sdlf_operation *operation);

/* The name of the algorithm that would compute the operation; "auto" if the calculator does not tell which one that
 * selects; NULL if there is only one. Owned by the calculator's class. */
const char *sdlf_calculator_algorithm(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* The note on operation->algorithm; all zero if there is none. */
sdlf_algorithm_note sdlf_calculator_note(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* The full cost of operation->algorithm, or that of the operation itself if the calculator does not tell. */
sdlf_cost sdlf_calculator_work(const sdlf_calculator *calculator, const sdlf_operation *operation);

bool sdlf_calculator_shares_memory(const sdlf_calculator *a, const sdlf_calculator *b);
/* True if the calculator computes in host memory. */
bool sdlf_calculator_is_on_host(const sdlf_calculator *calculator);

#ifdef __cplusplus
}
#endif
#endif
