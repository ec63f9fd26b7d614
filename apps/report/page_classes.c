/* SPDX-License-Identifier: MIT */
/* Classes: the confusion matrix, what each class comes to, and the worst mistakes with their pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/pictures/augmented_samples.h"
#include "apps/report/page.h"
#include "apps/system/memory.h"

enum { HEAT_MOST = 40 }; /* classes; of more, a matrix can be read by nobody */

/* "3", or with a name "3 cat". */
static char *class_name(const json_t *test, int class)
{
    const json_t *entry = json_array_get(json_object_get(test, "classes"), (size_t) class);
    const char *name = json_string_value(json_object_get(entry, "name"));
    return name ? memory_print("%d %s", class, name) : memory_print("%d", class);
}

static double cell_of(const json_t *confusion, size_t truth, size_t taken_for)
{
    double value = json_number_value(json_array_get(json_array_get(confusion, truth), taken_for));
    return value > 0 ? value : 0;
}

static void print_heat(FILE *file, const json_t *test)
{
    const json_t *confusion = json_object_get(test, "confusion");
    size_t classes = json_array_size(confusion);
    if (classes == 0 || classes > HEAT_MOST) return;
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\"><table "
          "class=\"heat\"><caption>Rows: what a sample is; "
          "columns: what it was taken for. The darker, the larger the part of the row.</caption><thead><tr><th "
          "scope=\"col\">true</th>",
          file);
    for (size_t k = 0; k < classes; k++) fprintf(file, "<th scope=\"col\">%zu</th>", k);
    fputs("</tr></thead><tbody>\n", file);
    for (size_t truth = 0; truth < classes; truth++) {
        double total = 0;
        for (size_t k = 0; k < classes; k++) total += cell_of(confusion, truth, k);
        char *name = class_name(test, (int)truth);
        fputs("<tr><th scope=\"row\">", file);
        xml_text(file, name);
        fputs("</th>", file);
        free(name);
        for (size_t k = 0; k < classes; k++) {
            double count = cell_of(confusion, truth, k), part = total > 0 ? count / total : 0;
            fprintf(file, "<td%s style=\"background:rgba(var(--heat),%.3f)%s\">%s</td>",
                    k == truth ? " class=\"right\"" : "", sqrt(part) * 0.85, part > 0.3 ? ";color:var(--paper)" : "",
                    count > 0 ? number_count((int64_t)count).text : "");
        }
        fputs("</tr>\n", file);
    }
    fputs("</tbody></table></div>\n", file);
}

static double part_of(const json_t *entry, const char *key)
{
    return run_number(entry, key);
}

static void print_table(FILE *file, const json_t *test)
{
    const json_t *classes = json_object_get(test, "classes");
    fputs("<h3>Class by class</h3><div class=\"wide\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"Classes\"><table><thead><tr><th>class</th>"
          "<th class=\"n\">samples</th><th class=\"n\">precision</th><th class=\"n\">recall</th><th "
          "class=\"n\">F1</th></tr></thead><tbody>\n",
          file);
    for (size_t i = 0; i < json_array_size(classes); i++) {
        const json_t *entry = json_array_get(classes, i);
        double precision = part_of(entry, "precision"), recall = part_of(entry, "recall");
        char *name = class_name(test, (int)i);
        fputs("<tr>", file);
        page_cell(file, name);
        page_number(file, number_count((int64_t)json_number_value(json_object_get(entry, "samples"))).text);
        page_number(file, number_percent(precision, 2).text);
        page_number(file, number_percent(recall, 2).text);
        page_number(file, number_percent(2 * precision * recall / (precision + recall), 2).text);
        fputs("</tr>\n", file);
        free(name);
    }
    fputs("</tbody></table></div>\n", file);
}

static void print_mistakes(FILE *file, const page *p)
{
    const report_evaluation *j = p->report_evaluation;
    sdlf_shape sample = sdlf_shape_without(p->data->samples.shape, 0);
    float *values = memory_allocate((size_t)sdlf_shape_count(sample) * sizeof *values);
    unsigned char *pixels = memory_allocate((size_t)sdlf_shape_count(sample));
    fprintf(file,
            "<h2 id=\"mistakes\">Worst mistakes</h2>\n<p>Of %s mistakes, those of which the network was "
            "surest.</p>\n<div class=\"shots\">\n",
            number_count(j->evaluation.samples - j->evaluation.correct).text);
    for (int i = 0; i < j->worst_count; i++) {
        const mistake *m = &j->worst[i];
        char *truth = class_name(p->test, m->truth), *taken_for = class_name(p->test, m->taken_for);
        char *alt = memory_print("Sample %lld: is %s, was taken for %s", (long long)m->sample, truth, taken_for);
        fputs("<figure>", file);
        sdlf_status status = augmented_read(values, pixels, p->data, m->sample);
        if (status == SDLF_ERROR_MEMORY) memory_exhausted();
        if (status == SDLF_OK) page_picture(file, pixels, sample, 1, alt); /* a picture may have vanished */
        fprintf(file, "<p>sample %s<br>is <b>", number_count(m->sample).text);
        xml_text(file, truth);
        fputs("</b><br>taken for <b>", file);
        xml_text(file, taken_for);
        fprintf(file, "</b>, %s</p></figure>\n", number_percent(m->probability, 1).text);
        free(truth);
        free(taken_for);
        free(alt);
    }
    fputs("</div>\n", file);
    free(values);
    free(pixels);
}

void page_print_classes(FILE *file, const page *p)
{
    double samples = run_number(p->test, "samples"), correct = run_number(p->test, "correct");
    fputs("<h2 id=\"classes\">Classes</h2>\n<p>", file);
    xml_text(file, p->test_of);
    fprintf(file, ": %s of %s samples right, %s", number_count((int64_t)correct).text,
            number_count((int64_t)samples).text, number_percent(correct / samples, 2).text);
    if (p->data) {
        fputs("; data: ", file);
        xml_text(file, p->data->name ? p->data->name : "without a name");
    }
    fputs(".</p>\n", file);
    print_heat(file, p->test);
    print_table(file, p->test);
    if (p->report_evaluation && p->report_evaluation->worst_count > 0) print_mistakes(file, p);
}
