/* Names and numbers as C has them. */
#include "framework/formats/c/c_export.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

c_name c_identifier(const char *name)
{
    c_name id;
    size_t used = 0;
    if (!((unsigned char)name[0] < 128 && (isalpha((unsigned char)name[0]) || name[0] == '_'))) id.text[used++] = 'n';
    for (; *name != '\0' && used < 60; name++) {
        bool fits = (unsigned char)*name < 128 && isalnum((unsigned char)*name);
        id.text[used++] = fits ? *name : '_';
    }
    id.text[used] = '\0';
    return id;
}

static c_name with_parameter(const c_export *e, int layer, const char *parameter)
{
    c_name name;
    snprintf(name.text, sizeof name.text, "%.80s_%.40s", c_identifier(c_at(e, layer)->layer.name).text, parameter);
    return name;
}

c_name c_weights(const c_export *e, int layer, const char *parameter)
{
    c_name wanted = with_parameter(e, layer, parameter), all;
    bool alone = true;
    for (int i = 0; i < e->model->layer_count; i++)
        for (int p = 0; i != layer && e->value[i].live && p < c_at(e, i)->parameter_count; p++) {
            const sdlf_parameter *other = &e->model->parameters[c_at(e, i)->first_parameter + p];
            if (strcmp(with_parameter(e, i, other->spec.name).text, wanted.text) == 0) alone = false;
        }
    if (alone) return wanted;
    snprintf(all.text, sizeof all.text, "%.80s__%d_%.40s", c_identifier(c_at(e, layer)->layer.name).text, layer,
             parameter);
    return all;
}

c_name c_number(float value)
{
    c_name text;
    if (isnan(value))
        snprintf(text.text, sizeof text.text, "NAN");
    else if (isinf(value))
        snprintf(text.text, sizeof text.text, value < 0 ? "-INFINITY" : "INFINITY");
    else
        snprintf(text.text, sizeof text.text, "%.9g", (double)value);
    char *comma = strchr(text.text, ','); /* in languages that write one */
    if (comma != NULL) *comma = '.';
    bool whole = strspn(text.text, "-0123456789") == strlen(text.text);
    if (isfinite(value)) strcat(text.text, whole ? ".0f" : "f");
    return text;
}

c_name c_argument(const c_export *e, bool input, int index)
{
    c_name name;
    int count = input ? e->input_count : e->output_count;
    if (count == 1)
        snprintf(name.text, sizeof name.text, "%s", input ? "input" : "output");
    else
        snprintf(name.text, sizeof name.text, "%s%d", input ? "input" : "output", index + 1);
    return name;
}

/* The value's address, or with `element` its i-th element. */
static c_name place_of(const c_export *e, int layer, bool element)
{
    while (e->value[layer].root != layer) layer = e->value[layer].root;
    const c_value *value = &e->value[layer];
    bool argument = value->kind != C_SCRATCH;
    c_name base = argument ? c_argument(e, value->kind == C_INPUT, value->index) : (c_name){"scratch"}, name;
    const char *before = element ? "[" : "", *after = element ? "i]" : "";
    if (argument || value->offset == 0)
        snprintf(name.text, sizeof name.text, "%.100s%s%s", base.text, before, after);
    else
        snprintf(name.text, sizeof name.text, element ? "scratch[%lld + i]" : "scratch + %lld",
                 (long long)value->offset);
    return name;
}

c_name c_in(const c_export *e, int layer, int input)
{
    return place_of(e, c_at(e, layer)->inputs[input].layer, false);
}

c_name c_out(const c_export *e, int layer)
{
    return place_of(e, layer, false);
}

c_name c_in_element(const c_export *e, int layer, int input)
{
    return place_of(e, c_at(e, layer)->inputs[input].layer, true);
}

c_name c_out_element(const c_export *e, int layer)
{
    return place_of(e, layer, true);
}
