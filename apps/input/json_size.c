/* SPDX-License-Identifier: MIT */
/* See json_size.h. */
#include "apps/input/json_size.h"

#include <sdlf/machine.h>

#include "framework/json_cost.h"

enum { LITTLE = 16 << 20, LEAST = 128 << 20, TIMES = 32 };

sdlf_status input_json_check(const char *path, const void *text, size_t size)
{
    double needed = 0, most = LEAST + TIMES * (double)size;
    for (size_t i = 0; i < size; i++) needed += json_cost(((const char *)text)[i]);
    if (needed <= LITTLE) return SDLF_OK; /* whatever the machine has, which is looked up in files */
    sdlf_machine machine;
    sdlf_status status = sdlf_machine_look(&machine);
    if (status != SDLF_OK) return status;
    const char *by = "32 times a file and 128 MB";
    if ((double)machine.available / 2 < most) {
        most = (double)machine.available / 2;
        by = machine.available_by;
    }
    if (needed <= most) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY,
                     "%s: its JSON becomes %.3g GB, more than the %.3g GB that reading it may take (%s)", path,
                     needed * 1e-9, most * 1e-9, by);
}
