#include "fake_api.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hetero::reconcile {
namespace {

using kube::Request;
using kube::Response;
using nlohmann::json;

Response Reply(int code, const json& body) { return {.status = code, .body = body.dump()}; }

std::string Decoded(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string LabelOf(const json& object, const std::string& name) {
  return object["metadata"].value("labels", json::object()).value(name, "");
}

}  // namespace

// [/api/v1|/apis/group/version]/namespaces/NS/PLURAL[/NAME[/SUBRESOURCE]][?labelSelector=a=b]
struct FakeApi::Path {
  explicit Path(const std::string& text) {
    const size_t question = text.find('?');
    std::vector<std::string> parts = absl::StrSplit(text.substr(0, question), '/');
    size_t i = 0;
    while (i < parts.size() && parts[i] != "namespaces") ++i;
    const auto part = [&](size_t n) { return i + n < parts.size() ? parts[i + n] : ""; };
    name_space = part(1);
    plural = part(2);
    name = part(3);
    subresource = part(4);
    if (question == std::string::npos) return;
    for (const auto& pair : absl::StrSplit(text.substr(question + 1), '&')) {
      const std::string query(pair);
      if (query.starts_with("labelSelector=")) selector = Decoded(query.substr(14));
    }
  }
  std::string key() const { return absl::StrCat(name_space, "/", name); }

  std::string name_space, plural, name, subresource, selector;
};

Response FakeApi::Error(int code, const std::string& reason, const std::string& message) {
  return Reply(code, {{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"status", "Failure"},
                      {"code", code},
                      {"reason", reason},
                      {"message", message}});
}

absl::StatusOr<Response> FakeApi::Send(const Request& request, base::Duration, std::stop_token) {
  const std::lock_guard lock(mutex_);
  if (request.method == "GET") {
    ++gets_;
    return Handle(request);
  }
  const Fate fate = decide_ ? decide_(writes_begun_++, request) : Fate::kPass;
  if (fate == Fate::kLoseRequest) return absl::UnavailableError("connection refused");
  writes_.push_back({request.method, request.path});
  if (intercept_) {
    if (std::optional<Response> instead = intercept_(request)) return *instead;
  }
  Response response = Handle(request);
  if (fate == Fate::kLoseReply) return absl::UnavailableError("connection reset");
  return response;
}

Response FakeApi::Handle(const Request& request) {
  const Path path(request.path);
  const json body = json::parse(request.body, nullptr, false);
  if (request.method == "POST") return Create(path, body);
  if (request.method == "PUT") return Replace(path, body);
  if (request.method == "PATCH") return MergePatch(path, body);
  if (request.method == "DELETE") {
    return path.name.empty() ? DeleteCollection(path) : Delete(path, body);
  }
  const auto it = objects_[path.plural].find(path.key());
  if (it == objects_[path.plural].end()) return Error(404, "NotFound", path.name + " not found");
  return Reply(200, it->second);
}

void FakeApi::Stamp(json& object) {
  object["metadata"]["resourceVersion"] = absl::StrCat(++version_);
}

Response FakeApi::Create(const Path& path, json object) {
  const std::string name = object["metadata"]["name"];
  const std::string key = absl::StrCat(path.name_space, "/", name);
  if (objects_[path.plural].contains(key)) {
    return Error(409, "AlreadyExists", absl::StrCat(path.plural, " \"", name, "\" already exists"));
  }
  json& metadata = object["metadata"];
  metadata["namespace"] = path.name_space;
  metadata["uid"] = absl::StrCat("uid-", path.plural, "-", ++uids_);
  metadata["creationTimestamp"] = "2026-01-01T00:00:00Z";
  if (path.plural == "services") object["spec"]["clusterIP"] = "10.96.0.7";
  if (path.plural == "pods") object["status"]["phase"] = "Pending";
  Stamp(object);
  objects_[path.plural][key] = object;
  return Reply(201, object);
}

Response FakeApi::Replace(const Path& path, const json& object) {
  const auto it = objects_[path.plural].find(path.key());
  if (it == objects_[path.plural].end()) return Error(404, "NotFound", path.name + " not found");
  json& stored = it->second;
  const json& metadata = object["metadata"];
  if (metadata.contains("resourceVersion") &&
      metadata["resourceVersion"] != stored["metadata"]["resourceVersion"]) {
    return Error(409, "Conflict", "the object has been modified");
  }
  if (metadata.contains("uid") && metadata["uid"] != stored["metadata"]["uid"]) {
    return Error(409, "Conflict", "Precondition failed: UID in precondition");
  }
  const json before = stored;
  if (path.subresource == "status") {
    stored["status"] = object["status"];
    for (const std::string& field : pruned_) stored["status"].erase(field);
  } else {
    stored = object;
  }
  if (stored != before) Stamp(stored);
  return Reply(200, stored);
}

Response FakeApi::MergePatch(const Path& path, const json& patch) {
  const auto it = objects_[path.plural].find(path.key());
  if (it == objects_[path.plural].end()) return Error(404, "NotFound", path.name + " not found");
  json object = it->second;
  object.merge_patch(patch);
  return Replace(path, object);
}

// False when a precondition is not met.
bool FakeApi::DeleteOne(const std::string& plural, const std::string& key, const json& options) {
  json& object = objects_[plural].at(key);
  const json preconditions =
      options.is_object() ? options.value("preconditions", json::object()) : json::object();
  if (preconditions.contains("uid") && preconditions["uid"] != object["metadata"]["uid"]) {
    return false;
  }
  const std::string phase = object.value("status", json::object()).value("phase", "");
  const bool graceful = plural == "pods" && phase == "Running" &&
                        (!options.is_object() || options.value("gracePeriodSeconds", 30) > 0);
  json& metadata = object["metadata"];
  if (graceful || !metadata.value("finalizers", json::array()).empty()) {
    if (!metadata.contains("deletionTimestamp")) {
      metadata["deletionTimestamp"] = "2026-01-01T00:00:30Z";
    }
    if (plural == "pods") metadata["deletionGracePeriodSeconds"] = graceful ? 30 : 0;
    Stamp(object);
  } else {
    objects_[plural].erase(key);
  }
  return true;
}

Response FakeApi::Delete(const Path& path, const json& options) {
  if (!objects_[path.plural].contains(path.key())) {
    return Error(404, "NotFound", path.name + " not found");
  }
  if (!DeleteOne(path.plural, path.key(), options)) {
    return Error(409, "Conflict", "the UID in the precondition does not match");
  }
  return Reply(200, {{"kind", "Status"}, {"status", "Success"}});
}

Response FakeApi::DeleteCollection(const Path& path) {
  const std::vector<std::string> parts = absl::StrSplit(path.selector, '=');
  if (parts.size() != 2) return Error(400, "BadRequest", "no selector: everything would go");
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_[path.plural]) {
    if (key.starts_with(path.name_space + "/") && LabelOf(object, parts[0]) == parts[1]) {
      keys.push_back(key);
    }
  }
  for (const std::string& key : keys) DeleteOne(path.plural, key, {});
  return Reply(200, {{"kind", "List"}});
}

