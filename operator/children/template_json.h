#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/hetero_training_job.h"

// Changing a pod template, which may have any shape; base/json_access.h reads it. Internal to
// operator/children.
namespace hetero::children {

inline constexpr char kConfigFolder[] = "/etc/hetero";
inline constexpr char kTlsFolder[] = "/etc/hetero-tls";
inline constexpr char kConfigVolume[] = "hetero-config";
inline constexpr char kTlsVolume[] = "hetero-tls";
inline constexpr char kTemporaryVolume[] = "hetero-tmp";
inline constexpr char kSharedMemoryVolume[] = "hetero-shm";

// Of pods that run a script (script_pod.h).
inline constexpr char kProgramFolder[] = "/hetero";
inline constexpr char kProgramVolume[] = "hetero-program";
inline constexpr char kInstallContainer[] = "hetero-install";
inline constexpr char kArchitectureLabel[] = "kubernetes.io/arch";
inline constexpr char kArchitecture[] = "amd64";

// The role's template; an empty object when absent or no object.
nlohmann::json TemplateOf(const api::Role& role);

// Makes `parent[key]` an object (a list) if it is none, and gives it for changing.
nlohmann::json& MutableObject(nlohmann::json& parent, const char* key);
nlohmann::json& MutableList(nlohmann::json& parent, const char* key);

// Sets `object[key]` where the template has said nothing.
void SetDefault(nlohmann::json& object, const char* key, nlohmann::json value);

// Whether an element of `list` has the text `value` under `key`.
bool Lists(const nlohmann::json& list, const char* key, const std::string& value);

}  // namespace hetero::children
