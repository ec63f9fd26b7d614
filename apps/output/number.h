/* SPDX-License-Identifier: MIT */
/* Human-readable numbers. Every function returns a small value that holds its text. */
#ifndef SDLF_APPS_OUTPUT_NUMBER_H
#define SDLF_APPS_OUTPUT_NUMBER_H

#include <stdint.h>

typedef struct number_text {
    char text[40];
} number_text;

/* With thousands separators: 60,000. */
number_text number_count(int64_t count);

/* Three digits and a prefix of 1000 before the unit: number_scaled(4.2e7, "FLOP") is "42.0 MFLOP". NaN is "-". */
number_text number_scaled(double value, const char *unit);

/* number_scaled for bytes: "25.7 MB". */
number_text number_bytes(int64_t bytes);

/* A duration to read: "0.42 ms", "7.6 s", "12:05 min", "1:02:05 h". NaN is "-". */
number_text number_duration(double seconds);

/* A duration on a clock, rounded to seconds: "0:05", "1:02:05". NaN is "-:--". */
number_text number_clock(double seconds);

/* A fraction of one: number_percent(0.9312, 1) is "93.1%". A value below 100% never rounds up to it. NaN is "-". */
number_text number_percent(double part, int decimals);

/* Three digits, of a ratio or a rate: "0.048", "1.46", "54.1", "1,203". NaN is "-". */
number_text number_three(double value);

/* A loss with that many decimals; one of a million or more, as when training diverges, as 3.92e+18. */
number_text number_loss(double loss, int decimals);

/* printf("%.*f") with thousands separators: "1,234.56". NaN is "-". */
number_text number_fixed(double value, int decimals);

#endif
