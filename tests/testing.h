/* SPDX-License-Identifier: MIT */
/* A small test harness: counted checks, tests that skip with a reason, and allocations that are counted and can be made
 * to fail.
 *
 *     static void adds_up(void) { CHECK(1 + 1 == 2); }
 *     int main(void) { RUN(adds_up); return test_summary(); } */
#ifndef SDLF_TESTS_TESTING_H
#define SDLF_TESTS_TESTING_H

#include <stdbool.h>
#include <stdint.h>

#include <sdlf/calculator.h>
#include <sdlf/plan.h>

/* Every check is counted; a failed one prints file, line and what was found, and the test continues. A test without any
 * check fails unless it is skipped. */
#define CHECK(condition)     test_check((condition), __FILE__, __LINE__, #condition)
#define CHECK_OK(expression) test_check_status((expression), SDLF_OK, NULL, __FILE__, __LINE__, #expression)
/* Checks that the call fails with this status and that its message contains `text`. */
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

/* Mark the running test as skipped, with a reason. */
void test_skip(const char *reason);

/* Print a line of totals. Returns the exit code: 0 passed, 1 failed, 77 all skipped. */
int test_summary(void);

/* True if the program is built with AddressSanitizer or ThreadSanitizer, which slow everything down several times and
 * reserve the whole address space. GCC and Clang signal this differently. */
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

/* True if the process can have an address space limit. Sanitizers reserve all of it, and under an emulator the limit
 * would be the emulator's own, so it is not applied. */
#if TEST_SANITIZED || defined(SDLF_TEST_EMULATED)
#define TEST_LIMITS_MEMORY 0
#else
#define TEST_LIMITS_MEMORY 1
#endif

/* ---- allocations (of the library and the test; not of shared libraries) ---- */

/* Allocations since the program started, and those not freed yet. */
int64_t test_allocations(void);
int64_t test_live_allocations(void);

/* Bytes not freed yet, and their maximum since test_reset_peak. */
int64_t test_live_bytes(void);
int64_t test_peak_bytes(void);
void test_reset_peak(void);

/* Make the n-th allocation from now on (from 1) fail, once; 0: none. test_allocation_failed returns whether it has
 * failed. */
void test_fail_allocation(int64_t n);
bool test_allocation_failed(void);

/* Call `attempt` with the 1st, 2nd, 3rd ... allocation failing, until a run has no failing allocation. Each run must
 * return SDLF_ERROR_MEMORY (or SDLF_OK, if it survived the failure) and leave nothing allocated; the last must return
 * SDLF_OK. `attempt` must allocate at least once, or nothing would be tested. */
void test_every_allocation(const char *name, sdlf_status (*attempt)(void *), void *argument);

/* ---- calculators ---- */

/* The registered calculator classes that work on this machine, in order, and last "guarded", a mock device whose memory
 * the host cannot access (see guarded.c); NULL beyond it. Classes without their device, and classes that compute only
 * some operations (tests/kernels covers those), are left out, which is reported once.
 * All of them can be opened by name. */
const sdlf_calculator_class *test_calculator_class_at(int index);
const sdlf_calculator_class *test_guarded_class(void);

/* Open the calculator of that name with default options; the caller closes it. NULL after a failed check. */
sdlf_calculator *test_open(const char *name);

/* Open "cpu" with these vector instructions from now on: plain, avx2, avx512; NULL: those that the program was started
 * with. False if this machine lacks them, which each call reports once; nothing changes then. */
bool test_set_level(const char *level);

/* True if a calculator's CUDA device supports every kernel: some require compute capability 9.0, others more shared
 * memory than smaller devices have. Always true for other calculators. */
bool test_runs_all_kernels(const sdlf_calculator *calculator);

/* Settings of "guarded": its memory (0: unlimited); its host memory for queued transfers; which allocation from now on
 * fails (the n-th; 0: none); and which queue executes its entries as late as it may (initially SDLF_QUEUE_COMPUTE),
 * while the other executes them at once. */
void test_guarded_memory(int64_t bytes);
void test_guarded_host_memory(int64_t bytes);
void test_guarded_fail_allocation(int64_t n);
void test_guarded_late(sdlf_queue queue);

/* How often, since the last call, the host has waited for "guarded" (for a fence, for all queued work, for a transfer)
 * and then queued more computation. */
int64_t test_guarded_interruptions(void);

/* Copy a binding's whole tensor to or from host memory, in its own dtype, after all queued kernels have finished. A
 * binding without a calculator is in host memory. False after a failure, which counts as a failed check. */
bool test_download(const sdlf_binding *binding, void *host);
bool test_upload(const sdlf_binding *binding, const void *host);

/* sdlf_plan_write and _read with host memory that the test knows to have the size of the input or output. */
sdlf_status test_plan_write(sdlf_plan *plan, const char *input, const void *host);
sdlf_status test_plan_read(sdlf_plan *plan, const char *output, void *host);

/* Create a tensor in the calculator's memory with the values at `host` (NULL: undefined), for operations outside plans.
 * Release the binding's tensor with test_release. */
sdlf_binding test_tensor(sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape, const void *host);
void test_release(sdlf_binding *binding);

/* ---- files ---- */

/* A path in a fresh directory of this test program, removed at exit (static storage, 8 in rotation). */
const char *test_path(const char *name);
void test_write_file(const char *path, const void *bytes, size_t count);
/* The number of entries of a folder whose names do not begin with a dot. */
int test_count_files(const char *folder);
/* Rewrite the last byte of a file and advance its time stamp by some seconds, because file clocks are coarse. */
void test_change_file(const char *path);
/* The folder of SDLF_DATA joined with `name`, or NULL if the variable is unset or the file does not exist. */
const char *test_data(const char *name);

#endif
