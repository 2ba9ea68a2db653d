#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/render.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

constexpr std::chrono::seconds kPeriod{1};

std::optional<int> ExitCodeOf(const JobView& view) {
  if (view.status.Is(api::ConditionType::kSucceeded)) return 0;
  if (view.status.Is(api::ConditionType::kFailed)) return kExitFailed;
  return std::nullopt;
}

// The line without its time: whether there is something new to say.
std::string Saying(const std::string& line) {
  return line.substr(std::min<size_t>(8, line.size()));
}

}  // namespace

absl::StatusOr<int> FollowStatus(Cluster& cluster, const Options& options, base::Clock& clock,
                                 std::stop_token stop) {
  const bool json = options.output == OutputFormat::kJson;
  const bool screen = !json && !options.once && Terminal::Available();
  std::optional<Terminal> terminal;
  const base::Instant begin = clock.Now();
  std::string last;
  while (true) {
    auto object = cluster.Job(options.job);
    if (!object.ok()) return object.status();
    const auto view = ViewOf(*object);
    if (!view.ok()) return view.status();
    const base::WallTime now = clock.WallNow();
    if (json) {
      const std::string text = object->value("status", nlohmann::json::object())
                                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                               "\n";
      if (text != last) Print(text);
      last = text;
    } else if (screen) {
      if (!terminal) terminal.emplace();
      terminal->Draw(RenderStatus(*view, now, {.width = terminal->width(), .colour = true}));
    } else if (last.empty()) {
      const bool colour = Terminal::Available();
      Print(RenderStatus(*view, now, {.width = colour ? 100 : 200, .colour = colour}));
      last = Saying(RenderLine(*view, now));
    } else if (const std::string line = RenderLine(*view, now); Saying(line) != last) {
      Print(line);
      last = Saying(line);
    }
    if (options.once) return 0;
    if (const auto code = ExitCodeOf(*view)) return *code;
    if (options.timeout_seconds > 0 &&
        clock.Now() - begin >= std::chrono::seconds(options.timeout_seconds)) {
      return kExitTimeout;
    }
    if (!clock.SleepFor(kPeriod, stop)) return 0;
  }
}

}  // namespace hetero::cli
