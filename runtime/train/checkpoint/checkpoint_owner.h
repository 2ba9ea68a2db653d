#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hetero::train {

// Whoever writes checkpoints, as the lock of a folder and that of a bucket name it.
struct CheckpointOwner {
  std::string run;      // a process of the same run may take over from a dead one at once
  std::string job;      // for messages
  std::string host;     // of this machine
  std::string process;  // "gpu-0, process 4711"
};

nlohmann::ordered_json ToJson(const CheckpointOwner& owner);
// A field of a lock that is text; empty: there is none.
std::string TextField(const nlohmann::json& lock, const char* name);
// What is missing stays empty.
CheckpointOwner ReadCheckpointOwner(const nlohmann::json& lock);
// "job vit (gpu-0, process 4711 on node-7)", or "another job".
std::string Named(const CheckpointOwner& owner);

}  // namespace hetero::train
