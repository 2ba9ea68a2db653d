#include "operator/kube/watcher.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>
#include <variant>

#include "base/json_access.h"
#include "base/log.h"

namespace hetero::kube {
namespace {

constexpr base::Backoff::Options kBackoff = {.initial = std::chrono::milliseconds(800),
                                             .max = std::chrono::seconds(30),
                                             .multiplier = 2,
                                             .jitter = 0.5};

// A page as JSON takes five to ten times its bytes for a moment, and several kinds may be listed at
// once.
constexpr size_t kPageBytes = size_t{512} << 10;
constexpr int kFirstPage = 10;  // of objects of unknown size: one may have a megabyte and a half
constexpr int kFewest = 10;
constexpr int kGrowth = 4;

std::string VersionOf(const nlohmann::json& object) {
  return base::TextOf(base::FieldOf(object, "metadata"), "resourceVersion");
}

metrics::Labels LabelsOf(const Watcher::Options& options) {
  return {{"name", options.resource.plural}};
}

WatchEnded::How HowEnded(const absl::Status& status) {
  if (status.ok()) return WatchEnded::How::kClean;
  if (absl::IsDeadlineExceeded(status)) return WatchEnded::How::kSilent;
  // A version that the server calls invalid will not become valid by asking again.
  if (absl::IsOutOfRange(status) || absl::IsInvalidArgument(status)) {
    return WatchEnded::How::kExpired;
  }
  return WatchEnded::How::kFailed;
}

// These last until somebody changes a role, or installs what is not there, and say the same each
// time.
bool IsRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         absl::IsNotFound(status);
}

// Of an optional kind: there is no such thing, or not for us. Who has no rights on a kind is not
// told whether the cluster has it.
bool IsAbsence(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status);
}

// Without the query, which differs each time: "GET /api/v1/pods at 10.96.0.1:443: forbidden".
std::string WithoutQuery(const absl::Status& status) {
  std::string text(status.message().data(), status.message().size());
  const size_t query = text.find('?');
  if (query == std::string::npos) return text;
  const size_t end = std::min(text.find(": ", query), text.find(" at ", query));
  return end == std::string::npos ? text : text.erase(query, end - query);
}

std::string Where(const Watcher::Options& options) {
  return options.name_space.empty() ? "all namespaces" : options.name_space;
}

}  // namespace

Watcher::Watcher(Client& client, base::Clock& clock, metrics::Registry& registry, Options options,
                 Handler handler, base::Backoff::Random random)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      handler_(std::move(handler)),
      random_(std::move(random)),
      backoff_(kBackoff, random_),
      lists_(registry.GetCounter("reflector_lists_total", "Lists started, by kind of object.",
                                 LabelsOf(options_))),
      watches_(registry.GetCounter("reflector_watches_total", "Watches opened, by kind of object.",
                                   LabelsOf(options_))),
      short_watches_(registry.GetCounter("reflector_short_watches_total",
                                         "Watches that ended within a second.",
                                         LabelsOf(options_))),
      page_limit_(std::min(kFirstPage, options_.page_size)) {}

void Watcher::Run(std::stop_token stop) {
  state_ = {};
  WatchInput input = Started{};
  while (!stop.stop_requested()) {
    WatchStep step = Step(std::move(state_), input);
    state_ = std::move(step.state);
    input = CarryOut(step.actions, stop);
  }
}

WatchInput Watcher::CarryOut(const std::vector<WatchAction>& actions, std::stop_token stop) {
  for (const WatchAction action : actions) {
    if (stop.stop_requested()) break;
    switch (action) {
      case WatchAction::kBeginList:
        lists_.Add();
        listed_ = 0;
        handler_.list_begins();
        break;
      case WatchAction::kFetchPage:
        return FetchPage(stop);
      case WatchAction::kApplyPage:
        ApplyPage();
        break;
      case WatchAction::kEndList:
        handler_.list_ends();
        log::Info(
            "listed, watching",
            {{"kind", options_.resource.plural}, {"in", Where(options_)}, {"objects", listed_}});
        break;
      case WatchAction::kOpenWatch:
        return OpenWatch(stop);
      case WatchAction::kApplyObject:
      case WatchAction::kRemoveObject:
        break;  // OnWatchEvent's
      case WatchAction::kForgive:
        backoff_.Reset();
        break;
      case WatchAction::kWait:
        Wait(stop);
        break;
    }
  }
  return Started{};
}

WatchInput Watcher::FetchPage(std::stop_token stop) {
  const auto* phase = std::get_if<InitPage>(&state_.phase);
  absl::StatusOr<ObjectList> page =
      client_.List(options_.resource, options_.name_space,
                   {.label_selector = options_.label_selector,
                    .field_selector = options_.field_selector,
                    .limit = page_limit_,
                    .continue_token = phase == nullptr ? "" : phase->continue_token},
                   stop);
  if (page.ok() && page->resource_version.empty()) {
    page = absl::InternalError("the server's list names no resourceVersion to watch from");
  }
  if (!page.ok()) {
    error_ = page.status();
    const bool absent = options_.optional && IsAbsence(error_);
    if (absent) handler_.absent();
    // Who was told so has let go of the list, and has to be told of all of the next one.
    return ListFailed{.expired = absent || absl::IsOutOfRange(error_)};
  }
  Reached();
  page_ = *std::move(page);
  ChoosePageLimit();
  return PageArrived{.resource_version = page_.resource_version,
                     .continue_token = page_.continue_token};
}

