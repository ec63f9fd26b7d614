/* SPDX-License-Identifier: MIT */
/* Human-readable numbers. */
#include "apps/output/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const number_text unknown = {"-"};

/* Inserts thousands separators left of the decimal point. */
static number_text separated(const char *digits)
{
    number_text result = {""};
    size_t whole = strcspn(digits, "."), used = 0;
    for (size_t i = 0; digits[i] != '\0' && used < sizeof result.text - 2; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0 && digits[i - 1] != '-') result.text[used++] = ',';
        result.text[used++] = digits[i];
    }
    result.text[used] = '\0';
    return result;
}

number_text number_count(int64_t count)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRId64, count);
    return separated(digits);
}

number_text number_fixed(double value, int decimals)
{
    if (!isfinite(value)) return unknown;
    char digits[32];
    snprintf(digits, sizeof digits, "%.*f", decimals, value);
    return separated(digits);
}

/* The decimals for three significant digits of a value below 1000. */
static int decimals_of(double value)
{
    if (value < 9.995) return 2;
    return value < 99.95 ? 1 : 0;
}

number_text number_scaled(double value, const char *unit)
{
    static const char prefix[] = " kMGTPE";
    if (!isfinite(value)) return unknown;
    int thousands = 0;
    double scaled = fabs(value);
    while (scaled >= 999.5 && prefix[thousands + 1] != '\0') {
        scaled /= 1000;
        thousands++;
    }
    number_text result;
    if (thousands == 0) {
        int decimals = scaled == floor(scaled) ? 0 : decimals_of(scaled);
        snprintf(result.text, sizeof result.text, "%.*f %s", decimals, value, unit);
    } else {
        snprintf(result.text, sizeof result.text, "%.*f %c%s", decimals_of(scaled), copysign(scaled, value),
                 prefix[thousands], unit);
    }
    return result;
}

number_text number_bytes(int64_t bytes)
{
    return number_scaled((double)bytes, "B");
}

/* Minutes and seconds, with hours if there are any. */
static number_text clock_text(int64_t seconds, const char *minutes_unit, const char *hours_unit)
{
    number_text result;
    int64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
    if (hours > 0) {
        snprintf(result.text, sizeof result.text, "%" PRId64 ":%02d:%02d%s", hours, (int)minutes, (int)(seconds % 60),
                 hours_unit);
    } else {
        snprintf(result.text, sizeof result.text, "%d:%02d%s", (int)minutes, (int)(seconds % 60), minutes_unit);
    }
    return result;
}

number_text number_duration(double seconds)
{
    if (!isfinite(seconds)) return unknown;
    if (seconds >= 119.95) return clock_text(llround(seconds), " min", " h");
    number_text result;
    if (seconds >= 0.9995) {
        snprintf(result.text, sizeof result.text, "%.*f s", seconds < 9.995 ? 2 : 1, seconds);
    } else {
        bool small = seconds < 0.9995e-3;
        double scaled = seconds * (small ? 1e6 : 1e3);
        snprintf(result.text, sizeof result.text, "%.*f %s", decimals_of(scaled), scaled, small ? "us" : "ms");
    }
    return result;
}

number_text number_clock(double seconds)
{
    if (!isfinite(seconds) || seconds > 1e9) return (number_text){"-:--"};
    return clock_text(llround(seconds), "", "");
}

number_text number_percent(double part, int decimals)
{
    if (!isfinite(part)) return unknown;
    double percent = 100 * part, step = pow(10, -decimals);
    if (percent < 100 && percent > 100 - step / 2) percent = 100 - step; /* 99.996% must not read as perfect */
    number_text result;
    snprintf(result.text, sizeof result.text, "%.*f%%", decimals, percent);
    return result;
}

number_text number_three(double value)
{
    return number_fixed(value, fabs(value) < 0.0995 ? 3 : decimals_of(fabs(value)));
}

number_text number_loss(double loss, int decimals)
{
    number_text result;
    snprintf(result.text, sizeof result.text, fabs(loss) < 1e6 ? "%.*f" : "%.*e", fabs(loss) < 1e6 ? decimals : 2,
             loss);
    return result;
}
