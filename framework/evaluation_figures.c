/* SPDX-License-Identifier: MIT */
/* Figures of an evaluation for classes and for float targets. */
#include <math.h>

#include "framework/evaluator.h"

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* The loss of one value and its target. */
static double loss_of(sdlf_loss kind, double delta, double x, double t)
{
    double d = fabs(x - t);
    switch (kind) {
    case SDLF_LOSS_MSE: return d * d;
    case SDLF_LOSS_MAE: return d;
    case SDLF_LOSS_HUBER: return d < delta ? d * d / 2 : delta * (d - delta / 2);
    default: return softplus(x) - x * t;
    }
}

void sdlf_evaluation_count_targets(sdlf_evaluation *evaluation, const float *values, const sdlf_batch *batch)
{
    const float *targets = batch->labels.data;
    int count = evaluation->class_count;
    for (int64_t n = 0; n < batch->count; n++) {
        double loss = 0;
        int right = 0;
        for (int k = 0; k < count; k++) {
            sdlf_target_figures *figures = &evaluation->targets[k];
            double x = (double)values[n * count + k], t = (double)targets[n * count + k], d = x - t;
            bool seen = x > 0, there = t > 0.5;
            loss += loss_of(evaluation->kind, evaluation->huber_delta, x, t);
            figures->absolute += fabs(d);
            figures->squared += d * d;
            figures->sum += t;
            figures->sum_squares += t * t;
            figures->hits += seen && there;
            figures->false_alarms += seen && !there;
            figures->misses += !seen && there;
            figures->rejections += !seen && !there;
            right += seen == there;
        }
        evaluation->loss += loss / count;
        evaluation->correct += evaluation->kind == SDLF_LOSS_BCE && right == count;
    }
    evaluation->samples += batch->count;
}

double sdlf_evaluation_accuracy(const sdlf_evaluation *evaluation)
{
    if (evaluation == NULL || evaluation->samples == 0) return NAN;
    if (evaluation->kind == SDLF_LOSS_CROSS_ENTROPY) return (double)evaluation->correct / (double)evaluation->samples;
    if (evaluation->kind != SDLF_LOSS_BCE || evaluation->targets == NULL) return NAN;
    double right = 0;
    for (int k = 0; k < evaluation->class_count; k++)
        right += (double)(evaluation->targets[k].hits + evaluation->targets[k].rejections);
    return right / ((double)evaluation->samples * evaluation->class_count);
}

double sdlf_evaluation_iou(const sdlf_evaluation *evaluation, int class_index)
{
    if (evaluation == NULL || evaluation->confusion == NULL || class_index < 0 ||
        class_index >= evaluation->class_count)
        return NAN;
    int64_t count = evaluation->class_count, either = 0;
    for (int64_t i = 0; i < count; i++)
        either += evaluation->confusion[class_index * count + i] + evaluation->confusion[i * count + class_index];
    int64_t both = evaluation->confusion[class_index * count + class_index];
    return either > 0 ? (double)both / (double)(either - both) : NAN;
}

double sdlf_evaluation_mean_iou(const sdlf_evaluation *evaluation)
{
    double sum = 0;
    int occur = 0;
    for (int c = 0; evaluation != NULL && c < evaluation->class_count; c++) {
        double iou = sdlf_evaluation_iou(evaluation, c);
        if (isnan(iou)) continue;
        sum += iou;
        occur++;
    }
    return occur > 0 ? sum / occur : NAN;
}

/* The mean over all targets. */
static double mean_of(const sdlf_evaluation *evaluation, bool squared)
{
    if (evaluation == NULL || evaluation->samples == 0 || evaluation->targets == NULL) return NAN;
    double sum = 0;
    for (int k = 0; k < evaluation->class_count; k++)
        sum += squared ? evaluation->targets[k].squared : evaluation->targets[k].absolute;
    return sum / ((double)evaluation->samples * evaluation->class_count);
}

double sdlf_evaluation_mae(const sdlf_evaluation *evaluation)
{
    return mean_of(evaluation, false);
}

double sdlf_evaluation_rmse(const sdlf_evaluation *evaluation)
{
    return sqrt(mean_of(evaluation, true));
}

double sdlf_evaluation_f1(const sdlf_evaluation *evaluation)
{
    if (evaluation == NULL || evaluation->targets == NULL || evaluation->kind != SDLF_LOSS_BCE) return NAN;
    double sum = 0;
    for (int k = 0; k < evaluation->class_count; k++) {
        const sdlf_target_figures *f = &evaluation->targets[k];
        double all = 2 * (double)f->hits + (double)f->false_alarms + (double)f->misses;
        sum += all > 0 ? 2 * (double)f->hits / all : 0;
    }
    return sum / evaluation->class_count;
}
