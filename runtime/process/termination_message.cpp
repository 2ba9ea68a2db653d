#include "runtime/process/termination_message.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "api/process_environment.h"
#include "base/log.h"
#include "runtime/job/stream_digest.h"

namespace hetero::process {
namespace {

// "gpu-0.1" is a rank of the pod <job>-gpu-0; other names ("head", "launcher") name no pod.
void SetPod(const std::string& member, const std::string& job_name, api::FirstFailure& failure) {
  const std::string process = member.substr(0, member.find('.'));
  const size_t dash = process.rfind('-');
  if (dash == std::string::npos) return;
  int32_t index = 0;
  const char* end = process.data() + process.size();
  const auto parsed = std::from_chars(process.data() + dash + 1, end, index);
  if (parsed.ec != std::errc() || parsed.ptr != end) return;
  failure.role = process.substr(0, dash);
  failure.pod = absl::StrCat(job_name, "-", process);
}

api::JobResult ResultOf(const v1::Result& from) {
  api::JobResult result;
  if (from.has_loss()) result.loss = from.loss();
  if (from.has_accuracy()) result.accuracy = from.accuracy();
  if (from.has_samples_per_second()) result.samples_per_second = from.samples_per_second();
  if (from.has_steps()) result.steps = from.steps();
  result.stream_digest = from.stream_digest();
  if (from.has_cost_dollars()) result.cost_dollars = from.cost_dollars();
  result.report_uri = from.report_uri();
  result.checkpoint_uri = from.checkpoint_uri();
  return result;
}

}  // namespace

std::string TerminationLogFromEnvironment() {
  const char* path = std::getenv(api::environment::kTerminationLog);
  return path != nullptr ? path : "";
}

void WriteTerminationMessage(const std::string& path, const api::Verdict& verdict) {
  if (path.empty()) return;
  std::ofstream file(path, std::ios::trunc);
  file << api::VerdictToJson(verdict);
  file.close();
  if (!file) {
    log::Warning("the termination message could not be written",
                 {{"file", path}, {"reason", std::strerror(errno)}});
  }
}

std::optional<api::Verdict> VerdictOf(const v1::JobStatus& status, const std::string& job_name) {
  const bool succeeded = status.state() == v1::JobStatus::SUCCEEDED;
  if (!succeeded && status.state() != v1::JobStatus::FAILED) return std::nullopt;
  api::Verdict verdict;
  verdict.succeeded = succeeded;
  verdict.message = status.summary();
  verdict.result = ResultOf(status.result());
  if (status.has_first_failure()) {
    const v1::Failure& failure = status.first_failure();
    SetPod(failure.member(), job_name, verdict.failure);
    verdict.failure.message = failure.message();
    if (!succeeded) {
      verdict.message =
          absl::StrCat(failure.member(), failure.member().empty() ? "" : ": ", failure.message());
    }
  }
  return verdict;
}

api::Verdict VerdictOf(const v1::Progress& progress,
                       const std::optional<v1::EvaluationResult>& evaluation) {
  api::Verdict verdict;
  verdict.succeeded = true;
  verdict.message = absl::StrCat("trained ", progress.step(), " steps");
  const bool of_job = progress.digest_covers_job();  // of a rank with a script: its own share
  if (of_job || progress.loss() != 0) verdict.result.loss = progress.loss();
  if (evaluation) verdict.result.accuracy = evaluation->accuracy();
  if (of_job && progress.train_seconds() > 0) {
    verdict.result.samples_per_second =
        static_cast<double>(progress.samples_consumed() - progress.samples_before()) /
        progress.train_seconds();
  }
  verdict.result.steps = progress.step();
  if (of_job) {
    verdict.result.stream_digest =
        job::StreamDigest(progress.digest_high(), progress.digest_low()).ToHex();
  }
  verdict.result.checkpoint_uri = progress.checkpoint_uri();
  return verdict;
}

}  // namespace hetero::process
