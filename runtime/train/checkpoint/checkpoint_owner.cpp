#include "runtime/train/checkpoint/checkpoint_owner.h"

#include "absl/strings/str_cat.h"

namespace hetero::train {

nlohmann::ordered_json ToJson(const CheckpointOwner& owner) {
  return {{"run", owner.run}, {"job", owner.job}, {"host", owner.host}, {"process", owner.process}};
}

std::string TextField(const nlohmann::json& lock, const char* name) {
  const bool is_text = lock.is_object() && lock.contains(name) && lock[name].is_string();
  return is_text ? lock[name].get<std::string>() : "";
}

CheckpointOwner ReadCheckpointOwner(const nlohmann::json& lock) {
  return {TextField(lock, "run"), TextField(lock, "job"), TextField(lock, "host"),
          TextField(lock, "process")};
}

std::string Named(const CheckpointOwner& owner) {
  if (owner.job.empty()) return "another job";
  return absl::StrCat("job ", owner.job, " (", owner.process, " on ", owner.host, ")");
}

}  // namespace hetero::train
