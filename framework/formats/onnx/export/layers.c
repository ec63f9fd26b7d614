/* SPDX-License-Identifier: MIT */
/* Maps layer classes to writers, as listed in layers/list.h. */
#include "framework/formats/onnx/export/export.h"

static const struct {
    const sdlf_layer_class *type;
    export_writer *writer;
} writers[] = {
#define SDLF_LAYER(class, writer) {&class, writer},
#include "layers/list.h"
#undef SDLF_LAYER
};

export_writer *export_writer_of(const sdlf_layer_class *type)
{
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++)
        if (writers[i].type == type) return writers[i].writer;
    return export_none;
}

void export_none(onnx_export *e)
{
    export_refuse(e, "its class has no ONNX writer");
}
