#include "tests/bench/operator_scale/small_jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>

namespace hetero::bench {
namespace {

constexpr size_t kPods = 4;

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

testing::json SmallJob(const std::string& name_space, const std::string& name) {
  testing::json job =
      testing::MakeJob(name, {{"steps", 10}, {"stepMillis", 20}, {"holdAtStep", 1}}, 2, 1);
  job["metadata"]["namespace"] = name_space;
  return job;
}

void SmallJobs::Apply() {
  static std::atomic<int> number = 0;
  const std::string& name_space = namespaces_[applied_.size() % namespaces_.size()];
  const std::string name = "small-" + std::to_string(number++);
  applied_.push_back({.job = name_space + "/" + name, .at = Clock::now()});
  const auto created = testing::ControlPlane::Get().client().Create(testing::kJobs, name_space,
                                                                    SmallJob(name_space, name));
  EXPECT_TRUE(created.ok()) << created.status().message();
}

bool SmallJobs::Await(std::chrono::seconds deadline) {
  return testing::WaitFor(
      "the small jobs run", [this] { return SecondsToRunning().size() == applied_.size(); },
      deadline);
}

std::vector<double> SmallJobs::SecondsToPods() const {
  std::vector<double> seconds;
  for (const Applied& applied : applied_) {
    if (const auto made = seen_.PodsMade(applied.job, kPods)) {
      seconds.push_back(Seconds(applied.at, *made));
    }
  }
  return seconds;
}

std::vector<double> SmallJobs::SecondsToRunning() const {
  std::vector<double> seconds;
  for (const Applied& applied : applied_) {
    if (const auto runs = seen_.WasTrue(applied.job, "Running")) {
      seconds.push_back(Seconds(applied.at, *runs));
    }
  }
  return seconds;
}

void SmallJobs::Print(const char* what) const {
  const std::vector<double> pods = SecondsToPods();
  const std::vector<double> runs = SecondsToRunning();
  std::printf(
      "%s: %zu jobs of four pods applied meanwhile; pods created after %.2f s (median), at most "
      "%.2f s, of %zu; Running after %.2f s (median), at most %.2f s, of %zu\n",
      what, applied_.size(), Median(pods), Largest(pods), pods.size(), Median(runs), Largest(runs),
      runs.size());
}

}  // namespace hetero::bench
