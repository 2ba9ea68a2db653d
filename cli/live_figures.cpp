#include "cli/live_figures.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/ports.h"
#include "base/json_access.h"
#include "operator/kube/resource.h"

namespace hetero::cli {
namespace {

using base::FieldOf;
using base::ListOf;
using base::TextOf;
using nlohmann::json;

constexpr base::Duration kWindow = std::chrono::seconds(10);
constexpr base::Duration kLeast = std::chrono::milliseconds(900);  // heartbeats come each second
constexpr char kPage[] = "/report.json";
constexpr size_t kMostOfReport = size_t{64} << 20;  // of 10,000 members
constexpr base::Duration kFirstPause = std::chrono::seconds(30);
constexpr base::Duration kLongestPause = std::chrono::minutes(5);

constexpr std::array<std::pair<std::string_view, double>, 14> kSuffixes = {
    {{"Ki", 1024.0},
     {"Mi", 1048576.0},
     {"Gi", 1073741824.0},
     {"Ti", 1099511627776.0},
     {"Pi", 1125899906842624.0},
     {"n", 1e-9},
     {"u", 1e-6},
     {"m", 1e-3},
     {"k", 1e3},
     {"M", 1e6},
     {"G", 1e9},
     {"T", 1e12},
     {"P", 1e15},
     {"", 1}}};

double NumberOf(const json& object, const char* name) {
  const json& value = FieldOf(object, name);
  return value.is_number() ? value.get<double>() : 0;
}

}  // namespace

std::map<std::string, PodCounters> CountersOf(const json& report) {
  std::map<std::string, PodCounters> counters;
  for (const json& worker : ListOf(report, "workers")) {
    PodCounters& pod =
        counters[absl::StrCat(TextOf(worker, "role"), "-", base::IntegerOf(worker, "index"))];
    pod.samples += base::IntegerOf(worker, "samples");
    pod.cpu_seconds += NumberOf(worker, "cpuSeconds");
    pod.peak_bytes += NumberOf(worker, "peakRssBytes");
    pod.restarts = std::max(pod.restarts, base::IntegerOf(worker, "restarts"));
    if (base::FieldOf(worker, "dataWaitPercent").is_number()) {
      pod.wait_percent =
          std::max(pod.wait_percent.value_or(0), NumberOf(worker, "dataWaitPercent"));
    }
  }
  return counters;
}

std::optional<double> ParseQuantity(std::string_view text) {
  for (const auto& [suffix, factor] : kSuffixes) {
    if (!text.ends_with(suffix)) continue;
    double number = 0;
    const std::string digits(text.substr(0, text.size() - suffix.size()));
    if (!absl::SimpleAtod(digits, &number)) return std::nullopt;
    return number * factor;
  }
  return std::nullopt;
}

std::map<std::string, LiveFigures::Usage> LiveFigures::AskUsage(const std::stop_token& stop) {
  const kube::Resource pods{"metrics.k8s.io", "v1beta1", "pods"};
  const auto list = client_.GetPath(
      kube::ResourcePath(pods, name_space_) + kube::Query().Add("labelSelector", selector_).text(),
      stop);
  std::map<std::string, Usage> usage;
  if (!list.ok()) return usage;
  for (const json& pod : ListOf(*list, "items")) {
    Usage& sum = usage[TextOf(FieldOf(pod, "metadata"), "name")];
    for (const json& container : ListOf(pod, "containers")) {
      const json& used = FieldOf(container, "usage");
      sum.cores += ParseQuantity(TextOf(used, "cpu")).value_or(0);
      sum.bytes += ParseQuantity(TextOf(used, "memory")).value_or(0);
    }
  }
  return usage;
}

absl::StatusOr<json> LiveFigures::ReportIn(const absl::StatusOr<std::string>& page) const {
  if (!page.ok()) return page.status();
  json report;
  if (page->size() <= kMostOfReport) {
    report = json::parse(*page, nullptr, /*allow_exceptions=*/false);
  }
  if (TextOf(report, "job") != job_ || !base::FieldOf(report, "workers").is_array()) {
    return absl::UnavailableError("what answers there is not the head's report");
  }
  return report;
}

absl::StatusOr<json> LiveFigures::AskByForward(const std::string& pod,
                                               const std::stop_token& stop) {
  if (forward_ == nullptr || forwarded_pod_ != pod) {
    forward_.reset();
    if (forwarded_pod_ == pod && clock_.Now() < forward_from_) return forward_problem_;
    if (forwarded_pod_ != pod) forward_pause_ = kFirstPause;
    forwarded_pod_ = pod;
    auto forward = PortForward::Open(options_, name_space_, pod, api::kPagePort, clock_, stop);
    if (!forward.ok()) return NotForwarded(forward.status());
    forward_ = *std::move(forward);
  }
  auto report = ReportIn(forward_->Get(kPage, stop));
  if (!report.ok()) return NotForwarded(report.status());
  forward_pause_ = kFirstPause;
  return report;
}

// A program that is started each time, and asks for credentials each time, is dear where it is of
// no use.
absl::Status LiveFigures::NotForwarded(const absl::Status& status) {
  forward_.reset();
  forward_problem_ = status;
  forward_from_ = clock_.Now() + forward_pause_;
  forward_pause_ = std::min(2 * forward_pause_, kLongestPause);
  return status;
}

absl::StatusOr<json> LiveFigures::AskHead(const std::string& pod, const std::stop_token& stop) {
  absl::StatusOr<json> report = absl::UnavailableError("");
  if (forward_ != nullptr) report = AskByForward(pod, stop);
  if (report.ok()) return report;
  report = ReportIn(client_.GetText(absl::StrCat("/api/v1/namespaces/", name_space_, "/pods/", pod,
                                                 ":", api::kPagePort, "/proxy", kPage),
                                    stop));
  const absl::Status proxied = report.status();
  if (!report.ok() && !stop.stop_requested()) report = AskByForward(pod, stop);
  if (report.ok()) return report;
  const base::MutexLock lock(mutex_);
  missing_ = absl::StrCat(
      "No figures of pods: ",
      absl::IsPermissionDenied(proxied)
          ? absl::StrCat("that needs the right to get pods/proxy or to create pods/portforward in "
                         "namespace ",
                         name_space_, " (the role edit holds both)")
          : absl::StrCat("the API server does not bring the page of pod ", pod, ", port ",
                         api::kPagePort, ": ", std::string(proxied.message())),
      "; by port-forward: ", std::string(report.status().message()));
  return report.status();
}

void LiveFigures::Look(const std::vector<Member>& members, const std::stop_token& stop) {
  std::map<std::string, Usage> usage = AskUsage(stop);
  {
    const base::MutexLock lock(mutex_);
    usage_ = std::move(usage);
  }
  const auto head = std::find_if(members.begin(), members.end(), [](const Member& member) {
    return member.type == api::RoleType::kHead && member.state == "Running";
  });
  if (stop.stop_requested()) return;
  if (head == members.end()) {  // what was known is of the past
    forward_.reset();
    const base::MutexLock lock(mutex_);
    moments_.clear();
    verdict_.clear();
    missing_.clear();
    return;
  }
  const auto report = AskHead(head->pod, stop);
  if (!report.ok()) return;
  const base::MutexLock lock(mutex_);
  verdict_ = TextOf(*report, "verdict");
  missing_.clear();
  moments_.push_back({clock_.Now(), CountersOf(*report)});
  while (moments_.size() > 2 && moments_.back().at - moments_[1].at >= kWindow) {
    moments_.pop_front();
  }
}

void LiveFigures::FillIn(TopView& view) const {
  const base::MutexLock lock(mutex_);
  view.verdict = verdict_;
  view.missing = missing_;
  for (Member& member : view.members) {
    if (const auto used = usage_.find(member.pod); used != usage_.end()) {
      member.cores = used->second.cores;
      member.memory_bytes = used->second.bytes;
    }
    if (moments_.empty()) continue;
    const auto now = moments_.back().counters.find(member.member());
    if (now == moments_.back().counters.end()) continue;
    member.restarts = now->second.restarts;
    member.wait_percent = now->second.wait_percent;
    if (!member.memory_bytes && now->second.peak_bytes > 0) {
      member.memory_bytes = now->second.peak_bytes;
      member.memory_is_peak = true;
    }
    const auto before = moments_.front().counters.find(member.member());
    const base::Duration between = moments_.back().at - moments_.front().at;
    if (before == moments_.front().counters.end() || between < kLeast) continue;
    const double seconds = base::ToSeconds(between);
    const int64_t samples = now->second.samples - before->second.samples;
    const double cpu_seconds = now->second.cpu_seconds - before->second.cpu_seconds;
    const bool works = member.type != api::RoleType::kHead;
    if (works && samples >= 0) member.samples_per_second = static_cast<double>(samples) / seconds;
    if (!member.cores && cpu_seconds >= 0) member.cores = cpu_seconds / seconds;
  }
}

}  // namespace hetero::cli
