/* SPDX-License-Identifier: MIT */
/* Progress of a training run. */
#include "apps/train/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/output/number.h"
#include "framework/clock.h"

static const double redraw_seconds = 0.1;

/* Between two plain lines: a twentieth of an epoch, in these bounds. */
static const double shortest_pause = 5, longest_pause = 60;

enum { BAR_WIDEST = 24, BAR_NARROWEST = 8, LINE_MAX_BYTES = 512 };

progress progress_begin(const terminal *out, bool testing)
{
    return (progress){.unit = "samples", .out = *out, .testing = testing, .drawn = sdlf_clock()};
}

/* "epoch  3/12  " with the number padded to the last one's width. */
static int print_epoch(char *text, size_t size, const sdlf_progress *now)
{
    char last[16];
    int digits = snprintf(last, sizeof last, "%d", now->epochs);
    return snprintf(text, size, "epoch %*d/%s  ", digits, now->epoch, last);
}

typedef struct part {
    char text[64];
} part;

/* "  accuracy 98.1%", for losses that have one. */
static part print_accuracy(const sdlf_progress *now)
{
    part p = {""};
    if (!isnan(now->accuracy)) snprintf(p.text, sizeof p.text, "  accuracy %5s", number_percent(now->accuracy, 1).text);
    return p;
}

/* "  perplexity 5.4", for sequences: a uniform guess among this many classes has the same loss. */
static part print_perplexity(const progress *p, double loss)
{
    part text = {""};
    if (p->sequences && isfinite(loss)) snprintf(text.text, sizeof text.text, "  perplexity %.4g", exp(loss));
    return text;
}

/* "  scale 65536, 3 skipped": the loss scale, if there is one, and the number of skipped steps. */
static part print_scale(const sdlf_progress *now)
{
    part p = {""};
    int length = now->loss_scale > 0 ? snprintf(p.text, sizeof p.text, "  scale %.10g", now->loss_scale) : 0;
    if (length > 0 && now->skipped_steps > 0)
        snprintf(p.text + length, sizeof p.text - (size_t)length, ", %lld skipped", (long long)now->skipped_steps);
    return p;
}

/* "  data 23%": the share of the epoch's time in which the network waited for its data, if it matters. */
static part print_waited(const sdlf_progress *now)
{
    static const double worth = 0.05;
    part p = {""};
    double waited = now->seconds > 0 ? now->waited / now->seconds : 0;
    if (waited >= worth) snprintf(p.text, sizeof p.text, "  data %s", number_percent(fmin(waited, 1), 0).text);
    return p;
}

/* Prints the figures right of the bar; before the first step only the position. */
static void print_figures(char *text, size_t size, const progress *p, const sdlf_progress *now)
{
    if (now->step <= p->first_step) {
        snprintf(text, size, "%3.0f%%", floor(100.0 * (double)now->step / (double)now->steps));
        return;
    }
    double seconds = now->seconds - p->first_seconds;
    double left = seconds / (double)(now->step - p->first_step) * (double)(now->steps - now->step);
    char rest[64];
    if (p->testing && now->step == now->steps) {
        snprintf(rest, sizeof rest, "testing");
    } else {
        snprintf(rest, sizeof rest, "%s left", number_clock(left).text);
    }
    snprintf(text, size, "%3.0f%%  loss %s%s%s  %6s %s/s%s  %s", floor(100.0 * (double)now->step / (double)now->steps),
             number_loss(now->loss, 3).text, print_accuracy(now).text,
             p->smoothed ? "" : print_perplexity(p, now->loss).text,
             number_fixed((double)(now->samples - p->first_samples) / seconds, 0).text, p->unit, print_waited(now).text,
             rest);
}

