/* SPDX-License-Identifier: MIT */
/* The page of sdlf serve; CMake converts page.html and page.js to C. */
#ifndef SDLF_APPS_SERVE_PAGE_H
#define SDLF_APPS_SERVE_PAGE_H

extern const char serve_page_html[], serve_page_js[];

#endif
