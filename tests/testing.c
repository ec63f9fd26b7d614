/* SPDX-License-Identifier: MIT */
/* The test harness: counted checks, running tests, and the summary. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct {
    int64_t checks, failed_checks;
    int tests, failed, skipped;
    const char *running, *skip_reason;
} totals;

static bool record(bool ok)
{
    __atomic_add_fetch(&totals.checks, 1, __ATOMIC_RELAXED);
    if (!ok) __atomic_add_fetch(&totals.failed_checks, 1, __ATOMIC_RELAXED);
    return ok;
}

bool test_check(bool ok, const char *file, int line, const char *text)
{
    if (!ok) printf("%s:%d: failed: %s\n", file, line, text);
    return record(ok);
}

bool test_check_status(sdlf_status found, sdlf_status expected, const char *text, const char *file, int line,
                       const char *expression)
{
    const char *message = found == SDLF_OK ? "" : sdlf_error_message();
    if (found != expected) {
        printf("%s:%d: %s: status is %s, expected %s%s%s\n", file, line, expression, sdlf_status_name(found),
               sdlf_status_name(expected), *message ? "; message: " : "", message);
        return record(false);
    }
    bool ok = !text || strstr(message, text);
    if (!ok) printf("%s:%d: %s: the message '%s' does not contain '%s'\n", file, line, expression, message, text);
    return record(ok);
}

bool test_check_equal(int64_t found, int64_t expected, const char *file, int line, const char *text)
{
    if (found != expected) {
        printf("%s:%d: %s is %lld, expected %lld\n", file, line, text, (long long)found, (long long)expected);
    }
    return record(found == expected);
}

bool test_check_close(double found, double expected, double tolerance, const char *file, int line, const char *text)
{
    bool ok = found == expected || (isnan(found) && isnan(expected)) || fabs(found - expected) <= tolerance;
    if (!ok) {
        printf("%s:%d: %s is %.17g, expected %.17g (difference %.3g, allowed %.3g)\n", file, line, text, found,
               expected, found - expected, tolerance);
    }
    return record(ok);
}

bool test_check_text(const char *found, const char *expected, const char *file, int line, const char *text)
{
    bool ok = found && expected ? strcmp(found, expected) == 0 : found == expected;
    if (!ok) {
        printf("%s:%d: %s is '%s', expected '%s'\n", file, line, text, found ? found : "(null)",
               expected ? expected : "(null)");
    }
    return record(ok);
}

void test_run(const char *name, void (*test)(void))
{
    int64_t checks = totals.checks, failed = totals.failed_checks;
    totals.running = name;
    totals.skip_reason = NULL;
    totals.tests++;
    test();
    test_fail_allocation(0);
    if (totals.checks == checks && !totals.skip_reason) {
        printf("%s checked nothing\n", name);
        record(false);
    }
    if (totals.failed_checks != failed) {
        totals.failed++;
        printf("FAILED   %s\n", name);
    } else if (totals.skip_reason) {
        totals.skipped++;
        printf("skipped  %s: %s\n", name, totals.skip_reason);
    } else {
        printf("ok       %s\n", name);
    }
    fflush(stdout);
}

void test_skip(const char *reason)
{
    totals.skip_reason = reason;
}

int test_summary(void)
{
    printf("%d tests, %d failed, %d skipped; %lld checks\n", totals.tests, totals.failed, totals.skipped,
           (long long)totals.checks);
    if (totals.failed || totals.failed_checks || totals.tests == 0) return 1;
    return totals.skipped == totals.tests ? 77 : 0;
}
