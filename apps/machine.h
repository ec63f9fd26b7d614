/* The calculators that a command works with: each opened once, by name; and the memory of this machine. */
#ifndef SDLF_APPS_MACHINE_H
#define SDLF_APPS_MACHINE_H

#include <sdlf/calculator.h>

enum { MACHINE_MAX = 16 };

typedef struct machine {
    int threads; /* set it first; 0: all */
    sdlf_calculator *calculator[MACHINE_MAX];
    int count;
} machine;

/* The calculator of that name. */
sdlf_status machine_open(machine *machine, const char *name, sdlf_calculator **calculator);
void machine_close(machine *machine);

/* Names of the calculators in this build; NULL past the end. */
const char *machine_calculator_name(int index);

/* Bytes of main memory; 0 where unknown. */
int64_t machine_memory(void);

/* SDLF_ERROR_MEMORY if `bytes` are more than the machine has, before it is brought to its knees. */
sdlf_status machine_check_memory(int64_t bytes);

#endif
