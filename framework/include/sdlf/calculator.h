/* SPDX-License-Identifier: MIT */
/* Calculator: HOW operations are computed, on one kind of hardware.
 *
 * A calculator class is a const table: how to open and close it, its memory, and one slot for each kind of operation. A
 * calculator knows tensors and operations; it knows nothing of layers, models, plans or files.
 *
 * Threads: one thread at a time uses a calculator, and with it the plans on it; several calculators, of one class too,
 * work in several threads. Classes and their list may be read, and added to, from any thread.
 * Ownership: a calculator is the caller's, to be closed after the plans and tensors that use it. Classes are borrowed
 * for as long as the process lives.
 * Errors: a status with a message (status.h); SDLF_ERROR_DEVICE where a device is at fault. */
#ifndef SDLF_CALCULATOR_H
#define SDLF_CALCULATOR_H

#include <sdlf/operation.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_calculator_class sdlf_calculator_class;

/* How products of float32 operands may be computed where the hardware offers a choice. Sums are always float32, and so
 * are stored values: parameters keep every bit of an update. */
typedef enum sdlf_math {
    SDLF_MATH_FP32 = 0, /* IEEE single precision */
    SDLF_MATH_TF32,     /* operands rounded to 10 bits of mantissa, on tensor cores */
    SDLF_MATH_FP16,     /* operands rounded to float16 */
    SDLF_MATH_BF16,     /* operands rounded to bfloat16 */
    SDLF_MATH_COUNT
} sdlf_math;

/* "fp32", "tf32", "fp16", "bf16"; and back (SDLF_MATH_COUNT for an unknown name). */
const char *sdlf_math_name(sdlf_math math);
sdlf_math sdlf_math_from_name(const char *name);

