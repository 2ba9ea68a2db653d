#pragma once

#include <string_view>

// The files of the page, as they lie here: page_source.cpp is written by CMake.
namespace hetero::live {

extern const std::string_view kPageDocument;  // page.html
extern const std::string_view kPageStyle;     // page.css
extern const std::string_view kPageParts;     // page_parts.js
extern const std::string_view kPageModel;     // page_model.js
extern const std::string_view kPageCharts;    // page_charts.js
extern const std::string_view kPageTable;     // page_table.js
extern const std::string_view kPageScript;    // page.js

}  // namespace hetero::live
