#include "api/manifest.h"

#include "tests/fuzz/fuzz.h"

// A manifest as people write it, then, each after a zero byte, overrides of the command line. What
// is accepted must come back from its JSON, which the operator, the CLI and the pods pass on.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::api;
  using hetero::fuzz::Require;
  std::string_view text = hetero::fuzz::TextOf(data, size);
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find('\0');
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  const std::string manifest = parts.front();
  parts.erase(parts.begin());

  const ManifestResult result = ParseManifest(manifest, parts);
  if (!result.errors.empty()) {
    for (const FieldError& error : result.errors) {
      Require(!error.path.empty() && !error.reason.empty(), "an error without a place or a reason");
      Require(error.line >= 0, "an error on a line below zero");
    }
    FormatErrors(result.errors);
    return 0;
  }
  const std::string json = ToJson(result.job);
  const ManifestResult again = ParseManifest(json);
  Require(again.errors.empty(),
          "the JSON of an accepted manifest is refused:\n" + FormatErrors(again.errors) + json);
  Require(ToJson(again.job) == json,
          "a manifest changes on its way through JSON:\n" + json + "\n" + ToJson(again.job));
  return 0;
}
