#include "cli/job_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/job_words.h"
#include "api/labels.h"
#include "api/role_type.h"
#include "base/json_access.h"

namespace hetero::cli {

using base::FieldOf;
using base::TextOf;
using nlohmann::json;

namespace {

int64_t CountOf(const json& role, const char* field) {
  return FieldOf(role, field).is_number_integer() ? base::IntegerOf(role, field) : 1;
}

// Whom the operator has counted, else whom the manifest wants.
void CountMembers(const json& spec, JobView& view) {
  for (const json& role : base::ListOf(spec, "roles")) {
    const std::string type = TextOf(role, "type");
    if (type == api::kHeadType) continue;
    const bool gpu = type == api::kGpuWorkerType;
    MemberCount& members = gpu ? view.gpu_workers : view.cpu_workers;
    const std::vector<api::RoleCounts>& counts = view.status.role_statuses;
    const auto counted = std::find_if(
        counts.begin(), counts.end(),
        [name = TextOf(role, "name")](const auto& count) { return count.name == name; });
    const bool known = counted != counts.end();
    const int64_t replicas = CountOf(role, "replicas");
    members.registered += known ? counted->registered : 0;
    members.wanted += known ? counted->desired : replicas;
    if (gpu) view.gpus += replicas * CountOf(role, "gpusPerReplica");
  }
}

}  // namespace

std::string JobView::state() const { return api::StateWordOf(status); }

absl::StatusOr<JobView> ViewOf(const json& object) {
  JobView view;
  const json& metadata = FieldOf(object, "metadata");
  const json& spec = FieldOf(object, "spec");
  const json& policy = FieldOf(spec, "runPolicy");
  view.name_space = TextOf(metadata, "namespace");
  view.name = TextOf(metadata, "name");
  view.uid = TextOf(metadata, "uid");
  view.deleting = FieldOf(metadata, "deletionTimestamp").is_string();
  if (const auto created = api::ParseTime(TextOf(metadata, "creationTimestamp")); created.ok()) {
    view.created = *created;
  }
  const json& generation = FieldOf(metadata, "generation");
  if (generation.is_number_integer()) view.generation = generation.get<int64_t>();
  view.suspend = FieldOf(policy, "suspend") == true;
  view.managed_by = TextOf(FieldOf(spec, "managedBy").is_string() ? spec : policy, "managedBy");
  if (view.managed_by == api::kManagedBySelf) view.managed_by.clear();
  view.max_dollars = TextOf(policy, "maxDollars");
  view.output_uri = TextOf(FieldOf(spec, "output"), "uri");
  view.queue = TextOf(FieldOf(metadata, "labels"), api::kQueueLabel);
  const json& status = FieldOf(object, "status");
  auto parsed = api::StatusFromJson(
      status.is_null() ? "" : status.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!parsed.ok()) {
    return absl::Status(parsed.status().code(),
                        absl::StrCat("heterotrainingjob ", view.name_space, "/", view.name,
                                     " has a status that this version cannot read: ",
                                     std::string(parsed.status().message())));
  }
  view.status = *std::move(parsed);
  CountMembers(FieldOf(object, "spec"), view);
  return view;
}

}  // namespace hetero::cli
