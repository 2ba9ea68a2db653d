#pragma once

#include <string_view>

// The files of the page: page_source.cpp is written by CMake. A job's own page shares the first
// ones, which lie with it.
namespace hetero::jobs_page {

extern const std::string_view kSharedStyle;  // runtime/insight/live/page.css
extern const std::string_view kSharedParts;  // runtime/insight/live/page_parts.js
extern const std::string_view kSharedModel;  // runtime/insight/live/page_model.js
extern const std::string_view kDocument;     // jobs.html
extern const std::string_view kStyle;        // jobs.css
extern const std::string_view kTable;        // jobs_table.js
extern const std::string_view kScript;       // jobs.js

}  // namespace hetero::jobs_page
