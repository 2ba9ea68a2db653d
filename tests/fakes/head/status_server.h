#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "hetero/v1/status.pb.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace hetero::testing {

// The status port of one head: service hetero.v1.Status over gRPC's callback API, without threads
// of its own. Safe from any thread.
class StatusServer {
 public:
  using OnExit = std::function<void(const v1::ExitReport&)>;
  // `on_exit` is called from gRPC's threads. The error names the address.
  static absl::StatusOr<std::unique_ptr<StatusServer>> Start(
      const std::string& address, std::shared_ptr<grpc::ServerCredentials> credentials,
      OnExit on_exit);
  ~StatusServer();  // breaks all streams

  // To all watchers and to those who come later; `last` ends the streams.
  void Publish(const v1::JobStatus& status, bool last);
  // Breaks the streams that are open.
  void Disconnect();
  int watchers() const;

 private:
  struct Impl;
  explicit StatusServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::testing
