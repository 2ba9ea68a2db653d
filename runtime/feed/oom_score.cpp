#include "runtime/feed/oom_score.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string_view>

namespace hetero::feed {

void EndThisProcessFirst() {
  const bool non_dumpable = prctl(PR_GET_DUMPABLE) == 0;
  if (non_dumpable) prctl(PR_SET_DUMPABLE, 1);
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (non_dumpable) prctl(PR_SET_DUMPABLE, 0);
  if (score < 0) return;
  constexpr std::string_view kFirst = "1000";
  [[maybe_unused]] const ssize_t written = write(score, kFirst.data(), kFirst.size());
  close(score);
}

}  // namespace hetero::feed