typedef struct sdlf_calculator_options {
    int threads;       /* 0: as many as the process may use */
    int device;        /* ordinal of the device, for calculators that have several */
    sdlf_math math;    /* calculators without a choice compute in fp32 whatever is asked */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_calculator_options;

/* Compute one operation. Operands are bound, checked (sdlf_operation_check) and accepted by the slot's `supports`. A
 * kernel allocates nothing; scratch space is operation->workspace. Work may be queued: results are sure to be there
 * after `synchronize`. Fails only for reasons of the device. */
typedef sdlf_status sdlf_kernel(sdlf_calculator *calculator, const sdlf_operation *operation);

/* What there is to know of an algorithm beside its name. */
typedef struct sdlf_algorithm_note {
    const char *summary; /* one line: how it computes */
    const char *takes;   /* the operations that it takes: "3x3 windows, stride 1"; NULL: any */
    /* It runs only where it is requested by name: "auto" never takes it, and it is in no race for a plan file. For
     * those that are there to be compared with, or that give up accuracy. */
    bool on_request;
} sdlf_algorithm_note;

typedef struct sdlf_kernel_slot {
    sdlf_kernel *run; /* NULL: this calculator has no such operation; a plan that needs it is refused */
    /* Will `run` take this one? Optional; NULL: every operation that passes its check. */
    bool (*supports)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* Bytes of scratch space, 64-byte aligned. Optional; NULL: none. */
    int64_t (*workspace)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* Names of the algorithms, NULL-terminated; operation->algorithm indexes it; [0] is "auto". Optional. */
    const char *const *algorithms;
    /* Of each algorithm, in the same order. Optional; NULL: there is nothing to say. */
    const sdlf_algorithm_note *notes;
    /* All that operation->algorithm computes and moves: its own arithmetic, every operand once, and every array that it
     * makes on the way, written and read. Optional; NULL: what the operation itself asks for (sdlf_operation_cost). */
    sdlf_cost (*work)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* The index of the algorithm that "auto" takes for this one. Optional; NULL: unknown. */
    int (*automatic)(const sdlf_calculator *calculator, const sdlf_operation *operation);

    /* Does `run` take operands that are channels last, where the kind's contract allows them? False: only row-major
     * ones. */
    bool channels_last;
    /* And such of which some are channels last and others row-major, where the contract allows that? `supports`, which
     * is asked with operands of both, says which. False: none of these. */
    bool mixed;
    /* And is that the faster way for this one, so that plans should lay them out so? In training they do where such
     * operations have three quarters of the calculator's FLOPs. Asked with operands that are row-major;
     * operation->prepared is present, without memory, where weights will be prepacked. Optional; NULL: it is not. */
    bool (*likes_channels_last)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    /* Does `run` take operands in a storage type, 16 bits or float32 channels last with its weights, where the kind's
     * contract allows it? `supports` says which. False: none. */
    bool storage;

    /* Constant operands, weights or a sparse matrix (`packed` of the operation's class), prepacked once for all runs:
     * the bytes that they take in the form that `run` likes best (0: as they are), and the kernel that writes that form
     * to operation->prepared from them, with all else of the operation as it will be run. `run` does without where
     * operation->prepared is absent; what it needs of a workspace may depend on it, so ask for that afterwards. In the
     * host's memory it leaves unread, where operation->prepared is present, what the class says by `unread`. Optional,
     * both or none. */
    int64_t (*prepared)(const sdlf_calculator *calculator, const sdlf_operation *operation);
    sdlf_kernel *prepare;

    void *reserved[2]; /* zero, so that members can be added without breaking what was compiled before */
} sdlf_kernel_slot;

/* A fusion that a calculator declares, and its kernel; without `run` the calculator's slot of SDLF_FUSED computes it. */
typedef struct sdlf_fused_slot {
    const sdlf_fusion *fusion; /* NULL ends a list */
    sdlf_kernel_slot slot;
} sdlf_fused_slot;

/* Queues: for devices that transfer memory while they compute, and a host that does not wait for either.
 *
 * Kernels, replays and the plain upload and download belong to SDLF_QUEUE_COMPUTE. Work in one queue is done in order;
 * the two queues wait for each other where a fence says so, and nowhere else. */
typedef enum sdlf_queue { SDLF_QUEUE_COMPUTE = 0, SDLF_QUEUE_TRANSFER } sdlf_queue;

/* A mark behind work in a queue. It is passed when that work is done, and before it is first set. */
typedef struct sdlf_fence sdlf_fence;

typedef struct sdlf_queue_class {
    /* Host memory that queued transfers read and write. To be freed once they are done. */
    sdlf_status (*allocate_host)(sdlf_calculator *calculator, int64_t bytes, void **memory);
    void (*deallocate_host)(sdlf_calculator *calculator, void *memory);

    /* Let queued transfers use host memory that is there already. Optional, both or neither; NULL: they cannot. Each
     * pin_host has its unpin_host, once no transfer is queued. Fails where the system has no more memory to pin. */
    sdlf_status (*pin_host)(sdlf_calculator *calculator, void *memory, int64_t bytes);
    void (*unpin_host)(sdlf_calculator *calculator, void *memory);

    /* Queue a transfer. `host` lies in memory from allocate_host, or pinned, and is read or written when the transfer's
     * turn comes. */
    sdlf_status (*upload)(sdlf_calculator *calculator, sdlf_queue queue, void *to, const void *host, int64_t bytes);
    sdlf_status (*download)(sdlf_calculator *calculator, sdlf_queue queue, void *host, const void *from, int64_t bytes);

    /* The fence is the caller's; fence_free accepts NULL. `set` puts it behind all that the queue holds now, and takes
     * it from where it stood. What is queued after `follow` waits for the fence as it stood then. `wait` makes the host
     * wait; it sleeps meanwhile. `passed` asks whether it would have to, and waits for nothing; true of a fence that
     * was never set. */
    sdlf_status (*fence_create)(sdlf_calculator *calculator, sdlf_fence **fence);
    void (*fence_free)(sdlf_calculator *calculator, sdlf_fence *fence);
    sdlf_status (*fence_set)(sdlf_calculator *calculator, sdlf_queue queue, sdlf_fence *fence);
    sdlf_status (*fence_follow)(sdlf_calculator *calculator, sdlf_queue queue, sdlf_fence *fence);
    sdlf_status (*fence_wait)(sdlf_calculator *calculator, sdlf_fence *fence);
    sdlf_status (*fence_passed)(sdlf_calculator *calculator, sdlf_fence *fence, bool *passed);
    void *reserved[4]; /* zero: room for members to come */
} sdlf_queue_class;

struct sdlf_calculator_class {
    const char *name;    /* "cpu" */
    const char *summary; /* one line for --help */
    size_t size;         /* of the object whose first member is an sdlf_calculator */
    bool has_math;       /* does the math mode change its results? False: it always computes in fp32 */

    /* The class, already registered, that computes the kinds for which this one has no `run`, in the same memory: one
     * of its own is opened with each calculator of this class, with the same options. What else is missing here
     * (`open`, `close`, `describe`, the functions of memory, `synchronize`) is its, too. It must not queue its work: of
     * the library's, "reference" and "cpu" do not. Optional; NULL: none. The calculator's `type` is then a table made
     * by sdlf_calculator_open, in which all slots are filled. */
    const char *inherits;

    /* How many devices of its kind this machine has, for sdlf_calculator_options.device to choose from: 0 .. count - 1.
     * Optional; NULL: it has none to choose from, and takes no notice of the option. */
    int (*device_count)(void);

    /* Make a zeroed object ready; on failure it has released all it took. */
    sdlf_status (*open)(sdlf_calculator *calculator, const sdlf_calculator_options *options);
    void (*close)(sdlf_calculator *calculator);

    /* One line on what it runs on: "2 threads, avx512, gemm oneDNN 2.6". */
    void (*describe)(const sdlf_calculator *calculator, char *text, size_t size);

    /* Memory, aligned to 64 bytes at least. allocate(0) gives a valid pointer or NULL with SDLF_OK. */
    sdlf_status (*allocate)(sdlf_calculator *calculator, int64_t bytes, void **memory);
    void (*deallocate)(sdlf_calculator *calculator, void *memory);
    sdlf_status (*upload)(sdlf_calculator *calculator, void *to, const void *host, int64_t bytes);
    sdlf_status (*download)(sdlf_calculator *calculator, void *host, const void *from, int64_t bytes);
    sdlf_status (*synchronize)(sdlf_calculator *calculator); /* wait for all that is queued */

    /* The type in which plans that consist of convolutions and pooling like this one, for training or for inference,
     * should store activations and, in training, their gradients, channels last where there are images: SDLF_FLOAT16,
     * SDLF_BFLOAT16, in training also SDLF_FLOAT32; SDLF_NONE: the plan's own, laid out as kernels like it. Optional;
     * NULL: SDLF_NONE. */
    sdlf_dtype (*storage)(const sdlf_calculator *calculator, const sdlf_operation *operation, bool training);

    /* Bytes of its memory, free and in all. Optional; NULL: not known. */
    sdlf_status (*memory_info)(sdlf_calculator *calculator, int64_t *available, int64_t *total);

    const sdlf_queue_class *queues; /* optional; NULL: it has one queue, and transfers that the host waits for */

    /* Recording: what is queued between record_begin and record_end is not run but kept as one unit, which replay then
     * queues with a single call, as often as wanted, on the same memory. Optional, all four or none: a plan that runs
     * on only such a calculator replays its steps. After a failure nothing is being recorded. */
    sdlf_status (*record_begin)(sdlf_calculator *calculator);
    sdlf_status (*record_end)(sdlf_calculator *calculator, void **recording);
    sdlf_status (*replay)(sdlf_calculator *calculator, void *recording);
    void (*discard)(sdlf_calculator *calculator, void *recording);
    /* How many operations a recording may have for launching them one by one to cost next to nothing: of training steps
     * that draw their own batches, plans record several as one unit up to there. 0: one step a recording. */
    int longest_recording;

    /* The first few of `count` operations that follow one another, in fewer launches than one for each: *done is how
     * many of them it has computed; 0, where it would not put two of these together: nothing has been done then. All
     * outputs are written as the slots would, but that sums may be added in another order. Operands are as for a slot's
     * `run`, and what one operation writes shares no memory with what another one uses, but where it is that same
     * tensor, or where an operation writes over an input of its own (`may_alias`), which those before it may have used.
     * Plans for training call it. Optional; NULL: it puts none together. */
    sdlf_status (*run_together)(sdlf_calculator *calculator, const sdlf_operation *const *operations, int count,
                                int *done);

    /* Copy from memory of the same device that another library holds, behind everything that is queued on that device
     * in any stream, and be done when it returns. Optional; NULL: it cannot. */
    sdlf_status (*copy_from_device)(sdlf_calculator *calculator, void *to, const void *from, int64_t bytes);

    /* The fusions that plans offer it, beside those of the class that it inherits from. Optional; NULL: none. */
    const sdlf_fused_slot *fusions;

    void *reserved[2]; /* zero, so that members can be added without breaking what was compiled before */

    /* The last member, because it grows with the kinds of operations: sdlf_register_calculator knows with how many a
     * table was compiled. */
    sdlf_kernel_slot kernel[SDLF_OPERATION_COUNT];
};

#define SDLF_HOST_SPACE "host" /* the C heap */

struct sdlf_calculator {
    const sdlf_calculator_class *type;
    /* Calculators whose `space` is equal share memory: no copies are needed between them. Owned by the calculator, set
     * by open. */
    const char *space;
    sdlf_calculator *inherited; /* the library's: what computes the kinds that are inherited */
};

/* Open the calculator class of that name. options may be NULL. The object is the caller's; close it with
 * sdlf_calculator_close, after every plan and tensor that uses it. Errors: SDLF_ERROR_ARGUMENT (unknown name: the
 * message lists the known), SDLF_ERROR_UNSUPPORTED (not in this build), SDLF_ERROR_DEVICE. */
sdlf_status sdlf_calculator_open(sdlf_calculator **calculator, const char *name,
                                 const sdlf_calculator_options *options);
void sdlf_calculator_close(sdlf_calculator *calculator);

/* Registered classes, in order; NULL past the end. */
const sdlf_calculator_class *sdlf_calculator_class_at(int index);

/* Make a class of the program's own known by its name, behind those of the library. Any thread may call it, at any
 * time. The table is borrowed for as long as the process lives. Registering the same table again does nothing. Errors:
 * SDLF_ERROR_ARGUMENT (a name that is no lower-case word or is taken, a member that is missing, a class to inherit from
 * that is not there: the message says which), SDLF_ERROR_UNSUPPORTED (the program was compiled with the headers of a
 * newer library), SDLF_ERROR_MEMORY (64 are registered already). `size` is that of the table as it was compiled:
 * sdlf_register_calculator gives it. */
sdlf_status sdlf_register_calculator_sized(const sdlf_calculator_class *type, size_t size);
static inline sdlf_status sdlf_register_calculator(const sdlf_calculator_class *type)
{
    return sdlf_register_calculator_sized(type, sizeof(sdlf_calculator_class));
}

/* The class that computes where nobody names one: the fastest of those in the host's memory. */
const sdlf_calculator_class *sdlf_calculator_class_usual(void);

/* Names of the calculators that SDLF has and this build has not, with the reason; NULL past the end. */
const char *sdlf_calculator_left_out(int index, const char **reason);

/* The slot of an operation: its kind's, or its fusion's, which may be empty (`run` is NULL). NULL for an operation of no
 * kind. And the entry of a fusion in a list of them; NULL: there is none. */
const sdlf_kernel_slot *sdlf_calculator_slot(const sdlf_calculator *calculator, const sdlf_operation *operation);
const sdlf_fused_slot *sdlf_fused_slot_in(const sdlf_fused_slot *list, const sdlf_fusion *fusion);

/* Is there a kernel that takes this operation? */
bool sdlf_calculator_supports(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t sdlf_calculator_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation);
int64_t sdlf_calculator_prepared(const sdlf_calculator *calculator, const sdlf_operation *operation);
bool sdlf_calculator_likes_channels_last(const sdlf_calculator *calculator, const sdlf_operation *operation);
sdlf_dtype sdlf_calculator_storage(const sdlf_calculator *calculator, const sdlf_operation *operation, bool training);

/* Check and compute one operation outside a plan; takes a temporary workspace where the kernel needs one. */
sdlf_status sdlf_calculator_run(sdlf_calculator *calculator, const sdlf_operation *operation);

/* The name of the algorithm that would compute the operation, "auto" where a calculator does not tell what that takes;
 * NULL where there is only one way. Belongs to the calculator's class. */
const char *sdlf_calculator_algorithm(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* What is known of operation->algorithm; all zero where the calculator says nothing. */
sdlf_algorithm_note sdlf_calculator_note(const sdlf_calculator *calculator, const sdlf_operation *operation);

/* What operation->algorithm computes and moves, or what the operation asks for where the calculator does not tell. */
sdlf_cost sdlf_calculator_work(const sdlf_calculator *calculator, const sdlf_operation *operation);

bool sdlf_calculator_shares_memory(const sdlf_calculator *a, const sdlf_calculator *b);
/* Does it compute in the host's memory? */
bool sdlf_calculator_is_on_host(const sdlf_calculator *calculator);

#ifdef __cplusplus
}
#endif
#endif
