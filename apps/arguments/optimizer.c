/* SPDX-License-Identifier: MIT */
/* --optimizer and its options. */
#include "apps/arguments/optimizer.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The default momentum of sgd: plain gradient descent is rarely wanted. */
static const double usual_momentum = 0.9;
static const char usual_momentum_help[] = "; 0.9 for sgd unless given";

static bool has_usual_momentum(const sdlf_optimizer_class *type, const sdlf_field *field)
{
    return strcmp(type->name, "sgd") == 0 && strcmp(field->name, "momentum") == 0;
}

static const char *optimizer_name(int index)
{
    const sdlf_optimizer_class *type = sdlf_optimizer_class_at(index);
    return type ? type->name : NULL;
}

static const sdlf_field *find_field(const sdlf_optimizer_class *type, const char *name)
{
    for (const sdlf_field *field = type->fields; field && field->name; field++) {
        if (strcmp(field->name, name) == 0) return field;
    }
    return NULL;
}

/* Adds one row per option name; optimizers that share it are listed in its help and widen its range. */
static void add_field(optimizer_rows *rows, const sdlf_optimizer_class *type, const sdlf_field *field)
{
    int i = 0;
    while (i < rows->count && strcmp(rows->text[i].field, field->name) != 0) i++;
    assert(i < OPTIMIZER_OPTIONS_MAX);
    argument *row = &rows->row[i + 2];
    if (i == rows->count) {
        rows->count++;
        snprintf(rows->text[i].field, sizeof rows->text[i].field, "%s", field->name);
        snprintf(rows->text[i].name, sizeof rows->text[i].name, "%s", field->name);
        for (char *c = rows->text[i].name; *c; c++) *c = *c == '_' ? '-' : *c;
        snprintf(rows->text[i].help, sizeof rows->text[i].help, "%s%s (%s)", field->help,
                 has_usual_momentum(type, field) ? usual_momentum_help : "", type->name);
        bool flag = field->type == SDLF_FIELD_BOOL;
        *row = (argument){.name = rows->text[i].name,
                          .type = flag ? ARGUMENT_FLAG : ARGUMENT_FLOAT,
                          .value = flag ? NULL : "X",
                          .help = rows->text[i].help,
                          .minimum = field->minimum,
                          .maximum = field->maximum};
        row->offset = offsetof(optimizer_settings, value) + (size_t)i * sizeof((optimizer_settings *)0)->value[0];
        if (flag) row->offset += offsetof(optimizer_settings, value[0].flag) - offsetof(optimizer_settings, value[0]);
    } else {
        size_t length = strlen(rows->text[i].help) - 1; /* before the ")" */
        snprintf(rows->text[i].help + length, sizeof rows->text[i].help - length, ", %s)", type->name);
        if (field->minimum < row->minimum) row->minimum = field->minimum;
        if (field->maximum > row->maximum) row->maximum = field->maximum;
    }
}

static void make_rows(optimizer_rows *rows, const char *only)
{
    *rows = (optimizer_rows){.count = 0};
    rows->row[0] = (argument){.name = "Optimizer", .type = ARGUMENT_HEADING};
    rows->row[1] = (argument){.name = "optimizer",
                              .type = ARGUMENT_NAME,
                              .offset = offsetof(optimizer_settings, name),
                              .value = "NAME",
                              .names = optimizer_name,
                              .fallback = "sgd",
                              .help = "optimizer of the weights"};
    const sdlf_optimizer_class *type;
    for (int i = 0; (type = sdlf_optimizer_class_at(i)); i++) {
        for (const sdlf_field *field = type->fields; field && field->name; field++) {
            if (!only || strcmp(field->name, only) == 0) add_field(rows, type, field);
        }
    }
}

void optimizer_rows_make(optimizer_rows *rows)
{
    make_rows(rows, NULL);
}

void optimizer_rows_make_short(optimizer_rows *rows)
{
    make_rows(rows, "momentum");
}

