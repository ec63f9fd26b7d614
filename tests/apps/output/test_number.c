/* SPDX-License-Identifier: MIT */
/* Human-readable numbers. */
#include "testing.h"

#include <math.h>

#include "apps/output/number.h"

static void counts(void)
{
    CHECK_TEXT(number_count(0).text, "0");
    CHECK_TEXT(number_count(999).text, "999");
    CHECK_TEXT(number_count(1000).text, "1,000");
    CHECK_TEXT(number_count(60000).text, "60,000");
    CHECK_TEXT(number_count(6434634).text, "6,434,634");
    CHECK_TEXT(number_count(-1234).text, "-1,234");
    CHECK_TEXT(number_count(-123).text, "-123");
    CHECK_TEXT(number_count(INT64_MAX).text, "9,223,372,036,854,775,807");
    CHECK_TEXT(number_count(INT64_MIN).text, "-9,223,372,036,854,775,808");
}

static void fixed_decimals(void)
{
    CHECK_TEXT(number_fixed(1234.5, 2).text, "1,234.50");
    CHECK_TEXT(number_fixed(0.125, 3).text, "0.125");
    CHECK_TEXT(number_fixed(999999.6, 0).text, "1,000,000");
    CHECK_TEXT(number_fixed(NAN, 2).text, "-");
    CHECK_TEXT(number_fixed(INFINITY, 2).text, "-");
}

static void prefixes(void)
{
    CHECK_TEXT(number_bytes(0).text, "0 B");
    CHECK_TEXT(number_bytes(999).text, "999 B");
    CHECK_TEXT(number_bytes(1000).text, "1.00 kB");
    CHECK_TEXT(number_bytes(25738536).text, "25.7 MB");
    CHECK_TEXT(number_bytes(999600000).text, "1.00 GB");
    CHECK_TEXT(number_scaled(42e6, "FLOP").text, "42.0 MFLOP");
    CHECK_TEXT(number_scaled(505.4e9, "FLOP/s").text, "505 GFLOP/s");
    CHECK_TEXT(number_scaled(23.7e9, "B/s").text, "23.7 GB/s");
    CHECK_TEXT(number_scaled(NAN, "B").text, "-");
}

static void durations(void)
{
    CHECK_TEXT(number_duration(4.2e-7).text, "0.42 us");
    CHECK_TEXT(number_duration(0.00042).text, "420 us");
    CHECK_TEXT(number_duration(0.0088).text, "8.80 ms");
    CHECK_TEXT(number_duration(0.9).text, "900 ms");
    CHECK_TEXT(number_duration(0.99951).text, "1.00 s");
    CHECK_TEXT(number_duration(7.6).text, "7.60 s");
    CHECK_TEXT(number_duration(23.14).text, "23.1 s");
    CHECK_TEXT(number_duration(125).text, "2:05 min");
    CHECK_TEXT(number_duration(3725).text, "1:02:05 h");
    CHECK_TEXT(number_duration(NAN).text, "-");
    CHECK_TEXT(number_clock(4.6).text, "0:05");
    CHECK_TEXT(number_clock(59.7).text, "1:00");
    CHECK_TEXT(number_clock(3725).text, "1:02:05");
    CHECK_TEXT(number_clock(INFINITY).text, "-:--");
}

static void percentages(void)
{
    CHECK_TEXT(number_percent(0.9312, 1).text, "93.1%");
    CHECK_TEXT(number_percent(1, 1).text, "100.0%");
    CHECK_TEXT(number_percent(0.99999, 1).text, "99.9%"); /* not all, and so it must not read as all */
    CHECK_TEXT(number_percent(0.99999, 2).text, "99.99%");
    CHECK_TEXT(number_percent(1.5, 0).text, "150%");
    CHECK_TEXT(number_percent(NAN, 1).text, "-");
}

static void losses(void)
{
    CHECK_TEXT(number_loss(0.01849, 3).text, "0.018");
    CHECK_TEXT(number_loss(0, 4).text, "0.0000");
    CHECK_TEXT(number_loss(1414.0058, 3).text, "1414.006");
    CHECK_TEXT(number_loss(999999.5, 1).text, "999999.5");
    CHECK_TEXT(number_loss(3924773024857018880.0, 3).text, "3.92e+18");
    CHECK_TEXT(number_loss(INFINITY, 3).text, "inf");
}

int main(void)
{
    RUN(counts);
    RUN(fixed_decimals);
    RUN(prefixes);
    RUN(durations);
    RUN(percentages);
    RUN(losses);
    return test_summary();
}
