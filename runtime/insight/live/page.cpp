#include "runtime/insight/live/page.h"

#include <openssl/sha.h>

#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/insight/live/page_source.h"

namespace hetero::live {
namespace {

// One script: what the files declare is nobody else's, and a slip is an error.
std::string Script() {
  std::string script = "(() => {\n'use strict';\n";
  for (const std::string_view part : {kPageModel, kPageCharts, kPageTable, kPageScript}) {
    script.append(part);
  }
  return script + "})();\n";
}

// As a policy names it (https://www.w3.org/TR/CSP3/#grammardef-hash-source).
std::string SourceOf(std::string_view text) {
  unsigned char sum[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum);
  return absl::StrCat(
      "'sha256-", absl::Base64Escape({reinterpret_cast<const char*>(sum), sizeof sum}), "'");
}

}  // namespace

const std::string& Page() {
  static const std::string page =
      absl::StrReplaceAll({kPageDocument.data(), kPageDocument.size()},
                          {{"<!-- STYLE -->", {kPageStyle.data(), kPageStyle.size()}},
                           {"<!-- SCRIPT -->", Script()}});
  return page;
}

const std::string& PagePolicy() {
  static const std::string policy = absl::StrCat(
      "default-src 'none'; script-src ", SourceOf(Script()), "; style-src ", SourceOf(kPageStyle),
      "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'");
  return policy;
}

}  // namespace hetero::live
