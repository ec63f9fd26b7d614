/* SPDX-License-Identifier: MIT */
#include "framework/machine/size.h"

#include <stdio.h>
#include <string.h>

#include "framework/machine/lines.h"

bool size_read(const char *text, int64_t *bytes)
{
    static const char units[] = "KMGT";
    const char *end;
    if (*text < '0' || *text > '9' || !number_at(text, bytes, &end)) return false;
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (*end != '\0' && (unit == NULL || end[1] != '\0')) return false;
    for (int i = 0; unit != NULL && i <= unit - units; i++) {
        if (*bytes > INT64_MAX / 1024) return false;
        *bytes *= 1024;
    }
    return *bytes > 0;
}

size_shown size_show(int64_t bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    size_shown shown;
    double number = (double)bytes / 1000;
    int unit = 0;
    while (number >= 999.95 && unit < 5) number /= 1000, unit++;
    if (bytes < 1000)
        snprintf(shown.text, sizeof shown.text, "%d bytes", (int)bytes);
    else
        snprintf(shown.text, sizeof shown.text, "%.1f %s", number, units[unit]);
    return shown;
}
