/* SPDX-License-Identifier: MIT */
/* Classes: the confusion matrix, the figures of each class, and the most confident mistakes with their images. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/pictures/augmented_samples.h"
#include "apps/report/page.h"
#include "apps/system/memory.h"

enum {
    HEAT_MOST = 40,    /* classes; a matrix of more is unreadable */
    MISTAKE_SIDE = 96, /* pixels on the page, of a small image */
};

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
          "class=\"heat\"><caption>Rows: the true class; columns: the predicted one. The darker, the larger the share "
          "of the row.</caption><thead><tr><th scope=\"col\">true</th>",
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
          "class=\"n\">F1</th>",
          file);
    bool of_pixels = json_object_get(test, "mean_iou") != NULL;
    fputs(of_pixels ? "<th class=\"n\">IoU</th></tr></thead><tbody>\n" : "</tr></thead><tbody>\n", file);
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
        if (of_pixels) page_number(file, number_percent(part_of(entry, "iou"), 2).text);
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
            "<h2 id=\"mistakes\">Worst mistakes</h2>\n<p>Of %s mistakes, those with the highest "
            "confidence.</p>\n<div class=\"shots\">\n",
            number_count(j->evaluation.samples - j->evaluation.correct).text);
    for (int i = 0; i < j->worst_count; i++) {
        const mistake *m = &j->worst[i];
        char *truth = class_name(p->test, m->truth), *taken_for = class_name(p->test, m->taken_for);
        char *alt = memory_print("Sample %lld: is %s, was taken for %s", (long long)m->sample, truth, taken_for);
        fputs("<figure>", file);
        sdlf_status status = augmented_read(values, pixels, p->data, m->sample);
        if (status == SDLF_ERROR_MEMORY) memory_exhausted();
        if (status == SDLF_OK)
            page_picture(file, pixels, sample, 1, MISTAKE_SIDE, alt); /* the image may have vanished */
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

static void page_print_data(FILE *file, const page *p)
{
    if (p->data) {
        fputs("; data: ", file);
        xml_text(file, p->data->name ? p->data->name : "without a name");
    }
    fputs(".</p>\n", file);
}

/* The columns of a target's row, in order; for multi-label targets, and for values. */
static const struct column {
    const char *key, *heading;
    enum { COUNT, SHARE, NUMBER } form;
} label_columns[] = {{"samples", "samples", COUNT},
                     {"precision", "precision", SHARE},
                     {"recall", "recall", SHARE},
                     {"f1", "F1", SHARE}},
  number_columns[] = {
      {"mae", "mean absolute error", NUMBER}, {"rmse", "root mean squared error", NUMBER}, {"r2", "R²", NUMBER}};

static void print_figure(FILE *file, const struct column *column, double value)
{
    char number[32] = "";
    if (isfinite(value)) snprintf(number, sizeof number, "%.4g", value);
    page_number(file, column->form == SHARE                      ? number_percent(value, 2).text
                      : column->form == COUNT && isfinite(value) ? number_count((int64_t)value).text
                                                                 : number);
}

void page_print_targets(FILE *file, const page *p)
{
    const json_t *targets = json_object_get(p->test, "targets");
    bool are_labels = json_object_get(p->test, "f1") != NULL;
    const struct column *columns = are_labels ? label_columns : number_columns;
    int count = are_labels ? (int)(sizeof label_columns / sizeof *label_columns)
                           : (int)(sizeof number_columns / sizeof *number_columns);
    fputs("<h2 id=\"targets\">Targets</h2>\n<p>", file);
    xml_text(file, p->test_of);
    fprintf(file, ": %s samples, ", number_count((int64_t)run_number(p->test, "samples")).text);
    if (are_labels)
        fprintf(file, "%s of the labels right, F1 %s", number_percent(run_number(p->test, "accuracy"), 2).text,
                number_percent(run_number(p->test, "f1"), 2).text);
    else
        fprintf(file, "root mean squared error %.4g", run_number(p->test, "rmse"));
    page_print_data(file, p);
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Targets\"><table><thead><tr><th>target</th>",
          file);
    for (int k = 0; k < count; k++) fprintf(file, "<th class=\"n\">%s</th>", columns[k].heading);
    fputs("</tr></thead><tbody>\n", file);
    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *entry = json_array_get(targets, i);
        const char *known = json_string_value(json_object_get(entry, "name"));
        char *name = known ? memory_copy_text(known) : memory_print("%zu", i);
        fputs("<tr>", file);
        page_cell(file, name);
        for (int k = 0; k < count; k++) print_figure(file, &columns[k], run_number(entry, columns[k].key));
        fputs("</tr>\n", file);
        free(name);
    }
    fputs("</tbody></table></div>\n", file);
}

void page_print_classes(FILE *file, const page *p)
{
    double samples = run_number(p->test, "samples"), correct = run_number(p->test, "correct");
    fputs("<h2 id=\"classes\">Classes</h2>\n<p>", file);
    xml_text(file, p->test_of);
    const json_t *iou = json_object_get(p->test, "mean_iou");
    fprintf(file, ": %s of %s %s right, %s", number_count((int64_t)correct).text, number_count((int64_t)samples).text,
            iou                                         ? "pixels"
            : p->data && p->data->labels.shape.rank > 1 ? "tokens"
                                                        : "samples",
            number_percent(correct / samples, 2).text);
    if (iou) fprintf(file, "; mean IoU %s", number_percent(json_number_value(iou), 2).text);
    page_print_data(file, p);
    print_heat(file, p->test);
    print_table(file, p->test);
    if (p->report_evaluation && p->report_evaluation->worst_count > 0) print_mistakes(file, p);
}
