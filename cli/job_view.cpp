#include "cli/job_view.h"

#include "absl/strings/str_cat.h"
#include "api/labels.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

const json& At(const json& object, const char* key) {
  static const json& nothing = *new json();
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string Text(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

}  // namespace

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
  const json& metadata = At(object, "metadata");
  const json& policy = At(At(object, "spec"), "runPolicy");
  view.name_space = Text(At(metadata, "namespace"));
  view.name = Text(At(metadata, "name"));
  view.uid = Text(At(metadata, "uid"));
  view.deleting = At(metadata, "deletionTimestamp").is_string();
  if (const auto created = api::ParseTime(Text(At(metadata, "creationTimestamp"))); created.ok()) {
    view.created = *created;
  }
  const json& generation = At(metadata, "generation");
  if (generation.is_number_integer()) view.generation = generation.get<int64_t>();
  view.suspend = At(policy, "suspend") == true;
  view.managed_by = Text(At(policy, "managedBy"));
  if (view.managed_by == api::kManagedBySelf) view.managed_by.clear();
  view.output_uri = Text(At(At(At(object, "spec"), "output"), "uri"));
  const json& status = At(object, "status");
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
