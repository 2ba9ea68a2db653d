#include "runtime/process/role_process.h"

#include <cstdio>

#include "base/grpc_lifetime.h"
#include "base/grpc_log.h"
#include "base/log.h"
#include "base/recent_lines.h"
#include "base/status_macros.h"
#include "runtime/process/file_limit.h"
#include "runtime/process/parent.h"

namespace hetero::process {

RoleProcess::RoleProcess() { DieWithParent(); }

void RoleProcess::SetUp(const std::string& name) {
  base::KeepGrpcInitialized();
  base::SendGrpcLogToOurs(base::GrpcLines::kOfServer);
  RaiseFileLimit();
  log::Init(name);
}

absl::StatusOr<Identity> RoleProcess::SetUpMember() {
  HETERO_ASSIGN_OR_RETURN(Identity identity, IdentityFromEnvironment());
  SetUp(MemberName(identity.member));
  return identity;
}

void PrintLine(const std::string& line) {
  log::LinesOfThisProcess().Add(line);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace hetero::process
