#pragma once

#include <optional>
#include <string>

#include "tests/integration/storage/server_process.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {

// Python's http.server with TLS and ranges (web_server.py). Ends with this object.
class WebServer {
 public:
  // Serves `folder`, links in it too. Throws when it does not begin within 20 s.
  explicit WebServer(const std::string& folder);

  std::string url() const { return "https://127.0.0.1:" + port_; }
  // The PEM file of its authority.
  std::string ca_bundle() const { return folder_ / "ca.pem"; }

 private:
  testing::TemporaryFolder folder_;
  std::string port_;
  std::optional<ServerProcess> process_;
};

}  // namespace hetero::storage
