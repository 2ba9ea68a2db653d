#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/list_table.h"
#include "cli/live_screen.h"
#include "cli/object_feed.h"
#include "cli/queue_place.h"
#include "cli/sections.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kLook{200};
constexpr std::chrono::seconds kPlacesAge{5};

// A job whose status cannot be read is listed nevertheless.
JobView ListedView(json object) {
  auto view = ViewOf(object);
  if (view.ok()) return *std::move(view);
  object.erase("status");
  JobView rest = ViewOf(object).value_or(JobView());
  rest.remark = "its status cannot be read by this version";
  return rest;
}

std::string DumpJson(const json& object) {
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

class Lister {
 public:
  Lister(Cluster& cluster, const Options& options, base::Clock& clock, std::stop_token stop)
      : cluster_(cluster),
        options_(options),
        clock_(clock),
        stop_(std::move(stop)),
        name_space_(options.all_namespaces ? "" : cluster.name_space()),
        places_(cluster.aside(), clock) {}

  absl::StatusOr<int> Once();
  absl::StatusOr<int> Watch();

 private:
  absl::StatusOr<std::vector<json>> Fetch(int limit);
  std::vector<JobView> Views(const std::vector<json>& objects);
  // A heading and the jobs.
  std::vector<std::string> Lines(const std::vector<JobView>& views, const Style& style) const;
  std::string Object(const json& object) const;
  std::string None() const {
    return absl::StrCat("No heterotrainingjobs",
                        options_.selector.empty() ? "" : " with these labels",
                        name_space_.empty() ? "" : " in namespace " + name_space_, "\n");
  }
  // False when nobody reads it.
  bool PrintChanges(FeedChanges& changes);
  std::string Screenful(const ObjectFeed& feed, const Style& style);

  Cluster& cluster_;
  const Options& options_;
  base::Clock& clock_;
  std::stop_token stop_;
  const std::string name_space_;  // empty: all
  QueuePlaces places_;
  std::map<std::string, std::string> known_places_;  // by uid, of the last time they were asked for
  base::Instant places_until_{};
  bool heading_ = false;  // has been printed
};

absl::StatusOr<std::vector<json>> Lister::Fetch(int limit) {
  std::vector<json> objects;
  kube::ListOptions page{.label_selector = options_.selector, .limit = limit};
  do {
    auto list = cluster_.client().List(kJobs, name_space_, page, stop_);
    if (!list.ok()) return Explain(list.status(), "list", {name_space_, ""});
    for (json& item : list->items) {
      // As kubectl: items of a list do not say what they are.
      item["apiVersion"] = kJobs.group + "/" + kJobs.version;
      item["kind"] = "HeteroTrainingJob";
      objects.push_back(std::move(item));
    }
    page.continue_token = list->continue_token;
  } while (!page.continue_token.empty() && limit > 1);
  return objects;
}

std::vector<JobView> Lister::Views(const std::vector<json>& objects) {
  std::vector<JobView> views;
  for (const json& object : objects) views.push_back(ListedView(object));
  if (clock_.Now() >= places_until_) {
    std::vector<JobView*> all;
    for (JobView& view : views) all.push_back(&view);
    places_.Find(all, stop_);
    known_places_.clear();
    for (const JobView& view : views) {
      if (!view.place.empty()) known_places_[view.uid] = view.place;
    }
    places_until_ = clock_.Now() + kPlacesAge;
    return views;
  }
  for (JobView& view : views) {
    const auto known = known_places_.find(view.uid);
    if (known == known_places_.end() || !view.status.Is(api::ConditionType::kQueued)) continue;
    view.place = known->second;
  }
  return views;
}

std::vector<std::string> Lister::Lines(const std::vector<JobView>& views,
                                       const Style& style) const {
  return ListLines(views, clock_.WallNow(),
                   {.style = style,
                    .namespaces = options_.all_namespaces,
                    .wide = options_.output == OutputFormat::kWide});
}

std::string Lister::Object(const json& object) const {
  if (options_.output == OutputFormat::kJson) return DumpJson(object);
  return absl::StrCat("heterotrainingjob.", kJobs.group, "/", kube::ObjectKey::Of(object).name,
                      "\n");
}

absl::StatusOr<int> Lister::Once() {
  const auto objects = Fetch(500);
  if (!objects.ok()) return objects.status();
  if (options_.output == OutputFormat::kJson) {
    const json list = {{"apiVersion", "v1"},
                       {"kind", "List"},
                       {"metadata", {{"resourceVersion", ""}}},
                       {"items", *objects}};
    return Print(DumpJson(list)) ? 0 : kExitOutputGone;
  }
  std::string text;
  if (options_.output == OutputFormat::kName) {
    for (const json& object : *objects) text += Object(object);
    return Print(text) ? 0 : kExitOutputGone;
  }
  if (objects->empty()) {
    std::cerr << None();
    return 0;
  }
  const Style style{.width = Terminal::Available() ? Terminal::CurrentSize().columns : 0,
                    .colour = Terminal::Coloured()};
  for (const std::string& line : Lines(Views(*objects), style)) text += line + "\n";
  return Print(text) ? 0 : kExitOutputGone;
}

std::string Lister::Screenful(const ObjectFeed& feed, const Style& style) {
  std::string text;
  if (const auto [trouble, since] = feed.trouble(); !trouble.ok()) {
    text = RenderTrouble(Explain(trouble, "list", {name_space_, ""}), clock_.Now() - since, style);
  }
  const std::vector<json> objects = feed.Objects();
  if (objects.empty()) return text + (feed.synced() ? None() : "");
  return text + absl::StrJoin(Lines(Views(objects), style), "\n") + "\n";
}

bool Lister::PrintChanges(FeedChanges& changes) {
  std::vector<json> changed;
  std::vector<bool> gone;
  for (FeedChanges::Change& change : changes.Take()) {
    changed.push_back(std::move(change.object));
    gone.push_back(change.gone);
  }
  if (changed.empty()) return true;
  std::string text;
  if (options_.output == OutputFormat::kJson || options_.output == OutputFormat::kName) {
    for (const json& object : changed) text += Object(object);
    return Print(text);
  }
  std::vector<JobView> views = Views(changed);
  for (size_t i = 0; i < views.size(); ++i) {
    if (gone[i]) views[i].remark = "deleted";
  }
  const size_t count = views.size();
  // For columns as wide as all need them.
  for (const auto& [key, object] : changes.objects()) views.push_back(ListedView(object));
  const std::vector<std::string> lines = Lines(views, {.width = 0});
  for (size_t i = heading_ ? 1 : 0; i <= count; ++i) text += lines[i] + "\n";
  heading_ = true;
  return Print(text);
}

absl::StatusOr<int> Lister::Watch() {
  // What is wrong from the beginning ends it; what goes wrong later is waited for.
  if (const auto first = Fetch(1); !first.ok()) return first.status();
  ObjectFeed feed(
      cluster_.client(), clock_,
      {.resource = kJobs, .name_space = name_space_, .label_selector = options_.selector});
  const bool text =
      options_.output == OutputFormat::kText || options_.output == OutputFormat::kWide;
  if (text && Terminal::Available()) {
    return ShowLive({.text = [&](const Style& style) { return Screenful(feed, style); },
                     .version = [&] { return feed.version(); }},
                    clock_, stop_);
  }
  FeedChanges changes(feed);
  bool troubled = false;
  while (clock_.SleepFor(kLook, stop_)) {
    const auto [trouble, since] = feed.trouble();
    if (!trouble.ok() && !troubled) {
      std::cerr << Explain(trouble, "list", {name_space_, ""}).message() << "; trying again\n";
    }
    troubled = !trouble.ok();
    if (!PrintChanges(changes)) return kExitOutputGone;
  }
  return kExitInterrupted;
}

}  // namespace

absl::StatusOr<int> List(Cluster& cluster, const Options& options, base::Clock& clock,
                         std::stop_token stop) {
  Lister lister(cluster, options, clock, std::move(stop));
  return options.watch ? lister.Watch() : lister.Once();
}

}  // namespace hetero::cli
