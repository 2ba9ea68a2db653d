#include "cli/fetch_report.h"

#include <iostream>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_access.h"
#include "base/status_macros.h"
#include "cli/reader_pod.h"

namespace hetero::cli {
namespace {

using base::FieldOf;
using base::ListOf;
using base::TextOf;
using nlohmann::json;

constexpr char kFileScheme[] = "file://";
constexpr std::chrono::minutes kPatience{2};
constexpr std::chrono::milliseconds kPeriod{300};

std::string RandomName(const std::string& job) {
  std::random_device random;
  return absl::StrFormat("%s-report-%08x", job, random());
}

// Deletes the pod by its name, which nobody else would choose. Also when its creation was cut off:
// it may have been created nevertheless.
class Deletion {
 public:
  Deletion(Cluster& cluster, std::string pod) : cluster_(cluster), pod_(std::move(pod)) {}
  Deletion(const Deletion&) = delete;
  Deletion& operator=(const Deletion&) = delete;
  ~Deletion() {
    const absl::Status deleted = cluster_.client().Delete(
        kube::kPods, {cluster_.name_space(), pod_}, {.grace_period_seconds = 1});
    if (deleted.ok() || absl::IsNotFound(deleted)) return;
    std::cerr << "pod " << cluster_.name_space() << "/" << pod_
              << " could not be deleted; it ends by itself within " << kReaderDeadlineSeconds
              << " s and goes with the job: " << deleted.message() << "\n";
  }

 private:
  Cluster& cluster_;
  const std::string pod_;
};

// "container json: ImagePullBackOff: ..." or what else keeps the pod from running.
std::string WhatItWaitsFor(const json& pod) {
  const json& status = FieldOf(pod, "status");
  for (const json& container : ListOf(status, "containerStatuses")) {
    const json& waiting = FieldOf(FieldOf(container, "state"), "waiting");
    const std::string reason = TextOf(waiting, "reason");
    if (reason.empty() || reason == "ContainerCreating") continue;
    return absl::StrCat(reason, ": ", TextOf(waiting, "message"));
  }
  for (const json& condition : ListOf(status, "conditions")) {
    if (TextOf(condition, "status") != "False") continue;
    const std::string message = TextOf(condition, "message");
    if (!message.empty()) return absl::StrCat(TextOf(condition, "reason"), ": ", message);
  }
  const std::string phase = TextOf(status, "phase");
  return phase.empty() ? "it has not been seen by a node" : phase;
}

absl::Status WaitForEnd(Cluster& cluster, const std::string& name, base::Clock& clock,
                        const std::stop_token& stop) {
  const base::Instant end = clock.Now() + kPatience;
  std::string waits;
  while (clock.Now() < end) {
    const auto pod = cluster.client().Get(kube::kPods, {cluster.name_space(), name}, stop);
    if (!pod.ok()) return pod.status();
    const std::string phase = TextOf(FieldOf(*pod, "status"), "phase");
    if (phase == "Succeeded" || phase == "Failed") return absl::OkStatus();
    waits = WhatItWaitsFor(*pod);
    if (!clock.SleepFor(kPeriod, stop)) return absl::CancelledError("stopped");
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the report could not be read: pod ", cluster.name_space(), "/", name,
                   " did not end within ", std::chrono::seconds(kPatience).count(), " s: ", waits));
}

absl::StatusOr<std::string> OutputOf(Cluster& cluster, const std::string& pod,
                                     const char* container, const std::stop_token& stop) {
  std::string text;
  HETERO_RETURN_IF_ERROR(cluster.client().GetLines(
      absl::StrCat("/api/v1/namespaces/", cluster.name_space(), "/pods/", pod,
                   "/log?container=", container),
      [&text](std::string_view line) {
        text.append(line).append("\n");
        return true;
      },
      stop));
  return text;
}

}  // namespace

bool HasReportFiles(const JobView& view) {
  return view.status.result && absl::StartsWith(view.status.result->report_uri, kFileScheme);
}

absl::StatusOr<ReportFiles> FetchReport(Cluster& cluster, const Options& options,
                                        const JobView& view, const json& object, base::Clock& clock,
                                        std::stop_token stop) {
  const std::string file = view.status.result->report_uri.substr(sizeof(kFileScheme) - 1);
  const std::string folder = file.substr(0, file.rfind('/'));
  const std::string name = RandomName(view.name);
  HETERO_ASSIGN_OR_RETURN(const json pod, ReaderPod(object, name, folder, options.image));
  const Deletion deletion(cluster, name);
  const auto created = cluster.client().Create(kube::kPods, cluster.name_space(), pod, stop);
  if (!created.ok()) {
    return Explain(created.status(), "read the report of", {cluster.name_space(), view.name});
  }
  HETERO_RETURN_IF_ERROR(WaitForEnd(cluster, name, clock, stop));
  ReportFiles files;
  HETERO_ASSIGN_OR_RETURN(files.json, OutputOf(cluster, name, kJsonReader, stop));
  HETERO_ASSIGN_OR_RETURN(files.html, OutputOf(cluster, name, kHtmlReader, stop));
  if (json::accept(files.json)) return files;
  return absl::NotFoundError(absl::StrCat("the report could not be read from ", folder,
                                          " of the head's volume: ", files.json));
}

}  // namespace hetero::cli
