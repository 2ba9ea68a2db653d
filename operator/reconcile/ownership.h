#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/reconcile/json_access.h"

// Whose an object is. As client-go's ControllerRefManager has it: the controller ownerReference
// decides, by uid, and an owner rules in its own namespace alone. Labels prove nothing, since
// whoever may create a pod anywhere can write any label on it.
namespace hetero::reconcile {

// Of all children of one job: the index of the stores.
inline std::string OwnerKey(const std::string& name_space, const std::string& uid) {
  return name_space + "/" + uid;
}

// OwnerKey of the job that owns a projected child; empty: nobody.
template <typename Child>
std::string OwnerOf(const Child& child) {
  return child.owner_uid.empty() ? "" : OwnerKey(child.name_space, child.owner_uid);
}

// Whether the object, read in the job's own namespace, is the job's.
inline bool IsOwnedBy(const nlohmann::json& object, const std::string& job_uid) {
  return TextOf(ControllerOf(object), "uid") == job_uid;
}

}  // namespace hetero::reconcile
