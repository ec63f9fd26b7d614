/* SPDX-License-Identifier: MIT */
/* The calculators of a command, each opened once by name; and checks against this machine's memory. */
#ifndef SDLF_APPS_SYSTEM_MACHINE_H
#define SDLF_APPS_SYSTEM_MACHINE_H

#include <sdlf/calculator.h>
#include <sdlf/plan.h>

#include "apps/arguments/arguments.h"

enum { MACHINE_MAX = 16 };

/* The options for opening calculators; set them first. */
typedef struct machine_choice {
    int64_t threads; /* 0: all */
    int64_t device;
    int math; /* an sdlf_math */
} machine_choice;

/* --device and --math. */
extern const argument machine_arguments[];

typedef struct machine {
    machine_choice choice;
    sdlf_calculator *calculator[MACHINE_MAX];
    int count;
} machine;

/* The calculator of that name. */
sdlf_status machine_open(machine *machine, const char *name, sdlf_calculator **calculator);
/* Open the only calculator of a command, which must support every option of this choice. */
sdlf_status machine_open_one(machine *machine, const machine_choice *choice, const char *name,
                             sdlf_calculator **calculator);
void machine_close(machine *machine);

/* Call once all are open: SDLF_ERROR_ARGUMENT if a device or a math mode was chosen and no calculator supports it. */
sdlf_status machine_check_choice(const machine *machine);

/* The device for the process with rank local_rank on this machine; 0: the calculator has no choice. */
int64_t machine_device_of(const char *calculator, int local_rank);

/* True if this calculator has a choice of devices. */
bool machine_has_devices(const char *calculator);

/* Count its devices; 1 for a calculator without a choice. If there is none: the error of opening it. */
sdlf_status machine_count_devices(const char *calculator, int *count);

/* Names of the calculators in this build, then of those that it lacks; NULL past the end. */
const char *machine_calculator_name(int index);

/* SDLF_ERROR_MEMORY if `bytes`, in addition to what this process already uses, would exhaust the machine; the message
 * says that `what`, such as "a smaller --batch", needs less. The limits of a device's memory are checked by the device
 * itself. */
sdlf_status machine_check_memory(const machine *machine, int64_t bytes, const char *what);

/* The same for training `model` with this batch on a calculator of the host, before any plan is made. */
sdlf_status machine_check_training(sdlf_calculator *host, sdlf_model *model, int64_t batch);

#endif
