#pragma once

#include <string>
#include <string_view>
#include <vector>

// A page of ours: one document of HTML that holds its style sheet and its script, and the policy by
// which a browser runs and shows nothing else.
namespace hetero::metrics {

struct PageDocument {
  std::string text;    // complete, UTF-8
  std::string policy;  // the Content-Security-Policy that goes with it; nothing is sent elsewhere
};

// `document` with the style sheets in the place of <!-- STYLE -->, and the scripts in that of
// <!-- SCRIPT -->: they are one, whose names are nobody else's, and strict.
PageDocument MakePageDocument(std::string_view document,
                              const std::vector<std::string_view>& styles,
                              const std::vector<std::string_view>& scripts);

}  // namespace hetero::metrics
