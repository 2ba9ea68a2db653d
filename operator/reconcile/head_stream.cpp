#include "operator/reconcile/head_stream.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "api/role_type.h"
#include "base/status_macros.h"
#include "base/tls.h"
#include "operator/plan/disruption.h"

namespace hetero::reconcile {
namespace {

constexpr int kKeepaliveTimeMs = 10'000;  // a head that vanished sends no RST
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kReadChunkBytes = 1024;
constexpr int kCallTimeoutMs = 5'000;
constexpr int kConnectTimeoutMs = 5'000;

// A service address needs no name resolution.
std::string DialledName(const std::string& address) {
  const bool ipv4 = address.find_first_not_of("0123456789.:") == std::string::npos;
  if (ipv4) return absl::StrCat("ipv4:", address);
  return address.starts_with('[') ? absl::StrCat("ipv6:", address) : address;
}

grpc::ChannelArguments Arguments(int64_t processes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(StatusMessageLimit(processes));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Another head may answer at the same address: connections are never shared or dialled again.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  // There may be a thousand of these, each with little to say.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunkBytes);
  arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 16 * kReadChunkBytes);
  return arguments;
}

v1::ExitReport ToProto(const plan::ReportExit& exit) {
  v1::ExitReport report;
  report.set_role(exit.role);
  report.set_index(exit.index);
  report.set_exit_code(exit.exit_code);
  report.set_signal(exit.signal);
  report.set_message(exit.message);
  report.set_replaced(exit.replaced);
  report.set_incarnation(exit.incarnation);
  return report;
}

// One call beside the stream; kept by its own callback.
template <typename Request, typename Reply>
struct Call {
  std::shared_ptr<HeadStream> stream;
  grpc::ClientContext context;
  Request request;
  Reply reply;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> DialStatusPort(const plan::HeadTarget& target,
                                                              const children::Leaf& leaf) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!target.ca_pem.empty()) {
    HETERO_ASSIGN_OR_RETURN(credentials,
                            base::MakePeerChannelCredentials(
                                {.ca_pem = target.ca_pem,
                                 .certificate_pem = leaf.certificate_pem,
                                 .key_pem = leaf.key_pem,
                                 .allowed_uris = {RoleUri(target.job_uid, api::kHeadType)}}));
  }
  return grpc::CreateCustomChannel(DialledName(target.address), credentials,
                                   Arguments(target.processes));
}

HeadStream::HeadStream(std::shared_ptr<grpc::Channel> channel, base::Clock& clock,
                       int64_t processes, Callbacks callbacks)
    : clock_(clock),
      callbacks_(std::move(callbacks)),
      pacer_(StatusMessageLimit(processes)),
      channel_(std::move(channel)),
      stub_(v1::Status::NewStub(channel_)) {}

std::shared_ptr<HeadStream> HeadStream::Open(std::shared_ptr<grpc::Channel> channel,
                                             base::Clock& clock, int64_t processes,
                                             Callbacks callbacks) {
  std::shared_ptr<HeadStream> stream(
      new HeadStream(std::move(channel), clock, processes, std::move(callbacks)));
  stream->self_ = stream;
  stream->stub_->async()->Watch(&stream->context_, &stream->request_, stream.get());
  stream->StartRead(&stream->message_);
  stream->StartCall();
  return stream;
}

void HeadStream::OnReadDone(bool ok) {
  if (!ok) return;  // OnDone follows
  const base::Duration wait =
      pacer_.Wait(static_cast<int64_t>(message_.ByteSizeLong()), clock_.Now());
  callbacks_.heard(message_);
  message_ = v1::JobStatus();  // some take thirty times the memory of their bytes
  if (wait <= base::Duration::zero()) return StartRead(&message_);
  AddHold();  // with nothing under way the call could end, and no read may begin after that
  callbacks_.later(wait, [self = shared_from_this()] {
    self->StartRead(&self->message_);
    self->RemoveHold();
  });
}

void HeadStream::OnDone(const grpc::Status& status) {
  const auto ended = callbacks_.ended;  // this object may be gone before the call returns
  ended(std::move(self_), status);
}

void HeadStream::ReportExit(
    const plan::ReportExit& exit,
    std::function<void(std::shared_ptr<void> keep, const grpc::Status&)> done) {
  auto call = std::make_shared<Call<v1::ExitReport, v1::ExitReply>>();
  call->stream = shared_from_this();
  call->request = ToProto(exit);
  call->context.set_deadline(gpr_time_from_millis(kCallTimeoutMs, GPR_TIMESPAN));
  auto& started = *call;
  // The callback must not keep the call alive: its last reference would go on gRPC's thread.
  stub_->async()->ReportExit(
      &started.context, &started.request, &started.reply,
      [call = std::move(call), done = std::move(done)](const grpc::Status& status) mutable {
        done(std::move(call), status);
      });
}

void HeadStream::Stop(const plan::StopHead& stop,
                      std::function<void(std::shared_ptr<void> keep, const grpc::Status&)> done) {
  auto call = std::make_shared<Call<v1::StopRequest, v1::StopReply>>();
  call->stream = shared_from_this();
  call->request.set_failure(stop.failure);
  call->request.set_reason(stop.reason);
  call->context.set_deadline(gpr_time_from_millis(kCallTimeoutMs, GPR_TIMESPAN));
  auto& started = *call;
  stub_->async()->Stop(&started.context, &started.request, &started.reply,
                       [call = std::move(call), done = std::move(done)](
                           const grpc::Status& status) mutable { done(std::move(call), status); });
}

void HeadStream::Warn(const plan::WarnHead& warn,
                      std::function<void(std::shared_ptr<void> keep, const grpc::Status&)> done) {
  auto call = std::make_shared<Call<v1::Notices, v1::NoticesReply>>();
  call->stream = shared_from_this();
  for (const plan::MemberNotice& from : warn.notices) {
    v1::Notice& notice = *call->request.add_notices();
    notice.set_role(from.role);
    notice.set_index(from.index);
    notice.set_incarnation(from.incarnation);
    notice.set_sign(from.sign);
    notice.set_may_stay(from.may_stay);
  }
  call->request.set_fingerprint(plan::FingerprintOf(warn.notices));
  call->context.set_deadline(gpr_time_from_millis(kCallTimeoutMs, GPR_TIMESPAN));
  auto& started = *call;
  stub_->async()->Warn(&started.context, &started.request, &started.reply,
                       [call = std::move(call), done = std::move(done)](
                           const grpc::Status& status) mutable { done(std::move(call), status); });
}

}  // namespace hetero::reconcile