// As many as make up a page of kPageBytes, if they are like those that have just come.
void Watcher::ChoosePageLimit() {
  if (page_.items.empty()) return;
  const size_t of_one = std::max<size_t>(page_.bytes / page_.items.size(), 1);
  const int fitting = static_cast<int>(std::min<size_t>(kPageBytes / of_one, INT_MAX));
  const int grown = std::min(fitting, page_limit_ * kGrowth);
  page_limit_ = std::min(std::max(grown, kFewest), options_.page_size);
}

void Watcher::ApplyPage() {
  listed_ += static_cast<int64_t>(page_.items.size());
  // Each object is freed as soon as it is taken in: whole objects are large, what is kept is not.
  for (nlohmann::json& item : page_.items) handler_.apply(std::move(item));
  page_ = {};
}

WatchInput Watcher::OpenWatch(std::stop_token stop) {
  std::string version;
  if (const auto* listed = std::get_if<InitListed>(&state_.phase)) {
    version = listed->resource_version;
  } else if (const auto* watching = std::get_if<Watching>(&state_.phase)) {
    version = watching->resource_version;
  }
  watches_.Add();
  heard_ = false;
  const base::Instant opened = clock_.Now();
  error_ = client_.Watch(
      options_.resource, options_.name_space,
      {.label_selector = options_.label_selector,
       .field_selector = options_.field_selector,
       .resource_version = version,
       .timeout =
           base::FromSeconds(base::ToSeconds(options_.watch_timeout) * (1 - 0.5 * random_())),
       .silence = options_.watch_silence},
      [this](std::string_view type, nlohmann::json object) {
        OnWatchEvent(type, std::move(object));
      },
      stop);
  base::Duration lived = clock_.Now() - opened;
  if (lived < kLasting) short_watches_.Add();
  // A server that took long to refuse has not been watched. One that opened the watch and then had
  // nothing to say has: not every server sends bookmarks of a kind of which there is nothing.
  const bool silent = HowEnded(error_) == WatchEnded::How::kSilent;
  if (!error_.ok() && !heard_ && !silent) lived = {};
  // One that was closed because we fell behind has brought us forward, as has one that fell silent
  // later: waiting would only add to what is to be caught up with.
  if ((error_.ok() || silent) && heard_) lived = std::max<base::Duration>(lived, kLasting);
  if ((error_.ok() || silent) && lived >= kLasting) Reached();
  const bool gone = options_.optional && IsAbsence(error_);
  return WatchEnded{.how = gone ? WatchEnded::How::kExpired : HowEnded(error_), .lived = lived};
}

void Watcher::OnWatchEvent(std::string_view type, nlohmann::json object) {
  WatchInput input;
  if (type == "ADDED" || type == "MODIFIED") {
    input = ObjectChanged{VersionOf(object)};
  } else if (type == "DELETED") {
    input = ObjectDeleted{VersionOf(object)};
  } else if (type == "BOOKMARK") {
    input = Bookmarked{VersionOf(object)};
  } else {
    return;  // of a later API
  }
  heard_ = true;
  Reached();
  WatchStep step = Step(std::move(state_), input);
  state_ = std::move(step.state);
  for (const WatchAction action : step.actions) {
    if (action == WatchAction::kApplyObject) return handler_.apply(std::move(object));
    if (action == WatchAction::kRemoveObject) return handler_.remove(std::move(object));
  }
}

void Watcher::Wait(std::stop_token stop) {
  const base::Duration wait = backoff_.Next();
  Complain(wait);
  clock_.SleepFor(wait, stop);
}

void Watcher::Complain(base::Duration wait) {
  if (handler_.trouble != nullptr && !absl::IsOutOfRange(error_)) {
    const absl::Status closed = absl::UnavailableError("the server closes the watch at once");
    return handler_.trouble(error_.ok() ? closed : error_);
  }
  const std::string complaint =
      error_.ok() ? "the server closes the watch at once, again and again" : WithoutQuery(error_);
  const bool repeated = complaint == last_complaint_;
  last_complaint_ = complaint;
  if (repeated && IsRefusal(error_)) return;
  // Expiry is a part of the protocol, not trouble.
  const bool expired = absl::IsOutOfRange(error_);
  const bool absent = options_.optional && IsAbsence(error_);
  const auto write = expired || absent ? log::Info : log::Warning;
  const bool listing = std::holds_alternative<InitPage>(state_.phase);
  write(expired  ? "the server no longer has the version asked for; listing again"
        : absent ? "no such kind in the cluster, or no right to list it; looking again now and then"
        : listing ? "cannot list; trying again"
                  : "cannot watch; trying again",
        {{"kind", options_.resource.plural},
         {"in", Where(options_)},
         {"error", complaint},
         {"wait_seconds", base::ToSeconds(wait)}});
}

void Watcher::Reached() {
  if (handler_.trouble != nullptr) handler_.trouble(absl::OkStatus());
  if (last_complaint_.empty()) return;
  last_complaint_.clear();
  log::Info("reached the API server again",
            {{"kind", options_.resource.plural}, {"in", Where(options_)}});
}

}  // namespace hetero::kube
