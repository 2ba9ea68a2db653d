#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/e2e/support/installation.h"

// Knocks at ports from a pod of its own.
namespace hetero::testing {

// Certificates that a test took or made, in a folder that the intruder's pods see.
class Loot {
 public:
  explicit Loot(const JobNamespace& space) : space_(space) {}
  // As FOLDER/tls.crt and tls.key; returns where a pod of the namespace finds the folder.
  std::string Keep(const std::string& name, const std::string& certificate,
                   const std::string& key) const;
  // The leaf of a role type ("gpuworker") out of the job's Secret; returns as Keep().
  std::string Take(const JobUnderTest& job, const std::string& role_type) const;
  // What the operator shows to heads, and the same as it would be if it had expired a year ago.
  std::string TakeOperators() const;
  std::string MakeExpiredOperators() const;
  // The certificate that heads trust on their status port, PEM.
  static std::string OperatorsAuthority();

 private:
  const JobNamespace& space_;
};

// A pod of the namespace that runs probe/main.cpp. With `job_uid` it bears that job's label, so
// that the job's NetworkPolicy takes it for one of its own: only TLS then stands between it and the
// job.
class Intruder {
 public:
  Intruder(const JobNamespace& space, const std::string& name, const std::string& job_uid = "");
  // First line of what it says, see probe/main.cpp.
  std::string Knock(const std::string& how, const std::string& address, int port,
                    const std::string& more = "") const;
  // "accepted" when there is a connection to all of the ports, "unreachable" when to none.
  std::string Connect(const std::string& address, const std::vector<int>& ports) const;
  bool WaitConnected(const std::string& address, const std::vector<int>& ports) const;
  // Until it says `answer`: the network may not know the newest pods yet.
  bool WaitAnswer(const std::string& answer, const std::string& how, const std::string& address,
                  int port, const std::string& more = "") const;
  // `count` connections that say nothing, until the object is gone.
  std::unique_ptr<BackgroundProgram> Hold(const std::string& address, int port, int count) const;
  const std::string& name_space() const { return name_space_; }
  const std::string& name() const { return name_; }

 private:
  std::string Ask(const std::vector<std::string>& question) const;
  std::string name_space_, name_;
};

// The pod's address now; empty while it has none.
std::string AddressOf(const JobUnderTest& job, const std::string& role, int index);

}  // namespace hetero::testing
