#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostPods = 200;  // one connection and thread each

struct PodLog {
  std::string pod;
  std::string member;  // "gpu-0"
};

std::string LabelOf(const json& pod, const char* key) {
  const auto metadata = pod.find("metadata");
  if (metadata == pod.end() || !metadata->is_object()) return "";
  const auto labels = metadata->find("labels");
  if (labels == metadata->end() || !labels->is_object()) return "";
  const auto label = labels->find(key);
  return label != labels->end() && label->is_string() ? label->get<std::string>() : "";
}

absl::StatusOr<std::vector<PodLog>> FindPods(Cluster& cluster, const Options& options) {
  std::string selector = "training.hetero.dev/job-name=" + options.job;
  if (!options.role.empty()) selector += ",training.hetero.dev/role=" + options.role;
  if (options.index >= 0) {
    absl::StrAppend(&selector, ",training.hetero.dev/replica-index=", options.index);
  }
  auto pods = cluster.client().List(kube::kPods, cluster.name_space(),
                                    {.label_selector = selector, .limit = kMostPods});
  if (!pods.ok()) {
    return absl::Status(pods.status().code(),
                        absl::StrCat("cannot list the pods of ", cluster.name_space(), "/",
                                     options.job, ": ", std::string(pods.status().message())));
  }
  std::vector<PodLog> logs;
  for (const json& pod : pods->items) {
    logs.push_back({kube::ObjectKey::Of(pod).name,
                    absl::StrCat(LabelOf(pod, "training.hetero.dev/role"), "-",
                                 LabelOf(pod, "training.hetero.dev/replica-index"))});
  }
  if (!pods->continue_token.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat(cluster.name_space(), "/", options.job,
                                                     " has more than ", kMostPods,
                                                     " pods; choose with --role and --index"));
  }
  return logs;
}

}  // namespace

absl::StatusOr<int> Logs(Cluster& cluster, const Options& options, std::stop_token stop) {
  if (auto job = cluster.Job(options.job); !job.ok()) return job.status();
  auto pods = FindPods(cluster, options);
  if (!pods.ok()) return pods.status();
  if (pods->empty()) {
    return absl::NotFoundError(absl::StrCat(
        cluster.name_space(), "/", options.job, " has no such pods now; kubectl hetero status ",
        options.job, " says why (cleanPodPolicy All deletes them at the end)"));
  }
  size_t width = 0;
  for (const PodLog& log : *pods) width = std::max(width, log.member.size());
  std::mutex mutex;  // guards standard output and `error`
  absl::Status error;
  std::vector<std::jthread> threads;
  for (const PodLog& log : *pods) {
    threads.emplace_back([&, log] {
      base::SetThreadName("log-" + log.member);
      const std::string prefix = log.member + std::string(width - log.member.size(), ' ') + " | ";
      const std::string path =
          absl::StrCat("/api/v1/namespaces/", cluster.name_space(), "/pods/", log.pod,
                       "/log?container=runtime", options.follow ? "&follow=true" : "");
      const absl::Status ended = cluster.client().GetLines(
          path,
          [&](std::string_view line) {
            std::lock_guard lock(mutex);
            Print(prefix + std::string(line) + "\n");
            return true;
          },
          stop);
      std::lock_guard lock(mutex);
      if (ended.ok() || stop.stop_requested()) return;
      error = absl::Status(ended.code(), absl::StrCat("log of pod ", cluster.name_space(), "/",
                                                      log.pod, ": ", std::string(ended.message())));
    });
  }
  threads.clear();  // joins
  if (!error.ok()) return error;
  return 0;
}

}  // namespace hetero::cli
