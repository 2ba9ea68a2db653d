#include "runtime/feed/worker_server.h"

#include <grpc/support/time.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/un.h>

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/refused_peers.h"
#include "base/status_macros.h"
#include "runtime/feed/feed_listener.h"
#include "runtime/feed/heap.h"
#include "runtime/feed/ticket_executor.h"
#include "runtime/feed/ticket_intake.h"
#include "runtime/feed/wire/messages.h"
#include "runtime/feed/worker_stream.h"
#include "runtime/handshake/build.h"

namespace hetero::feed {
namespace {

constexpr std::string_view kUnixScheme = "unix:";
constexpr int kUnlimited = -1;
constexpr int kMinPingIntervalMs = 5000;  // trainers ping every 10 s
constexpr int kHandshakeTimeoutMs = 10'000;
constexpr int kMaxRequestBytes = 16 << 20;  // a hundred thousand tickets
constexpr int kWriteBytes = 1 << 20;        // handed to the kernel at once
constexpr int kKeepaliveTimeMs = 10'000;
// A worker's ping waits behind what it has written, several megabytes in the kernel; on a slow link
// they take longer than a trainer's would, which is put off by every byte that comes.
constexpr int kKeepaliveTimeoutMs = 60'000;

// A stream that ends at once, with the reason.
class RefusedStream : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedStream(const absl::Status& reason) {
    Finish({grpc::StatusCode::FAILED_PRECONDITION, std::string(reason.message())});
  }
  void OnDone() override { delete this; }
};

absl::Status CheckTrainer(const grpc::GenericCallbackServerContext* context) {
  const auto& metadata = context->client_metadata();
  const auto told = metadata.find(handshake::kMetadataKey);
  const handshake::Build build =
      told == metadata.end() ? handshake::Build()
                             : handshake::FromMetadata({told->second.data(), told->second.size()});
  absl::Status met =
      handshake::CheckPeers("the trainer", build, "the CPU worker", handshake::ThisBuild());
  if (!met.ok()) {
    base::ReportRefusedPeer(context->peer(), std::string(met.message()));
  }
  return met;
}

class StreamService : public grpc::CallbackGenericService {
 public:
  // All outlive the server; `transports` is complete before the first stream.
  StreamService(TicketIntake* intake, AtomicCounters* counters, const TransportServers& transports)
      : intake_(intake), counters_(counters), transports_(transports) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kStreamMethod) {
      context->AddInitialMetadata(handshake::kMetadataKey,
                                  handshake::ToMetadata(handshake::ThisBuild()));
      const absl::Status met = CheckTrainer(context);
      if (!met.ok()) return new RefusedStream(met);
      return WorkerStream::Open(context->peer(), intake_, counters_, transports_);
    }
    return grpc::CallbackGenericService::CreateReactor(context);
  }

 private:
  TicketIntake* intake_;
  AtomicCounters* counters_;
  const TransportServers& transports_;
};

absl::Status CheckAddress(const std::string& address) {
  std::string_view path = address;
  if (!path.starts_with(kUnixScheme)) return absl::OkStatus();
  path.remove_prefix(kUnixScheme.size());
  if (path.starts_with("//")) path.remove_prefix(2);
  constexpr size_t kLimit = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.size() > kLimit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot listen on ", address, ": the path has ", path.size(),
        " characters, a unix socket allows 1 to ", kLimit, "; choose a shorter directory"));
  }
  return absl::OkStatus();
}

class Impl : public WorkerServer {
 public:
  Impl(const Options& options, base::Clock& clock)
      : clock_(clock),
        executor_({.name = options.name, .threads = options.threads}, clock),
        intake_(&executor_, options.batch_memory_bytes),
        service_(&intake_, &counters_, transports_) {}

  ~Impl() override {
    listener_.reset();
    if (server_ == nullptr) return;
    server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));  // cancels the streams at once
    server_->Wait();
  }

  absl::Status Listen(const Options& options) {
    HETERO_RETURN_IF_ERROR(CheckAddress(options.listen_address));
    HETERO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                            base::MakeServerCredentials(options.tls));
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kMinPingIntervalMs);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
    // A trainer behind a cut network closes no stream; what is queued for it would stay in memory.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, kWriteBytes);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.SetMaxSendMessageSize(kUnlimited);
    builder.RegisterCallbackGenericService(&service_);
    if (options.listen_address.starts_with(kUnixScheme))
      return ListenUnix(options, credentials, &builder);
    return ListenTcp(options, credentials, &builder);
  }

  void SetProducer(const BatchProducer* producer) override { intake_.SetProducer(producer); }
  std::string address() const override { return address_; }
  WorkerCounters counters() const override {
    return {counters_.batches,        counters_.samples,         counters_.bytes,
            executor_.busy_seconds(), counters_.produce_seconds, counters_.read_seconds};
  }

 private:
  using Credentials = std::shared_ptr<grpc::ServerCredentials>;

  void ServeTransports(const Options& options) {
    for (const Transport* transport : options.transports) {
      if (!transport->fits(options.listen_address)) continue;
      auto server = transport->serve({.listen_address = options.listen_address, .clock = clock_});
      if (server != nullptr) transports_.push_back(std::move(server));
    }
  }

  // The trainers are on this host.
  absl::Status ListenUnix(const Options& options, const Credentials& credentials,
                          grpc::ServerBuilder* builder) {
    ServeTransports(options);
    builder->AddListeningPort(options.listen_address, credentials);
    server_ = builder->BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(
          absl::StrCat(options.name, " cannot listen on ", options.listen_address,
                       ": another process has it, or its folder is not there"));
    }
    address_ = options.listen_address;
    return absl::OkStatus();
  }

  absl::Status ListenTcp(const Options& options, const Credentials& credentials,
                         grpc::ServerBuilder* builder) {
    HETERO_ASSIGN_OR_RETURN(listener_, FeedListener::Bind(options.listen_address, clock_));
    acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
    ServeTransports(options);
    server_ = builder->BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(absl::StrCat(options.name, ": gRPC's server does not start"));
    }
    FeedListener::Callbacks callbacks;
    callbacks.to_grpc = [this](int listener, int connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.listener_fd = listener;
      parameters.fd = connection;
      acceptor_->HandleNewConnection(&parameters);
    };
    for (const auto& transport : transports_) {
      if (transport->preamble().empty()) continue;
      callbacks.routes.push_back({transport->preamble(), [&transport = *transport](int connection) {
                                    transport.TakeConnection(connection);
                                  }});
    }
    listener_->Start(std::move(callbacks));
    const std::string& asked = options.listen_address;
    address_ = absl::StrCat(asked.substr(0, asked.rfind(':')), ":", listener_->port());
    return absl::OkStatus();
  }

  base::Clock& clock_;
  AtomicCounters counters_;
  // Destroyed after the executor, which asks them for memory. Their own threads find every stream
  // ended by then, and leave the executor alone.
  TransportServers transports_;
  TicketExecutor executor_;
  TicketIntake intake_;
  StreamService service_;
  std::string address_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<FeedListener> listener_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(Options options,
                                                                  base::Clock& clock) {
  KeepFreedMemory();
  auto server = std::make_unique<Impl>(options, clock);
  HETERO_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

}  // namespace hetero::feed
