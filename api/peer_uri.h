#pragma once

#include <string>

#include "absl/strings/str_cat.h"

// The URIs that certificates of a job name their owners by.
namespace hetero::api {

inline constexpr char kOperatorUri[] = "hetero://operator";

// hetero://<job uid>/<role type>, for example .../GPUWorker.
inline std::string RoleUri(const std::string& job_uid, const std::string& role_type) {
  return absl::StrCat("hetero://", job_uid, "/", role_type);
}

}  // namespace hetero::api
