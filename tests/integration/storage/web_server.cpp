#include "tests/integration/storage/web_server.h"

#include <filesystem>
#include <vector>

#include "tests/support/paths.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::storage {

WebServer::WebServer(const std::string& folder) {
  const base::TestAuthority authority;
  const base::TestAuthority::Leaf leaf = authority.Issue("server");
  folder_.Write("ca.pem", authority.certificate_pem());
  const std::string certificate = folder_.Write("server.pem", leaf.certificate_pem);
  const std::string key = folder_.Write("server.key", leaf.key_pem);
  const std::string port_file = folder_ / "port";
  process_.emplace(
      std::vector<std::string>{"python3",
                               testing::SourceDir() + "/tests/integration/storage/web_server.py",
                               folder, certificate, key, port_file},
      folder_ / "log", [&] { return std::filesystem::exists(port_file); });
  port_ = testing::ReadFileOrDie(port_file);
}

}  // namespace hetero::storage
