#include "runtime/head/rendezvous_service.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "api/role_type.h"
#include "base/refused_peers.h"

namespace hetero::head {

void RendezvousService::Close() {
  closed_ = true;
  store_.Wake();
}

grpc::Status RendezvousService::Admit(const grpc::ServerContext* context) const {
  const std::vector<std::string> shown = peers_.Shown(*context->auth_context());
  const absl::Status allowed =
      peers_.Check(shown, api::kGpuWorkerType, "to use the keys by which trainers meet");
  if (allowed.ok()) return grpc::Status::OK;
  base::ReportRefusedPeer(absl::StrJoin(shown, " and "), std::string(allowed.message()));
  return {grpc::StatusCode::PERMISSION_DENIED, std::string(allowed.message())};
}

KeyValueStore::GiveUp RendezvousService::GiveUpWith(grpc::ServerContext* context) const {
  return [this, context] { return closed_ || context->IsCancelled(); };
}

grpc::Status RendezvousService::ToGrpc(const absl::Status& status) const {
  if (status.ok()) return grpc::Status::OK;
  if (closed_) return {grpc::StatusCode::UNAVAILABLE, "the head is shutting down"};
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

grpc::Status RendezvousService::Set(grpc::ServerContext* context, const v1::SetRequest* request,
                                    v1::SetReply*) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  store_.Set(request->key(), request->value());
  return grpc::Status::OK;
}

grpc::Status RendezvousService::Get(grpc::ServerContext* context, const v1::GetRequest* request,
                                    v1::GetReply* reply) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  absl::StatusOr<std::string> value = store_.Get(request->key(), GiveUpWith(context));
  if (!value.ok()) return ToGrpc(value.status());
  reply->set_value(*std::move(value));
  return grpc::Status::OK;
}

grpc::Status RendezvousService::Wait(grpc::ServerContext* context, const v1::WaitRequest* request,
                                     v1::WaitReply*) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  return ToGrpc(store_.Wait({request->keys().begin(), request->keys().end()}, GiveUpWith(context)));
}

grpc::Status RendezvousService::Check(grpc::ServerContext* context, const v1::WaitRequest* request,
                                      v1::CheckReply* reply) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  reply->set_all_exist(store_.Check({request->keys().begin(), request->keys().end()}));
  return grpc::Status::OK;
}

grpc::Status RendezvousService::Add(grpc::ServerContext* context, const v1::AddRequest* request,
                                    v1::AddReply* reply) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  const absl::StatusOr<int64_t> value = store_.Add(request->key(), request->amount());
  if (value.ok()) reply->set_value(*value);
  return ToGrpc(value.status());
}

grpc::Status RendezvousService::CompareSet(grpc::ServerContext* context,
                                           const v1::CompareSetRequest* request,
                                           v1::GetReply* reply) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  reply->set_value(store_.CompareSet(request->key(), request->expected(), request->desired()));
  return grpc::Status::OK;
}

grpc::Status RendezvousService::Delete(grpc::ServerContext* context, const v1::GetRequest* request,
                                       v1::DeleteReply* reply) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  reply->set_deleted(store_.Delete(request->key()));
  return grpc::Status::OK;
}

grpc::Status RendezvousService::CountKeys(grpc::ServerContext* context, const v1::CountKeysRequest*,
                                          v1::CountKeysReply* reply) {
  if (grpc::Status admitted = Admit(context); !admitted.ok()) return admitted;
  reply->set_count(store_.CountKeys());
  return grpc::Status::OK;
}

}  // namespace hetero::head
