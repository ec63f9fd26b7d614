/* SPDX-License-Identifier: MIT */
/* "guarded": a mock device, so that tests on a machine without a GPU are subject to the constraints of a device.
 *
 * It computes like the reference calculator, in a separate memory space that the host cannot access: outside its
 * kernels and transfers the pages are protected, and reading them as host memory raises a signal. Operands in other
 * memory (on the test's stack, for example) are an error. Memory is initialised to NaN. It records and replays
 * (guarded_recording.c), and while recording rejects what a device rejects. It has queues (guarded_queues.c), and only
 * as much memory as a test grants it. Its own tables, like those of a driver, are not counted as allocations.
 *
 * It is not a registered class: sdlf_calculator_open finds it by name only in tests, by way of the linker's --wrap. */
#include "guarded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t capacity; /* bytes; 0: no limit */
static int64_t failing;  /* this allocation fails; 0: none */

void test_guarded_memory(int64_t bytes)
{
    capacity = bytes;
}

void test_guarded_fail_allocation(int64_t n)
{
    failing = n;
}

guarded_calculator *guarded_from(sdlf_calculator *calculator)
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

guarded_block guarded_map(int64_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = ((size_t)bytes + page - 1) / page * page;
    void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return (guarded_block){.memory = memory == MAP_FAILED ? NULL : memory, .bytes = (size_t)bytes, .mapped = mapped};
}

static void set_access(guarded_calculator *guarded, int protection)
{
    for (int i = 0; i < GUARDED_BLOCKS; i++) {
        const guarded_block *b = &guarded->blocks[i];
        if (b->memory != NULL && mprotect(b->memory, b->mapped, protection) != 0) abort();
    }
}

bool guarded_holds(const guarded_block *blocks, const void *data, int64_t bytes)
{
    const char *first = data;
    for (int i = 0; i < GUARDED_BLOCKS; i++) {
        const guarded_block *b = &blocks[i];
        if (b->memory != NULL && first >= b->memory && first + bytes <= b->memory + b->bytes) return true;
    }
    return bytes == 0;
}

sdlf_status guarded_refuse_while_recording(const guarded_calculator *guarded, const char *what)
{
    if (guarded->recording == NULL) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: %s while work is recorded", what);
}

static int64_t bytes_left(const guarded_calculator *guarded)
{
    int64_t left = capacity > 0 ? capacity : INT64_C(1) << 40;
    for (int i = 0; i < GUARDED_BLOCKS; i++) left -= (int64_t)guarded->blocks[i].bytes;
    return left;
}

static sdlf_status memory_info_guarded(sdlf_calculator *base, int64_t *available, int64_t *total)
{
    *available = bytes_left(guarded_from(base));
    *total = capacity > 0 ? capacity : INT64_C(1) << 40;
    return SDLF_OK;
}

static sdlf_status allocate_guarded(sdlf_calculator *base, int64_t bytes, void **memory)
{
    guarded_calculator *guarded = guarded_from(base);
    int slot = 0;
    *memory = NULL;
    sdlf_status status = guarded_refuse_while_recording(guarded, "memory is asked for");
    if (status != SDLF_OK || bytes == 0) return status;
    if (bytes > bytes_left(guarded) || (failing > 0 && --failing == 0))
        return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: asked for %lld bytes, and %lld are free", (long long)bytes,
                         (long long)bytes_left(guarded));
    while (slot < GUARDED_BLOCKS && guarded->blocks[slot].memory != NULL) slot++;
    guarded_block made = slot < GUARDED_BLOCKS ? guarded_map(bytes) : (guarded_block){.memory = NULL};
    if (made.memory == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no memory for %lld bytes", (long long)bytes);
    memset(made.memory, 0xff, made.mapped);
    mprotect(made.memory, made.mapped, PROT_NONE);
    guarded->blocks[slot] = made;
    *memory = made.memory;
    return SDLF_OK;
}

static void deallocate_guarded(sdlf_calculator *base, void *memory)
{
    guarded_calculator *guarded = guarded_from(base);
    bool found = memory == NULL;
    if (memory != NULL) CHECK_OK(base->type->synchronize(base)); /* queued work may use it */
    for (int i = 0; i < GUARDED_BLOCKS && !found; i++) {
        guarded_block *b = &guarded->blocks[i];
        if (b->memory != memory) continue;
        munmap(b->memory, b->mapped);
        *b = (guarded_block){.memory = NULL};
        found = true;
    }
    CHECK(found);
}

static sdlf_status upload_guarded(sdlf_calculator *base, void *to, const void *host, int64_t bytes)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = guarded_refuse_while_recording(guarded, "an upload");
    if (status != SDLF_OK || bytes == 0) return status;
    if (!guarded_holds(guarded->blocks, to, bytes))
        return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: an upload to other memory");
    const guarded_entry upload = {.work = GUARDED_UPLOAD, .to = to, .from = host, .bytes = bytes};
    if (guarded_holds(guarded->host, host, bytes)) /* pinned: the host does not wait */
        return guarded_enqueue(guarded, SDLF_QUEUE_COMPUTE, &upload);
    status = guarded_drain(guarded, SDLF_QUEUE_COMPUTE);
    return status == SDLF_OK ? guarded_perform(guarded, &upload) : status;
}

