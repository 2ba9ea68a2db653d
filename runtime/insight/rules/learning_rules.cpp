#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/statistics.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

// Of one end of the curve: a fifth of its points.
double MeanOfEnd(const std::vector<LossEvidence>& losses, bool last) {
  const size_t count = std::max<size_t>(1, losses.size() / 5);
  const size_t begin = last ? losses.size() - count : 0;
  std::vector<double> values;
  for (size_t i = begin; i < begin + count; ++i) values.push_back(losses[i].loss);
  return Mean(values);
}

bool AllFinite(const std::vector<LossEvidence>& losses) {
  return std::all_of(losses.begin(), losses.end(),
                     [](const LossEvidence& point) { return std::isfinite(point.loss); });
}

std::string LowerLearningRate(const JobEvidence& job, const std::string& otherwise) {
  constexpr double kTimes = 10, kLargest = 0.1;
  if (!job.learning_rate)
    return "lower the learning rate in the program of training.script.command";
  return absl::StrCat("set training.optimizer.learningRate to ",
                      SettingText(std::min(*job.learning_rate / kTimes, kLargest)), otherwise);
}

}  // namespace

Findings JudgeLearningNotMoving(const Reading& reading, const Limits& limits) {
  constexpr size_t kFewestPoints = 10;
  const JobEvidence& job = reading.job();
  // One that goes on from earlier steps may have learnt all that there is.
  if (job.first_step > 0 || job.losses.size() < kFewestPoints || !AllFinite(job.losses)) return {};
  const int64_t steps = job.losses.back().step - job.losses.front().step;
  if (static_cast<double>(steps) < limits("steps")) return {};
  const double first = MeanOfEnd(job.losses, false);
  const double last = MeanOfEnd(job.losses, true);
  if (first <= 0 || 100 * (first - last) >= limits("improvementPercent") * first) return {};
  return {{.message = absl::StrCat("after ", CountText(steps), " steps the loss is ",
                                   NumberText(last), " and began at ", NumberText(first)),
           .remedy = job.learning_rate == 0
                         ? "set training.optimizer.learningRate to 0.01: it is 0, so that no step "
                           "changes anything"
                         : LowerLearningRate(
                               job,
                               "; if the loss stays, look at dataset.fields.label and pipeline, "
                               "whether pictures and labels still belong together"),
           .field = job.script ? "training.script" : "training.optimizer.learningRate",
           .seconds = job.train_seconds}};
}

Findings JudgeLossNotFinite(const Reading& reading, const Limits& limits) {
  const JobEvidence& job = reading.job();
  const int64_t steps = job.steps - job.first_step;
  // One that is a number again may go on.
  const auto broken = std::find_if(job.losses.rbegin(), job.losses.rend(), [](const auto& point) {
                        return std::isfinite(point.loss);
                      }).base();
  const auto count = job.losses.end() - broken;
  Finding finding = {
      .remedy = LowerLearningRate(job,
                                  ", training.gradientClipNorm to 1 and, if this is not "
                                  "enough, training.precision to FP32"),
      .field = job.script ? "training.script" : "training.optimizer.learningRate"};
  if (count > 0 && static_cast<double>(count) >= limits("points")) {
    const double after = static_cast<double>(std::max<int64_t>(0, job.steps - broken->step + 1));
    finding.message = absl::StrCat("the loss is not finite since step ", CountText(broken->step));
    if (steps > 0) {
      finding.seconds = job.train_seconds * std::min(1.0, after / static_cast<double>(steps));
    }
    return {finding};
  }
  const auto skipped = static_cast<double>(job.skipped_steps);
  if (steps <= 0 || skipped <= 0 ||
      100 * skipped < limits("skippedPercent") * static_cast<double>(steps)) {
    return {};
  }
  const double share = std::min(1.0, skipped / static_cast<double>(steps));
  finding.message = absl::StrCat(CountText(job.skipped_steps), " of ", CountText(steps), " steps (",
                                 PercentText(100 * share),
                                 ") changed nothing, because gradients were not finite");
  finding.seconds = job.train_seconds * share;
  return {finding};
}

}  // namespace hetero::insight
