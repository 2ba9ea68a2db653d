#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"
#include "base/tls.h"
#include "hetero/v1/membership.pb.h"

// The processes of a job, apart from their main(): what the operator's pods, the local launcher and
// the in-process test cluster all run.
namespace hetero::process {

// Who a process is and where its head is. The launcher and the operator set it in the environment
// (api/process_environment.h).
struct Identity {
  v1::Identity member;
  std::string head_address;  // gRPC target of the head's Join port
  std::string node;          // host name when unset
  std::string host;          // address that peers reach this process at; 127.0.0.1 when unset
  std::string job_uid;       // which certificates are this job's
  base::TlsOptions tls;      // own files; TlsWith() says who may be at the other end
};

// kInvalidArgument names the variable that is missing or malformed.
absl::StatusOr<Identity> IdentityFromEnvironment();

// Which head of which job this process is; empty and 0 where the environment does not say.
struct HeadIdentity {
  std::string job_uid;
  int64_t incarnation = 0;
};
// kInvalidArgument names the variable that is malformed.
absl::StatusOr<HeadIdentity> HeadIdentityFromEnvironment();

// How this process protects its gRPC ports: HETERO_TLS=plain-text, or mutual TLS with the files
// named by HETERO_TLS_CA, HETERO_TLS_CERTIFICATE and HETERO_TLS_KEY. Plain text is never the
// default.
base::TlsOptions TlsFromEnvironment();

// The two ports of a head, with HETERO_JOB_UID: one for members of the job, one for the operator
// alone, whose authority is in the file HETERO_TLS_OPERATOR_CA. kInvalidArgument names the variable
// that is missing.
struct HeadTls {
  base::TlsOptions members;
  base::TlsOptions status;
};
absl::StatusOr<HeadTls> HeadTlsFromEnvironment();

// `own` for a port or a call whose other side is a process of this job with one of `role_types`
// (api/role_type.h).
base::TlsOptions TlsWith(base::TlsOptions own, const std::string& job_uid,
                         std::initializer_list<const char*> role_types);

// Threads for computing: the CPU quota of the cgroup, else the pod's CPU request
// (HETERO_CPU_REQUEST_MILLICORES), else the cores that this process may run on.
int CoresFromEnvironment();

// Where peers reach a port that listens on `bound`: `host` in place of "any address".
std::string AdvertisedAddress(const std::string& bound, const std::string& host);

// "cpu-0": the name of a member in logs, reports and file names.
std::string MemberName(const v1::Identity& identity);

// The Hello of this process, without its address.
v1::Hello MakeHello(const Identity& identity);

}  // namespace hetero::process
