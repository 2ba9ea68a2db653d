#include "runtime/process/identity.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "api/peer_uri.h"
#include "api/process_environment.h"
#include "api/role_type.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "runtime/handshake/build.h"

namespace hetero::process {
namespace {

namespace environment = api::environment;
std::string Variable(const char* name, std::string fallback = "") {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

template <typename Integer>
absl::Status ReadInteger(const char* name, Integer* out) {
  const std::string text = Variable(name, "0");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, "=\"", text, "\": expected an integer"));
  }
  return absl::OkStatus();
}

absl::Status NoJobUid() {
  return absl::InvalidArgumentError(absl::StrCat(
      environment::kJobUid, " is not set: with TLS it says which certificates are this job's"));
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

}  // namespace

absl::StatusOr<Identity> IdentityFromEnvironment() {
  Identity identity;
  int32_t index = 0, attempt = 0, local_rank = 0;
  int64_t incarnation = 0;
  HETERO_RETURN_IF_ERROR(ReadInteger(environment::kIndex, &index));
  HETERO_RETURN_IF_ERROR(ReadInteger(environment::kAttempt, &attempt));
  HETERO_RETURN_IF_ERROR(ReadInteger(environment::kIncarnation, &incarnation));
  HETERO_RETURN_IF_ERROR(ReadInteger(environment::kLocalRank, &local_rank));
  identity.member.set_role(Variable(environment::kRole));
  identity.member.set_role_type(Variable(environment::kRoleType));
  identity.member.set_index(index);
  identity.member.set_attempt(attempt);
  identity.member.set_local_rank(local_rank);
  identity.member.set_incarnation(incarnation);
  identity.head_address = Variable(environment::kHeadAddress);
  identity.node = Variable(environment::kNodeName, HostName());
  identity.host = Variable(environment::kPodIp, "127.0.0.1");
  identity.job_uid = Variable(environment::kJobUid);
  identity.tls = TlsFromEnvironment();
  for (const char* required : {environment::kRole, environment::kHeadAddress}) {
    if (Variable(required).empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          required,
          " is not set: this program is started by the operator or by `hetero-runtime local`"));
    }
  }
  if (!identity.tls.plain_text && identity.job_uid.empty()) {
    return NoJobUid();
  }
  return identity;
}

absl::StatusOr<HeadIdentity> HeadIdentityFromEnvironment() {
  HeadIdentity identity{.job_uid = Variable(environment::kJobUid)};
  HETERO_RETURN_IF_ERROR(ReadInteger(environment::kIncarnation, &identity.incarnation));
  return identity;
}

base::TlsOptions TlsFromEnvironment() {
  return {.plain_text = Variable(environment::kTls) == environment::kPlainText,
          .ca_file = Variable(environment::kTlsCa),
          .certificate_file = Variable(environment::kTlsCertificate),
          .key_file = Variable(environment::kTlsKey)};
}

absl::StatusOr<HeadTls> HeadTlsFromEnvironment() {
  const base::TlsOptions own = TlsFromEnvironment();
  if (own.plain_text) return HeadTls{own, own};
  const std::string job_uid = Variable(environment::kJobUid);
  HeadTls tls{TlsWith(own, job_uid, {api::kCpuWorkerType, api::kGpuWorkerType}), own};
  tls.status.ca_file = Variable(environment::kTlsOperatorCa);
  tls.status.peer_uris = {api::kOperatorUri};
  if (job_uid.empty()) return NoJobUid();
  if (tls.status.ca_file.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        environment::kTlsOperatorCa, " is not set: the status port trusts that authority alone"));
  }
  return tls;
}

base::TlsOptions TlsWith(base::TlsOptions own, const std::string& job_uid,
                         std::initializer_list<const char*> role_types) {
  for (const char* type : role_types) own.peer_uris.push_back(api::RoleUri(job_uid, type));
  return own;
}

int CoresFromEnvironment() {
  const int usable = base::UsableCores();
  int64_t millicores = 0;
  // Without a request Kubernetes writes 0.
  const bool requested =
      ReadInteger(environment::kCpuRequestMillicores, &millicores).ok() && millicores > 0;
  if (!requested || base::CgroupCpuQuota()) return usable;
  const auto cores = static_cast<int>(std::min<int64_t>((millicores + 999) / 1000, usable));
  return std::max(1, cores);
}

std::string AdvertisedAddress(const std::string& bound, const std::string& host) {
  const size_t colon = bound.rfind(':');
  if (bound.starts_with("unix:") || colon == std::string::npos) return bound;
  const std::string listened = bound.substr(0, colon);
  if (listened != "0.0.0.0" && listened != "[::]") return bound;
  const bool bare_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return absl::StrCat(bare_ipv6 ? "[" : "", host, bare_ipv6 ? "]" : "", bound.substr(colon));
}

std::string MemberName(const v1::Identity& identity) {
  std::string name = absl::StrCat(identity.role(), "-", identity.index());
  if (identity.local_rank() > 0) absl::StrAppend(&name, ".", identity.local_rank());
  return name;
}

v1::Hello MakeHello(const Identity& identity) {
  v1::Hello hello;
  *hello.mutable_identity() = identity.member;
  hello.set_node(identity.node);
  const handshake::Build& build = handshake::ThisBuild();
  hello.set_version(build.version);
  hello.set_commit(build.commit);
  hello.set_protocol(build.protocol);
  hello.set_pid(getpid());
  return hello;
}

}  // namespace hetero::process
