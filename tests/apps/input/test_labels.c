/* SPDX-License-Identifier: MIT */
/* Files of names of classes. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "apps/input/labels.h"

static void names_come_one_a_line(void)
{
    labels l;
    test_write_file(test_path("names"), "cat\r\n\n\x1b[1mdog", 13);
    if (!CHECK_OK(labels_read(&l, test_path("names")))) return;
    CHECK_EQUAL(l.count, 3);
    CHECK_TEXT(labels_name(&l, 0), "cat");
    CHECK_TEXT(labels_name(&l, 1), "");
    CHECK_TEXT(labels_name(&l, 2), "?[1mdog");
    CHECK(labels_name(&l, 3) == NULL);
    labels_release(&l);
}

static void there_is_an_end_to_them(void)
{
    enum { MOST = 1 << 20 };
    labels l;
    char *lines = malloc(MOST + 1);
    if (lines == NULL) abort();
    memset(lines, '\n', MOST + 1);
    test_write_file(test_path("many"), lines, MOST);
    CHECK_OK(labels_read(&l, test_path("many")));
    CHECK_EQUAL(l.count, MOST);
    labels_release(&l);
    test_write_file(test_path("many"), lines, MOST + 1);
    CHECK_FAILS(labels_read(&l, test_path("many")), SDLF_ERROR_FORMAT, "many: expected the names of at most 1048576");
    labels_release(&l);
    free(lines);
}

int main(void)
{
    RUN(names_come_one_a_line);
    RUN(there_is_an_end_to_them);
    return test_summary();
}
