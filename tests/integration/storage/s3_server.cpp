#include "tests/integration/storage/s3_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/paths.h"
#include "tests/unit/base/test_certificates.h"

namespace hetero::storage {
namespace {

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error("not an IPv4 address: " + host);
  }
  return address;
}

// One that was free a moment ago.
int FreePort(const std::string& host) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = AddressOf(host, 0);
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

bool Answers(const std::string& host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = AddressOf(host, port);
  const bool open = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return open;
}

std::string Program() {
  const char* deps = std::getenv("HETERO_STORAGE_DEPS");
  const std::string folder = deps == nullptr ? testing::SourceDir() + "/.deps/storage" : deps;
  return folder + "/bin/versitygw";
}

}  // namespace

S3Server::S3Server(bool tls, std::string key, std::string secret, std::string host)
    : tls_(tls),
      key_(std::move(key)),
      secret_(std::move(secret)),
      host_(std::move(host)),
      port_(FreePort(host_)) {
  if (access(Program().c_str(), X_OK) != 0) {
    throw std::runtime_error(Program() +
                             " is not there: run tests/integration/storage/server/build");
  }
  const std::string buckets = folder_ / "buckets";
  std::filesystem::create_directories(buckets);
  std::vector<std::string> words = {Program(), "--port",       address(), "--access",
                                    key_,      "--secret",     secret_,   "--region",
                                    kRegion,   "--keep-alive", "--quiet"};
  const auto add = [&words](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  add({"--virtual-domain", "localhost:" + port()});
  if (tls_) {
    const base::TestAuthority authority;
    const base::TestAuthority::Leaf leaf = authority.Issue("server");
    folder_.Write("ca.pem", authority.certificate_pem());
    add({"--cert", folder_.Write("server.pem", leaf.certificate_pem)});
    add({"--key", folder_.Write("server.key", leaf.key_pem)});
  }
  add({"posix"});
  if (setxattr(buckets.c_str(), "user.test", "", 0, 0) != 0) {
    // Where files cannot have attributes, versions lie in a folder beside the buckets, and
    // conditions are not atomic.
    std::filesystem::create_directories(folder_ / "metadata");
    add({"--sidecar", folder_ / "metadata"});
  }
  add({buckets});
  process_.emplace(words, folder_ / "log", [this] { return Answers(host_, port_); });
}

void S3Server::MakeBucket(const std::string& name) const {
  std::filesystem::create_directories(folder_ / ("buckets/" + name));
}

void S3Server::RemoveBucket(const std::string& name) const {
  std::filesystem::remove_all(folder_ / ("buckets/" + name));
}

StoreOptions S3Server::Options() const {
  StoreOptions options;
  options.endpoint = endpoint();
  options.region = kRegion;
  if (tls_) options.ca_bundle = ca_bundle();
  options.environment = KeysOnly(key_, secret_);
  return options;
}

Environment KeysOnly(const std::string& key, const std::string& secret) {
  return [key, secret](const std::string& name) -> std::string {
    if (name == "AWS_ACCESS_KEY_ID") return key;
    if (name == "AWS_SECRET_ACCESS_KEY") return secret;
    return "";
  };
}

}  // namespace hetero::storage
