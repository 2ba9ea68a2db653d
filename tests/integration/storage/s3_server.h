#pragma once

#include <optional>
#include <string>

#include "runtime/storage/store_options.h"
#include "tests/integration/storage/server_process.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {

// A real S3 server (server/build): versitygw, where a folder is a bucket. Ends with this object.
class S3Server {
 public:
  // As long as AWS's, with what is escaped in places. `without_secrets` reads them here.
  static constexpr char kKey[] = "HETEROTESTSKEYID0001";
  static constexpr char kSecret[] = "hetero/Tests+Secret/Key/0123456789abcdef";
  static constexpr char kWrongSecret[] = "hetero/Wrong+Secret/Key/0123456789abcdef";
  static constexpr char kSessionToken[] = "hetero/Tests+Session/Token/0123456789ABCDEF+/w==";
  // Of somebody else, whom a server takes in their place.
  static constexpr char kOtherKey[] = "OTHERKEYOFHETEROTEST";
  static constexpr char kOtherSecret[] = "hetero/Other+Secret/Key/0123456789abcdef";
  static constexpr char kRegion[] = "eu-test-1";
  static constexpr char kOtherRegion[] = "us-east-1";

  // With `tls` it shows a certificate of an authority of its own. Nobody but the owner of these
  // keys is let in. `host`: an IPv4 address of this machine. Throws when it does not answer within
  // 20 s.
  explicit S3Server(bool tls = false, std::string key = kKey, std::string secret = kSecret,
                    std::string host = "127.0.0.1");

  void MakeBucket(const std::string& name) const;
  // With whatever is in it.
  void RemoveBucket(const std::string& name) const;
  std::string endpoint() const { return (tls_ ? "https://" : "http://") + address(); }
  std::string port() const { return std::to_string(port_); }
  std::string address() const { return host_ + ":" + port(); }
  // The PEM file of its authority; only with `tls`.
  std::string ca_bundle() const { return folder_ / "ca.pem"; }
  // Of a store at this server, with its keys and its authority.
  StoreOptions Options() const;

 private:
  const bool tls_;
  const std::string key_;
  const std::string secret_;
  const std::string host_;
  testing::TemporaryFolder folder_;
  int port_ = 0;
  std::optional<ServerProcess> process_;
};

// An environment in which only these keys are set.
Environment KeysOnly(const std::string& key, const std::string& secret);

}  // namespace hetero::storage
