// What members cost the head's decisions: CPU time for a second of a job in which each says one
// heartbeat, without what the connections cost. Members and their words are played
// (tests/integration/page/played_job.h), and what it takes to play them is in it.
//   head_bench [SECONDS]
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "tests/integration/page/played_job.h"

namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000;
}

}  // namespace

int main(int count, char** arguments) {
  const int seconds = count > 1 ? std::atoi(arguments[1]) : 20;
  std::printf("head, one heartbeat a second of each member\n");
  std::printf("  CPU workers  members  core share  us a heartbeat  peak MB so far\n");
  // With a node of eight ranks for each thirty workers.
  for (const int workers : {100, 500, 1580}) {
    hetero::played::PlayedJob job(workers);
    job.PlaySeconds(5);
    const double before = CpuSeconds();
    job.PlaySeconds(seconds);
    const double share = (CpuSeconds() - before) / seconds;
    const auto members = static_cast<int>(job.status().members_size());
    std::printf("  %11d  %7d  %10.3f  %14.1f  %14.0f\n", workers, members, share,
                1e6 * share / members, Megabytes());
    std::fflush(stdout);
  }
  return 0;
}
