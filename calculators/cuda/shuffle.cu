/* SPDX-License-Identifier: MIT */
/* shuffle: sorts the indices 0 .. M - 1 by random keys, without a general sort. The keys are uniform, so their upper bits
 * distribute the indices evenly over buckets of about 16; within its bucket, an index's rank is the number of smaller keys.
 * Where an index is first put in its bucket depends on the order of the threads; its rank does not, so that the result is
 * deterministic.
 *
 * Five launches, once an epoch: clear the counts, count, prefix sum, scatter (12 bytes an index), and rank: one thread an
 * index reads its bucket, about 16 keys from cache. */
#include "calculators/cuda/kernels.cuh"

#include <sdlf/random.h>

enum { THREADS = 256, SCAN_THREADS = 1024, BUCKET = 16, MOST_BITS = 22 };

/* Workspace: a key and an index for each slot; for each bucket its size, the number of slots filled so far, and its first
 * slot, followed by the end of the last bucket. */
struct scratch {
    uint64_t *key;
    int32_t *number, *held, *filled, *start;
};

/* The number of upper bits of a key that select its bucket. */
static int bucket_bits(int64_t count)
{
    int bits = 0;
    while (bits < MOST_BITS && (count >> bits) > BUCKET) bits++;
    return bits;
}

static scratch scratch_of(void *memory, int64_t count)
{
    int64_t buckets = INT64_C(1) << bucket_bits(count);
    scratch made;
    made.key = static_cast<uint64_t *>(memory);
    made.number = reinterpret_cast<int32_t *>(made.key + count);
    made.held = made.number + count;
    made.filled = made.held + buckets;
    made.start = made.filled + buckets;
    return made;
}

extern "C" int64_t shuffle_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    int64_t count = sdlf_tensor_count(&op->out[0]), buckets = INT64_C(1) << bucket_bits(count);
    return count * (int64_t)(sizeof(uint64_t) + sizeof(int32_t)) + (3 * buckets + 1) * (int64_t)sizeof(int32_t);
}

static __device__ uint64_t key_of(uint64_t seed, int64_t number, int64_t epoch)
{
    sdlf_philox draw = sdlf_philox4x32(seed, (uint64_t)number, SDLF_STREAM_SHUFFLE, (uint32_t)epoch);
    return (uint64_t)draw.word[1] << 32 | draw.word[0];
}

static __device__ int64_t bucket_of(uint64_t key, int bits)
{
    return bits == 0 ? 0 : (int64_t)(key >> (64 - bits));
}

static __global__ void count_keys(const int64_t *epoch, uint64_t seed, scratch s, int64_t count, int bits)
{
    for (int64_t i = grid_first(); i < count; i += grid_step())
        atomicAdd(&s.held[bucket_of(key_of(seed, i, *epoch), bits)], 1);
}

/* One block: each thread sums a run of buckets, the block computes the prefix sums of the runs, and each thread writes its starts. */
static __global__ void sum_up(scratch s, int64_t buckets)
{
    __shared__ int32_t sum[SCAN_THREADS];
    int64_t run = (buckets + SCAN_THREADS - 1) / SCAN_THREADS, first = threadIdx.x * run;
    int64_t last = first + run < buckets ? first + run : buckets;
    int32_t own = 0;
    for (int64_t b = first; b < last; b++) own += s.held[b];
    sum[threadIdx.x] = own;
    __syncthreads();
    for (int step = 1; step < SCAN_THREADS; step *= 2) {
        int32_t before = (int)threadIdx.x >= step ? sum[threadIdx.x - step] : 0;
        __syncthreads();
        sum[threadIdx.x] += before;
        __syncthreads();
    }
    int32_t at = sum[threadIdx.x] - own;
    for (int64_t b = first; b < last; b++) {
        s.start[b] = at;
        at += s.held[b];
    }
    if (threadIdx.x == SCAN_THREADS - 1) s.start[buckets] = sum[threadIdx.x];
}

static __global__ void share_out(const int64_t *epoch, uint64_t seed, scratch s, int64_t count, int bits)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        uint64_t key = key_of(seed, i, *epoch);
        int64_t bucket = bucket_of(key, bits);
        int64_t place = (int64_t)s.start[bucket] + atomicAdd(&s.filled[bucket], 1);
        s.key[place] = key;
        s.number[place] = (int32_t)i;
    }
}

static __global__ void put_in_order(scratch s, int32_t *order, int64_t count, int bits)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        uint64_t key = s.key[i];
        int32_t number = s.number[i];
        int64_t bucket = bucket_of(key, bits), first = s.start[bucket], last = s.start[bucket + 1], place = first;
        for (int64_t j = first; j < last; j++) {
            uint64_t other = s.key[j];
            place += other < key || (other == key && s.number[j] < number);
        }
        order[place] = number;
    }
}

extern "C" sdlf_status shuffle_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    int bits = bucket_bits(count);
    int64_t buckets = INT64_C(1) << bits;
    scratch s = scratch_of(op->workspace.data, count);
    const int64_t *epoch = data_of<int64_t>(op->in[0]);
    unsigned blocks = cuda_blocks(calculator, count, THREADS);
    sdlf_status status =
        cuda_check(cudaMemsetAsync(s.held, 0, 2 * buckets * sizeof *s.held, calculator->stream), "shuffle");
    if (status != SDLF_OK) return status;
    count_keys<<<blocks, THREADS, 0, calculator->stream>>>(epoch, op->shuffle.seed, s, count, bits);
    sum_up<<<1, SCAN_THREADS, 0, calculator->stream>>>(s, buckets);
    share_out<<<blocks, THREADS, 0, calculator->stream>>>(epoch, op->shuffle.seed, s, count, bits);
    put_in_order<<<blocks, THREADS, 0, calculator->stream>>>(s, data_of<int32_t>(op->out[0]), count, bits);
    return cuda_check_launch("shuffle");
}
