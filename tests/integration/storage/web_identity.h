#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tests/integration/kube/scripted_server.h"

// Stand-ins for AWS where a pod gets keys for the token of its service account. The real server of
// these tests takes no temporary keys (s3_server.h): it refuses every session token.
namespace hetero::storage {

// Stands in for STS: keys for a role, to one account, by a token for AWS. Thread-safe.
class TokenService {
 public:
  static constexpr char kAudience[] = "sts.amazonaws.com";
  static constexpr char kRole[] = "arn:aws:iam::123456789012:role/reader";

  struct Owner {
    std::string account;
    std::string pod;  // empty: the token is no pod's
  };
  // Whose token it is; nothing: nobody's, or not for this audience. Called on several threads.
  using Review =
      std::function<std::optional<Owner>(const std::string& token, const std::string& audience)>;
  struct Options {
    std::string host = "127.0.0.1";  // an IPv4 address of this machine
    std::string account;             // who may have the role
    Review review;
    base::Duration lifetime = std::chrono::hours(1);
    // All keys that were given so far end, once, when this many requests were made with keys; 0:
    // they end with their lifetime alone.
    int end_after_uses = 0;
  };
  explicit TokenService(Options options);

  std::string url() const { return server_.url(); }
  // STS's status and text for who shows this token and asks for this role.
  std::pair<int, std::string> AssumeRole(const std::string& token, const std::string& role);
  // Tokens with which somebody who is known was here.
  std::set<std::string> tokens() const;
  // Pods that were given keys.
  std::set<std::string> pods() const;
  // The pod has used keys that it was given after its first ones had ended.
  bool OutlivedItsKeys(const std::string& pod) const;
  // How often it was given keys.
  int64_t GrantsOf(const std::string& pod) const;
  // Their pods, and how often their keys were used, for a failed test.
  std::string Describe() const;

  enum class Keys { kGood, kEnded, kUnknown };
  // A request was made with the keys that came with this session token.
  Keys Use(const std::string& session_token);

 private:
  struct Grant {
    std::string pod;
    base::WallTime given, end;
    int uses = 0;
  };

  void Answer(const kube::ScriptedServer::Request& request,
              kube::ScriptedServer::Connection& connection);

  const Options options_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Grant> grants_;
  std::set<std::string> tokens_;
  int uses_ = 0;
  kube::ScriptedServer server_;
};

// Stands in for S3: the bucket `bucket`, for keys of such a service, in S3Server::kRegion.
// Signatures are not looked at, and there are no uploads in parts. Thread-safe.
class BucketForTemporaryKeys {
 public:
  // `keys` outlives it. `host`: an IPv4 address of this machine.
  explicit BucketForTemporaryKeys(TokenService& keys, const std::string& host = "127.0.0.1");

  std::string url() const { return server_.url(); }
  // Every file of the folder becomes an object `prefix`/name.
  void Fill(const std::string& folder, const std::string& prefix);
  // Empty where there is none.
  std::string Get(const std::string& key) const;
  // Keys of all objects.
  std::vector<std::string> Keys() const;

 private:
  struct Object {
    std::string bytes;
    int version = 0;
  };

  void Answer(const kube::ScriptedServer::Request& request,
              kube::ScriptedServer::Connection& connection);
  void Put(const std::string& key, std::string bytes);
  std::optional<Object> Find(const std::string& key) const;
  std::string List(const std::string& prefix) const;

  TokenService& keys_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Object> objects_;
  int versions_ = 0;
  kube::ScriptedServer server_;
};

}  // namespace hetero::storage