static sdlf_status download_guarded(sdlf_calculator *base, void *host, const void *from, int64_t bytes)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = guarded_refuse_while_recording(guarded, "a download");
    if (status != SDLF_OK || bytes == 0) return status;
    if (!guarded_holds(guarded->blocks, from, bytes))
        return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: a download of other memory");
    status = guarded_drain(guarded, SDLF_QUEUE_COMPUTE);
    if (status != SDLF_OK) return status;
    return guarded_perform(guarded,
                           &(guarded_entry){.work = GUARDED_DOWNLOAD, .to = host, .from = from, .bytes = bytes});
}

/* Memory of other libraries is host memory here. */
static sdlf_status copy_from_device_guarded(sdlf_calculator *base, void *to, const void *from, int64_t bytes)
{
    return upload_guarded(base, to, from, bytes);
}

static sdlf_status synchronize_guarded(sdlf_calculator *base)
{
    guarded_calculator *guarded = guarded_from(base);
    sdlf_status status = guarded_refuse_while_recording(guarded, "waiting");
    if (status == SDLF_OK) status = guarded_drain(guarded, SDLF_QUEUE_TRANSFER);
    return status == SDLF_OK ? guarded_drain(guarded, SDLF_QUEUE_COMPUTE) : status;
}

/* ---- kernels ---- */

static sdlf_status check_operand(const guarded_calculator *guarded, const sdlf_operation *operation,
                                 const sdlf_tensor *tensor)
{
    if (!sdlf_tensor_present(tensor) || !sdlf_tensor_is_contiguous(tensor)) return SDLF_OK;
    if (guarded_holds(guarded->blocks, tensor->data, sdlf_tensor_bytes(tensor))) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_DEVICE, "guarded: an operand of %s, %s, lies in other memory",
                     sdlf_operation_type(operation)->name, sdlf_shape_print(tensor->shape).text);
}

static sdlf_status compute(guarded_calculator *guarded, const sdlf_operation *operation)
{
    return reference_class()->kernel[operation->kind].run(&guarded->base, operation);
}

sdlf_status guarded_perform(guarded_calculator *guarded, const guarded_entry *entry)
{
    sdlf_status status = SDLF_OK;
    const guarded_recording *all = entry->recording;
    set_access(guarded, PROT_READ | PROT_WRITE);
    if (entry->work == GUARDED_COMPUTE) status = compute(guarded, &entry->operation);
    for (int i = 0; entry->work == GUARDED_REPLAY && i < all->count && status == SDLF_OK; i++)
        status = compute(guarded, &all->operation[i]);
    if (entry->work == GUARDED_UPLOAD || entry->work == GUARDED_DOWNLOAD)
        memcpy(entry->to, entry->from, (size_t)entry->bytes);
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
    if (status != SDLF_OK) return status;
    if (guarded->recording == NULL)
        return guarded_enqueue(guarded, SDLF_QUEUE_COMPUTE,
                               &(guarded_entry){.work = GUARDED_COMPUTE, .operation = *operation});
    if (guarded->recording->count == GUARDED_RECORDED)
        return sdlf_fail(SDLF_ERROR_MEMORY, "guarded: the recording is full");
    guarded->recording->operation[guarded->recording->count++] = *operation;
    return SDLF_OK;
}

/* ---- the class ---- */

static sdlf_status open_guarded(sdlf_calculator *base, const sdlf_calculator_options *options)
{
    (void)options;
    base->space = "guarded:0";
    guarded_from(base)->queue = (guarded_queue *)(void *)guarded_map(2 * sizeof(guarded_queue)).memory;
    return guarded_from(base)->queue != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "guarded: no memory for queues");
}

static void close_guarded(sdlf_calculator *base)
{
    guarded_calculator *guarded = guarded_from(base);
    CHECK(guarded->recording == NULL);
    for (int i = 0; i < GUARDED_BLOCKS; i++) /* all is released */
        CHECK(guarded->blocks[i].memory == NULL && guarded->host[i].memory == NULL);
    if (guarded->queue != NULL) munmap(guarded->queue, 2 * sizeof(guarded_queue));
}

/* The reference calculator's class with the methods of the mock device. */
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
    made.copy_from_device = copy_from_device_guarded;
    made.synchronize = synchronize_guarded;
    made.memory_info = memory_info_guarded;
    made.queues = &guarded_queues;
    made.record_begin = guarded_record_begin;
    made.longest_recording = 512;
    made.record_end = guarded_record_end;
    made.replay = guarded_replay;
    made.discard = guarded_discard;
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
    sdlf_status status = guarded->base.type->open(&guarded->base, options);
    if (status == SDLF_OK)
        *calculator = &guarded->base;
    else
        free(guarded);
    return status;
}
