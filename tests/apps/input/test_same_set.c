/* SPDX-License-Identifier: MIT */
/* Detects whether two named data sets consist of the same files: then one cannot serve as test set for the other. */
#include "testing.h"

#include <stdio.h>

#include "apps/input/samples.h"

static char one[600], other[600], link_to_one[603];

static bool same(const char *a, const char *more, const char *b)
{
    char left[2100], right[2100];
    snprintf(left, sizeof left, "csv:%s%s", a, more);
    snprintf(right, sizeof right, "csv:%s", b);
    bool found = samples_same_set(left, right);
    CHECK(samples_same_set(right, left) == found);
    return found;
}

static void files_are_told_apart(void)
{
    CHECK(same(one, "", one));
    CHECK(same(one, "", link_to_one)); /* another path */
    CHECK(!same(one, "", other));
    CHECK(!same(one, "", "nowhere.csv"));
    CHECK(!samples_same_set("csv:a.csv", "npy:a.csv"));
    CHECK(!samples_same_set("digits", "csv:a.csv"));
}

static void how_they_are_read_is_left_out(void)
{
    CHECK(same(one, ",label=price", one));
    CHECK(same(one, ",shape=2x3,all", one));
    CHECK(!same(one, ",label=price", other));
    char two[1201];
    snprintf(two, sizeof two, "%s,%s", one, other);
    CHECK(!same(two, "", one));
}

int main(void)
{
    snprintf(one, sizeof one, "%s", test_path("year=1.csv")); /* a name like an option's */
    snprintf(other, sizeof other, "%s", test_path("year=2.csv"));
    test_write_file(one, "a,b\n", 4);
    test_write_file(other, "a,b\n", 4);
    snprintf(link_to_one, sizeof link_to_one, "/.%s", one);
    RUN(files_are_told_apart);
    RUN(how_they_are_read_is_left_out);
    return test_summary();
}
