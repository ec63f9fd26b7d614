/* SPDX-License-Identifier: MIT */
/* Printing to memory: the complete text, or an error that memory ran out. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

enum { LINES = 3000 };

static void empty_text(void)
{
    memory_text text;
    if (!CHECK(memory_text_open(&text))) return;
    CHECK(memory_text_close(&text));
    CHECK_TEXT(text.text, "");
    CHECK_EQUAL((int64_t)text.length, 0);
    free(text.text);
}

/* The results of the printing functions are not checked. */
static bool print_lines(memory_text *text)
{
    if (!memory_text_open(text)) return false;
    for (int i = 0; i < LINES; i++) {
        fprintf(text->file, "%4d ", i);
        fputs("a line\n", text->file);
    }
    return memory_text_close(text);
}

static void long_text(void)
{
    memory_text text;
    if (!CHECK(print_lines(&text))) return;
    CHECK_EQUAL((int64_t)text.length, 12 * LINES);
    CHECK_EQUAL((int64_t)strlen(text.text), 12 * LINES);
    CHECK(memcmp(text.text, "   0 a line\n   1 a line\n", 24) == 0);
    free(text.text);
}

static void nothing_is_lost_in_silence(void)
{
    int64_t live = test_live_allocations();
    for (int n = 1;; n++) {
        memory_text text;
        test_fail_allocation(n);
        bool whole = print_lines(&text), failed = test_allocation_failed();
        test_fail_allocation(0);
        if (!failed) {
            CHECK(n > 2 && whole);
            free(text.text);
            break;
        }
        CHECK(!whole && text.text == NULL);
        CHECK_EQUAL(test_live_allocations(), live);
    }
}

int main(void)
{
    RUN(empty_text);
    RUN(long_text);
    RUN(nothing_is_lost_in_silence);
    return test_summary();
}
