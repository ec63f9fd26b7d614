/* SPDX-License-Identifier: MIT */
/* Comparing a kernel's outputs with the expected ones, and reporting differences. */
#include "operands.h"

#include "testing.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static int64_t failures;

int64_t kernel_failures(void)
{
    return failures;
}

void kernel_fail(const kernel_case *made, const char *who, const char *format, ...)
{
    char text[400], line[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%s on %s: %s", made->name, who, text);
    test_check(false, __FILE__, __LINE__, line);
    failures++;
}

static double rounding_error(sdlf_dtype dtype)
{
    return dtype == SDLF_FLOAT64 ? 0x1p-53 : 0x1p-24;
}

/* Values rounded to 16-bit storage may be off by a unit in the last place, relative to their size: values on either
 * side of a midpoint are rounded in opposite directions. */
static double storage_error(sdlf_dtype dtype)
{
    return dtype == SDLF_BFLOAT16 ? 0x1p-7 : dtype == SDLF_FLOAT16 ? 0x1p-10 : 0;
}

static bool close_enough(double found, double expected, double allowed)
{
    if (isnan(found) || isnan(expected)) return isnan(found) && isnan(expected);
    return found == expected || fabs(found - expected) <= allowed;
}

enum { AT_ONCE = 512 }; /* elements converted per call */

/* The elements of an output that are out of tolerance. */
typedef struct differences {
    int64_t count, first, last;
    double found, expected, allowed; /* of the first one */
} differences;

static differences find_differences(const kernel_case *made, const sdlf_tensor *tensor, const unsigned char *found,
                                    const unsigned char *expected)
{
    double a[AT_ONCE], b[AT_ONCE], least = made->floor > 0 ? made->floor : 1;
    double unit = made->tolerance * rounding_error(kernel_dtype(&made->operation));
    double stored = sdlf_operation_storage(&made->operation) != SDLF_NONE ? storage_error(tensor->dtype) : 0;
    double rounded = 3 * made->rounding * sqrt(made->tolerance);
    differences all = {0};
    if (!sdlf_dtype_is_float(tensor->dtype)) unit = 0;
    size_t size = sdlf_dtype_size(tensor->dtype);
    int64_t count = sdlf_tensor_count(tensor);
    for (int64_t start = 0; start < count; start += AT_ONCE) {
        int64_t length = count - start < AT_ONCE ? count - start : AT_ONCE;
        sdlf_convert(SDLF_FLOAT64, a, tensor->dtype, found + (size_t)start * size, length);
        sdlf_convert(SDLF_FLOAT64, b, tensor->dtype, expected + (size_t)start * size, length);
        for (int64_t e = 0; e < length; e++) {
            double allowed = unit * (fabs(b[e]) > least ? fabs(b[e]) : least) + rounded + stored * fabs(b[e]);
            if (close_enough(a[e], b[e], allowed)) continue;
            if (all.count++ == 0)
                all =
                    (differences){.count = 1, .first = start + e, .found = a[e], .expected = b[e], .allowed = allowed};
            all.last = start + e;
        }
    }
    return all;
}

bool kernel_compare(const kernel_case *made, const kernel_images *found, const kernel_images *expected, const char *who)
{
    if (made->tolerance == 0) return kernel_compare_bits(made, found, expected, who);
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        differences all = find_differences(made, &made->operation.out[i], found->out[i], expected->out[i]);
        if (all.count == 0) continue;
        kernel_fail(made, who,
                    "%s[%" PRId64 "] is %.9g, expected %.9g (difference %.2g, allowed %.2g), the first of %" PRId64
                    " elements up to %" PRId64,
                    sdlf_operand_declared(sdlf_operation_type(&made->operation), SDLF_MAX_INPUTS + i)->name, all.first,
                    all.found, all.expected, all.found - all.expected, all.allowed, all.count, all.last);
        return false;
    }
    return true;
}

bool kernel_compare_bits(const kernel_case *made, const kernel_images *found, const kernel_images *expected,
                         const char *who)
{
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *tensor = &made->operation.out[i];
        int64_t size = (int64_t)sdlf_dtype_size(tensor->dtype), extent = kernel_extent(tensor);
        if (extent > 0 && memcmp(found->out[i], expected->out[i], (size_t)extent) == 0) continue;
        for (int64_t byte = 0; byte < extent; byte += size) {
            const unsigned char *a = found->out[i] + byte, *b = expected->out[i] + byte;
            if (memcmp(a, b, (size_t)size) == 0) continue;
            double x, y;
            sdlf_convert(SDLF_FLOAT64, &x, tensor->dtype, a, 1);
            sdlf_convert(SDLF_FLOAT64, &y, tensor->dtype, b, 1);
            if (isnan(x) && isnan(y) && sdlf_dtype_is_float(tensor->dtype)) continue; /* with any payload */
            kernel_fail(made, who, "%s at element %" PRId64 " is %.17g, expected the same bits as %.17g",
                        sdlf_operand_declared(sdlf_operation_type(&made->operation), SDLF_MAX_INPUTS + i)->name,
                        byte / size, x, y);
            return false;
        }
    }
    return true;
}
