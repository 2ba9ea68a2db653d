#include "operator/reconcile/dropped_fields.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

// What `whole` has and `part` lacks, in the same places; null: nothing.
json Missing(const json& whole, const json& part) {
  json missing;
  for (const auto& [name, value] : whole.items()) {
    const auto found = part.find(name);
    if (found == part.end()) {
      missing[name] = value;
    } else if (value.is_object() && found->is_object()) {
      if (json inner = Missing(value, *found); !inner.is_null()) missing[name] = std::move(inner);
    }
  }
  return missing;
}

// Takes the fields that `shape` has out of `whole`, and returns them; null: there are none.
json Extract(const json& shape, json& whole) {
  json fields;
  for (const auto& [name, value] : shape.items()) {
    const auto found = whole.find(name);
    if (found == whole.end()) continue;
    if (value.is_object() && found->is_object()) {
      if (json inner = Extract(value, *found); !inner.is_null()) fields[name] = std::move(inner);
    } else {
      fields[name] = std::move(*found);
      whole.erase(found);
    }
  }
  return fields;
}

void Put(const json& fields, json& whole) {
  for (const auto& [name, value] : fields.items()) {
    json& place = whole[name];
    if (value.is_object() && place.is_object()) {
      Put(value, place);
    } else {
      place = value;
    }
  }
}

void AppendNames(const json& fields, const std::string& path, std::string& names) {
  for (const auto& [name, value] : fields.items()) {
    const std::string at = path + name;
    if (value.is_object()) {
      AppendNames(value, at + ".", names);
    } else {
      absl::StrAppend(&names, names.empty() ? "" : ", ", at);
    }
  }
}

json ToJson(const api::JobStatus& status) {
  return json::parse(api::StatusToJson(status), nullptr, false);
}

}  // namespace

bool DroppedFields::Learn(const json& sent, const json& replied) {
  if (!sent.is_object() || !replied.is_object()) return false;
  json now = Missing(sent, replied);
  const bool news = !now.is_null() && (fields_.is_null() || !Missing(now, fields_).is_null());
  fields_ = std::move(now);
  return news;
}

std::string DroppedFields::Names() const {
  std::string names;
  AppendNames(fields_, "", names);
  return names;
}

std::shared_ptr<const plan::ObservedJob> DroppedFields::Complete(
    std::shared_ptr<const plan::ObservedJob> job) const {
  if (fields_.is_null()) return job;
  json status = ToJson(job->status);
  Put(fields_, status);
  absl::StatusOr<api::JobStatus> complete = api::StatusFromJson(status.dump());
  if (!complete.ok()) return job;
  auto copy = std::make_shared<plan::ObservedJob>(*job);
  copy->status = *std::move(complete);
  return copy;
}

bool DroppedFields::Keep(const api::JobStatus& before, const api::JobStatus& status) {
  if (fields_.is_null()) return false;
  json old = ToJson(before);
  json now = ToJson(status);
  Extract(fields_, old);
  json kept = Extract(fields_, now);
  if (old != now) return false;
  fields_ = std::move(kept);
  return true;
}

}  // namespace hetero::reconcile
