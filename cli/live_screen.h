#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "cli/render.h"

namespace hetero::cli {

// A text that changes. Its functions are called from one thread.
struct LiveText {
  std::function<std::string(const Style& style)> text;
  std::function<int64_t()> version;                   // another one: the text has changed
  std::function<bool()> over = [] { return false; };  // it will not change any more
};

// Keeps it on the terminal until it is over (0), until `stop`, or until nobody reads it: the exit
// code. It is drawn anew once a second too, for the times in it, and when the terminal's size
// changes. What was drawn last stays.
int ShowLive(const LiveText& live, base::Clock& clock, const std::stop_token& stop);

}  // namespace hetero::cli
