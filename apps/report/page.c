/* SPDX-License-Identifier: MIT */
/* See page.h. */
#include "apps/report/page.h"

#include <string.h>

#include <sdlf/version.h>

#include "apps/output/base64.h"
#include "apps/output/xml.h"
#include "apps/pictures/sheet.h"
#include "apps/system/memory.h"

static const char style[] =
    ":root{color-scheme:light "
    "dark;--paper:#fff;--ink:#1c2330;--dim:#525c6b;--line:#8a94a6;--rule:#dfe3ea;--band:#f5f7fa;"
    "--given:#e3e7ee;--learns:#d5e5fa;--joins:#fbe6c8;--changes:#f3f4f6;--heat:8,67,124;--mark:#ffe9a8;--link:#0b57a4;"
    "--c0:#0b62b5;--c1:#b54708;--c2:#157347;--c3:#a3276b;--c4:#6b3fa0;--c5:#8a6100;--c6:#0e7490;--c7:#4b5563}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#14181f;--ink:#e7ebf2;--dim:#a8b2c2;--line:#76829a;--rule:#2e3643;"
    "--band:#1b212b;--given:#2b3340;--learns:#1d3a5f;--joins:#54401c;--changes:#222832;--heat:96,165,250;--mark:#"
    "5c4a12;"
    "--link:#8ec1ff;--c0:#6fb1ff;--c1:#ff9d5c;--c2:#5fd39a;--c3:#ff8bc2;--c4:#c3a2ff;--c5:#e8c14d;--c6:#5cd2ea;--c7:#"
    "b6bfcc}}\n"
    "*{box-sizing:border-box}html{scroll-padding-top:1rem}\n"
    "body{margin:0 auto;max-width:1180px;padding:1.5rem;background:var(--paper);color:var(--ink);font:15px/1.5 "
    "system-ui,sans-serif}\n"
    "h1{font-size:1.7rem;margin:.2rem 0}h2{font-size:1.25rem;margin:2.4rem 0 .6rem;border-bottom:1px solid var(--rule)}"
    "h3{font-size:1rem;margin:1.4rem 0 .4rem}p{max-width:75ch}.dim{color:var(--dim)}a{color:var(--link)}\n"
    "nav ul{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;list-style:none;padding:0}\n"
    "a:focus-visible,[tabindex]:focus-visible,summary:focus-visible{outline:3px solid var(--link);outline-offset:2px}\n"
    ".wide{overflow:auto;max-width:100%}table{border-collapse:collapse;font-variant-numeric:tabular-nums;"
    "margin-bottom:.8rem}"
    "caption{text-align:left;color:var(--dim);padding-bottom:.3rem}"
    "th,td{padding:.18rem .6rem;text-align:left;border-bottom:1px solid var(--rule);vertical-align:top}"
    "th{font-weight:600}thead th{background:var(--band)}.n{text-align:right}td.n,th.n{white-space:nowrap}\n"
    "code{font:12.5px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}"
    "pre{background:var(--band);padding:.6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}"
    "pre span{display:inline-block;max-width:100%}\n"
    "button{font:inherit;padding:.3rem .9rem;border:1px solid var(--line);border-radius:5px;background:var(--band);"
    "color:inherit;cursor:pointer;margin-right:.3rem}button:disabled{color:var(--dim);cursor:default}"
    "button:focus-visible{outline:3px solid var(--link);outline-offset:2px}\n"
    ".charts{margin-top:1.2rem;display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:1."
    "2rem}"
    "figure{margin:0}figcaption{font-weight:600}.chart{width:100%;height:auto}"
    ".chart text{font:11px system-ui,sans-serif;fill:var(--dim)}.chart .label{fill:var(--ink)}"
    ".grid{stroke:var(--rule)}.axis{stroke:var(--line)}.line{fill:none;stroke-width:2}.dashed{stroke-dasharray:6 4}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;list-style:none;padding:0;margin:.2rem 0;font-size:13px}"
    ".legend svg{width:26px;height:8px;margin-right:.4rem}\n"
    ".c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{"
    "stroke:var(--c5)}"
    ".c6{stroke:var(--c6)}.c7{stroke:var(--c7)}.mark{fill:var(--paper);stroke-width:1.5}\n"
    ".heat td{text-align:center;min-width:2.6rem;border:1px solid var(--paper);font-size:12.5px}.heat "
    ".right{font-weight:700}\n"
    ".shots{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:1rem;margin-bottom:1rem}"
    ".large{grid-template-columns:repeat(auto-fill,minmax(min(100%,200px),1fr))}.shots p{margin:.4rem 0}"
    "img{image-rendering:pixelated;max-width:100%;height:auto;background:#fff;display:block}\n"
    ".view{max-height:80vh;overflow:auto;border:1px solid var(--rule)}tr:has(:target){background:var(--mark)}"
    ".bar{display:inline-block;height:.7em;background:var(--c0);vertical-align:baseline}\n"
    "@media "
    "print{body{max-width:none;padding:0;font-size:11px}nav{display:none}.view{max-height:none;overflow:visible;border:"
    "0}"
    ".view svg{max-width:100%;height:auto}.wide{overflow:visible}figure,tr,.shots "
    "figure{break-inside:avoid}h2,h3,h2+p,h3+p{break-after:avoid}"
    ".heat td,.bar,.net rect{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
    ":root{--paper:#fff;--ink:#000;--dim:#333;--rule:#ccc;--band:#f2f2f2}}\n";

