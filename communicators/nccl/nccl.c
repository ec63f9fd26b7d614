/* SPDX-License-Identifier: MIT */
/* The nccl communicator: one GPU per process, or per thread of one process. Data in GPU memory is summed by NCCL on a
 * separate stream, without the host; everything else, including the initial rendezvous, is done by an mpi or threads
 * communicator beside it.
 *
 * A sum's stream waits for what the calculator has queued before allreduce_begin, and the calculator's stream waits for
 * the sum from collective_end on. Begin and end are therefore two events each, the host waits for neither, and what is
 * queued between them overlaps with the sum. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <nccl.h>

#include "calculators/cuda/cuda.h"
#include "communicators/nccl/watch.h"
#include "communicators/registry.h"

enum { SUMS = SDLF_MOST_SUMS };

typedef struct nccl_communicator {
    sdlf_communicator base;
    sdlf_communicator *hosts; /* mpi or threads */
    ncclComm_t ranks;         /* NULL until the first sum */
    nccl_watch watch;         /* exists as long as `ranks` does or will */
    int device;
    cudaStream_t stream;
    cudaEvent_t ready[SUMS], done[SUMS];
    sdlf_calculator *calculator[SUMS]; /* of each sum in progress */
    int64_t count;                     /* of sums so far */
} nccl_communicator;

static nccl_communicator *from(sdlf_communicator *base)
{
    static_assert(offsetof(nccl_communicator, base) == 0, "base must be first");
    assert(base->type == &sdlf_nccl_communicator_class);
    return (nccl_communicator *)base;
}

static sdlf_status open_nccl(sdlf_communicator *base, const sdlf_communicator_options *options)
{
    nccl_communicator *c = from(base);
    sdlf_status status = sdlf_communicator_open(&c->hosts, options->group != NULL ? "threads" : "mpi", options);
    if (status != SDLF_OK) return status;
    base->rank = c->hosts->rank;
    base->rank_count = c->hosts->rank_count;
    base->local_rank = c->hosts->local_rank;
    memcpy(base->host, c->hosts->host, sizeof base->host);
    return SDLF_OK;
}

static void release(nccl_communicator *c)
{
    bool whole = nccl_watch_stop(&c->watch); /* otherwise kernels were aborted, and what they wait for will not come */
    if (c->ranks == NULL) return;
    cudaSetDevice(c->device);
    if (whole) cudaStreamSynchronize(c->stream);
    if (whole) ncclCommDestroy(c->ranks);
    for (int i = 0; i < SUMS; i++) {
        if (c->ready[i] != NULL) cudaEventDestroy(c->ready[i]);
        if (c->done[i] != NULL) cudaEventDestroy(c->done[i]);
        c->ready[i] = c->done[i] = NULL;
    }
    if (c->stream != NULL) cudaStreamDestroy(c->stream);
    c->stream = NULL;
    c->ranks = NULL;
}

static void close_nccl(sdlf_communicator *base)
{
    release(from(base));
    sdlf_communicator_close(from(base)->hosts);
}

static sdlf_status init_ranks(nccl_communicator *c, ncclUniqueId id)
{
    sdlf_status status = nccl_watch_start(&c->watch, c->hosts);
    if (status == SDLF_OK) status = nccl_watch_enter(&c->watch);
    if (status != SDLF_OK) return status;
    status = nccl_check(ncclCommInitRank(&c->ranks, c->base.rank_count, id, c->base.rank), "ncclCommInitRank");
    c->watch.ranks = c->ranks;
    atomic_store(&c->watch.joined, status == SDLF_OK);
    nccl_watch_leave(&c->watch);
    if (status != SDLF_OK) c->ranks = NULL;
    return status;
}

/* The device of this rank is known only with the first sum. */
static sdlf_status join(nccl_communicator *c, int device)
{
    ncclUniqueId mine = {{0}}, *all = malloc((size_t)c->base.rank_count * sizeof *all);
    if (all == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "nccl: no memory");
    sdlf_status status = c->base.rank == 0 ? nccl_check(ncclGetUniqueId(&mine), "ncclGetUniqueId") : SDLF_OK;
    sdlf_status met = c->hosts->type->gather(c->hosts, &mine, sizeof mine, all);
    if (status == SDLF_OK) status = met;
    if (status == SDLF_OK) status = init_ranks(c, all[0]);
    free(all);
    if (status != SDLF_OK) return status;
    c->device = device;
    status = cuda_check(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "a stream for sums");
    for (int i = 0; i < SUMS && status == SDLF_OK; i++) {
        status = cuda_check(cudaEventCreateWithFlags(&c->ready[i], cudaEventDisableTiming), "an event for sums");
        if (status == SDLF_OK)
            status = cuda_check(cudaEventCreateWithFlags(&c->done[i], cudaEventDisableTiming), "an event for sums");
    }
    return status;
}

static bool is_cuda(const sdlf_calculator *calculator)
{
    return calculator != NULL && strncmp(calculator->space, "cuda:", 5) == 0;
}

