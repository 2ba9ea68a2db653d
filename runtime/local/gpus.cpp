#include "runtime/local/gpus.h"

#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/process/gpu_readings.h"

namespace hetero::local {
namespace {

int GpusOf(const api::Role& role) {
  return role.type == api::RoleType::kGpuWorker ? role.gpus_per_replica.value_or(1) : 0;
}

std::string Count(size_t gpus) {
  return gpus == 0 ? "none" : gpus == 1 ? "1" : absl::StrCat("only ", gpus);
}

}  // namespace

std::vector<std::string> UsableGpus(const char* variable, int driver_gpus) {
  std::vector<std::string> usable;
  if (driver_gpus == 0) return usable;
  if (variable == nullptr) {
    for (int i = 0; i < driver_gpus; ++i) usable.push_back(absl::StrCat(i));
    return usable;
  }
  const std::vector<std::string> names = absl::StrSplit(variable, ',', absl::SkipEmpty());
  for (const std::string& name : names) {
    int index = 0;
    const bool there = absl::SimpleAtoi(name, &index)
                           ? index >= 0 && index < driver_gpus
                           : name.starts_with("GPU-") || name.starts_with("MIG-");
    if (!there) break;
    if (std::find(usable.begin(), usable.end(), name) != usable.end()) return {};
    usable.push_back(name);
  }
  return usable;
}

std::vector<std::string> GpusOfThisMachine() {
  const std::unique_ptr<process::GpuReadings> driver = process::GpuReadings::Open();
  return UsableGpus(getenv("CUDA_VISIBLE_DEVICES"), driver == nullptr ? 0 : driver->Count());
}

bool TrainsOnGpus(const api::HeteroTrainingJob& job) {
  if (job.spec.training.script) return false;
  for (const api::Role& role : job.spec.roles) {
    if (GpusOf(role) > 0) return true;
  }
  return false;
}

std::vector<api::FieldError> CheckGpus(const api::HeteroTrainingJob& job,
                                       const std::vector<std::string>& usable) {
  if (job.spec.training.script) return {};
  size_t wanted = 0;
  for (size_t i = 0; i < job.spec.roles.size(); ++i) {
    const api::Role& role = job.spec.roles[i];
    if (GpusOf(role) == 0) continue;
    wanted += static_cast<size_t>(role.replicas) * static_cast<size_t>(GpusOf(role));
    if (wanted <= usable.size()) continue;
    return {{absl::StrCat("spec.roles[", i, "].gpusPerReplica"),
             absl::StrCat("the ranks take ", wanted, wanted == 1 ? " GPU" : " GPUs",
                          ", and this machine has ", Count(usable.size()),
                          " that may be used (driver, CUDA_VISIBLE_DEVICES); to train on the CPU "
                          "run with --set roles.",
                          role.name, ".gpusPerReplica=0")}};
  }
  return {};
}

std::string GpuShares::Next(int count) {
  if (count <= 0) return "";
  const size_t taken = std::min(static_cast<size_t>(count), usable_.size() - given_);
  const std::span<const std::string> share = std::span(usable_).subspan(given_, taken);
  given_ += taken;
  return absl::StrJoin(share, ",");
}

}  // namespace hetero::local
