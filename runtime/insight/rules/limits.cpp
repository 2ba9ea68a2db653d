#include "runtime/insight/rules/limits.h"

#include <cstdlib>
#include <string>

namespace hetero::insight {

Limits::Limits(const Rule& rule, const Settings& settings) : rule_(rule), settings_(nullptr) {
  const auto found = settings.find(std::string(rule.name));
  if (found != settings.end()) settings_ = &found->second;
}

double Limits::operator()(std::string_view name) const {
  if (settings_ != nullptr) {
    const auto found = settings_->thresholds.find(std::string(name));
    if (found != settings_->thresholds.end()) return found->second;
  }
  for (const Threshold& threshold : rule_.thresholds) {
    if (threshold.name == name) return threshold.value;
  }
  std::abort();
}

}  // namespace hetero::insight
