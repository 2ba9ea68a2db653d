#pragma once

#include <string>

// The live page: one document of HTML, SVG and JavaScript that needs nothing else than, beside
// itself, live/events and live/member.json.
namespace hetero::live {

// Complete, UTF-8.
const std::string& Page();

// The Content-Security-Policy that goes with it: nothing runs, and nothing is shown, but what the
// document itself holds, by its checksums; nothing is sent elsewhere.
const std::string& PagePolicy();

}  // namespace hetero::live
