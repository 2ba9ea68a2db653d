#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "operator/kube/cluster_access.h"
#include "operator/kube/rest_transport.h"
#include "tests/integration/kube/scripted_server.h"

namespace hetero::kube {

// A credential that a test changes.
class TestCredentials : public CredentialSource {
 public:
  explicit TestCredentials(Credential credential) : credential_(std::move(credential)) {}

  absl::StatusOr<Credential> Get(bool refresh) override {
    std::lock_guard lock(mutex_);
    if (refresh) {
      ++refreshes_;
      if (after_refresh_ != nullptr) credential_ = *after_refresh_;
    }
    return credential_;
  }
  void Set(Credential credential) {
    std::lock_guard lock(mutex_);
    credential_ = std::move(credential);
  }
  // What the next refresh brings.
  void SetAfterRefresh(Credential credential) {
    std::lock_guard lock(mutex_);
    after_refresh_ = std::make_unique<Credential>(std::move(credential));
  }
  int refreshes() const {
    std::lock_guard lock(mutex_);
    return refreshes_;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  Credential credential_;
  std::unique_ptr<Credential> after_refresh_;
  int refreshes_ = 0;
};

inline ClusterAccess AccessTo(const ScriptedServer& server,
                              std::shared_ptr<CredentialSource> credentials = nullptr) {
  return {.server = server.url(), .ca_pem = server.ca_pem(), .credentials = std::move(credentials)};
}

// In a process like the operator's, whose connections do not load the system's authorities.
inline std::unique_ptr<Transport> TransportTo(ClusterAccess access) {
  KeepSystemAuthoritiesFromCpprest();
  absl::StatusOr<std::unique_ptr<Transport>> transport = MakeRestTransport(std::move(access));
  EXPECT_TRUE(transport.ok()) << transport.status();
  return *std::move(transport);
}

inline std::unique_ptr<Transport> TransportTo(const ScriptedServer& server) {
  return TransportTo(AccessTo(server));
}

}  // namespace hetero::kube
