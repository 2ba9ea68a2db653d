#include "operator/page/job_row.h"

#include <algorithm>
#include <chrono>

#include "api/job_words.h"
#include "api/labels.h"
#include "operator/children/names.h"

namespace hetero::jobs_page {
namespace {

using api::ConditionType;

Attention AttentionOf(const api::JobStatus& status, const JobRow& row) {
  if (status.Is(ConditionType::kFailed)) return Attention::kFailed;
  if (status.Is(ConditionType::kSucceeded)) return Attention::kSucceeded;
  if (status.Is(ConditionType::kSuspended)) return Attention::kSuspended;
  if (status.Is(ConditionType::kStalled)) return Attention::kStalled;
  if (!status.Is(ConditionType::kRunning)) return Attention::kWaiting;
  if (row.wait_percent.value_or(0) >= kStarvedPercent) return Attention::kStarved;
  return row.finding && row.finding->active ? Attention::kFound : Attention::kTraining;
}

void FillFigures(const api::JobStatus& status, JobRow& row) {
  if (status.cost) {
    row.dollars = status.cost->dollars;
    row.waiting_dollars = status.cost->waiting_dollars;
  }
  if (!status.progress || status.progress->step <= 0) return;
  const api::JobProgress& progress = *status.progress;
  row.step = progress.step;
  row.total_steps = progress.total_steps;
  row.loss = progress.loss;
  // Rates of a training that does not run are of the past.
  if (!api::ShowsFigures(status) || !status.Is(ConditionType::kRunning)) return;
  row.samples_per_second = progress.samples_per_second;
  row.wait_percent = progress.data_wait_percent;
  if (progress.eta_seconds > 0) row.eta_seconds = progress.eta_seconds;
}

void FillFinding(const api::JobStatus& status, JobRow& row) {
  row.findings = status.findings.size();
  if (status.findings.empty()) return;
  const auto active = std::find_if(status.findings.begin(), status.findings.end(),
                                   [](const api::JobFinding& finding) { return finding.active; });
  row.finding = active != status.findings.end() ? *active : status.findings.front();
}

std::string HeadPodOf(const api::HeteroTrainingJob& job) {
  for (const api::Role& role : job.spec.roles) {
    if (role.type == api::RoleType::kHead) return children::PodName(job.metadata, role.name, 0);
  }
  return "";
}

}  // namespace

JobRow RowOf(const plan::ObservedJob& observed) {
  const api::JobStatus& status = observed.status;
  const api::Metadata& metadata = observed.job.metadata;
  JobRow row{.name_space = metadata.name_space, .name = metadata.name};
  if (observed.created != base::WallTime()) {
    row.created =
        std::chrono::floor<std::chrono::seconds>(observed.created.time_since_epoch()).count();
  }
  row.state = api::StateWordOf(status);
  const auto queue = metadata.labels.find(api::kQueueLabel);
  if (queue != metadata.labels.end()) row.queue = queue->second;
  const api::Condition* const queued = status.Find(ConditionType::kQueued);
  if (queued != nullptr && !row.queue.empty() && !status.finished()) {
    row.queue_state = queued->reason;
  }
  row.note = api::RemarkOn(status, observed.deleting, observed.job.spec.manager());
  if (row.note.empty()) row.note = api::TellingLineOf(status);
  row.registered = status.registered;
  row.attempt = status.attempt;
  row.restarts = status.restarts;
  FillFigures(status, row);
  FillFinding(status, row);
  row.attention = AttentionOf(status, row);
  if (status.Is(ConditionType::kRunning)) row.head_pod = HeadPodOf(observed.job);
  return row;
}

}  // namespace hetero::jobs_page