/* The error that lists the optimizers with this option. */
static sdlf_status foreign_option(const optimizer_rows *rows, int option, const sdlf_optimizer *optimizer)
{
    const char *help = rows->text[option].help, *owners = strrchr(help, '(');
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s is an option of %.*s, but the optimizer is %s", rows->text[option].name,
                     (int)strcspn(owners + 1, ")"), owners + 1, optimizer->type->name);
}

static void store(sdlf_optimizer *optimizer, const sdlf_field *field, double number, bool flag)
{
    void *member = optimizer->options.bytes + field->offset;
    switch (field->type) {
    case SDLF_FIELD_FLOAT: *(float *)member = (float)number; break;
    case SDLF_FIELD_DOUBLE: *(double *)member = number; break;
    case SDLF_FIELD_INT: *(int *)member = (int)number; break;
    case SDLF_FIELD_BOOL: *(bool *)member = flag; break;
    case SDLF_FIELD_PAIR:
    case SDLF_FIELD_CHOICE:
    case SDLF_FIELD_SHAPE: assert(!"an optimizer's fields are numbers and flags"); break;
    }
}

static double number_of(const sdlf_optimizer *optimizer, const sdlf_field *field)
{
    const void *member = optimizer->options.bytes + field->offset;
    switch (field->type) {
    case SDLF_FIELD_FLOAT: return (double)*(const float *)member;
    case SDLF_FIELD_DOUBLE: return *(const double *)member;
    case SDLF_FIELD_INT: return *(const int *)member;
    case SDLF_FIELD_BOOL: return *(const bool *)member;
    default: return (double)NAN;
    }
}

/* Rejects --decay-all without a decay, which would do nothing. */
static sdlf_status check_decay(const sdlf_optimizer *optimizer, const optimizer_rows *rows, const arguments *a)
{
    const sdlf_field *decay = find_field(optimizer->type, "weight_decay");
    for (int i = 0; i < rows->count; i++) {
        bool asked = strcmp(rows->text[i].field, "decay_all") == 0 && arguments_given(a, rows->text[i].name);
        if (asked && decay != NULL && number_of(optimizer, decay) == 0)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s needs --weight-decay", rows->text[i].name);
    }
    return SDLF_OK;
}

sdlf_status optimizer_from_arguments(sdlf_optimizer *optimizer, bool keep, const optimizer_rows *rows,
                                     const optimizer_settings *settings, const arguments *a)
{
    if (!keep || !optimizer->type || arguments_given(a, "optimizer")) {
        *optimizer = (sdlf_optimizer){.type = sdlf_optimizer_class_find(settings->name)};
        const sdlf_field *momentum = find_field(optimizer->type, "momentum");
        if (momentum && has_usual_momentum(optimizer->type, momentum))
            store(optimizer, momentum, usual_momentum, false);
    }
    for (int i = 0; i < rows->count; i++) {
        if (!arguments_given(a, rows->text[i].name)) continue;
        const sdlf_field *field = find_field(optimizer->type, rows->text[i].field);
        if (!field) return foreign_option(rows, i, optimizer);
        store(optimizer, field, settings->value[i].number, settings->value[i].flag);
    }
    sdlf_status status = sdlf_optimizer_complete(optimizer);
    return status == SDLF_OK ? check_decay(optimizer, rows, a) : status;
}

void optimizer_to_arguments(const sdlf_optimizer *optimizer, const optimizer_rows *rows, optimizer_settings *settings)
{
    settings->name = optimizer->type->name;
    for (int i = 0; i < rows->count; i++) {
        const sdlf_field *field = find_field(optimizer->type, rows->text[i].field);
        settings->value[i].number = field ? number_of(optimizer, field) : (double)NAN;
        settings->value[i].flag = field && settings->value[i].number != 0;
    }
}

sdlf_status optimizer_check_absent(const optimizer_rows *rows, const arguments *a)
{
    const char *name = arguments_given(a, "optimizer") ? "optimizer" : NULL;
    for (int i = 0; i < rows->count && name == NULL; i++) {
        if (arguments_given(a, rows->text[i].name)) name = rows->text[i].name;
    }
    return name == NULL ? SDLF_OK
                        : sdlf_fail(SDLF_ERROR_ARGUMENT,
                                    "--%s and --mode infer contradict each other: only training updates weights", name);
}
