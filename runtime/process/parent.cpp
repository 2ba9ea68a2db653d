#include "runtime/process/parent.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>

#include "api/process_environment.h"

namespace hetero::process {

void DieWithParent() {
  const char* parent = std::getenv(api::environment::kParentPid);
  if (parent == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != std::atoi(parent)) _exit(1);
}

}  // namespace hetero::process
