#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/insight/figures.h"
#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/wording.h"

namespace hetero::insight {
namespace {

constexpr int64_t kMostTimes = 1000;

// Of something that is done now and then: by how many times it has to be rarer.
struct Share {
  double percent = 0;  // of the training
  bool found = false;
  int64_t rarer = 1;
};

Share ShareOfTraining(const Reading& reading, double seconds, int64_t count, const Limits& limits) {
  const double all = reading.job().train_seconds;
  // What was done once says little about the rest, unless there is none.
  const double enough = reading.complete() ? 1 : limits("count");
  if (seconds <= 0 || all < seconds || static_cast<double>(count) < enough) return {};
  Share share{.percent = 100 * seconds / all};
  share.found = share.percent >= limits("sharePercent");
  // Rarer by r: seconds / r against the same time of steps. Half the threshold is aimed at.
  const double aim = std::max(limits("sharePercent") / 2, 0.1) / 100;
  const double work = all - seconds;
  const double rarer = work > 0 ? seconds / work * (1 - aim) / aim : kMostTimes;
  share.rarer = static_cast<int64_t>(std::clamp<double>(std::ceil(rarer), 2, kMostTimes));
  return share;
}

}  // namespace

Findings JudgeMaxInitializationTime(const Reading& reading, const Limits& limits) {
  const double startup = reading.job().startup_seconds;
  const double most = limits("minutes") * kSecondsPerMinute;
  if (startup <= 0 || startup <= most) return {};
  const bool begun = reading.job().steps > reading.job().first_step;
  return {
      {.message = absl::StrCat(begun ? "the first step was completed " : "no step is completed ",
                               DurationText(startup), " after the job was created"),
       .remedy = "look at the events for what was waited for (nodes, images, quota); let nodes "
                 "have the images before, give dataset.index.uri for large shards, and set "
                 "runPolicy.startupDeadlineSeconds so that a job that cannot start ends",
       .field = "runPolicy.startupDeadlineSeconds",
       .seconds = startup - most}};
}

Findings JudgeCheckpointStall(const Reading& reading, const Limits& limits) {
  const JobEvidence& job = reading.job();
  const Share share = ShareOfTraining(reading, job.checkpoint_seconds, job.checkpoints, limits);
  if (!share.found) return {};
  Finding finding = {.message = absl::StrCat(
                         Count(job.checkpoints, "checkpoint"), " took ",
                         DurationText(job.checkpoint_seconds /
                                      std::max<double>(1, static_cast<double>(job.checkpoints))),
                         " each, ", FixedText(share.percent, 0), " % of the training"),
                     .field = "training.checkpoint.everySteps",
                     .seconds = job.checkpoint_seconds};
  if (job.checkpoint_every_seconds) {
    finding.field = "training.checkpoint.everySeconds";
    finding.remedy =
        absl::StrCat("set ", finding.field, " to ",
                     SettingText(*job.checkpoint_every_seconds * static_cast<double>(share.rarer)));
    return {finding};
  }
  // One that is being written puts the next one off, and without either they are written after each
  // epoch: as many steps as lay between two.
  const int64_t between = (job.steps - job.first_step) / std::max<int64_t>(job.checkpoints, 1);
  const int64_t every = std::max({job.checkpoint_every_steps.value_or(1), between, int64_t{1}});
  finding.remedy = absl::StrCat("set ", finding.field, " to ", every * share.rarer,
                                ", or training.checkpoint.uri to a faster store");
  return {finding};
}

Findings JudgeEvaluationShare(const Reading& reading, const Limits& limits) {
  const JobEvidence& job = reading.job();
  const Share share = ShareOfTraining(reading, job.evaluation_seconds, job.evaluations, limits);
  if (!share.found) return {};
  Finding finding = {.message = absl::StrCat(
                         Count(job.evaluations, "evaluation"), " took ",
                         DurationText(job.evaluation_seconds /
                                      std::max<double>(1, static_cast<double>(job.evaluations))),
                         " each, ", FixedText(share.percent, 0), " % of the training"),
                     .seconds = job.evaluation_seconds};
  const bool by_steps = job.evaluation_every_steps.has_value();
  finding.field = by_steps ? "training.evaluation.everySteps" : "training.evaluation.everyEpochs";
  const int64_t every =
      by_steps ? *job.evaluation_every_steps : job.evaluation_every_epochs.value_or(1);
  finding.remedy = absl::StrCat("set ", finding.field, " to ", every * share.rarer);
  return {finding};
}

}  // namespace hetero::insight
