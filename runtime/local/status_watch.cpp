#include "runtime/local/status_watch.h"

#include <grpcpp/grpcpp.h>

#include <utility>

namespace hetero::local {
namespace {

constexpr base::Duration kRedial = std::chrono::milliseconds(50);
constexpr base::Duration kRequestTimeout = std::chrono::seconds(1);

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

StatusWatch::StatusWatch(const std::string& head_address, const base::TlsOptions& tls,
                         base::Clock& clock)
    : clock_(clock) {
  auto credentials = base::MakeChannelCredentials(tls);
  if (!credentials.ok()) return;  // latest() stays empty and requests fail
  grpc::ChannelArguments arguments;
  // The head needs a moment to bind; gRPC's own backoff would add seconds to the start.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  stub_ = v1::Status::NewStub(grpc::CreateCustomChannel(head_address, *credentials, arguments));
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

StatusWatch::~StatusWatch() = default;

void StatusWatch::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    grpc::ClientContext context;
    std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    auto reader = stub_->Watch(&context, v1::WatchRequest());
    v1::JobStatus status;
    while (reader->Read(&status)) {
      std::lock_guard lock(mutex_);
      latest_ = status;
    }
    if (reader->Finish().ok()) return;  // the head has said all
    clock_.SleepFor(kRedial, stop);
  }
}

std::optional<v1::JobStatus> StatusWatch::latest() const {
  std::lock_guard lock(mutex_);
  return latest_;
}

absl::Status StatusWatch::RequestStop(const std::string& reason) {
  if (stub_ == nullptr) return absl::UnavailableError("no connection to the head");
  grpc::ClientContext context;
  context.set_deadline(clock_.WallNow() + kRequestTimeout);
  v1::StopRequest request;
  request.set_reason(reason);
  v1::StopReply reply;
  return FromGrpc(stub_->Stop(&context, request, &reply));
}

absl::Status StatusWatch::ReportExit(const v1::ExitReport& report) {
  if (stub_ == nullptr) return absl::UnavailableError("no connection to the head");
  grpc::ClientContext context;
  context.set_deadline(clock_.WallNow() + kRequestTimeout);
  v1::ExitReply reply;
  return FromGrpc(stub_->ReportExit(&context, report, &reply));
}

}  // namespace hetero::local
