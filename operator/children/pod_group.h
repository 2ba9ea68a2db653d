#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "operator/children/settings.h"

// The gang of a job, told to whoever places it all at once or not at all. Pure.
namespace hetero::children {

// In what a cluster may be told of a gang.
enum class GangApi {
  kVolcano,         // https://volcano.sh
  kCoscheduling,    // the plugin Coscheduling of sigs.k8s.io/scheduler-plugins
  kNativeWorkload,  // Kubernetes 1.35
  kNativeAlpha,     // Kubernetes 1.36
  kNativeBeta,      // Kubernetes 1.37
};

// As the manifest spells it.
const char* NameOf(api::GangScheduler scheduler);

// Those of one kind of scheduler, the newest first; none for kNone.
std::vector<GangApi> GangApisOf(api::GangScheduler scheduler);

// Where its objects are.
struct GangResource {
  const char* group;
  const char* version;
  const char* plural;
  const char* kind;
};
GangResource ResourceOf(GangApi gang_api);

// Of a pod.
struct GangMembership {
  GangApi gang_api = GangApi::kVolcano;
  std::string group;  // name of the object
  bool operator==(const GangMembership&) const = default;
};

// Pods of one role that the job cannot do without.
struct GangRole {
  const api::Role* role = nullptr;
  int count = 0;
};
// The object of so many pods: a PodGroup, or the Workload of Kubernetes 1.35 with one. For Volcano
// and Coscheduling it sums what they ask for; Volcano's has the job's queue and, where all
// templates name the same one, their priority class.
nlohmann::json PodGroup(const api::HeteroTrainingJob& job, const GangMembership& gang,
                        const std::vector<GangRole>& roles, const Settings& settings);

// Makes `pod` a member, for the scheduler that its template names, or else for the usual one.
void JoinGang(const GangMembership& gang, nlohmann::json& pod);

}  // namespace hetero::children
