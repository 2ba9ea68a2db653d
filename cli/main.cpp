#include <unistd.h>

#include <functional>
#include <iostream>

#include "base/log.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "operator/kube/rest_transport.h"

// kubectl-hetero: `kubectl hetero ...` once it is on the PATH.
namespace hetero::cli {
namespace {

// How long a call to the API server may still take after Ctrl-C.
constexpr std::chrono::milliseconds kGrace{300};
// The same for a verb that has a pod to delete first.
constexpr std::chrono::seconds kReportGrace{15};

absl::StatusOr<int> Run(const Options& options, base::Clock& clock, std::stop_token stop) {
  if (options.verb == Verb::kValidate) return Validate(options, clock);
  auto cluster = Cluster::Connect(options, clock);
  if (!cluster.ok()) return cluster.status();
  switch (options.verb) {
    case Verb::kList:
      return List(**cluster, options, clock, stop);
    case Verb::kTop:
      return Top(**cluster, options, clock, stop);
    case Verb::kCost:
      return Cost(**cluster, options, clock, stop);
    case Verb::kStatus:
      return FollowStatus(**cluster, options, clock, stop);
    case Verb::kLogs:
      return Logs(**cluster, options, clock, stop);
    case Verb::kSuspend:
      return SetSuspend(**cluster, options, true);
    case Verb::kResume:
      return SetSuspend(**cluster, options, false);
    case Verb::kReport:
      return Report(**cluster, options, clock, stop);
    case Verb::kValidate:
      break;
  }
  return kExitUsage;
}

}  // namespace
}  // namespace hetero::cli

int main(int argc, char** argv) {
  using namespace hetero;
  cli::Options options;
  if (const auto code = cli::ParseOptions(argc, argv, std::cout, std::cerr, options)) return *code;
  log::Init("kubectl-hetero", log::Level::kWarning);
  kube::KeepSystemAuthoritiesFromCpprest();
  base::SignalStop signals;
  std::stop_source done;
  const base::Duration grace = options.verb == cli::Verb::kReport
                                   ? base::Duration(cli::kReportGrace)
                                   : base::Duration(cli::kGrace);
  const std::stop_callback<std::function<void()>> give_up(signals.first(), [&done, grace] {
    if (!base::Clock::Real().SleepFor(grace, done.get_token())) return;
    cli::Terminal::Restore();
    _exit(cli::kExitInterrupted);
  });
  const auto code = cli::Run(options, base::Clock::Real(), signals.first());
  done.request_stop();
  if (signals.first().stop_requested()) return cli::kExitInterrupted;
  if (code.ok()) return *code;
  std::cerr << "error: " << code.status().message() << "\n";
  return cli::kExitFailed;
}
