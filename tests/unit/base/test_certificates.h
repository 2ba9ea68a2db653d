#pragma once

#include <string>

namespace hetero::base {

// A certificate authority that exists for one test.
class TestAuthority {
 public:
  struct Leaf {
    std::string certificate_pem;
    std::string key_pem;
  };

  TestAuthority();
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  std::string certificate_pem() const;
  // A certificate for "localhost" and 127.0.0.1, for servers and clients.
  Leaf Issue(const std::string& common_name) const;
  // A certificate for a URI only.
  Leaf IssueForUri(const std::string& uri) const;
  // One that ended a minute ago.
  Leaf IssueExpiredForUri(const std::string& uri) const;

 private:
  Leaf Sign(const std::string& common_name, const std::string& alternative_names,
            long valid_seconds = 3600) const;

  struct Impl;
  Impl* impl_;
};

}  // namespace hetero::base
