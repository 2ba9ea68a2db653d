#include "runtime/local/attachment.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

namespace hetero::local {

api::HeteroTrainingJob ForOneRank(api::HeteroTrainingJob job) {
  bool first = true;
  std::erase_if(job.spec.roles, [&first](api::Role& role) {
    if (role.type != api::RoleType::kGpuWorker) return false;
    if (!std::exchange(first, false)) return true;
    role.replicas = 1;
    role.gpus_per_replica = 0;
    return false;
  });
  return job;
}

bool NamesTheStream(const std::string& line) { return line.starts_with("{\"socket\": "); }

bool InputEnded(int input) {
  constexpr int kMostReads = 16;  // of somebody who writes without end
  for (int i = 0; i < kMostReads; ++i) {
    pollfd waited{.fd = input, .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, 0) <= 0) return false;
    if ((waited.revents & POLLNVAL) != 0) return true;
    char passed_over[4096];
    const ssize_t count = read(input, passed_over, sizeof passed_over);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return true;
    if (count < 0) return false;
  }
  return false;
}

}  // namespace hetero::local
