#include "runtime/local/status_watch.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/status_macros.h"

namespace hetero::local {
namespace {

constexpr base::Duration kRedial = std::chrono::milliseconds(50);
constexpr base::Duration kRequestTimeout = std::chrono::seconds(1);

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

StatusWatch::StatusWatch(std::string head_address, base::TlsOptions tls, base::Clock& clock)
    : head_address_(std::move(head_address)), tls_(std::move(tls)), clock_(clock) {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

StatusWatch::~StatusWatch() = default;

absl::StatusOr<std::unique_ptr<v1::Status::Stub>> StatusWatch::Dial() const {
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                          base::MakeChannelCredentials(tls_));
  // A channel that failed to connect waits for seconds before it tries again; a new one does not,
  // unless it shares the connection attempts of the old.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Status::NewStub(grpc::CreateCustomChannel(head_address_, credentials, arguments));
}

void StatusWatch::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const absl::StatusOr<std::unique_ptr<v1::Status::Stub>> stub = Dial();
    if (!stub.ok()) return;  // latest() stays empty and requests fail
    grpc::ClientContext context;
    std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    auto reader = (*stub)->Watch(&context, v1::WatchRequest());
    v1::JobStatus status;
    while (reader->Read(&status)) {
      const base::MutexLock lock(mutex_);
      latest_ = status;
    }
    if (reader->Finish().ok()) return;  // the head has said all
    clock_.SleepFor(kRedial, stop);
  }
}

std::optional<v1::JobStatus> StatusWatch::latest() const {
  const base::MutexLock lock(mutex_);
  return latest_;
}

absl::Status StatusWatch::RequestStop(const std::string& reason, const std::string& failure) {
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<v1::Status::Stub> stub, Dial());
  grpc::ClientContext context;
  context.set_deadline(clock_.WallNow() + kRequestTimeout);
  v1::StopRequest request;
  request.set_reason(reason);
  request.set_failure(failure);
  v1::StopReply reply;
  return FromGrpc(stub->Stop(&context, request, &reply));
}

absl::Status StatusWatch::ReportExit(const v1::ExitReport& report) {
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<v1::Status::Stub> stub, Dial());
  grpc::ClientContext context;
  context.set_deadline(clock_.WallNow() + kRequestTimeout);
  v1::ExitReply reply;
  return FromGrpc(stub->ReportExit(&context, report, &reply));
}

}  // namespace hetero::local