void FakeApi::SetDecide(Decide decide) {
  const std::lock_guard lock(mutex_);
  decide_ = std::move(decide);
  writes_begun_ = 0;
}

void FakeApi::SetIntercept(Intercept intercept) {
  const std::lock_guard lock(mutex_);
  intercept_ = std::move(intercept);
}

void FakeApi::SetPruned(std::set<std::string> status_fields) {
  const std::lock_guard lock(mutex_);
  pruned_ = std::move(status_fields);
}

std::map<std::string, json> FakeApi::Objects(const std::string& plural) const {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(plural);
  return it == objects_.end() ? std::map<std::string, json>() : it->second;
}

std::string FakeApi::Put(const std::string& plural, const std::string& key, json object) {
  const std::lock_guard lock(mutex_);
  json& metadata = object["metadata"];
  const std::vector<std::string> parts = absl::StrSplit(key, '/');
  metadata["namespace"] = parts[0];
  metadata["name"] = parts[1];
  if (!metadata.contains("uid")) metadata["uid"] = absl::StrCat("uid-", plural, "-", ++uids_);
  metadata["creationTimestamp"] = "2026-01-01T00:00:00Z";
  metadata["generation"] = 1;
  Stamp(object);
  objects_[plural][key] = object;
  return metadata["uid"];
}

void FakeApi::Change(const std::string& plural, const std::string& key,
                     const std::function<void(json& object)>& change) {
  const std::lock_guard lock(mutex_);
  json& object = objects_.at(plural).at(key);
  change(object);
  Stamp(object);
}

void FakeApi::Remove(const std::string& plural, const std::string& key) {
  const std::lock_guard lock(mutex_);
  objects_[plural].erase(key);
}

void FakeApi::CollectGarbage() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> living;
  for (const auto& [plural, objects] : objects_) {
    for (const auto& [key, object] : objects) living.push_back(object["metadata"]["uid"]);
  }
  for (auto& [plural, objects] : objects_) {
    std::erase_if(objects, [&living](const auto& entry) {
      const json owners = entry.second["metadata"].value("ownerReferences", json::array());
      return !owners.empty() &&
             std::find(living.begin(), living.end(), owners[0]["uid"]) == living.end();
    });
  }
}

std::vector<FakeApi::Write> FakeApi::writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

int FakeApi::gets() const {
  const std::lock_guard lock(mutex_);
  return gets_;
}

}  // namespace hetero::reconcile
