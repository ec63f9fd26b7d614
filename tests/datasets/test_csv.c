/* SPDX-License-Identifier: MIT */
/* The csv data set, on tables written by the test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "testing.h"

static sdlf_status open_as(sdlf_dataset **data, const char *behind, sdlf_split split)
{
    char specification[2048];
    snprintf(specification, sizeof specification, "csv:%s%s", test_path("a.csv"), behind);
    return sdlf_dataset_open(data, specification, split);
}

static void write_table(const char *text)
{
    test_write_file(test_path("a.csv"), text, strlen(text));
}

/* Two columns of numbers, 1 2, 3 4, 5 6, and labels b, a, b, in any form. */
static void check_form(const char *text, const char *behind)
{
    static const int32_t wanted[3] = {1, 0, 1};
    sdlf_dataset *data = NULL;
    write_table(text);
    if (!CHECK_OK(open_as(&data, behind, SDLF_SPLIT_TRAIN))) return;
    CHECK(data->samples.dtype == SDLF_FLOAT32 && sdlf_shape_equal(data->samples.shape, sdlf_shape(3, 2)));
    for (int i = 0; i < 6; i++) CHECK_EQUAL(((const float *)data->samples.data)[i], i + 1);
    for (int i = 0; i < 3; i++) CHECK_EQUAL(((const int32_t *)data->labels.data)[i], wanted[i]);
    CHECK_EQUAL(data->class_count, 2);
    CHECK_EQUAL(data->channels.count, 2);
    CHECK_CLOSE(data->channels.mean[0], 3, 1e-6);
    sdlf_dataset_free(data);
}

static void forms(void)
{
    check_form("1,2,b\n3,4,a\n5,6,b\n", ",all");
    check_form("1;2;b\r\n3;4;a\r\n5;6;b", ",all");
    check_form("1\t2\tb\n\n3\t4\ta\n5\t6\tb\n\n", ",all");
    check_form("\xef\xbb\xbfu,v,kind\n1,2,b\n3,4,a\n5,6,b\n", ",all");
    check_form("u,Class,v\n1,b,2\n3,a,4\n5,b,6\n", ",all");
    check_form("u,\"a \"\"name\"\"\",v\n1,\"b\",2e0\n+3, a ,4.0\n\"5\",b,.6e1\n", ",label=a \"name\",all");
    check_form("b,1,2\na,3,4\nb,5,6\n", ",label=1,all");
    check_form("b,1,2\na,3,4\nb,5,6\n", ",all,label=1");
}

static void numbers_are_classes(void)
{
    sdlf_dataset *data = NULL;
    write_table("label,p,q,r,s\n3,1,2,3,4\n0,5,6,7,8\n");
    if (CHECK_OK(open_as(&data, ",shape=1x2x2,all", SDLF_SPLIT_TEST))) {
        CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(2, 1, 2, 2)));
        CHECK(data->class_names == NULL);
        CHECK_EQUAL(data->class_count, 4);
        CHECK_EQUAL(((const int32_t *)data->labels.data)[0], 3);
    }
    sdlf_dataset_free(data);
    CHECK_FAILS(open_as(&data, ",shape=1x2x3,all", SDLF_SPLIT_TEST), SDLF_ERROR_FORMAT,
                "shape=1x2x3 takes 6 numbers, but a row has 4");
    CHECK_FAILS(open_as(&data, ",shape=4,all", SDLF_SPLIT_TEST), SDLF_ERROR_ARGUMENT, "expected CxHxW");
}

/* Each row is in one half, equal rows in the same, and both halves know all classes. */
static void two_halves(void)
{
    enum { ROWS = 200 };
    char text[ROWS * 16], *at = text;
    bool seen[ROWS] = {false};
    sdlf_dataset *half[2] = {NULL, NULL};
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "%d,%s\n", i, i % 2 ? "odd" : "even");
    write_table(text);
    for (int s = 0; s < 2; s++) {
        if (!CHECK_OK(open_as(&half[s], "", s == 0 ? SDLF_SPLIT_TRAIN : SDLF_SPLIT_TEST))) continue;
        CHECK(half[s]->class_count == 2 && strcmp(half[s]->class_names[1], "odd") == 0);
        for (int64_t i = 0; i < half[s]->samples.shape.dim[0]; i++) {
            int row = (int)((const float *)half[s]->samples.data)[i];
            CHECK(!seen[row] && ((const int32_t *)half[s]->labels.data)[i] == row % 2);
            seen[row] = true;
        }
    }
    for (int i = 0; i < ROWS; i++) CHECK(seen[i]);
    if (half[1] != NULL) CHECK(half[1]->samples.shape.dim[0] > ROWS / 10 && half[1]->samples.shape.dim[0] < ROWS / 3);
    for (int s = 0; s < 2; s++) sdlf_dataset_free(half[s]);
}

