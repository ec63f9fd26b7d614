/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: the chart. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/conv/conv.h"
#include "apps/bench/conv/labels.h"
#include "apps/bench/conv/marks.h"
#include "apps/bench/conv/report.h"

/* True if the tags of an XML text are properly nested. */
static bool well_formed(const char *text)
{
    enum { DEEP = 16 };
    char open[DEEP][32];
    int depth = 0, roots = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        if (!end || memchr(at + 1, '<', (size_t)(end - at - 1))) return false;
        char name[32] = "";
        if (at[1] != '?') {
            if (sscanf(at[1] == '/' ? at + 2 : at + 1, "%31[a-zA-Z]", name) != 1) return false;
            if (at[1] == '/') {
                if (depth == 0 || strcmp(open[--depth], name) != 0) return false;
            } else if (end[-1] != '/') {
                if (depth == DEEP) return false;
                roots += depth == 0;
                memcpy(open[depth++], name, sizeof name);
            }
        }
        at = end;
    }
    return depth == 0 && roots == 1;
}

/* A ladder of that many rungs, all equally fast except one. */
static lab *ladder(int rungs)
{
    static lab l;
    l = (lab){.calculator = "a<b>&c", .math = "tf32", .dtype = SDLF_FLOAT32, .rungs = rungs, .cases = 2};
    l.workload =
        (lab_workload){.name = "shape", .count = 2, .item = {{.name = "one", .count = 1}, {.name = "two", .count = 1}}};
    l.ceilings = (ceilings){.flops = 1e11, .bytes = 1e10, .side = 8};
    for (int i = 0; i < 2; i++) {
        l.cost[i] = (sdlf_cost){.flops = 1000000, .bytes = 10000};
        for (int j = 0; j < rungs; j++)
            l.result[i][j] = (lab_result){.ran = true, .seconds = j == 0 ? 1 : 1.1e-5 * (i + 1), .work = l.cost[i]};
    }
    for (int j = 0; j < rungs; j++) {
        l.rung[j] = (lab_rung){.summary = "", .algorithm = j + 1};
        snprintf(l.rung[j].name, sizeof l.rung[j].name, "rung %d", j);
    }
    return &l;
}

static const char *drawn(const lab *l)
{
    char path[512];
    snprintf(path, sizeof path, "%s", test_path("chart.svg"));
    CHECK_OK(lab_draw(l, path));
    const char *svg = read_text(path);
    CHECK(well_formed(svg));
    CHECK(strstr(svg, "nan") == NULL && strstr(svg, "inf") == NULL);
    return svg;
}

/* Each rung, up to the maximum number, has a unique combination of colour and shape; the calculator's own choice has a
 * separate shape. */
static void no_two_marks_are_alike(void)
{
    lab *l = ladder(LAB_RUNGS);
    l->rung[7].algorithm = 0;
    for (int i = 0; i < LAB_RUNGS; i++) {
        for (int j = 0; j < i; j++) {
            lab_mark a = lab_mark_of(l, i), b = lab_mark_of(l, j);
            CHECK(strcmp(a.colour, b.colour) != 0 || a.form != b.form);
            if (j == 7 || i == 7) CHECK(a.form != b.form);
        }
    }
}

/* Store the position of each text of this class. Returns their number. */
static int places_of(const char *svg, const char *class, label_box *boxes, int most)
{
    char mark[64];
    int count = 0;
    snprintf(mark, sizeof mark, "class=\"%s\"", class);
    for (const char *at = svg; (at = strstr(at, mark)) != NULL && count < most; at++) {
        const char *begin = at;
        while (strncmp(begin, "<text", 5) != 0) begin--;
        double x = 0, y = 0;
        char text[64] = "";
        CHECK_EQUAL(sscanf(begin, "<text x=\"%lf\" y=\"%lf\"", &x, &y), 2);
        CHECK_EQUAL(sscanf(strchr(begin, '>'), ">%63[^<]", text), 1);
        boxes[count++] = (label_box){x, y - 12, x + label_width(text, 12, true), y + 3};
    }
    return count;
}

