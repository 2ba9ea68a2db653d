#pragma once

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

#include "base/clock.h"

namespace hetero::kube {

// The API's MicroTime: "2026-01-01T00:00:00.000000Z". Both parts are always there: the server
// refuses a MicroTime without its six digits.
inline std::string MicroTime(base::WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds).count();
  const std::time_t unix_seconds = seconds.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&unix_seconds, &parts);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char text[48];
  std::snprintf(text, sizeof text, "%s.%06dZ", date, static_cast<int>(micros));
  return text;
}

}  // namespace hetero::kube
