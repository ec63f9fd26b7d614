/* SPDX-License-Identifier: MIT */
/* Col2Im: sums overlapping blocks into images. An index table gives for every element of an image the elements of the
 * blocks that cover it; those are gathered and summed. */
#include "framework/formats/onnx/import/compose.h"

enum { MOST_AXES = SDLF_MAX_RANK - 3, MOST_SIDE = 1 << 20 };

/* Per axis: the sizes of the image and of a block, and the number of blocks. */
typedef struct lattice {
    int axes;
    int64_t image[MOST_AXES], block[MOST_AXES], count[MOST_AXES];
    int64_t stride[MOST_AXES], dilation[MOST_AXES], before[MOST_AXES];
} lattice;

static int64_t listed(onnx_context *c, onnx_list list, int at, int64_t fallback, int64_t least)
{
    int64_t value = at < list.count ? list.item[at] : fallback;
    if (value >= least && value <= MOST_SIDE) return value;
    onnx_wrong(c, "a size, stride, dilation or pad of %lld", (long long)value);
    return least;
}

static lattice lattice_of(onnx_context *c)
{
    onnx_list image = onnx_known_integers(c, 1), block = onnx_known_integers(c, 2), pads = onnx_integers(c, "pads");
    onnx_list strides = onnx_integers(c, "strides"), dilations = onnx_integers(c, "dilations");
    lattice l = {.axes = image.count};
    if (onnx_ok(c) &&
        (l.axes < 1 || l.axes > MOST_AXES || block.count != l.axes || (pads.count >= 0 && pads.count != 2 * l.axes) ||
         (strides.count >= 0 && strides.count != l.axes) || (dilations.count >= 0 && dilations.count != l.axes)))
        onnx_wrong(c, "an image of %d dimensions, 1 to %d are supported, and blocks of %d", l.axes, MOST_AXES,
                   block.count);
    for (int i = 0; i < l.axes && onnx_ok(c); i++) {
        l.image[i] = listed(c, image, i, 1, 1);
        l.block[i] = listed(c, block, i, 1, 1);
        l.stride[i] = listed(c, strides, i, 1, 1);
        l.dilation[i] = listed(c, dilations, i, 1, 1);
        l.before[i] = listed(c, pads, i, 0, 0);
        int64_t room = l.image[i] + l.before[i] + listed(c, pads, l.axes + i, 0, 0);
        int64_t extent = l.dilation[i] * (l.block[i] - 1) + 1; /* both are at most 2^20 */
        if (extent > room) onnx_wrong(c, "a block of %lld in an image of %lld", (long long)extent, (long long)room);
        l.count[i] = (room - extent) / l.stride[i] + 1;
    }
    return l;
}

static bool next(int64_t *index, const int64_t *size, int axes)
{
    for (int i = axes - 1; i >= 0; i--) {
        if (++index[i] < size[i]) return true;
        index[i] = 0;
    }
    return false;
}

/* For each image element, up to `most` indices among blocks times positions in a block, filled up with `none`. If
 * `table` is NULL, only counts the maximum per element. */
static int64_t collect(const lattice *l, int64_t blocks, int64_t none, int64_t most, int64_t *table)
{
    int64_t at[MOST_AXES] = {0}, found = 0;
    do {
        int64_t of_block[MOST_AXES] = {0}, count = 0;
        do {
            int64_t element = 0, which = 0;
            bool there = true;
            for (int i = 0; i < l->axes && there; i++) {
                int64_t begin = at[i] + l->before[i] - of_block[i] * l->dilation[i];
                there = begin >= 0 && begin % l->stride[i] == 0 && begin / l->stride[i] < l->count[i];
                element = element * l->block[i] + of_block[i];
                which = which * l->count[i] + begin / l->stride[i];
            }
            if (there && table != NULL) table[count] = element * blocks + which;
            count += there;
        } while (next(of_block, l->block, l->axes));
        if (count > found) found = count;
        if (table == NULL) continue;
        for (; count < most; count++) table[count] = none;
        table += most;
    } while (next(at, l->image, l->axes));
    return found;
}

static void convert_col2im(onnx_context *c)
{
    onnx_flow x = onnx_in(c, 0);
    lattice l = lattice_of(c);
    sdlf_shape image = {.rank = l.axes}, block = image, count = image;
    for (int i = 0; i < l.axes && onnx_ok(c); i++) {
        image.dim[i] = l.image[i];
        block.dim[i] = l.block[i];
        count.dim[i] = l.count[i];
    }
    int64_t places = sdlf_shape_count(image), size = sdlf_shape_count(block), blocks = sdlf_shape_count(count);
    if (onnx_ok(c) && (places < 1 || size < 1 || places > ONNX_FOLD_LIMIT || size > ONNX_FOLD_LIMIT / places))
        onnx_unsupported(c, "images of %lld elements from blocks of %lld: the product may be %d", (long long)places,
                         (long long)size, ONNX_FOLD_LIMIT);
    if (onnx_ok(c) && (x.shape.rank != 3 || x.shape.dim[1] % size != 0 || x.shape.dim[2] != blocks))
        onnx_wrong(c, "its input is %s, for %lld blocks of %lld elements", sdlf_shape_print(x.shape).text,
                   (long long)blocks, (long long)size);
    if (!onnx_ok(c)) return;
    int64_t channels = x.shape.dim[1] / size, most = collect(&l, blocks, 0, 0, NULL);
    onnx_tensor table = onnx_new_tensor(c, ONNX_INT64, sdlf_shape(places, most > 0 ? most : 1));
    if (!onnx_ok(c)) return;
    collect(&l, blocks, size * blocks, table.shape.dim[1], (int64_t *)table.data);
    x = onnx_join_axes(c, onnx_split_axis(c, x, 1, channels), 2, 3);
    x = onnx_pad_axis(c, x, 2, 0, 1, 0); /* padding elements are 0 */
    x = onnx_gather(c, x, onnx_constant_layer(c, &table), 2);
    x = onnx_reduce(c, x, SDLF_REDUCE_LAYER_SUM, sdlf_shape(3), false);
    for (int i = 0; i + 1 < l.axes; i++) x = onnx_split_axis(c, x, 2 + i, l.image[i]);
    onnx_set_output(c, 0, x);
}

const onnx_operator onnx_col2im_operators[] = {
    {.type = "Col2Im",
     .since = 18,
     .minimum_inputs = 3,
     .maximum_inputs = 3,
     .known = 6,
     .attributes = " dilations pads strides ",
     .convert = convert_col2im},
    {.type = NULL},
};
