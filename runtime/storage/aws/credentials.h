#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace hetero::storage {

// What AWS, or who speaks its language, knows a caller by. The secrets are in no message or log.
struct AwsCredentials {
  std::string access_key_id;  // empty: anonymous, requests are not signed
  std::string secret_access_key;
  std::string session_token;              // empty: they are no temporary ones
  std::optional<base::WallTime> expires;  // nothing: never

  bool anonymous() const { return access_key_id.empty(); }
};

// One place where credentials may come from. Thread-safe; a call blocks within the deadlines of
// what it asks.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // "the environment", for messages.
  virtual std::string name() const = 0;
  // kNotFound: nothing is set up there, ask the next one. Other errors mean that something is, and
  // does not work: asking on would find somebody else's credentials.
  virtual absl::StatusOr<AwsCredentials> Fetch() = 0;
};

// The value of a variable; empty when it is not set.
using Environment = std::function<std::string(const std::string& name)>;
Environment ProcessEnvironment();

}  // namespace hetero::storage
