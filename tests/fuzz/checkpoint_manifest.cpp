#include "runtime/train/checkpoint/checkpoint_manifest.h"

#include "tests/fuzz/fuzz.h"

// manifest.json of a checkpoint's folder. What is accepted is written again and must come back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hetero::train;
  using hetero::fuzz::Require;
  const std::string text(hetero::fuzz::TextOf(data, size));
  const absl::StatusOr<CheckpointManifest> manifest = ParseCheckpointManifest(text);
  if (!manifest.ok()) {
    Require(absl::IsDataLoss(manifest.status()) || absl::IsFailedPrecondition(manifest.status()),
            "another error than those of the contract");
    return 0;
  }
  const std::string written = ToJson(*manifest);
  const absl::StatusOr<CheckpointManifest> again = ParseCheckpointManifest(written);
  Require(again.ok(), "what was read and written is refused: " + written);
  Require(ToJson(*again) == written, "a manifest changes on its way: " + written);
  Require(CheckFits(*again, *manifest).ok(), "a manifest does not fit itself");
  return 0;
}