static void refused(const char *text, const char *behind, const char *words)
{
    sdlf_dataset *data = NULL;
    write_table(text);
    CHECK_FAILS(open_as(&data, behind, SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT, words);
    CHECK(data == NULL);
}

static void wrong_tables(void)
{
    sdlf_dataset *data = NULL;
    refused("", ",all", "expected rows of numbers and a label, found 0 rows");
    refused("1\n2\n", ",all", "found 2 rows of 1 columns");
    refused("a,b,c\n", ",all", "no rows follow the names of the columns");
    refused("a,b\n1,x\n2\n", ",all", "line 3: expected 2 columns, as in the first row, found 1");
    refused("age,b,c\n1,2,x\n4,,y\n", ",all", "line 3, column 2 b: expected a number, found ''");
    refused("1,2,x\n4,nan,y\n", ",all", "line 2, column 2: expected a number, found 'nan'");
    refused("1,2,x\n4,1e99,y\n", ",all", "line 2, column 2: expected a number, found '1e99'");
    refused("1,2,x\n\"4,2,y\n", ",all", "line 2: a quote that is not closed");
    refused("1,2,x\n\"4\"5,2,y\n", ",all", "line 2: expected ',' or the line's end after a quote");
    refused("1,0.5\n2,0.25\n3,0.75\n4,0.1\n", ",all",
            "column 2 holds 4 different labels in 4 rows; label=COLUMN names another, and float targets need a loss: "
            "--loss mse");
    refused("1,a\n2,\n3,a\n", ",all", "label '': expected a name in UTF-8");
    test_write_file(test_path("a.csv"), "1,2\n3,\0\n", 8);
    CHECK_FAILS(open_as(&data, ",all", SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT, "line 2: found a NUL byte; expected text");
    write_table("1,2,a\n");
    bool first = open_as(&data, "", SDLF_SPLIT_TRAIN) == SDLF_OK; /* one row is in one half */
    sdlf_dataset_free(data);
    CHECK_FAILS(open_as(&data, "", first ? SDLF_SPLIT_TEST : SDLF_SPLIT_TRAIN), SDLF_ERROR_FORMAT,
                "too few rows, 1, to set some apart for the t");
    CHECK_FAILS(open_as(&data, ",label=age,all", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT,
                "label=age: expected the name of a column or a number of 1 to 3");
    CHECK_FAILS(sdlf_dataset_open(&data, "csv", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "found 'csv:'");
    CHECK_FAILS(sdlf_dataset_check("csv:/not/there,all", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO, "/not/there");
    CHECK_FAILS(sdlf_dataset_open(&data, "csv:/not/there", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO, "No such file");
    CHECK_FAILS(open_as(&data, ",lable=age", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "csv: unknown option 'lable=age'");
}

static sdlf_status open_targets(sdlf_dataset **data, const char *behind)
{
    char specification[2048];
    snprintf(specification, sizeof specification, "csv:%s%s", test_path("a.csv"), behind);
    return sdlf_dataset_open_with(data, specification, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.targets = true});
}

/* Columns `first` to `last` of rows 1 2 3 4 and 5 6 7 8.5 are targets, the others samples. */
static void reading_has_a_budget(void)
{
    sdlf_dataset *data;
    char specification[1024];
    write_table("1,0\n2,1\n");
    snprintf(specification, sizeof specification, "csv:%s,all", test_path("a.csv"));
    CHECK(setenv("SDLF_READ_MEMORY", "15", 1) == 0);
    CHECK_FAILS(sdlf_dataset_open(&data, specification, SDLF_SPLIT_TRAIN), SDLF_ERROR_MEMORY,
                "a.csv: 2 times its size is more than the 15 bytes of memory");
    CHECK(setenv("SDLF_READ_MEMORY", "16", 1) == 0);
    CHECK_OK(sdlf_dataset_open(&data, specification, SDLF_SPLIT_TRAIN));
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    sdlf_dataset_free(data);
}

static void check_targets(const char *text, const char *behind, int first, int last, const char *name)
{
    static const float row[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8.5f}};
    sdlf_dataset *data = NULL;
    int count = last - first + 1;
    write_table(text);
    if (!CHECK_OK(open_targets(&data, behind))) return;
    CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(2, count)) && data->labels.dtype == SDLF_FLOAT32);
    CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(2, 4 - count)) && data->class_count == count);
    for (int n = 0; n < 2; n++)
        for (int i = 0, k = 0, j = 0; i < 4; i++) {
            bool target = i >= first && i <= last;
            if (target) CHECK(((const float *)data->labels.data)[n * count + k++] == row[n][i]);
            if (!target) CHECK(((const float *)data->samples.data)[n * (4 - count) + j++] == row[n][i]);
        }
    if (name != NULL && CHECK(data->class_names != NULL)) CHECK_TEXT(data->class_names[0], name);
    sdlf_dataset_free(data);
}

static void targets(void)
{
    static const char plain[] = "1,2,3,4\n5,6,7,8.5\n", named[] = "u,v,w,x\n1,2,3,4\n5,6,7,8.5\n";
    sdlf_dataset *data = NULL;
    check_targets(plain, ",all", 3, 3, NULL);
    check_targets(plain, ",label=2..3,all", 1, 2, NULL);
    check_targets(named, ",label=v..x,all", 1, 3, "v");
    check_targets(named, ",label=u,all", 0, 0, "u");
    check_targets("u,label,w,x\n1,2,3,4\n5,6,7,8.5\n", ",all", 1, 1, "label");
    CHECK_FAILS(open_targets(&data, ",label=1..4,all"), SDLF_ERROR_FORMAT, "leaves no column for the samples");
    CHECK_FAILS(open_targets(&data, ",label=3..2,all"), SDLF_ERROR_ARGUMENT, "or two with .. between them");
    CHECK_FAILS(open_as(&data, ",label=1..2,all", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "float targets");
    write_table("1,2,a\n3,4,5\n");
    CHECK_FAILS(open_targets(&data, ",all"), SDLF_ERROR_FORMAT, "line 1, column 3: expected a number, found 'a'");
}

static sdlf_status open_and_close(void *unused)
{
    (void)unused;
    sdlf_dataset *data = NULL;
    sdlf_status status = open_as(&data, ",all", SDLF_SPLIT_TRAIN);
    sdlf_dataset_free(data);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    write_table("u,v,label\n1,2,b\n3,4,a\n5,6,b\n");
    test_every_allocation("csv", open_and_close, NULL);
}

/* Samples only: all columns, except the label column if there is one column more than the network accepts. */
static void without_labels(void)
{
    static const struct {
        const char *text, *behind;
        sdlf_shape takes, wanted;
        float last;
        const char *passed_over; /* the column */
    } cases[] = {
        {"1,2\n3,4\n", "", {0}, {2, {2, 2}}, 4, NULL},
        {"1\n3\n", "", {0}, {2, {2, 1}}, 3, NULL},
        {"u,label\n1,2\n3,4\n", "", {1, {2}}, {2, {2, 2}}, 4, NULL},
        {"label,u,v\na,1,2\nb,3,4\n", "", {1, {2}}, {2, {2, 2}}, 4, "label"},
        {"1,2,b\n3,4,a\n", "", {1, {2}}, {2, {2, 2}}, 4, "3"},
        {"1,2,3,4,b\n5,6,7,8,a\n", "", {3, {1, 2, 2}}, {4, {2, 1, 2, 2}}, 8, "5"},
        {"1,2,3\n4,5,6\n", "", {1, {5}}, {2, {2, 3}}, 6, NULL},
        {"b,7,1,2\na,8,3,4\n", ",label=1..2", {1, {2}}, {2, {2, 2}}, 4, "1"},
    };
    sdlf_dataset *data = NULL;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char specification[2048];
        const sdlf_dataset_options options = {.sample = cases[c].takes, .unlabelled = true};
        write_table(cases[c].text);
        snprintf(specification, sizeof specification, "csv:%s%s", test_path("a.csv"), cases[c].behind);
        if (!CHECK_OK(sdlf_dataset_open_with(&data, specification, SDLF_SPLIT_TEST, &options))) continue;
        CHECK(sdlf_shape_equal(data->samples.shape, cases[c].wanted));
        CHECK(((const float *)data->samples.data)[sdlf_tensor_count(&data->samples) - 1] == cases[c].last);
        CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(2)) && data->class_count == 1);
        CHECK_TEXT(data->class_names ? data->class_names[0] : "none",
                   cases[c].passed_over ? cases[c].passed_over : "none");
        sdlf_dataset_free(data);
    }
}

int main(void)
{
    RUN(forms);
    RUN(numbers_are_classes);
    RUN(two_halves);
    RUN(targets);
    RUN(wrong_tables);
    RUN(reading_has_a_budget);
    RUN(no_allocation_is_unchecked);
    RUN(without_labels);
    return test_summary();
}
