#pragma once

#include <string_view>

#include "api/hetero_training_job.h"

// Role types by name: in the manifest, in HETERO_ROLE_TYPE, when a member joins the head and in the
// URIs of certificates.
namespace hetero::api {

inline constexpr char kHeadType[] = "Head";
inline constexpr char kCpuWorkerType[] = "CPUWorker";
inline constexpr char kGpuWorkerType[] = "GPUWorker";

constexpr const char* NameOf(RoleType type) {
  switch (type) {
    case RoleType::kHead:
      return kHeadType;
    case RoleType::kCpuWorker:
      return kCpuWorkerType;
    case RoleType::kGpuWorker:
      return kGpuWorkerType;
  }
  return "";
}

}  // namespace hetero::api
