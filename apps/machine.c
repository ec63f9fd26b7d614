/* The calculators that a command works with, and the memory of this machine. */
#include "apps/machine.h"

#include <string.h>
#include <unistd.h>

#include "apps/number.h"

sdlf_status machine_open(machine *m, const char *name, sdlf_calculator **calculator)
{
    for (int i = 0; i < m->count; i++) {
        if (strcmp(m->calculator[i]->type->name, name) == 0) {
            *calculator = m->calculator[i];
            return SDLF_OK;
        }
    }
    if (m->count == MACHINE_MAX) return sdlf_fail(SDLF_ERROR_ARGUMENT, "more than %d calculators", MACHINE_MAX);
    sdlf_status status = sdlf_calculator_open(calculator, name, &(sdlf_calculator_options){.threads = m->threads});
    if (status == SDLF_OK) m->calculator[m->count++] = *calculator;
    return status;
}

void machine_close(machine *m)
{
    while (m->count > 0) sdlf_calculator_close(m->calculator[--m->count]);
}

const char *machine_calculator_name(int index)
{
    const sdlf_calculator_class *type = sdlf_calculator_class_at(index);
    return type ? type->name : NULL;
}

int64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages * page : 0;
}

sdlf_status machine_check_memory(int64_t bytes)
{
    int64_t memory = machine_memory();
    if (memory == 0 || bytes <= memory) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s are needed and this machine has %s; a smaller --batch needs less",
                     number_bytes(bytes).text, number_bytes(memory).text);
}
