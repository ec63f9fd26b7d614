/* "guarded": a pretended device, so that tests on a machine without one meet what a device does to them.
 *
 * It computes as the reference calculator does, in a memory space of its own that the host cannot touch: outside of its
 * kernels and transfers the pages are closed, and whoever reads them as host memory gets a signal. Operands that lie
 * elsewhere (on the test's stack, say) are an error. Memory begins as NaN. It records and replays, and refuses what a
 * device refuses while it records. Its own tables are not counted as allocations, as a driver's are not.
 *
 * It is no registered class: sdlf_calculator_open reaches it by name in tests alone, through the linker's --wrap. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 64, RECORDED = 1024 };

typedef struct block {
    char *memory;
    size_t bytes, mapped;
} block;

typedef struct recording {
    int count;
    sdlf_operation operation[RECORDED];
} recording;

typedef struct guarded_calculator {
    sdlf_calculator base;
    block blocks[BLOCKS];
    recording *recording; /* under way; NULL: none */
} guarded_calculator;

static guarded_calculator *guarded_from(sdlf_calculator *calculator)
{
    return (guarded_calculator *)calculator;
}

static const sdlf_calculator_class *reference_class(void)
{
    int index = 0;
    while (strcmp(sdlf_calculator_class_at(index)->name, "reference") != 0) index++;
    return sdlf_calculator_class_at(index);
}

/* ---- memory ---- */

static void *map(size_t bytes, int protection)
{
    void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void set_access(guarded_calculator *guarded, int protection)
{
    for (int i = 0; i < BLOCKS; i++) {
        const block *b = &guarded->blocks[i];
        if (b->memory != NULL && mprotect(b->memory, b->mapped, protection) != 0) abort();
    }
}

/* Does [data, data + bytes) lie in one block? */
static bool is_ours(const guarded_calculator *guarded, const void *data, int64_t bytes)
{
    const char *first = data;
    for (int i = 0; i < BLOCKS; i++) {
        const block *b = &guarded->blocks[i];
        if (b->memory != NULL && first >= b->memory && first + bytes <= b->memory + b->bytes) return true;
    }
    return bytes == 0;
}

static sdlf_status refuse_while_recording(const guarded_calculator *guarded, const char *what)
{
    if (guarded->recording == NULL) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: %s while work is recorded", what);
}

static sdlf_status allocate_guarded(sdlf_calculator *base, int64_t bytes, void **memory)
{
    guarded_calculator *guarded = guarded_from(base);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int free_block = 0;
    *memory = NULL;
    sdlf_status status = refuse_while_recording(guarded, "memory is asked for");
    if (status != SDLF_OK || bytes == 0) return status;
    while (free_block < BLOCKS && guarded->blocks[free_block].memory != NULL) free_block++;
    size_t mapped = ((size_t)bytes + page - 1) / page * page;
    char *made = free_block < BLOCKS ? map(mapped, PROT_READ | PROT_WRITE) : NULL;
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no memory for %lld bytes", (long long)bytes);
    memset(made, 0xff, mapped);
    mprotect(made, mapped, PROT_NONE);
    guarded->blocks[free_block] = (block){made, (size_t)bytes, mapped};
    *memory = made;
    return SDLF_OK;
}

static void deallocate_guarded(sdlf_calculator *base, void *memory)
{
    guarded_calculator *guarded = guarded_from(base);
    bool found = memory == NULL;
    for (int i = 0; i < BLOCKS && !found; i++) {
        block *b = &guarded->blocks[i];
        if (b->memory != memory) continue;
        munmap(b->memory, b->mapped);
        *b = (block){.memory = NULL};
        found = true;
    }
    CHECK(found);
}

static sdlf_status upload_guarded(sdlf_calculator *base, void *to, const void *host, int64_t bytes)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = refuse_while_recording(guarded, "an upload");
    if (status != SDLF_OK || bytes == 0) return status;
    if (!is_ours(guarded, to, bytes)) return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: an upload to other memory");
    set_access(guarded, PROT_READ | PROT_WRITE);
    memcpy(to, host, (size_t)bytes);
    set_access(guarded, PROT_NONE);
    return SDLF_OK;
}

static sdlf_status download_guarded(sdlf_calculator *base, void *host, const void *from, int64_t bytes)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = refuse_while_recording(guarded, "a download");
    if (status != SDLF_OK || bytes == 0) return status;
    if (!is_ours(guarded, from, bytes)) return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: a download of other memory");
    set_access(guarded, PROT_READ | PROT_WRITE);
    memcpy(host, from, (size_t)bytes);
    set_access(guarded, PROT_NONE);
    return SDLF_OK;
}

static sdlf_status synchronize_guarded(sdlf_calculator *base)
{
    return refuse_while_recording(guarded_from(base), "waiting");
}

/* ---- kernels ---- */

