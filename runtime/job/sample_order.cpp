#include "runtime/job/sample_order.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/manifest.h"
#include "api/views.h"
#include "runtime/job/sip_hash.h"

namespace hetero::job {
namespace {

// A hash of the length and of the bytes, eight to a word.
std::string HashOf(const std::string& text) {
  std::vector<uint64_t> words = {text.size()};
  for (size_t i = 0; i < text.size(); ++i) {
    if (i % 8 == 0) words.push_back(0);
    words.back() |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * (i % 8));
  }
  return absl::StrFormat("%016x", SipHash128(0, 0, words).low);
}

std::string HashOfPipeline(const api::HeteroTrainingJob& job) {
  nlohmann::json root = nlohmann::json::parse(api::ToJson(job));
  nlohmann::json pipeline = root["spec"]["pipeline"];
  for (nlohmann::json& entry : pipeline) {
    if (!entry.is_object()) continue;
    entry.erase("placement");
    entry.erase("path");
  }
  // One view is what there was before there were several.
  if (!api::HasSeveralViews(job.spec)) return HashOf(pipeline.dump());
  return HashOf(pipeline.dump() + root["spec"]["views"].dump());
}

}  // namespace

std::string ShuffleText(const api::Shuffle& shuffle) {
  switch (shuffle.mode) {
    case api::ShuffleMode::kFull:
      return "Full";
    case api::ShuffleMode::kBlock:
      return shuffle.window.value_or(1) == 1
                 ? absl::StrCat("Block of ", shuffle.block_size)
                 : absl::StrCat("Block of ", shuffle.block_size, ", ", *shuffle.window, " mixed");
    case api::ShuffleMode::kNone:
      return "None";
  }
  __builtin_unreachable();
}

SampleOrder SampleOrderOf(const api::HeteroTrainingJob& job) {
  const bool keeps = job.spec.training.last_batch == api::LastBatch::kKeep;
  return {.shuffle = ShuffleText(job.spec.dataset.shuffle),
          .last_batch = keeps ? "Keep" : "Drop",
          .pipeline = HashOfPipeline(job)};
}

}  // namespace hetero::job
