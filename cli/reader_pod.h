#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

// A pod that reads the report of a finished job from the volume that its head wrote it to: the head
// and its mounts are gone by then. Pure.
namespace hetero::cli {

// Names of the reader's two containers, one per file.
inline constexpr char kJsonReader[] = "json";
inline constexpr char kHtmlReader[] = "html";
inline constexpr int kReaderDeadlineSeconds = 300;

// `object` is the job as the API server has it, `folder` where its report lies in the head. The pod
// mounts the head's volumes at that folder, for reading only, runs where the head may run,
// satisfies the profile `restricted` and ends by itself. It belongs to the job, and goes with it at
// the latest. `image` empty: the head's, else the one of this version. kFailedPrecondition: the
// head's template mounts nothing there that outlives the head.
absl::StatusOr<nlohmann::json> ReaderPod(const nlohmann::json& object, const std::string& name,
                                         const std::string& folder, const std::string& image);

}  // namespace hetero::cli
