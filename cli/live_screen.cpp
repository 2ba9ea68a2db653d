#include "cli/live_screen.h"

#include "cli/commands.h"
#include "cli/terminal.h"

namespace hetero::cli {
namespace {

constexpr std::chrono::seconds kRedraw{1};
constexpr std::chrono::milliseconds kTick{100};

}  // namespace

int ShowLive(const LiveText& live, base::Clock& clock, const std::stop_token& stop) {
  Terminal terminal("no -w");
  const auto text = [&live] {
    return live.text({.width = Terminal::CurrentSize().columns, .colour = Terminal::Coloured()});
  };
  while (!stop.stop_requested()) {
    const int64_t version = live.version();
    const Size size = Terminal::CurrentSize();
    if (!terminal.Draw(text())) return kExitOutputGone;
    if (live.over()) break;
    const base::Instant next = clock.Now() + kRedraw;
    while (clock.Now() < next && clock.SleepFor(kTick, stop)) {
      if (live.version() != version || Terminal::CurrentSize() != size) break;
    }
  }
  terminal.Finish(text());
  return stop.stop_requested() ? kExitInterrupted : 0;
}

}  // namespace hetero::cli
