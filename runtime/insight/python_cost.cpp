#include "runtime/insight/python_cost.h"

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"

namespace hetero::insight {

std::vector<std::string> PythonCosts(const Report& report) {
  double all = 0;
  for (const ReportPlacement& entry : report.placement) {
    if (entry.where != "Trainer") all += entry.worker_seconds.value_or(0);
  }
  std::vector<std::string> sentences;
  for (const ReportPlacement& entry : report.placement) {
    if (!entry.python_seconds || !entry.worker_seconds || !(*entry.worker_seconds > 0)) continue;
    sentences.push_back(absl::StrCat(
        entry.function, ": ", DurationText(*entry.worker_seconds), " of the pipeline's ",
        DurationText(all), " of CPU per sample (", PercentText(100 * *entry.worker_seconds / all),
        "), ", DurationText(*entry.worker_seconds - *entry.python_seconds),
        " of it on the way to Python; a native operator would save at most this"));
  }
  return sentences;
}

}  // namespace hetero::insight
