#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/tls.h"
#include "hetero/v1/membership.pb.h"

// The processes of a job, apart from their main(): what the operator's pods, the local launcher and
// the in-process test cluster all run.
namespace hetero::process {

// Who a process is and where its head is. The launcher and the operator set it in the environment:
// HETERO_ROLE, HETERO_ROLE_TYPE, HETERO_INDEX, HETERO_ATTEMPT, HETERO_INCARNATION,
// HETERO_HEAD_ADDRESS, HETERO_NODE_NAME, HETERO_POD_IP.
struct Identity {
  v1::Identity member;
  std::string head_address;  // gRPC target of the head's Join port
  std::string node;          // host name when unset
  std::string host;          // address that peers reach this process at; 127.0.0.1 when unset
  base::TlsOptions tls;
};

// kInvalidArgument names the variable that is missing or malformed.
absl::StatusOr<Identity> IdentityFromEnvironment();

// How this process protects its gRPC ports: HETERO_TLS=plain-text, or mutual TLS with the files
// named by HETERO_TLS_CA, HETERO_TLS_CERTIFICATE and HETERO_TLS_KEY. Plain text is never the
// default.
base::TlsOptions TlsFromEnvironment();

// "cpu-0": the name of a member in logs, reports and file names.
std::string MemberName(const v1::Identity& identity);

// The Hello of this process, without its address.
v1::Hello MakeHello(const Identity& identity);

}  // namespace hetero::process
