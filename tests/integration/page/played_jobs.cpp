#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "operator/page/jobs_port.h"
#include "tests/unit/operator/page/observed_jobs.h"

// played_jobs COUNT [PORT]: serves the operator's page of that many jobs, says where, and
// does what it is told by lines: "step NUMBER", "fail NUMBER", "remove NUMBER", "hostile". Ends
// with its standard input.
namespace hetero::jobs_page {
namespace {

constexpr char kHostile[] = "x\"><img src=x onerror=alert(1)></script>&lt;b&gt;";

class PlayedJobs {
 public:
  explicit PlayedJobs(int count)
      : first_(base::Clock::Real().WallNow() - std::chrono::minutes(count + 5)) {
    for (int number = 0; number < count; ++number) Put(PlayedJob(number));
  }

  void Put(plan::ObservedJob job) {
    job.created += first_ - kCreated;
    job.resource_version = std::to_string(++version_);
    const kube::ObjectKey key{job.job.metadata.name_space, job.job.metadata.name};
    store_.Put(key, std::make_shared<const plan::ObservedJob>(std::move(job)));
  }

  void Do(const std::string& word, int number) {
    plan::ObservedJob job = PlayedJob(number);
    if (word == "remove") {
      store_.Remove({job.job.metadata.name_space, job.job.metadata.name});
      return;
    }
    if (word == "step" && job.status.progress) job.status.progress->step = 500;
    if (word == "fail") {
      job.status.conditions.clear();
      SetTrue(job, api::ConditionType::kFailed, "TrainingFailed", "the loss is not finite");
    }
    if (word == "hostile") {
      job = PlayedJob(2);
      job.job.metadata.name = kHostile;
      job.status.findings.front().message = kHostile;
      job.status.findings.front().remedy = kHostile;
    }
    Put(std::move(job));
  }

  const kube::Store<plan::ObservedJob>& store() const { return store_; }

 private:
  const base::WallTime first_;  // when the first of them was made
  kube::Store<plan::ObservedJob> store_;
  int version_ = 0;
};

}  // namespace
}  // namespace hetero::jobs_page

int main(int argc, char** argv) {
  using namespace hetero;
  jobs_page::PlayedJobs jobs(argc > 1 ? std::atoi(argv[1]) : 3);
  jobs_page::JobsPort port(jobs.store(), base::Clock::Real(), [] { return true; });
  const absl::Status status = port.Start("127.0.0.1", argc > 2 ? std::atoi(argv[2]) : 0);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << "http://127.0.0.1:" << port.port() << "/" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    int number = 0;
    words >> word >> number;
    jobs.Do(word, number);
  }
  return EXIT_SUCCESS;
}
