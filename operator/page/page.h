#pragma once

#include <string>

namespace hetero::jobs_page {

// The page: one document that needs nothing else than, beside itself, `events`.
const std::string& PageText();
// The Content-Security-Policy that goes with it (base/page_document.h).
const std::string& PagePolicy();

}  // namespace hetero::jobs_page
