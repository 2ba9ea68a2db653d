#include "runtime/feed/safetensors.h"

#include "tests/fuzz/fuzz.h"

// A safetensors file: pretrained weights come from anywhere. What is accepted is written again and
// must come back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::feed;
  using hetero::fuzz::Require;
  const absl::StatusOr<SafetensorsFile> file =
      ParseSafetensors("file", hetero::fuzz::TextOf(data, size));
  if (!file.ok()) {
    Require(absl::IsDataLoss(file.status()), "another error than kDataLoss");
    return 0;
  }
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : file->tensors) {
    for (const int64_t side : tensor.shape) Require(side >= 0, "a tensor with a negative side");
    views.push_back({name, tensor.type, tensor.shape, tensor.data.data()});
  }
  const absl::StatusOr<SafetensorsFile> again =
      ParseSafetensors("file", SafetensorsBytes(views, file->metadata));
  Require(again.ok(), "what was read and written is refused");
  Require(again->metadata == file->metadata, "the metadata changes");
  Require(again->tensors.size() == file->tensors.size(), "another number of tensors");
  for (const auto& [name, tensor] : file->tensors) {
    const auto found = again->tensors.find(name);
    Require(found != again->tensors.end() && found->second.type == tensor.type &&
                found->second.shape == tensor.shape && found->second.data == tensor.data,
            "a tensor changes: " + name);
  }
  return 0;
}
