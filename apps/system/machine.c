/* SPDX-License-Identifier: MIT */
/* The calculators of a command, and checks against this machine's memory. */
#include "apps/system/machine.h"

#include <assert.h>
#include <string.h>

#include <sdlf/machine.h>

#include "apps/output/number.h"

static const char *const math_names[] = {"fp32", "tf32", "fp16", "bf16", NULL}; /* in the order of sdlf_math */
static_assert(sizeof math_names / sizeof math_names[0] == SDLF_MATH_COUNT + 1, "a name for each mode");

const argument machine_arguments[] = {
    {"device", ARGUMENT_INT, offsetof(machine_choice, device), "N", .minimum = 0, .maximum = 1023, .fallback = "0",
     .help = "which GPU, counted from 0"},
    {"math", ARGUMENT_CHOICE, offsetof(machine_choice, math), "MODE", .choices = math_names, .fallback = "fp32",
     .help = "type to which a GPU rounds operands of float32 products; sums are float32"},
    {0},
};

sdlf_status machine_open(machine *m, const char *name, sdlf_calculator **calculator)
{
    for (int i = 0; i < m->count; i++) {
        if (strcmp(m->calculator[i]->type->name, name) == 0) {
            *calculator = m->calculator[i];
            return SDLF_OK;
        }
    }
    if (m->count == MACHINE_MAX) return sdlf_fail(SDLF_ERROR_ARGUMENT, "more than %d calculators", MACHINE_MAX);
    sdlf_calculator_options options = {
        .threads = (int)m->choice.threads, .device = (int)m->choice.device, .math = (sdlf_math)m->choice.math};
    sdlf_status status = sdlf_calculator_open(calculator, name, &options);
    if (status == SDLF_OK) m->calculator[m->count++] = *calculator;
    return status;
}

void machine_close(machine *m)
{
    while (m->count > 0) sdlf_calculator_close(m->calculator[--m->count]);
}

sdlf_status machine_check_choice(const machine *m)
{
    bool device = false, math = false;
    for (int i = 0; i < m->count; i++) {
        device = device || m->calculator[i]->type->device_count;
        math = math || m->calculator[i]->type->has_math;
    }
    const char *name = m->count > 0 ? m->calculator[0]->type->name : "";
    if (m->choice.device != 0 && !device) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--device %lld: the %s calculator has no devices to choose from",
                         (long long)m->choice.device, name);
    }
    if (m->choice.math != SDLF_MATH_FP32 && !math) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--math %s: the %s calculator computes only in fp32",
                         sdlf_math_name((sdlf_math)m->choice.math), name);
    }
    return SDLF_OK;
}

sdlf_status machine_open_one(machine *m, const machine_choice *choice, const char *name, sdlf_calculator **calculator)
{
    m->choice = *choice;
    sdlf_status status = machine_open(m, name, calculator);
    return status == SDLF_OK ? machine_check_choice(m) : status;
}

const char *machine_calculator_name(int index)
{
    const char *reason;
    int count = 0;
    while (count <= index && sdlf_calculator_class_at(count)) count++;
    return index < count ? sdlf_calculator_class_at(index)->name : sdlf_calculator_unavailable(index - count, &reason);
}

sdlf_status machine_check_memory(const machine *m, int64_t bytes, const char *what)
{
    for (int i = 0; i < m->count; i++) {
        if (!sdlf_calculator_is_on_host(m->calculator[i])) return SDLF_OK;
    }
    sdlf_machine here;
    sdlf_status status = sdlf_machine_look(&here);
    if (status != SDLF_OK || bytes - here.held <= here.available) return status;
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s are needed and %s are available (%s); %s needs less",
                     number_bytes(bytes).text, number_bytes(here.available + here.held).text, here.available_by, what);
}

sdlf_status machine_check_training(sdlf_calculator *host, sdlf_model *model, int64_t batch)
{
    sdlf_memory_info memory;
    const machine alone = {.calculator = {host}, .count = 1};
    sdlf_status status = sdlf_plan_measure(
        &memory, model,
        &(sdlf_plan_options){
            .batch = batch, .mode = SDLF_TRAIN, .forward = host, .optimizer = sdlf_sgd(.momentum = 0.9)});
    if (status != SDLF_OK) return status;
    return machine_check_memory(&alone, memory.arena + memory.parameters + memory.states, "a smaller --batch");
}

static const sdlf_calculator_class *find_class(const char *calculator)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)) != NULL; i++)
        if (strcmp(type->name, calculator) == 0) return type;
    return NULL;
}

bool machine_has_devices(const char *calculator)
{
    const sdlf_calculator_class *type = find_class(calculator);
    return type != NULL && type->device_count != NULL;
}

sdlf_status machine_count_devices(const char *calculator, int *count)
{
    sdlf_calculator *opened = NULL;
    const sdlf_calculator_class *type = find_class(calculator);
    *count = type == NULL ? 0 : type->device_count != NULL ? type->device_count() : 1;
    if (*count > 0) return SDLF_OK;
    sdlf_status status = sdlf_calculator_open(&opened, calculator, NULL);
    sdlf_calculator_close(opened);
    return status != SDLF_OK ? status
                             : sdlf_fail(SDLF_ERROR_DEVICE, "the %s calculator finds no device here", calculator);
}

int64_t machine_device_of(const char *calculator, int local_rank)
{
    int devices = machine_has_devices(calculator) ? find_class(calculator)->device_count() : 0;
    return devices > 0 ? local_rank % devices : 0;
}
