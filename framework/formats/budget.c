/* SPDX-License-Identifier: MIT */
/* Memory limits for reading a file. See budget.h. */
#include "framework/formats/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <sdlf/machine.h>

#include "framework/machine/size.h"

enum { LEAST = 128 << 20, TIMES = 32 };

static int64_t proportionate(int64_t stored)
{
    return stored <= (INT64_MAX - LEAST) / TIMES ? LEAST + TIMES * stored : INT64_MAX;
}

sdlf_status read_budget_make(read_budget *budget, int64_t stored, int64_t asked)
{
    const char *set = getenv("SDLF_READ_MEMORY");
    *budget = (read_budget){.stored = stored};
    if (asked <= 0 && set != NULL && !size_read(set, &asked))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "SDLF_READ_MEMORY is '%.40s': expected bytes, or a size such as 512M or 4G", set);
    budget->set = asked > 0;
    budget->limit = budget->most = budget->set ? asked : proportionate(stored);
    if (budget->set) return SDLF_OK;
    sdlf_machine machine;
    sdlf_status status = sdlf_machine_look(&machine); /* which opens files: only when needed */
    if (status != SDLF_OK) return status;
    if (machine.available / 2 < budget->limit) budget->limit = machine.available / 2;
    return SDLF_OK;
}

void read_budget_add_stored(read_budget *budget, int64_t bytes)
{
    budget->stored = bytes <= INT64_MAX - budget->stored ? budget->stored + bytes : INT64_MAX;
    if (!budget->set) budget->most = proportionate(budget->stored);
}

bool read_budget_take(read_budget *budget, int64_t bytes)
{
    if (budget == NULL) return true;
    if (budget->most > 0 && bytes > budget->limit - budget->taken) {
        budget->refused = true;
        return false;
    }
    budget->taken += bytes;
    return true;
}

void read_budget_give_back(read_budget *budget, int64_t bytes)
{
    if (budget != NULL) budget->taken -= bytes;
}

static sdlf_status fail(const read_budget *budget, const char *what, int64_t limit)
{
    return sdlf_fail(SDLF_ERROR_MEMORY,
                     "%smore than the %s of memory that reading a file of %s may take%s; SDLF_READ_MEMORY sets another "
                     "limit",
                     what, size_show(limit).text, size_show(budget->stored).text,
                     limit < budget->most ? ", half of what is available" : "");
}

sdlf_status read_budget_fail(const read_budget *budget)
{
    if (budget == NULL || !budget->refused) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory");
    return fail(budget, "", budget->limit);
}

sdlf_status sdlf_machine_check_reading(int64_t bytes, int64_t stored, const char *what)
{
    read_budget budget;
    sdlf_status status = read_budget_make(&budget, stored > 0 ? stored : 0, 0);
    if (status != SDLF_OK || read_budget_take(&budget, bytes)) return status;
    return sdlf_fail_context(read_budget_fail(&budget), "%s becomes %s", what != NULL ? what : "what is read",
                             size_show(bytes).text);
}

sdlf_status read_budget_check(const read_budget *budget, int64_t bytes, const char *what)
{
    if (budget->most == 0 || bytes <= budget->most) return SDLF_OK;
    char text[160];
    snprintf(text, sizeof text, "%s: %s, ", what, size_show(bytes).text);
    return fail(budget, text, budget->most);
}

sdlf_status read_budget_file(size_t *most, const char *path, int times)
{
    struct stat about;
    read_budget budget;
    bool has_end = stat(path, &about) == 0 && S_ISREG(about.st_mode);
    sdlf_status status = read_budget_make(&budget, has_end ? (int64_t)about.st_size : INT64_MAX, 0);
    *most = 0;
    if (status != SDLF_OK) return status;
    *most = (size_t)(budget.limit / times);
    if (!has_end || (int64_t)about.st_size <= budget.limit / times) return SDLF_OK;
    char what[48];
    snprintf(what, sizeof what, "%d times its size is ", times);
    return sdlf_fail_context(fail(&budget, what, budget.limit), "%s", path);
}

sdlf_status read_tensor_create(sdlf_tensor *tensor, sdlf_dtype dtype, sdlf_shape shape, const char *name)
{
    sdlf_tensor wanted = sdlf_tensor_view(dtype, shape, NULL);
    sdlf_status status = sdlf_machine_check(sdlf_tensor_bytes(&wanted), name);
    if (status != SDLF_OK) return status;
    return sdlf_fail_context(sdlf_tensor_create(tensor, NULL, dtype, shape), "%s", name);
}
