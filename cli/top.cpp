#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/labels.h"
#include "base/json_access.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/live_figures.h"
#include "cli/live_screen.h"
#include "cli/object_feed.h"
#include "cli/queue_place.h"
#include "cli/sections.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kMeasured{3};  // heartbeats of the pods come each second
constexpr std::chrono::seconds kPeriod{2};
constexpr int kMostOfPage = 500;

// The job as it is followed: the object, and what it was when it is gone.
class TopScreen {
 public:
  TopScreen(Cluster& cluster, const Options& options, base::Clock& clock, const json& job,
            std::stop_token stop)
      : cluster_(cluster),
        clock_(clock),
        stop_(std::move(stop)),
        uid_(base::TextOf(base::FieldOf(job, "metadata"), "uid")),
        selector_(absl::StrCat(api::kJobUidLabel, "=", uid_)),
        places_(cluster.aside(), clock),
        figures_(cluster.aside(), clock, options, cluster.name_space(),
                 base::TextOf(base::FieldOf(job, "metadata"), "name"), selector_),
        job_(job) {}

  absl::StatusOr<int> Once();
  absl::StatusOr<int> Watch(const std::string& name);

 private:
  absl::StatusOr<std::vector<json>> Pods();
  std::string Text(const std::vector<json>& pods, const Style& style);
  bool Over() const;

  Cluster& cluster_;
  base::Clock& clock_;
  std::stop_token stop_;
  const std::string uid_;
  const std::string selector_;
  QueuePlaces places_;
  LiveFigures figures_;
  json job_;
  bool gone_ = false;
};

absl::StatusOr<std::vector<json>> TopScreen::Pods() {
  std::vector<json> pods;
  kube::ListOptions page{.label_selector = selector_, .limit = kMostOfPage};
  do {
    auto list = cluster_.client().List(kube::kPods, cluster_.name_space(), page, stop_);
    if (!list.ok()) {
      return Explain(list.status(), "list the pods of", kube::ObjectKey::Of(job_));
    }
    for (json& pod : list->items) pods.push_back(std::move(pod));
    page.continue_token = list->continue_token;
  } while (!page.continue_token.empty());
  return pods;
}

std::string TopScreen::Text(const std::vector<json>& pods, const Style& style) {
  const auto job = ViewOf(job_);
  if (!job.ok()) return absl::StrCat(std::string(job.status().message()), "\n");
  TopView view{.job = *job, .members = MembersOf(job_, pods), .verdict = "", .missing = ""};
  places_.Find({&view.job}, stop_);
  if (view.job.status.Is(api::ConditionType::kRunning)) figures_.FillIn(view);
  return RenderTop(view, clock_.WallNow(), style) + (gone_ ? "It was deleted\n" : "");
}

bool TopScreen::Over() const {
  const auto view = ViewOf(job_);
  return gone_ || (view.ok() && view->status.finished());
}

absl::StatusOr<int> TopScreen::Once() {
  auto pods = Pods();
  if (!pods.ok()) return pods.status();
  const auto view = ViewOf(job_);
  if (view.ok() && view->status.Is(api::ConditionType::kRunning)) {
    for (int looks = 0; looks < 2; ++looks) {
      figures_.Look(MembersOf(job_, *pods), stop_);
      if (looks == 0 && !clock_.SleepFor(kMeasured, stop_)) return kExitInterrupted;
    }
  }
  const Style style{.width = Terminal::Available() ? Terminal::CurrentSize().columns : 0,
                    .colour = Terminal::Coloured()};
  return Print(Text(*pods, style)) ? 0 : kExitOutputGone;
}

absl::StatusOr<int> TopScreen::Watch(const std::string& name) {
  // Shown until the feeds have looked themselves.
  const auto first = Pods();
  if (!first.ok()) return first.status();
  ObjectFeed jobs(cluster_.client(), clock_,
                  {.resource = kJobs,
                   .name_space = cluster_.name_space(),
                   .field_selector = "metadata.name=" + name});
  ObjectFeed pods(
      cluster_.client(), clock_,
      {.resource = kube::kPods, .name_space = cluster_.name_space(), .label_selector = selector_});
  const json roles = {{"spec", base::FieldOf(job_, "spec")}};  // for the thread
  const std::jthread looking([&](const std::stop_token& stop) {
    base::SetThreadName("figures");
    do {
      if (pods.synced()) figures_.Look(MembersOf(roles, pods.Objects()), stop);
    } while (clock_.SleepFor(pods.synced() ? kPeriod : std::chrono::seconds(1), stop));
  });
  const auto update = [&] {
    if (!jobs.synced()) return;
    gone_ = true;
    for (json& object : jobs.Objects()) {
      if (base::TextOf(base::FieldOf(object, "metadata"), "uid") != uid_) continue;
      gone_ = false;
      job_ = std::move(object);
    }
  };
  const auto text = [&](const Style& style) {
    update();
    std::string lead;
    for (const ObjectFeed* feed : {&jobs, &pods}) {
      const auto [trouble, since] = feed->trouble();
      if (trouble.ok() || !lead.empty()) continue;
      lead = RenderTrouble(Explain(trouble, "read", kube::ObjectKey::Of(job_)),
                           clock_.Now() - since, style);
    }
    return lead + Text(pods.synced() ? pods.Objects() : *first, style);
  };
  if (Terminal::Available()) {
    return ShowLive({.text = text,
                     .version = [&] { return jobs.version() + pods.version(); },
                     .over = [&] { return Over(); }},
                    clock_, stop_);
  }
  do {
    if (!Print(text({.width = 0}) + "\n")) return kExitOutputGone;
  } while (!Over() && clock_.SleepFor(kPeriod, stop_));
  return stop_.stop_requested() ? kExitInterrupted : 0;
}

}  // namespace

absl::StatusOr<int> Top(Cluster& cluster, const Options& options, base::Clock& clock,
                        std::stop_token stop) {
  const auto job = cluster.Job(options.job);
  if (!job.ok()) return job.status();
  TopScreen screen(cluster, options, clock, *job, std::move(stop));
  return options.watch ? screen.Watch(options.job) : screen.Once();
}

}  // namespace hetero::cli