static void draw_bar(progress *p, const sdlf_progress *now)
{
    char epoch[48], figures[LINE_MAX_BYTES], bar[BAR_WIDEST + 3] = "";
    print_epoch(epoch, sizeof epoch, now);
    print_figures(figures, sizeof figures, p, now);
    terminal_measure(&p->out);
    int room = p->out.width - 1 - (int)strlen(epoch) - (int)strlen(figures) - 2;
    int width = room > BAR_WIDEST ? BAR_WIDEST : room;
    int filled = width < BAR_NARROWEST ? 0 : (int)((double)width * (double)now->step / (double)now->steps);
    if (width >= BAR_NARROWEST) {
        memset(bar, '#', (size_t)filled);
        memset(bar + filled, '-', (size_t)(width - filled));
        memcpy(bar + width, "  ", 3);
    } else {
        figures[p->out.width > (int)strlen(epoch) + 1 ? p->out.width - 1 - (int)strlen(epoch) : 0] = '\0';
    }
    const char *green = terminal_escape(&p->out, TERMINAL_GREEN), *dim = terminal_escape(&p->out, TERMINAL_DIM),
               *plain = terminal_escape(&p->out, TERMINAL_PLAIN);
    fprintf(p->out.file, "\r%s%s%.*s%s%s%s%s%s\033[K", epoch, green, filled, bar, plain, dim, bar + filled, plain,
            figures);
    fflush(p->out.file);
    p->open = true;
}

static void draw_line(progress *p, const sdlf_progress *now)
{
    char epoch[48], figures[LINE_MAX_BYTES];
    print_epoch(epoch, sizeof epoch, now);
    print_figures(figures, sizeof figures, p, now);
    fprintf(p->out.file, "%s%s\n", epoch, figures);
    fflush(p->out.file);
}

static void finish_epoch(progress *p, const sdlf_progress *now)
{
    char epoch[48];
    print_epoch(epoch, sizeof epoch, now);
    if (p->open) fputs("\r\033[K", p->out.file);
    p->open = false;
    fprintf(p->out.file, "%sloss %s%s", epoch, number_loss(now->loss, 3).text, print_accuracy(now).text);
    if (isfinite(now->test_error))
        fprintf(p->out.file, "  test RMSE %s%.4g%s", terminal_escape(&p->out, TERMINAL_BOLD), now->test_error,
                terminal_escape(&p->out, TERMINAL_PLAIN));
    if (isfinite(now->test_accuracy)) {
        fprintf(p->out.file, "  test %s%6s%s", terminal_escape(&p->out, TERMINAL_BOLD),
                number_percent(now->test_accuracy, 2).text, terminal_escape(&p->out, TERMINAL_PLAIN));
        if (isfinite(now->test_iou)) fprintf(p->out.file, "  mean IoU %s", number_percent(now->test_iou, 2).text);
        fputs(print_perplexity(p, now->test_loss).text, p->out.file);
    }
    fprintf(p->out.file, "  %6s%s%s  weights %08x%s\n", number_duration(now->seconds).text, print_waited(now).text,
            print_scale(now).text, now->weights, now->best ? "  best" : "");
    fflush(p->out.file);
}

/* The seconds between two lines, or between two redraws of the bar. */
static double pause_between(const progress *p, const sdlf_progress *now)
{
    if (p->out.interactive) return redraw_seconds;
    double epoch = (now->seconds - p->first_seconds) / (double)(now->step - p->first_step) * (double)now->steps;
    return fmin(fmax(epoch / 20, shortest_pause), longest_pause);
}

void progress_show(progress *p, const sdlf_progress *now)
{
    double time = sdlf_clock();
    if (now->event == SDLF_PROGRESS_EPOCH) {
        finish_epoch(p, now);
        p->drawn = time;
        return;
    }
    if (now->epoch != p->epoch) {
        p->epoch = now->epoch;
        bool resumed = now->step > 1;
        p->first_step = resumed ? now->step : 0;
        p->first_samples = resumed ? now->samples : 0;
        p->first_seconds = resumed ? now->seconds : 0;
    }
    bool last = now->step == now->steps, due = time - p->drawn >= pause_between(p, now);
    if (!due && !(last && p->out.interactive)) return;
    p->drawn = time;
    if (p->out.interactive) {
        draw_bar(p, now);
    } else {
        draw_line(p, now);
    }
}

void progress_end(progress *p)
{
    if (p->open) fputc('\n', p->out.file);
    fflush(p->out.file);
    p->open = false;
}
