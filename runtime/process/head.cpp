#include "runtime/process/head.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/strings/numbers.h"
#include "api/process_environment.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "runtime/process/metrics_port.h"
#include "runtime/process/report_page.h"
#include "runtime/process/termination_message.h"

namespace hetero::process {
namespace {

constexpr base::Duration kMetricsInterval = std::chrono::seconds(1);
constexpr int64_t kStatusesToAReport = 5;
// At the top of the heap: for each of thousands of heartbeats a second memory would otherwise go
// back to the kernel and come again.
constexpr int kKeptMemory = 4 << 20;

namespace environment = api::environment;

std::string TextFromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

head::Server::HistoryOptions HeadHistoryFromEnvironment(base::WallTime created) {
  int32_t attempt = 0;
  int64_t incarnation = 0;
  const bool numbered = absl::SimpleAtoi(TextFromEnvironment(environment::kAttempt), &attempt);
  const bool made = absl::SimpleAtoi(TextFromEnvironment(environment::kIncarnation), &incarnation);
  head::Server::HistoryOptions options;
  options.run = TextFromEnvironment(environment::kJobUid);
  options.attempt.number = numbered ? std::max(attempt, 1) : 1;
  options.attempt.began =
      made && incarnation > 0 ? base::WallTime(std::chrono::nanoseconds(incarnation)) : created;
  options.attempt.cause = TextFromEnvironment(environment::kAttemptCause);
  options.text = TextFromEnvironment(environment::kHistory);
  return options;
}

absl::StatusOr<v1::JobStatus> RunHead(
    HeadOptions options, base::Clock& clock, std::stop_token stop,
    const std::function<void(const head::Server&)>& on_listening) {
  mallopt(M_TRIM_THRESHOLD, kKeptMemory);
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<MetricsPort> metrics,
                          MetricsPort::Open(options.metrics_address, clock));
  const std::string job_name = options.server.job.metadata.name;
  double budget = 0;
  if (metrics && absl::SimpleAtod(TextFromEnvironment(environment::kMaxDollars), &budget)) {
    metrics->SetBudget(budget);
  }
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<head::Server> server,
                          head::Server::Start(std::move(options.server), clock));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<ReportPage> page,
                          ReportPage::Open(options.page_address, *server));
  log::Info("listening", {{"address", server->address()}, {"status", server->status_address()}});
  if (on_listening) on_listening(*server);
  std::stop_callback on_stop(stop, [&] {
    if (options.leave_on_stop) {
      server->Leave();
    } else {
      server->Stop("stop requested");
    }
  });
  std::jthread updater;
  if (metrics) {
    updater = std::jthread([&](std::stop_token done) {
      base::SetThreadName("head-metrics");
      int64_t times = 0;
      do {
        metrics->UpdateJob(server->status());
        if (times++ % kStatusesToAReport == 0) metrics->UpdateReport(server->ReportSoFar());
      } while (clock.SleepFor(kMetricsInterval, done));
    });
  }
  const v1::JobStatus status = server->Wait();
  if (page) page->Finish();
  if (const std::optional<api::Verdict> verdict = VerdictOf(status, job_name)) {
    WriteTerminationMessage(TerminationLogFromEnvironment(), *verdict);
  }
  return status;
}

}  // namespace hetero::process