static sdlf_status check_operand(const guarded_calculator *guarded, const sdlf_operation *operation,
                                 const sdlf_tensor *tensor)
{
    if (!sdlf_tensor_present(tensor) || !sdlf_tensor_is_contiguous(tensor)) return SDLF_OK;
    if (is_ours(guarded, tensor->data, sdlf_tensor_bytes(tensor))) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: an operand of %s, %s, lies in other memory",
                     sdlf_operation_class_of(operation->kind)->name, sdlf_shape_print(tensor->shape).text);
}

static sdlf_status compute(guarded_calculator *guarded, const sdlf_operation *operation)
{
    set_access(guarded, PROT_READ | PROT_WRITE);
    sdlf_status status = reference_class()->kernel[operation->kind].run(&guarded->base, operation);
    set_access(guarded, PROT_NONE);
    return status;
}

static sdlf_status run_guarded(sdlf_calculator *base, const sdlf_operation *operation)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = check_operand(guarded, operation, &operation->workspace);
    for (int i = 0; i < SDLF_MAX_INPUTS && status == SDLF_OK; i++)
        status = check_operand(guarded, operation, &operation->in[i]);
    for (int i = 0; i < SDLF_MAX_OUTPUTS && status == SDLF_OK; i++)
        status = check_operand(guarded, operation, &operation->out[i]);
    if (status != SDLF_OK || guarded->recording == NULL)
        return status == SDLF_OK ? compute(guarded, operation) : status;
    if (guarded->recording->count == RECORDED) return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: the recording is full");
    guarded->recording->operation[guarded->recording->count++] = *operation;
    return SDLF_OK;
}

/* ---- recording ---- */

static sdlf_status record_begin_guarded(sdlf_calculator *base)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = refuse_while_recording(guarded, "another recording");
    if (status != SDLF_OK) return status;
    guarded->recording = map(sizeof *guarded->recording, PROT_READ | PROT_WRITE);
    return guarded->recording != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no memory to record");
}

static sdlf_status record_end_guarded(sdlf_calculator *base, void **result)
{
    guarded_calculator *guarded = guarded_from(base);
    *result = guarded->recording;
    guarded->recording = NULL;
    return *result != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_DEVICE, "guarded: nothing is being recorded");
}

static sdlf_status replay_guarded(sdlf_calculator *base, void *kept)
{
    guarded_calculator *guarded = guarded_from(base);
    const recording *all = kept;
    sdlf_status status = refuse_while_recording(guarded, "a replay");
    for (int i = 0; i < all->count && status == SDLF_OK; i++) status = compute(guarded, &all->operation[i]);
    return status;
}

static void discard_guarded(sdlf_calculator *base, void *kept)
{
    (void)base;
    munmap(kept, sizeof(recording));
}

/* ---- the class ---- */

static sdlf_status open_guarded(sdlf_calculator *base, const sdlf_calculator_options *options)
{
    (void)options;
    base->space = "guarded:0";
    return SDLF_OK;
}

static void close_guarded(sdlf_calculator *base)
{
    guarded_calculator *guarded = guarded_from(base);
    CHECK(guarded->recording == NULL);
    for (int i = 0; i < BLOCKS; i++) CHECK(guarded->blocks[i].memory == NULL); /* all was given back */
}

/* As the reference calculator, but for what is said above. */
const sdlf_calculator_class *test_guarded_class(void)
{
    static sdlf_calculator_class made;
    if (made.name != NULL) return &made;
    made = *reference_class();
    made.size = sizeof(guarded_calculator);
    made.summary = "the reference calculator in memory that the host cannot touch";
    made.open = open_guarded;
    made.close = close_guarded;
    made.allocate = allocate_guarded;
    made.deallocate = deallocate_guarded;
    made.upload = upload_guarded;
    made.download = download_guarded;
    made.synchronize = synchronize_guarded;
    made.record_begin = record_begin_guarded;
    made.record_end = record_end_guarded;
    made.replay = replay_guarded;
    made.discard = discard_guarded;
    for (int i = 0; i < SDLF_OPERATION_COUNT; i++)
        if (made.kernel[i].run != NULL) made.kernel[i].run = run_guarded;
    made.name = "guarded";
    return &made;
}

sdlf_status __real_sdlf_calculator_open(sdlf_calculator **calculator, const char *name,
                                        const sdlf_calculator_options *options);
sdlf_status __wrap_sdlf_calculator_open(sdlf_calculator **calculator, const char *name,
                                        const sdlf_calculator_options *options);

sdlf_status __wrap_sdlf_calculator_open(sdlf_calculator **calculator, const char *name,
                                        const sdlf_calculator_options *options)
{
    if (name == NULL || strcmp(name, "guarded") != 0) return __real_sdlf_calculator_open(calculator, name, options);
    guarded_calculator *guarded = calloc(1, sizeof *guarded);
    *calculator = NULL;
    if (guarded == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "calculator 'guarded': no memory");
    guarded->base.type = test_guarded_class();
    *calculator = &guarded->base;
    return guarded->base.type->open(*calculator, options);
}
