/* SPDX-License-Identifier: MIT */
/* A mock device that counts copies: the reference calculator in its own memory space, which is initialised to NaN. A
 * missing copy shows as NaN; a superfluous one shows in the counts. The creator frees it. */
#ifndef SDLF_TESTS_FRAMEWORK_PLAN_COUNTING_DEVICE_H
#define SDLF_TESTS_FRAMEWORK_PLAN_COUNTING_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include <sdlf/calculator.h>

#include "testing.h"

static sdlf_calculator_class device_class;
static int64_t uploaded, downloaded;
static int uploads, downloads;

static inline sdlf_status open_device(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    (void)options;
    calculator->space = "device";
    return SDLF_OK;
}

static inline sdlf_status allocate_device(sdlf_calculator *calculator, int64_t bytes, void **memory)
{
    sdlf_status status = sdlf_calculator_class_at(0)->allocate(calculator, bytes, memory);
    if (status == SDLF_OK) memset(*memory, 0xff, (size_t)bytes);
    return status;
}

static inline sdlf_status upload_device(sdlf_calculator *calculator, void *to, const void *host, int64_t bytes)
{
    (void)calculator;
    uploads++;
    uploaded += bytes;
    memcpy(to, host, (size_t)bytes);
    return SDLF_OK;
}

static inline sdlf_status download_device(sdlf_calculator *calculator, void *host, const void *from, int64_t bytes)
{
    (void)calculator;
    downloads++;
    downloaded += bytes;
    memcpy(host, from, (size_t)bytes);
    return SDLF_OK;
}

static inline sdlf_calculator *make_device(void)
{
    device_class = *sdlf_calculator_class_at(0);
    CHECK_TEXT(device_class.name, "reference");
    device_class.name = "device";
    device_class.open = open_device;
    device_class.allocate = allocate_device;
    device_class.upload = upload_device;
    device_class.download = download_device;
    sdlf_calculator *device = calloc(1, device_class.size);
    device->type = &device_class;
    device_class.open(device, NULL);
    return device;
}

#endif