/* Overlapping marks: names that fit are placed in the plot without overlaps; the legend has all names. */
static void names_are_apart(void)
{
    enum { RUNGS = 20 };
    label_box name[LAB_RUNGS], rung[LAB_RUNGS];
    const char *svg = drawn(ladder(RUNGS));
    int height = 0, names = places_of(svg, "name", name, LAB_RUNGS), rungs = places_of(svg, "rung", rung, LAB_RUNGS);
    CHECK_EQUAL(sscanf(strstr(svg, "height="), "height=\"%d\"", &height), 1);
    CHECK_EQUAL(rungs, RUNGS);
    CHECK(names >= 8);
    for (int i = 0; i < names; i++) {
        for (int j = 0; j < i; j++)
            CHECK(name[i].right < name[j].left + 0.2 || name[j].right < name[i].left + 0.2 ||
                  name[i].bottom < name[j].top + 0.2 || name[j].bottom < name[i].top + 0.2);
    }
    for (int i = 1; i < rungs; i++) CHECK(rung[i].top >= rung[i - 1].bottom + 11); /* a line of figures between */
    CHECK(rung[rungs - 1].bottom < height - 60);
}

static void limits_are_named(void)
{
    lab *l = ladder(3);
    l->result[1][2].work.bytes = 10000000; /* far to the left: there is space along the slope */
    const char *svg = drawn(l);
    CHECK(strstr(svg, "a&lt;b&gt;&amp;c, float32 tf32") != NULL);
    CHECK(strstr(svg, ">100 GFLOP/s in a matrix product<") != NULL);
    CHECK(strstr(svg, ">10.0 GB/s in a copy<") != NULL);
    const char *outline = strstr(svg, ">100 GFLOP/s in a matrix product<"), *word = outline ? outline + 1 : svg;
    CHECK(strstr(svg, "paint-order") == NULL); /* which many viewers do not support */
    CHECK((word = strstr(word, ">100 GFLOP/s in a matrix product<")) != NULL && strncmp(word - 6, "\"#222\"", 6) == 0);
    CHECK(strstr(svg, "Speed-ups (x): against rung 0.") != NULL);
    CHECK(strstr(svg, ", 60,606x") != NULL);
    CHECK_FAILS(lab_draw(ladder(1), "/no/where.svg"), SDLF_ERROR_IO, "/no/where.svg");
}

/* Speed-ups are relative to the first rung that ran most convolutions; if a rung ran fewer, only these are compared. */
static void speed_ups_compare_the_same_convolutions(void)
{
    lab *l = ladder(3);
    l->result[1][0].ran = false;
    l->result[0][2].seconds = 5.5e-6;
    const char *svg = drawn(l);
    CHECK_EQUAL(lab_base(l), 1);
    CHECK_EQUAL(lab_case_base(l, 0), 0);
    CHECK_EQUAL(lab_case_base(l, 1), 1);
    CHECK(strstr(svg, "against rung 1.") != NULL);
    CHECK(strstr(svg, ", 1 of 2 layers") != NULL);
    CHECK(strstr(svg, "GFLOP/s, 1.20x<") != NULL); /* 33 us beside 27.5 */
}

static void words_avoid_what_is_there(void)
{
    label_map map = label_map_of((label_box){0, 0, 100, 100}, 3);
    const label_box boxes[] = {{-5, 0, 20, 10}, {10, 10, 30, 20}, {40, 40, 60, 50}, {70, 70, 90, 80}};
    CHECK_EQUAL(label_choose(&map, boxes, 1, 4), -1); /* leaves the frame */
    CHECK_EQUAL(label_choose(&map, boxes, 4, 4), 1);
    label_add(&map, label_around(20, 15, 3), true);
    CHECK_EQUAL(label_choose(&map, boxes, 4, 4), 2);
    label_add(&map, label_around(50, 45, 3), false);
    CHECK_EQUAL(label_choose(&map, boxes, 4, 4), 3);
    CHECK_EQUAL(label_choose(&map, boxes, 4, 3), 2); /* the last is in the second ring */
    label_add(&map, label_around(80, 75, 3), true);
    label_add(&map, label_around(50, 45, 3), true); /* no space in the map: left out */
    CHECK_EQUAL(label_choose(&map, boxes, 4, 4), 2);
    free(map.item);
}

int main(void)
{
    RUN(no_two_marks_are_alike);
    RUN(names_are_apart);
    RUN(limits_are_named);
    RUN(speed_ups_compare_the_same_convolutions);
    RUN(words_avoid_what_is_there);
    return test_summary();
}
