/* SPDX-License-Identifier: MIT */
/* Text in XML. */
#include "apps/output/xml.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at `text` that XML 1.0 allows (2.2 Char); 0: none begins there. */
static int character(const unsigned char *text)
{
    uint32_t code = text[0];
    int length = code < 0x80                   ? 1
                 : code >= 0xc2 && code < 0xe0 ? 2
                 : code >= 0xe0 && code < 0xf0 ? 3
                 : code >= 0xf0 && code < 0xf5 ? 4
                                               : 0;
    static const uint32_t lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07}, least[] = {0, 0, 0x80, 0x800, 0x10000};
    code &= lead[length];
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool allowed = length > 0 && code >= least[length] && code <= 0x10ffff;
    allowed = allowed && (code >= 0x20 || code == '\t' || code == '\n' || code == '\r');
    allowed = allowed && !(code >= 0xd800 && code < 0xe000) && code != 0xfffe && code != 0xffff;
    return allowed ? length : 0;
}

void xml_text(FILE *file, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int length = character(at);
        switch (*at) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '"': fputs("&quot;", file); break;
        case '\'': fputs("&apos;", file); break;
        default:
            if (length == 0) fputc('?', file);
            for (int i = 0; i < length; i++) fputc(at[i], file);
        }
        at += length > 0 ? length : 1;
    }
}

void xml_svg_text(FILE *file, double x, double y, const char *attributes, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    xml_text(file, text);
    fputs("</text>\n", file);
}