void page_cell(FILE *file, const char *text)
{
    fputs("<td>", file);
    xml_text(file, text);
    fputs("</td>", file);
}

void page_number(FILE *file, const char *text)
{
    fputs("<td class=\"n\">", file);
    xml_text(file, text);
    fputs("</td>", file);
}

void page_picture(FILE *file, const unsigned char *samples, sdlf_shape sample, int count, int side, const char *alt)
{
    png_picture picture;
    if (!sheet_shows(sample)) return;
    sdlf_status status = sheet_write(&picture, samples, sample, count);
    if (status == SDLF_ERROR_MEMORY) memory_exhausted();
    if (status != SDLF_OK) return; /* a build without libpng */
    int larger = picture.width > picture.height ? picture.width : picture.height, zoom = (side + larger - 1) / larger;
    if (zoom < 1) zoom = 1;
    fprintf(file, "<img width=\"%d\" height=\"%d\" alt=\"", zoom * picture.width, zoom * picture.height);
    xml_text(file, alt);
    fputs("\" src=\"data:image/png;base64,", file);
    base64_print(file, picture.bytes, picture.length);
    fputs("\">", file);
    png_release(&picture);
}

static const char *title_of(const page *p)
{
    if (p->model) return sdlf_model_name(p->model);
    const char *network = json_string_value(json_object_get(p->runs[0].start, "network"));
    return network ? network : p->runs[0].name;
}

void page_print_head(FILE *file, const char *title, const char *kind)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width,"
          "initial-scale=1\">\n<title>",
          file);
    xml_text(file, title);
    fprintf(file, ": %s</title>\n<style>\n%s</style>", kind, style);
}

bool page_print(FILE *file, const void *subject)
{
    const page *p = subject;
    page_print_head(file, title_of(p), "report");
    fputs("\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
          "'unsafe-inline'\"></head>\n<body>\n<header><h1>",
          file);
    xml_text(file, title_of(p));
    fputs("</h1><p class=\"dim\">", file);
    if (p->run_count > 0) fprintf(file, "%d training run%s", p->run_count, p->run_count == 1 ? "" : "s");
    if (p->run_count > 0 && p->weights) fputs("; ", file);
    if (p->weights) {
        fputs("weights of ", file);
        xml_text(file, p->weights);
    }
    fputs(". Made by sdlf " SDLF_VERSION ".</p>\n<nav aria-label=\"Sections\"><ul>", file);
    if (p->run_count > 0)
        fputs("<li><a href=\"#runs\">Training</a></li><li><a href=\"#options\">Options</a></li>", file);
    bool targets = json_object_get(p->test, "targets") != NULL;
    if (p->test)
        fputs(targets ? "<li><a href=\"#targets\">Targets</a></li>" : "<li><a href=\"#classes\">Classes</a></li>",
              file);
    if (p->report_evaluation && p->report_evaluation->worst_count > 0)
        fputs("<li><a href=\"#mistakes\">Mistakes</a></li>", file);
    if (p->single_picture) fputs("<li><a href=\"#picture\">One picture</a></li>", file);
    if (p->graph) fputs("<li><a href=\"#network\">Network</a></li>", file);
    if (p->plan) fputs("<li><a href=\"#layers\">Layers</a></li>", file);
    if (p->outline) fputs("<li><a href=\"#memory\">Memory</a></li>", file);
    fputs("</ul></nav></header>\n<main>\n", file);
    if (p->run_count > 0) page_print_runs(file, p);
    if (p->test) (targets ? page_print_targets : page_print_classes)(file, p);
    if (p->single_picture) page_print_picture(file, p);
    if (p->model) page_print_network(file, p);
    if (p->outline) page_print_memory(file, p);
    fputs("</main></body></html>\n", file);
    return !ferror(file);
}