/* In the communicator's stream: sums the data, or sends each rank's part to the others. */
static sdlf_status queue_numbers(nccl_communicator *c, bool gathers, char *memory, sdlf_dtype dtype, int64_t count)
{
    int ranks = c->base.rank_count;
    ncclDataType_t type = dtype == SDLF_FLOAT64    ? ncclFloat64
                          : dtype == SDLF_FLOAT16  ? ncclFloat16
                          : dtype == SDLF_BFLOAT16 ? ncclBfloat16
                                                   : ncclFloat32;
    if (!gathers)
        return nccl_check(ncclAllReduce(memory, memory, (size_t)count, type, ncclSum, c->ranks, c->stream),
                          "ncclAllReduce");
    sdlf_status status = nccl_check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < ranks && status == SDLF_OK; r++) {
        int64_t first = sdlf_communicator_shard(r, ranks, count), next = sdlf_communicator_shard(r + 1, ranks, count);
        char *part = memory + first * (int64_t)sdlf_dtype_size(dtype);
        if (next > first)
            status = nccl_check(ncclBroadcast(part, part, (size_t)(next - first), type, r, c->ranks, c->stream),
                                "ncclBroadcast");
    }
    return status == SDLF_OK ? nccl_check(ncclGroupEnd(), "ncclGroupEnd") : status;
}

/* Tickets of NCCL's sums are odd, those of mpi's even. */
static sdlf_status begin(sdlf_communicator *base, bool gathers, sdlf_calculator *calculator, void *memory,
                         sdlf_dtype dtype, int64_t count, int64_t *ticket)
{
    nccl_communicator *c = from(base);
    sdlf_status status =
        nccl_watch_check(&c->watch); /* for sums on the host too: they may belong to a step that has failed */
    if (status != SDLF_OK) return status;
    if (!is_cuda(calculator)) {
        const sdlf_communicator_class *type = c->hosts->type;
        status = (gathers ? type->allgather_begin : type->allreduce_begin)(c->hosts, calculator, memory, dtype, count,
                                                                           ticket);
        *ticket *= 2;
        return status;
    }
    const cuda_calculator *cuda = cuda_calculator_from(calculator); /* also makes its device current in this thread */
    if (status == SDLF_OK && c->ranks == NULL) status = join(c, cuda->device);
    if (status == SDLF_OK && cuda->device != c->device)
        status = sdlf_fail(SDLF_ERROR_UNSUPPORTED, "nccl: a rank has one GPU, but this one sums on device %d and on %d",
                           c->device, cuda->device);
    if (status != SDLF_OK) return status;
    int at = (int)(c->count % SUMS);
    status = cuda_check(cudaEventRecord(c->ready[at], cuda->stream), "a sum over all ranks");
    if (status == SDLF_OK) status = cuda_check(cudaStreamWaitEvent(c->stream, c->ready[at], 0), "a sum over all ranks");
    if (status == SDLF_OK) status = nccl_watch_enter(&c->watch);
    if (status != SDLF_OK) return status;
    status = queue_numbers(c, gathers, memory, dtype, count);
    nccl_watch_leave(&c->watch);
    if (status == SDLF_OK) status = cuda_check(cudaEventRecord(c->done[at], c->stream), "a sum over all ranks");
    c->calculator[at] = calculator;
    *ticket = 2 * c->count++ + 1;
    return status;
}

static sdlf_status allreduce_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                   int64_t count, int64_t *ticket)
{
    return begin(base, false, calculator, memory, dtype, count, ticket);
}

static sdlf_status allgather_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                   int64_t count, int64_t *ticket)
{
    return begin(base, true, calculator, memory, dtype, count, ticket);
}

static sdlf_status collective_end(sdlf_communicator *base, int64_t ticket)
{
    nccl_communicator *c = from(base);
    if (ticket % 2 == 0) return c->hosts->type->collective_end(c->hosts, ticket / 2);
    int at = (int)(ticket / 2 % SUMS);
    sdlf_status status = nccl_watch_check(&c->watch);
    if (status != SDLF_OK) return status;
    return cuda_check(cudaStreamWaitEvent(cuda_stream(c->calculator[at]), c->done[at], 0), "a sum over all ranks");
}

static sdlf_status gather(sdlf_communicator *base, const void *mine, int64_t bytes, void *all)
{
    sdlf_status status = nccl_watch_check(&from(base)->watch);
    if (status != SDLF_OK) return status;
    return from(base)->hosts->type->gather(from(base)->hosts, mine, bytes, all);
}

static void forget(sdlf_communicator *base, sdlf_calculator *calculator)
{
    nccl_communicator *c = from(base);
    if (is_cuda(calculator))
        release(c);
    else if (c->hosts->type->forget != NULL)
        c->hosts->type->forget(c->hosts, calculator);
}

/* NCCL's communicator is created again with the next sum. */
static sdlf_status narrow(sdlf_communicator *base, int count)
{
    release(from(base));
    return sdlf_communicator_narrow(from(base)->hosts, count);
}

static void abort_nccl(sdlf_communicator *base)
{
    sdlf_communicator_abort(from(base)->hosts);
}

const sdlf_communicator_class sdlf_nccl_communicator_class = {
    .name = "nccl",
    .summary = "GPUs, one for each process or thread: NCCL adds what is in their memory",
    .size = sizeof(nccl_communicator),
    .queued = true,
    .open = open_nccl,
    .close = close_nccl,
    .allreduce_begin = allreduce_begin,
    .collective_end = collective_end,
    .gather = gather,
    .narrow = narrow,
    .allgather_begin = allgather_begin,
    .forget = forget,
    .abort = abort_nccl,
};
