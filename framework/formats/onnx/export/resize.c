/* SPDX-License-Identifier: MIT */
/* resize. The operator is given scales or sizes, and computes the other: a layer that has both must agree with that
 * result. */
#include "framework/formats/onnx/export/export.h"

#include <math.h>

typedef struct resizing {
    sdlf_shape axes, sizes;
    float scale[SDLF_MAX_RANK];
    bool by_sizes;
} resizing;

static bool read(onnx_export *e, resizing *r)
{
    const sdlf_resize_options *options = export_options(e);
    sdlf_shape x = export_in_shape(e, 0), y = export_out_shape(e);
    int count = options->axes.rank > 0 ? options->axes.rank : x.rank - 2;
    bool scales = true, sizes = true;
    *r = (resizing){.axes = {.rank = count}, .sizes = {.rank = count}};
    for (int i = 0; i < count; i++) {
        int axis = options->axes.rank > 0 ? export_axis(e, options->axes.dim[i]) : i + 2;
        float asked = (float)((double)y.dim[axis] / (double)x.dim[axis]);
        r->axes.dim[i] = axis;
        r->sizes.dim[i] = y.dim[axis];
        r->scale[i] = options->scale > 0 ? options->scale : asked;
        scales = scales && (options->scale > 0 || (double)asked * (double)x.dim[axis] == (double)y.dim[axis]) &&
                 floorf(r->scale[i] * (float)x.dim[axis]) == (float)y.dim[axis]; /* runtimes multiply in float32 */
        sizes = sizes && r->scale[i] == asked && !export_varies(e, 0, axis);
    }
    r->by_sizes = !scales;
    if (!scales && !sizes)
        export_refuse(e, "%s to %s at a scale of %g: ONNX Resize takes either scale or size, but they disagree",
                      sdlf_shape_print(x).text, sdlf_shape_print(y).text, (double)options->scale);
    return export_ok(e);
}

/* Scales and bounds of all axes, if the operator does not support a list of axes. */
static const char *scales_of(onnx_export *e, const resizing *r, bool all)
{
    float scale[SDLF_MAX_RANK];
    int rank = export_in_shape(e, 0).rank;
    if (!all) return export_list_reals(e, r->scale, r->axes.rank);
    for (int i = 0; i < rank; i++) scale[i] = 1;
    for (int i = 0; i < r->axes.rank; i++) scale[r->axes.dim[i]] = r->scale[i];
    return export_list_reals(e, scale, rank);
}

static const char *region_of(onnx_export *e, const resizing *r, bool all)
{
    const sdlf_resize_options *options = export_options(e);
    float bound[2 * SDLF_MAX_RANK];
    int count = all ? export_in_shape(e, 0).rank : r->axes.rank;
    for (int i = 0; i < 2 * count; i++) bound[i] = i < count ? 0 : 1;
    for (int i = 0; i < r->axes.rank; i++) {
        int at = all ? (int)r->axes.dim[i] : i;
        bound[at] = options->start;
        bound[count + at] = options->end;
    }
    return export_list_reals(e, bound, 2 * count);
}

void export_resize(onnx_export *e)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {"half_pixel",         "align_corners",        "asymmetric",
                                              "pytorch_half_pixel", "half_pixel_symmetric", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    const sdlf_resize_options *options = export_options(e);
    bool crop = options->coordinates == SDLF_COORDINATES_CROP;
    resizing r;
    if (!read(e, &r)) return;
    if (options->coordinates == SDLF_COORDINATES_HALF_PIXEL_SYMMETRIC && !export_needs(e, 19, "half_pixel_symmetric"))
        return;
    if (options->antialias && !export_needs(e, 18, "antialias")) return;
    if (r.by_sizes && !export_needs(e, 18, "a size for some axes")) return;
    if (options->extrapolates != crop)
        export_refuse(e, crop ? "the operator's crop has a value of its own for what is outside"
                              : "the operator has a value of its own only for what is outside a crop");
    bool all = e->opset < 18;
    const char *region = crop ? region_of(e, &r, all) : "";
    const char *scales = r.by_sizes ? "" : scales_of(e, &r, all);
    const char *sizes = r.by_sizes ? export_shape(e, r.sizes) : "";
    export_attribute attribute[10] = {
        export_word("mode", modes[options->mode]),
        export_word("coordinate_transformation_mode", coordinates[options->coordinates]),
        export_word("nearest_mode", roundings[options->rounding]),
        export_real("cubic_coeff_a", options->cubic),
        export_integer("exclude_outside", options->exclude_outside),
        export_real("extrapolation_value", options->outside),
    };
    int count = 6;
    if (!all) attribute[count++] = export_integers("axes", r.axes);
    if (options->antialias) attribute[count++] = export_integer("antialias", 1);
    export_node(e, "Resize", (const char *const[]){export_in(e, 0), region, scales, sizes, NULL}, attribute);
}
