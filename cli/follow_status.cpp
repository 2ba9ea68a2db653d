#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/queue_place.h"
#include "cli/render.h"
#include "cli/sections.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace hetero::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kPeriod{1};
constexpr std::chrono::milliseconds kResizePeriod{100};
constexpr std::chrono::seconds kPatience{60};  // with an API server that answered before

std::string Dump(const json& object, int indent) {
  return object.dump(indent, ' ', false, json::error_handler_t::replace) + "\n";
}

// An API server that restarts or is busy.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

class Follower {
 public:
  Follower(Cluster& cluster, const Options& options, base::Clock& clock, std::stop_token stop)
      : cluster_(cluster),
        options_(options),
        clock_(clock),
        stop_(std::move(stop)),
        places_(cluster.aside(), clock) {
    if (options.output == OutputFormat::kText && !options.once && Terminal::Available()) {
      terminal_.emplace();
    }
  }
  absl::StatusOr<int> Run();

 private:
  // OK, or what ends the following. Sets view_.
  absl::Status Look();
  absl::Status Take(const json& object);
  // False when nobody reads it.
  bool Show();
  std::string Text() const;
  // Until the next look; until then the screen follows the terminal's size.
  void Rest();
  int End(int code, const std::string& words);
  std::string Name() const { return cluster_.name_space() + "/" + options_.job; }

  Cluster& cluster_;
  const Options& options_;
  base::Clock& clock_;
  std::stop_token stop_;
  QueuePlaces places_;
  std::optional<Terminal> terminal_;
  std::optional<JobView> view_;
  json status_;
  absl::Status trouble_;
  base::Instant trouble_since_;
  std::string last_;  // what was printed last, without its time
};

absl::Status Follower::Look() {
  const auto object = cluster_.Job(options_.job);
  if (object.ok()) {
    trouble_ = absl::OkStatus();
    return Take(*object);
  }
  if (!view_) return object.status();
  if (absl::IsNotFound(object.status())) {
    return absl::NotFoundError(
        absl::StrCat("heterotrainingjob ", Name(), " was deleted while it was followed"));
  }
  if (!MayPass(object.status())) return object.status();
  if (trouble_.ok()) {
    trouble_since_ = clock_.Now();
    if (!terminal_) std::cerr << object.status().message() << "; trying again\n";
  }
  trouble_ = object.status();
  return clock_.Now() - trouble_since_ < kPatience ? absl::OkStatus() : trouble_;
}

absl::Status Follower::Take(const json& object) {
  auto view = ViewOf(object);
  if (!view.ok()) return view.status();
  if (view_ && view_->uid != view->uid) {
    return absl::NotFoundError(
        absl::StrCat("heterotrainingjob ", Name(),
                     " was deleted while it was followed; there is a new one of its name"));
  }
  places_.Find({&*view}, stop_);
  view_ = *std::move(view);
  status_ = object.value("status", json::object());
  return absl::OkStatus();
}

std::string Follower::Text() const {
  const Style style{.width = Terminal::Available() ? Terminal::CurrentSize().columns : 0,
                    .colour = Terminal::Coloured()};
  const std::string text = RenderStatus(*view_, clock_.WallNow(), style);
  if (trouble_.ok()) return text;
  // First: on a low terminal the end is not seen.
  return RenderTrouble(trouble_, clock_.Now() - trouble_since_, style) + text;
}

bool Follower::Show() {
  if (terminal_) return terminal_->Draw(Text());
  if (options_.output == OutputFormat::kJson) {
    const std::string line = Dump(status_, options_.once ? 2 : -1);
    if (line == last_) return true;
    last_ = line;
    return Print(line);
  }
  if (options_.once) return Print(Text());
  const std::string line = RenderLine(*view_, clock_.WallNow());
  const std::string saying = line.substr(std::min(line.find(' '), line.size()));
  if (saying == last_) return true;
  last_ = saying;
  return Print(line);
}

void Follower::Rest() {
  const base::Instant next = clock_.Now() + kPeriod;
  while (clock_.Now() < next) {
    const Size size = Terminal::CurrentSize();
    if (!clock_.SleepFor(terminal_ ? base::Duration(kResizePeriod) : kPeriod, stop_)) return;
    if (terminal_ && size != Terminal::CurrentSize()) terminal_->Draw(Text());
  }
}

int Follower::End(int code, const std::string& words) {
  const int width = terminal_ ? Terminal::CurrentSize().columns : 0;
  if (terminal_ && view_) terminal_->Finish(Text());
  terminal_.reset();
  for (const std::string& line : Wrap(words, width, 2)) {
    if (!line.empty()) std::cerr << line << "\n";
  }
  return code;
}

absl::StatusOr<int> Follower::Run() {
  const base::Instant begin = clock_.Now();
  const std::chrono::seconds timeout(options_.timeout_seconds);
  while (true) {
    if (const absl::Status status = Look(); !status.ok()) {
      End(kExitFailed, "");
      return status;
    }
    if (stop_.stop_requested()) break;
    if (!Show()) return kExitOutputGone;
    if (options_.once) return 0;
    if (trouble_.ok() && view_->status.finished()) {
      return End(view_->status.Is(api::ConditionType::kSucceeded) ? 0 : kExitFailed, "");
    }
    if (timeout.count() > 0 && clock_.Now() - begin >= timeout) {
      return End(kExitTimeout, absl::StrCat("heterotrainingjob ", Name(), " has not ended within ",
                                            timeout.count(), " s; it goes on"));
    }
    Rest();
    if (stop_.stop_requested()) break;
  }
  return End(kExitInterrupted,
             terminal_ ? "No longer following heterotrainingjob " + Name() + "; it goes on" : "");
}

}  // namespace

absl::StatusOr<int> FollowStatus(Cluster& cluster, const Options& options, base::Clock& clock,
                                 std::stop_token stop) {
  return Follower(cluster, options, clock, std::move(stop)).Run();
}

}  // namespace hetero::cli
