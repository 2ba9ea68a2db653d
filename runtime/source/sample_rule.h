#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

namespace hetero::source {

// How the parts of a sample are found in a format that names them: the manifest's dataset.fields
// and dataset.label, and the format's usual names where they say nothing.
struct SampleRule {
  // Names to look for, of which the first counts that a sample has.
  std::vector<std::string> image;
  std::vector<std::string> label;  // empty: no label is wanted
  std::vector<std::string> mask;   // empty: no mask is wanted
  int32_t offset = 0;              // of classes
  api::Label kind;

  bool masks() const { return !mask.empty(); }
  bool classes() const { return kind.type == api::LabelType::kClass; }
  // For messages and fingerprints: "image jpg;png;jpeg, label cls + 0".
  std::string Text() const;
};

// Names of one part are separated by ";" : "jpg;png;jpeg".
struct UsualNames {
  std::string_view image;
  std::string_view classes;  // labels that are classes
  std::string_view numbers;  // labels that are none
};

SampleRule RuleOf(const api::DatasetSource& source, const api::Label& label,
                  const UsualNames& usual);

// `found` plus the rule's offset. kDataLoss: nothing that can be a class.
absl::StatusOr<int32_t> ClassOf(int64_t found, const SampleRule& rule);

}  // namespace hetero::source
