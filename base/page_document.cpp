#include "base/page_document.h"

#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hetero::metrics {
namespace {

std::string Joined(const std::vector<std::string_view>& parts) {
  std::string all;
  for (const std::string_view part : parts) all.append(part);
  return all;
}

// As a policy names it (https://www.w3.org/TR/CSP3/#grammardef-hash-source).
std::string SourceOf(const std::string& text) {
  unsigned char sum[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum);
  return absl::StrCat("'sha256-",
                      absl::Base64Escape({reinterpret_cast<const char*>(sum), sizeof sum}), "'");
}

}  // namespace

PageDocument MakePageDocument(std::string_view document,
                              const std::vector<std::string_view>& styles,
                              const std::vector<std::string_view>& scripts) {
  const std::string style = Joined(styles);
  const std::string script = "(() => {\n'use strict';\n" + Joined(scripts) + "})();\n";
  return {
      .text = absl::StrReplaceAll({document.data(), document.size()},
                                  {{"<!-- STYLE -->", style}, {"<!-- SCRIPT -->", script}}),
      .policy = absl::StrCat("default-src 'none'; script-src ", SourceOf(script), "; style-src ",
                             SourceOf(style),
                             "; connect-src 'self'; img-src data:; base-uri 'none'; "
                             "form-action 'none'; frame-ancestors 'none'"),
  };
}

}  // namespace hetero::metrics
