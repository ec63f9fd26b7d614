/* SPDX-License-Identifier: MIT */
/* A model as a quantised ONNX file. See <sdlf/quantize.h> and quantize.h. */
#include "framework/formats/onnx/export/quantize.h"

#include "framework/require.h"

enum { BLOCKWISE_OPSET = 21 };

static bool is_block(int64_t block)
{
    return block == 0 || (block >= 16 && block <= 1 << 20 && (block & (block - 1)) == 0);
}

static sdlf_status check(const sdlf_quantization_options *o)
{
    if (o->weights_only != 0 && o->weights_only != 8 && o->weights_only != 4)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "weights of %d bits: expected 8 or 4, or 0 for activations too",
                         o->weights_only);
    if (!is_block(o->block))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "blocks of %lld weights: expected a power of 2 from 16 on",
                         (long long)o->block);
    if ((unsigned)o->calibration >= SDLF_CALIBRATION_COUNT)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "calibration %d: expected one of sdlf_calibration", (int)o->calibration);
    if (!(o->percentile == 0 || (o->percentile > 50 && o->percentile <= 100)))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "percentile %g: expected more than 50, and 100 at most", o->percentile);
    if (o->samples < 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%lld samples: expected 1 at least", (long long)o->samples);
    if (o->weights_only == 4 && o->opset != 0 && o->opset < BLOCKWISE_OPSET)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "opset %d: weights of 4 bits need %d at least", o->opset,
                         BLOCKWISE_OPSET);
    return SDLF_OK;
}

static sdlf_status quantize(quantizing *q, const char *path)
{
    Onnx__OperatorSetIdProto opset, *opsets[1];
    sdlf_onnx_exported written = {.opset = 0};
    Onnx__ModelProto message = export_message(q->e, &opset, opsets);
    q->result->bytes_before = (int64_t)protobuf_c_message_get_packed_size(&message.base);
    quantize_simplify(q);
    if (export_ok(q->e)) quantize_mark(q);
    if (export_ok(q->e) && q->value_count > 0) quantize_observe(q);
    if (export_ok(q->e)) quantize_rewrite(q);
    if (!export_ok(q->e)) return q->e->status;
    sdlf_status status = export_write(q->e, path, false, &written);
    q->result->opset = q->e->opset;
    q->result->node_count = (int)q->e->nodes.count;
    q->result->bytes = written.bytes + written.external_bytes;
    q->result->fixed_batch = q->e->fixed_batch;
    return status;
}

sdlf_status sdlf_quantize(const sdlf_model *model, const char *path, const sdlf_quantization_options *options,
                          sdlf_quantized *result)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
    SDLF_REQUIRE(options);
    sdlf_quantized ignored;
    if (result == NULL) result = &ignored;
    *result = (sdlf_quantized){0};
    sdlf_status status = check(options);
    if (status == SDLF_OK) status = export_check(model, options->opset);
    if (status != SDLF_OK) return status;
    if (options->weights_only == 0) {
        SDLF_REQUIRE(options->data);
        SDLF_REQUIRE(options->calculator);
    }
    int opset = options->opset == 0 && options->weights_only == 4 ? BLOCKWISE_OPSET : options->opset;
    onnx_export e;
    quantizing q = {.e = &e, .options = options, .result = result};
    status = export_run(&e, model, opset, false);
    if (status == SDLF_OK) status = quantize(&q, path);
    export_release(&e);
    return status;
}
