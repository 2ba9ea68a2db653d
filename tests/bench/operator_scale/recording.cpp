#include "tests/bench/operator_scale/recording.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/job_resource.h"
#include "api/job_status.h"
#include "api/labels.h"

namespace hetero::bench {

namespace {

using nlohmann::json;

double Seconds(const json& event, const char* field) {
  auto time = api::ParseTime(event.value(field, ""));
  if (!time.ok()) return 0;
  return std::chrono::duration<double>(time->time_since_epoch()).count();
}

// The job that a write is for, from the body's labels or owner, or from the object's name.
std::string JobOf(const json& event, const std::map<std::string, std::string>& jobs_by_child) {
  const json reference = event.value("objectRef", json::object());
  const std::string name_space = reference.value("namespace", "");
  if (reference.value("resource", "") == api::kPlural) {
    return name_space + "/" + reference.value("name", "");
  }
  const json body = event.value("requestObject", json::object());
  if (body.is_object()) {
    const json metadata = body.value("metadata", json::object());
    const json labels =
        metadata.is_object() ? metadata.value("labels", json::object()) : json::object();
    if (labels.contains(api::kJobNameLabel)) {
      return name_space + "/" + labels[api::kJobNameLabel].get<std::string>();
    }
    if (body.contains("regarding")) {
      return name_space + "/" + body["regarding"].value("name", "");
    }
  }
  const std::string uri = event.value("requestURI", "");
  const size_t uid = uri.find("job-uid");
  if (uid != std::string::npos) {
    for (const auto& [child, job] : jobs_by_child) {
      if (child.size() > 30 && uri.find(child) != std::string::npos) return job;
    }
  }
  auto it = jobs_by_child.find(name_space + "/" + reference.value("resource", "") + "/" +
                               reference.value("name", ""));
  return it == jobs_by_child.end() ? "" : it->second;
}

}  // namespace

Recording ReadAuditLog(const std::string& file, const std::string& user) {
  static const std::map<std::string, std::string> kMethods = {{"create", "POST"},
                                                              {"update", "PUT"},
                                                              {"patch", "PATCH"},
                                                              {"delete", "DELETE"},
                                                              {"deletecollection", "DELETE"}};
  Recording recording;
  std::ifstream lines(file);
  std::map<std::string, std::string> jobs_by_child;  // "namespace/resource/name" or uid -> job
  std::map<std::string, std::string> uids;
  double first = 0, last = 0;
  for (std::string line; std::getline(lines, line);) {
    const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || event.value("stage", "") != "ResponseComplete") continue;
    if (event["user"].value("username", "") != user) continue;
    const json reference = event.value("objectRef", json::object());
    const std::string resource = reference.value("resource", "");
    if (resource == "leases" || resource == "selfsubjectaccessreviews") continue;
    const std::string verb = event.value("verb", "");
    auto method = kMethods.find(verb);
    if (method == kMethods.end()) {
      ++(verb == "watch" ? recording.watches : recording.reads);
      continue;
    }
    const std::string job = JobOf(event, jobs_by_child);
    if (job.empty()) continue;  // the operator's own identity
    const json body = event.value("requestObject", json());
    if (body.is_object() && body.contains("metadata")) {
      const json& metadata = body["metadata"];
      if (metadata.contains("name")) {
        jobs_by_child[reference.value("namespace", "") + "/" + resource + "/" +
                      metadata["name"].get<std::string>()] = job;
      }
      if (metadata.contains("labels") && metadata["labels"].contains(api::kJobUidLabel)) {
        const std::string uid = metadata["labels"][api::kJobUidLabel];
        uids[job] = uid;
        jobs_by_child[uid] = job;
      }
    }
    const double begin = Seconds(event, "requestReceivedTimestamp");
    if (first == 0) first = begin;
    last = std::max(last, Seconds(event, "stageTimestamp"));
    recording.writes.push_back(
        {method->second, event.value("requestURI", ""),
         method->second == "PATCH" ? "application/merge-patch+json" : "application/json",
         body.is_null() ? "" : body.dump(), job, begin - first});
  }
  std::stable_sort(recording.writes.begin(), recording.writes.end(),
                   [](const Write& a, const Write& b) { return a.seconds < b.seconds; });
  recording.seconds = last - first;
  recording.uids.assign(uids.begin(), uids.end());
  return recording;
}

void Save(const Recording& recording, const std::string& file) {
  json writes = json::array();
  for (const Write& write : recording.writes) {
    writes.push_back(
        {write.method, write.uri, write.content_type, write.body, write.job, write.seconds});
  }
  std::ofstream(file) << json({{"writes", writes},
                               {"reads", recording.reads},
                               {"watches", recording.watches},
                               {"seconds", recording.seconds},
                               {"uids", recording.uids}});
}

Recording Load(const std::string& file) {
  std::ifstream stream(file);
  const json object = json::parse(stream);
  Recording recording;
  for (const json& write : object["writes"]) {
    recording.writes.push_back({write[0], write[1], write[2], write[3], write[4], write[5]});
  }
  recording.reads = object["reads"];
  recording.watches = object["watches"];
  recording.seconds = object["seconds"];
  recording.uids = object["uids"].get<std::vector<std::pair<std::string, std::string>>>();
  return recording;
}

}  // namespace hetero::bench
