/* SPDX-License-Identifier: MIT */
/* Block-diagonal weights of grouped convolutions (engine/groups.h): one thread per element of the copy. */
#include "calculators/cuda/engine/groups.h"

#include <algorithm>

#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/engine/pack.h"
#include "calculators/cuda/nhwc/vector8.cuh"

enum { THREADS = 256 };

engine_blocks engine_blocks_of(const engine_conv2d *conv)
{
    engine_blocks made = {};
    const int64_t groups = std::max(conv->groups, 1);
    made.group_filters = conv->k / groups;
    made.group_channels = conv->c / groups;
    const int64_t widest = std::max(made.group_filters, made.group_channels);
    made.joined = std::min<int64_t>(std::max<int64_t>(ENGINE_BLOCK / widest, 1), groups);
    while (made.joined > 1 && (made.joined * made.group_filters % 8 != 0 || made.joined * made.group_channels % 8 != 0))
        made.joined--;
    made.filters = made.joined * made.group_filters;
    made.channels = made.joined * made.group_channels;
    made.count = cuda_ceil_div(groups, made.joined);
    return made;
}

bool engine_takes_groups(const engine_conv2d *conv)
{
    if (conv->k < conv->groups || conv->c < conv->groups) return false;
    const engine_blocks blocks = engine_blocks_of(conv);
    return conv->c % 8 == 0 && blocks.group_channels % 4 == 0 && blocks.filters % 8 == 0 && blocks.channels % 8 == 0;
}

engine_block_weights engine_block_weights_of(const engine_conv2d *conv, bool backward)
{
    const engine_blocks blocks = engine_blocks_of(conv);
    const int64_t columns = backward ? blocks.channels : blocks.filters;
    engine_block_weights made = {};
    made.backward = backward;
    made.inner = backward && sdlf_dtype_size(conv->dtype) == 2;
    made.columns = cuda_ceil_div(columns, ENGINE_BLOCK) * ENGINE_BLOCK;
    made.depth = engine_packed_channels(backward ? blocks.filters : blocks.channels);
    return made;
}

int64_t engine_block_weights_bytes(const engine_conv2d *conv, bool backward)
{
    const engine_block_weights made = engine_block_weights_of(conv, backward);
    const int64_t count = engine_blocks_of(conv).count * made.columns * conv->r * conv->s * made.depth;
    return (count * static_cast<int64_t>(sdlf_dtype_size(conv->dtype)) + 63) / 64 * 64;
}

struct block_weights {
    bool backward, inner;
    int columns, depth, all_columns, taps, filters; /* all_columns: summed over all blocks */
    int block_filters, block_channels;
    divider<int32_t> by_columns, by_group_filters, by_group_channels;
    int group_channels;
    int64_t filter_step, channel_step, tap_step; /* strides of the source */
};

template <typename T, typename From>
static __global__ void make_block_weights(const From *from, T *to, int64_t count, const block_weights of)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const int inner = of.inner ? of.all_columns : of.depth;
        const int64_t line = i / inner, row = line / of.taps, tap = line - row * of.taps;
        const int across = static_cast<int>(i - line * inner);
        const int column = of.inner ? across : static_cast<int>(row);
        const int deep = of.inner ? static_cast<int>(row) : across;
        int within; /* column within its block */
        const int block = divide(column, of.by_columns, within);
        const int of_filters = of.backward ? deep : within, of_channels = of.backward ? within : deep;
        const int filter = block * of.block_filters + of_filters;
        int other, channel;
        const bool is_there =
            of_filters < of.block_filters && of_channels < of.block_channels && filter < of.filters &&
            divide(of_filters, of.by_group_filters, other) == divide(of_channels, of.by_group_channels, channel);
        float value = 0;
        if (is_there)
            value = static_cast<float>(from[filter * of.filter_step + channel * of.channel_step + tap * of.tap_step]);
        to[i] = static_cast<T>(value);
    }
}

sdlf_status engine_make_block_weights(const cuda_calculator *calculator, const engine_conv2d *conv, bool backward,
                                      bool stored, const void *from, void *to)
{
    const engine_blocks blocks = engine_blocks_of(conv);
    const engine_block_weights made = engine_block_weights_of(conv, backward);
    const int64_t taps = static_cast<int64_t>(conv->r) * conv->s;
    const bool channels_last = stored && !conv->row_major;
    block_weights of = {};
    of.backward = made.backward;
    of.inner = made.inner;
    of.columns = static_cast<int>(made.columns);
    of.depth = static_cast<int>(made.depth);
    of.all_columns = static_cast<int>(blocks.count * made.columns);
    of.taps = static_cast<int>(taps);
    of.filters = static_cast<int>(conv->k);
    of.block_filters = static_cast<int>(blocks.filters);
    of.block_channels = static_cast<int>(blocks.channels);
    of.by_columns = divider<int32_t>(made.columns);
    of.by_group_filters = divider<int32_t>(blocks.group_filters);
    of.by_group_channels = divider<int32_t>(blocks.group_channels);
    of.filter_step = blocks.group_channels * taps;
    of.channel_step = channels_last ? 1 : taps;
    of.tap_step = channels_last ? blocks.group_channels : 1;
    const int64_t count = of.all_columns * taps * made.depth;
    with_storage(conv->dtype, [&](auto zero) {
        using T = decltype(zero);
        if (stored)
            launch_overlapped(calculator, make_block_weights<T, T>, cuda_blocks(calculator, count, THREADS), THREADS, 0,
                              static_cast<const T *>(from), static_cast<T *>(to), count, of);
        else
            launch_overlapped(calculator, make_block_weights<T, float>, cuda_blocks(calculator, count, THREADS),
                              THREADS, 0, static_cast<const float *>(from), static_cast<T *>(to), count, of);
    });
    return cuda_check_launch("block-diagonal weights of conv2d");
}
