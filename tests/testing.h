/* SPDX-License-Identifier: MIT */
/* A small test harness: checks that count, tests that skip with a reason, allocations that are counted and made to
 * fail.
 *
 *     static void adds_up(void) { CHECK(1 + 1 == 2); }
 *     int main(void) { RUN(adds_up); return test_summary(); } */
#ifndef SDLF_TESTS_TESTING_H
#define SDLF_TESTS_TESTING_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/calculator.h>
#include <sdlf/plan.h>

/* Every check is counted; a failed one prints file, line and what was found, and the test goes on. A test that checks
 * nothing fails, except for one that is skipped. */
#define CHECK(condition)     test_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_OK(expression) test_check_status((expression), SDLF_OK, NULL, __FILE__, __LINE__, #expression)
/* The call fails with this status, and its message contains `text`. */
#define CHECK_FAILS(expression, status, text)                                                                          \
    test_check_status((expression), (status), (text), __FILE__, __LINE__, #expression)
#define CHECK_EQUAL(found, expected) test_check_equal((found), (expected), __FILE__, __LINE__, #found)
#define CHECK_CLOSE(found, expected, tolerance)                                                                        \
    test_check_close((found), (expected), (tolerance), __FILE__, __LINE__, #found)
#define CHECK_TEXT(found, expected) test_check_text((found), (expected), __FILE__, __LINE__, #found)
#define RUN(test)                   test_run(#test, test)

bool test_check(bool ok, const char *file, int line, const char *text);
bool test_check_status(sdlf_status found, sdlf_status expected, const char *text, const char *file, int line,
                       const char *expression);
bool test_check_equal(int64_t found, int64_t expected, const char *file, int line, const char *text);
bool test_check_close(double found, double expected, double tolerance, const char *file, int line, const char *text);
bool test_check_text(const char *found, const char *expected, const char *file, int line, const char *text);
void test_run(const char *name, void (*test)(void));

/* Mark the running test as skipped, and say why. */
void test_skip(const char *reason);

/* Print a line of totals; the exit code: 0 passed, 1 failed, 77 all skipped. */
int test_summary(void);

/* Is the program built with AddressSanitizer or ThreadSanitizer, under which everything takes several times as long and
 * which have all address space? GCC and Clang say so differently. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* Can the process have a limit of address space? Sanitizers have all of it, and emulators, whose own it would be, leave
 * it without one. */
#if TEST_SANITIZED || defined(SDLF_TEST_EMULATED)
#define TEST_LIMITS_MEMORY 0
#else
#define TEST_LIMITS_MEMORY 1
#endif

/* ---- allocations (of the library and the test; not of shared libraries) ---- */

/* Allocations since the program began, and those not freed yet. */
int64_t test_allocations(void);
int64_t test_live_allocations(void);

/* Bytes of those not freed yet, and the most there were at once since test_reset_peak. */
int64_t test_live_bytes(void);
int64_t test_peak_bytes(void);
void test_reset_peak(void);

/* From now on the n-th allocation (from 1) fails, once; 0: none does. True from test_allocation_failed if it came to
 * that. */
void test_fail_allocation(int64_t n);
bool test_allocation_failed(void);

/* Call `attempt` with the 1st, 2nd, 3rd ... allocation failing until none fails any more: each time it must return
 * SDLF_ERROR_MEMORY (or SDLF_OK, where the failure was survived) and leave nothing allocated. The last run must be OK.
 * One allocation there must be, or nothing is tested. */
void test_every_allocation(const char *name, sdlf_status (*attempt)(void *), void *argument);

/* ---- calculators ---- */

/* The registered calculator classes that work on this machine, in order, and last "guarded", a pretended device whose
 * memory the host cannot touch (see guarded.c); NULL past it. One that lacks its device is left out, and one that
 * computes only some operations (tests/kernels has those), which is said once.
 * All of them can be opened by name. */
const sdlf_calculator_class *test_calculator_class_at(int index);
const sdlf_calculator_class *test_guarded_class(void);

/* The calculator of that name, with default options; the caller's. NULL after a failed check. */
sdlf_calculator *test_open(const char *name);

/* Let "cpu" be opened with these vector instructions from now on: plain, avx2, avx512; NULL: those that the program was
 * started for. False where this machine lacks them, which is said once a call; then nothing has changed. */
bool test_set_level(const char *level);

/* Does a calculator's CUDA device have what every kernel needs? Some are only for compute capability 9.0, and others
 * need more shared memory than smaller devices have. Any other calculator has all. */
bool test_runs_all_kernels(const sdlf_calculator *calculator);

/* Give "guarded" this much memory (0: no end); and this much of the host's for queued transfers; make its n-th
 * allocation from now on fail (0: none); say which of its queues does what it holds as late as it may (at first
 * SDLF_QUEUE_COMPUTE), while the other is early. */
void test_guarded_memory(int64_t bytes);
void test_guarded_host_memory(int64_t bytes);
void test_guarded_fail_allocation(int64_t n);
void test_guarded_late(sdlf_queue queue);

/* How often the host has waited for "guarded" (for a fence, for all that is queued, for a transfer) and then given it
 * more to compute, since this was asked last. */
int64_t test_guarded_interruptions(void);

/* Copy what a binding holds to host memory, or from it: the whole tensor, in its own dtype. Kernels that are queued
 * finish first. A binding without a calculator is host memory. Failures are counted as checks; false then. */
bool test_download(const sdlf_binding *binding, void *host);
bool test_upload(const sdlf_binding *binding, const void *host);

/* sdlf_plan_write and _read of host memory that the test knows to hold what the input or output does. */
sdlf_status test_plan_write(sdlf_plan *plan, const char *input, const void *host);
sdlf_status test_plan_read(sdlf_plan *plan, const char *output, void *host);

/* A tensor in the calculator's memory with the values at `host` (NULL: undefined ones), for operations outside of
 * plans. Its binding's tensor goes back with test_release. */
sdlf_binding test_tensor(sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape, const void *host);
void test_release(sdlf_binding *binding);

/* ---- files ---- */

/* A fresh directory for this test program, removed at exit. A path below it (static storage, 8 in rotation). */
const char *test_path(const char *name);
void test_write_file(const char *path, const void *bytes, size_t count);
/* Entries of a folder, without those whose names begin with a dot. */
int test_count_files(const char *folder);
/* Write the last byte of a file anew, and let it be some seconds later: files' clocks are coarse. */
void test_change_file(const char *path);
/* The folder of SDLF_DATA joined with `name`, or NULL when the variable is unset or the file is not there. */
const char *test_data(const char *name);

#endif
