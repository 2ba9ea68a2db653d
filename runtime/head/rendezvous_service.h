#pragma once

#include <atomic>
#include <utility>

#include "hetero/v1/rendezvous.grpc.pb.h"
#include "runtime/head/key_value_store.h"
#include "runtime/head/peer_roles.h"

namespace hetero::head {

// The store over gRPC, for the GPU workers of the job. Waiting calls end with the caller's
// deadline, its cancellation, or Close().
class RendezvousService : public v1::Rendezvous::Service {
 public:
  // Trainers alone meet here.
  explicit RendezvousService(PeerRoles peers) : peers_(std::move(peers)) {}

  // Lets waiting calls notice a deadline or a cancellation; called every tick.
  void Wake() { store_.Wake(); }
  // Ends all waiting calls with UNAVAILABLE, and later ones at once.
  void Close();

  grpc::Status Set(grpc::ServerContext*, const v1::SetRequest*, v1::SetReply*) override;
  grpc::Status Get(grpc::ServerContext*, const v1::GetRequest*, v1::GetReply*) override;
  grpc::Status Wait(grpc::ServerContext*, const v1::WaitRequest*, v1::WaitReply*) override;
  grpc::Status Check(grpc::ServerContext*, const v1::WaitRequest*, v1::CheckReply*) override;
  grpc::Status Add(grpc::ServerContext*, const v1::AddRequest*, v1::AddReply*) override;
  grpc::Status CompareSet(grpc::ServerContext*, const v1::CompareSetRequest*,
                          v1::GetReply*) override;
  grpc::Status Delete(grpc::ServerContext*, const v1::GetRequest*, v1::DeleteReply*) override;
  grpc::Status CountKeys(grpc::ServerContext*, const v1::CountKeysRequest*,
                         v1::CountKeysReply*) override;

 private:
  // PERMISSION_DENIED to everybody else.
  grpc::Status Admit(const grpc::ServerContext* context) const;
  KeyValueStore::GiveUp GiveUpWith(grpc::ServerContext* context) const;
  grpc::Status ToGrpc(const absl::Status& status) const;

  const PeerRoles peers_;
  std::atomic<bool> closed_ = false;
  KeyValueStore store_;
};

}  // namespace hetero::head
