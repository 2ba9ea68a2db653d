#include "cli/job_view.h"

#include "absl/strings/str_cat.h"
#include "api/labels.h"
#include "base/json_access.h"

namespace hetero::cli {

using base::FieldOf;
using base::TextOf;
using nlohmann::json;

std::string JobView::state() const {
  for (const api::Condition& condition : status.conditions) {
    if (condition.status == api::ConditionStatus::kTrue) {
      return std::string(api::NameOf(condition.type));
    }
  }
  return "Waiting";
}

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
  view.output_uri = TextOf(FieldOf(spec, "output"), "uri");
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
  return view;
}

}  // namespace hetero::cli
