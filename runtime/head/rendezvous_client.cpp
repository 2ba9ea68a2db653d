#include "runtime/head/rendezvous_client.h"

#include <grpcpp/channel.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "hetero/v1/rendezvous.grpc.pb.h"
#include "runtime/head/channel.h"

namespace hetero::head {
namespace {

constexpr base::Duration kCallTimeout = std::chrono::seconds(30);

class GrpcRendezvousClient : public RendezvousClient {
 public:
  GrpcRendezvousClient(const std::string& head_address, int64_t generation,
                       const std::shared_ptr<grpc::Channel>& channel, base::Clock& clock)
      : head_address_(head_address),
        prefix_(absl::StrCat("generation/", generation, "/")),
        stub_(v1::Rendezvous::NewStub(channel)),
        clock_(clock) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    v1::SetRequest request;
    request.set_key(prefix_ + key);
    request.set_value(value);
    v1::SetReply reply;
    return Call(&v1::Rendezvous::Stub::Set, request, reply, kCallTimeout);
  }

  absl::StatusOr<std::string> Get(const std::string& key, base::Duration timeout) override {
    v1::GetRequest request;
    request.set_key(prefix_ + key);
    v1::GetReply reply;
    const absl::Status status = Call(&v1::Rendezvous::Stub::Get, request, reply, timeout);
    if (!status.ok()) return WithKey(status, key);
    return std::move(*reply.mutable_value());
  }

  absl::Status Wait(const std::vector<std::string>& keys, base::Duration timeout) override {
    v1::WaitReply reply;
    const absl::Status status = Call(&v1::Rendezvous::Stub::Wait, MakeWait(keys), reply, timeout);
    return WithKey(status, keys.empty() ? "" : keys.front());
  }

  absl::StatusOr<bool> Check(const std::vector<std::string>& keys) override {
    v1::CheckReply reply;
    const absl::Status status =
        Call(&v1::Rendezvous::Stub::Check, MakeWait(keys), reply, kCallTimeout);
    if (!status.ok()) return status;
    return reply.all_exist();
  }

  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) override {
    v1::AddRequest request;
    request.set_key(prefix_ + key);
    request.set_amount(amount);
    v1::AddReply reply;
    const absl::Status status = Call(&v1::Rendezvous::Stub::Add, request, reply, kCallTimeout);
    if (!status.ok()) return status;
    return reply.value();
  }

  absl::StatusOr<std::string> CompareSet(const std::string& key, const std::string& expected,
                                         const std::string& desired) override {
    v1::CompareSetRequest request;
    request.set_key(prefix_ + key);
    request.set_expected(expected);
    request.set_desired(desired);
    v1::GetReply reply;
    const absl::Status status =
        Call(&v1::Rendezvous::Stub::CompareSet, request, reply, kCallTimeout);
    if (!status.ok()) return status;
    return std::move(*reply.mutable_value());
  }

  absl::StatusOr<bool> Delete(const std::string& key) override {
    v1::GetRequest request;
    request.set_key(prefix_ + key);
    v1::DeleteReply reply;
    const absl::Status status = Call(&v1::Rendezvous::Stub::Delete, request, reply, kCallTimeout);
    if (!status.ok()) return status;
    return reply.deleted();
  }

  absl::StatusOr<int64_t> CountKeys() override {
    v1::CountKeysReply reply;
    const absl::Status status =
        Call(&v1::Rendezvous::Stub::CountKeys, v1::CountKeysRequest(), reply, kCallTimeout);
    if (!status.ok()) return status;
    return reply.count();
  }

 private:
  template <typename Request, typename Reply>
  absl::Status Call(grpc::Status (v1::Rendezvous::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Reply*),
                    const Request& request, Reply& reply, base::Duration timeout) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);  // a head that is being replaced is back soon
    context.set_deadline(clock_.WallNow() +
                         std::chrono::duration_cast<base::WallTime::duration>(timeout));
    return ToAbsl((stub_.get()->*method)(&context, request, &reply), head_address_);
  }

  static absl::Status WithKey(const absl::Status& status, const std::string& key) {
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat("waiting for key '", key, "': ", status.message()));
  }

  v1::WaitRequest MakeWait(const std::vector<std::string>& keys) const {
    v1::WaitRequest request;
    for (const std::string& key : keys) request.add_keys(prefix_ + key);
    return request;
  }

  const std::string head_address_;
  const std::string prefix_;
  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  base::Clock& clock_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RendezvousClient>> RendezvousClient::Connect(
    const std::string& head_address, const base::TlsOptions& tls, int64_t generation,
    base::Clock& clock) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = DialHead(head_address, tls);
  if (!channel.ok()) return channel.status();
  return std::make_unique<GrpcRendezvousClient>(head_address, generation, *channel, clock);
}

}  // namespace hetero::head
