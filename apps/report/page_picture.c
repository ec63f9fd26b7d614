/* SPDX-License-Identifier: MIT */
/* One image: the predicted classes, Grad-CAM, and layer outputs. */
#include <stdlib.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/report/page.h"
#include "apps/system/memory.h"

enum { SIDE = 168 }; /* pixels on the page, of a small image */

/* "3", or with a name "3 cat". */
static char *class_name(const page *p, int class)
{
    const char *name = labels_name(p->names, class);
    return name ? memory_print("%d %s", class, name) : memory_print("%d", class);
}

/* The map interpolated between its elements' centres, at a pixel of the image. */
static float map_at(const single_picture *c, const float *map, double y, double x)
{
    y = y < 0 ? 0 : y > (double)(c->cam_rows - 1) ? (double)(c->cam_rows - 1) : y;
    x = x < 0 ? 0 : x > (double)(c->cam_columns - 1) ? (double)(c->cam_columns - 1) : x;
    int64_t top = (int64_t)y, left = (int64_t)x, columns = c->cam_columns;
    int64_t below = top + 1 < c->cam_rows ? top + 1 : top, right = left + 1 < columns ? left + 1 : left;
    double v = y - (double)top, h = x - (double)left;
    double upper = (1 - h) * (double)map[top * columns + left] + h * (double)map[top * columns + right];
    double lower = (1 - h) * (double)map[below * columns + left] + h * (double)map[below * columns + right];
    return (float)((1 - v) * upper + v * lower);
}

/* The magnification of a small image. */
static int64_t zoom_of(const single_picture *c)
{
    int64_t larger = c->shape.dim[1] > c->shape.dim[2] ? c->shape.dim[1] : c->shape.dim[2];
    return larger < SIDE ? (SIDE + larger - 1) / larger : 1;
}

/* Draws the image in grey, overlaid with the map, interpolated if the image is magnified: red at its maximum. */
static unsigned char *draw_map(const single_picture *c, const float *map, float greatest)
{
    int64_t zoom = zoom_of(c), plane = c->shape.dim[1] * c->shape.dim[2];
    int64_t rows = zoom * c->shape.dim[1], columns = zoom * c->shape.dim[2], size = rows * columns;
    unsigned char *pixels = memory_allocate((size_t)(3 * size));
    for (int64_t i = 0; i < size; i++) {
        double y = ((double)(i / columns) + 0.5) * (double)c->cam_rows / (double)rows - 0.5;
        double x = ((double)(i % columns) + 0.5) * (double)c->cam_columns / (double)columns - 0.5;
        double strength = greatest > 0 ? (double)(map_at(c, map, y, x) / greatest) : 0, grey = 0;
        int64_t from = i / columns / zoom * c->shape.dim[2] + i % columns / zoom;
        for (int64_t k = 0; k < c->shape.dim[0]; k++)
            grey += (double)c->pixels[k * plane + from] / (double)c->shape.dim[0];
        double cover = 0.75 * strength;
        pixels[i] = (unsigned char)((1 - cover) * grey + cover * 255);
        pixels[size + i] = (unsigned char)((1 - cover) * grey + cover * 255 * (1 - strength));
        pixels[2 * size + i] = (unsigned char)((1 - cover) * grey);
    }
    return pixels;
}

static void print_map(FILE *file, const page *p, const picture_cam *cam)
{
    const single_picture *c = p->single_picture;
    int64_t size = c->cam_rows * c->cam_columns, at = 0;
    for (int64_t i = 1; i < size; i++) at = cam->map[i] > cam->map[at] ? i : at;
    char *name = class_name(p, cam->class);
    char *alt =
        cam->map[at] > 0
            ? memory_print("Grad-CAM for class %s: strongest at %s of the height and %s of the width", name,
                           number_percent(((double)(at / c->cam_columns) + 0.5) / (double)c->cam_rows, 0).text,
                           number_percent(((double)(at % c->cam_columns) + 0.5) / (double)c->cam_columns, 0).text)
            : memory_print("Grad-CAM for class %s: no evidence", name);
    unsigned char *pixels = draw_map(c, cam->map, cam->map[at]);
    fputs("<figure>", file);
    page_picture(file, pixels, sdlf_shape(3, zoom_of(c) * c->shape.dim[1], zoom_of(c) * c->shape.dim[2]), 1, 0, alt);
    fputs("<p>Grad-CAM for <b>", file);
    xml_text(file, name);
    fprintf(file, "</b>, %s</p></figure>\n", number_percent(c->probability[cam->class], 1).text);
    free(pixels);
    free(alt);
    free(name);
}

static void print_classes(FILE *file, const page *p)
{
    const single_picture *c = p->single_picture;
    fputs("<table><caption>Predicted classes</caption><thead><tr><th>class</th><th "
          "class=\"n\">probability</th></tr></thead><tbody>\n",
          file);
    for (int i = 0; i < c->order_count; i++) {
        char *name = class_name(p, c->order[i]);
        fputs("<tr>", file);
        page_cell(file, name);
        page_number(file, number_percent(c->probability[c->order[i]], 2).text);
        fputs("</tr>\n", file);
        free(name);
    }
    fputs("</tbody></table>\n", file);
}

static void print_layer(FILE *file, const picture_layer *layer)
{
    fputs("<h3>", file);
    xml_text(file, layer->name);
    fprintf(file, "</h3>\n<p>%s, ", sdlf_shape_print(layer->shape).text);
    if (layer->count < layer->shape.dim[0]) fprintf(file, "the first %d channels, ", layer->count);
    fputs("each channel from its least value (black) to its greatest.</p>\n", file);
    char *alt = memory_print("The output of %s, %d channels side by side", layer->name, layer->count);
    page_picture(file, layer->grey, sdlf_shape(1, layer->shape.dim[1], layer->shape.dim[2]), layer->count, 0, alt);
    free(alt);
}

void page_print_picture(FILE *file, const page *p)
{
    const single_picture *c = p->single_picture;
    fputs("<h2 id=\"picture\">One picture</h2>\n<p>", file);
    xml_text(file, c->name);
    if (c->truth >= 0) {
        char *name = class_name(p, c->truth);
        fputs(", which is <b>", file);
        xml_text(file, name);
        fputs("</b>", file);
        free(name);
    }
    fputs(".", file);
    if (c->cam_layer) {
        fputs(" Grad-CAM shows in red the evidence for a class, by the output of <code>", file);
        xml_text(file, c->cam_layer);
        fprintf(file, "</code>, %lldx%lld.", (long long)c->cam_rows, (long long)c->cam_columns);
    }
    fputs("</p>\n", file);
    if (c->cam_missing) {
        fputs("<p>There is no Grad-CAM: ", file);
        xml_text(file, c->cam_missing);
        fputs(".</p>\n", file);
    }
    fputs("<div class=\"shots large\">\n<figure>", file);
    page_picture(file, c->pixels, c->shape, 1, SIDE, "The picture as the network sees it");
    fputs("<p>as the network sees it</p></figure>\n", file);
    for (int i = 0; i < c->cam_count; i++) print_map(file, p, &c->cam[i]);
    fputs("</div>\n", file);
    print_classes(file, p);
    for (int i = 0; i < c->layer_count; i++) print_layer(file, &c->layer[i]);
}
