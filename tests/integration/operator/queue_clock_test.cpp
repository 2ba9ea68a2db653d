// Jobs that wait in a queue while the operator's clock moves on: only what is admitted has
// deadlines.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "tests/integration/operator/queue_fixture.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using std::chrono::hours;

// The wall clock of the operator alone (tests/chaos/bad_machine.cpp).
class OperatorClock {
 public:
  OperatorClock() : file_(ControlPlane::Get().folder() + "/operator-clock") {
    const int fd = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(ftruncate(fd, kFields * sizeof(int64_t)), 0);
    void* memory =
        mmap(nullptr, kFields * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(memory, MAP_FAILED);
    close(fd);
    offset_ns_ = static_cast<std::atomic<int64_t>*>(memory);
  }
  std::vector<std::string> environment() const {
    return {std::string("LD_PRELOAD=") + testing::BinDir() + "/../tests/bad_machine.so",
            "HETERO_CHAOS_MACHINE=" + file_};
  }
  void Advance(std::chrono::nanoseconds by) { *offset_ns_ += by.count(); }

 private:
  static constexpr size_t kFields = 3;
  const std::string file_;
  std::atomic<int64_t>* offset_ns_ = nullptr;
};

OperatorClock& Clock() {
  static auto* const clock = new OperatorClock();
  return *clock;
}

class QueuesOverTime : public Queues {
 protected:
  static void SetUpTestSuite() {
    Begin(
        {.arguments = {"--kueue", "--pod-kill-grace", "3s"}, .environment = Clock().environment()});
  }
  // Everything that could end or restart a job within the hour.
  static json Impatient(const std::string& name, const json& script) {
    json job = Queued(name);
    job["metadata"]["annotations"]["fake.hetero.dev/script"] = script.dump();
    job["spec"]["runPolicy"] = {{"startupDeadlineSeconds", 1800},
                                {"activeDeadlineSeconds", 3000},
                                {"stallTimeoutSeconds", 1500},
                                {"ttlSecondsAfterFinished", 100000}};
    return job;
  }
  // All of the queue's CPUs, for nobody.
  static void Block(const TeamQueue& queue, int cpus) {
    json workload = json::parse(R"({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "blocker"}, "spec": {"queueName": "team", "priority": 100000,
        "podSets": [{"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {}}}]}}}]}})");
    workload["metadata"]["namespace"] = queue.space();
    workload["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]
            ["cpu"] = std::to_string(cpus);
    ControlPlane::Get().MustKubectl({"apply", "-f", "-"}, workload.dump());
  }
  // A pass over the job has looked at the clock since this was called: it sees another class.
  void WaitPass(const JobUnderTest& job, const std::string& priority_class) {
    plane_.Patch(kJobs, job.key(),
                 {{"metadata", {{"labels", {{"kueue.x-k8s.io/priority-class", priority_class}}}}}});
    WaitFor("a pass over " + job.name(), [&] {
      const json workload = Workload(job);
      return workload.is_object() &&
             workload["spec"].value("priorityClassRef", json::object()).value("name", "") ==
                 priority_class;
    });
  }
  void Touch(const JobUnderTest& job) { plane_.Annotate(kJobs, job.key(), "touched", "yes"); }
};

TEST_F(QueuesOverTime, NoDeadlineCountsBeforeTheAdmissionAndEachAfterIt) {
  TeamQueue queue("clock", 12);
  Block(queue, 12);
  ASSERT_TRUE(queue.WaitUsage("12"));
  JobUnderTest late(queue.space(),
                    Impatient("late", {{"steps", 20}, {"neverRegister", {"cpu-0"}}}));
  json patient = Impatient("slow", {{"steps", 1000000}, {"stepMillis", 20}});
  patient["spec"]["runPolicy"].erase("stallTimeoutSeconds");  // a clock that jumps ends it at once
  JobUnderTest slow(queue.space(), patient);
  JobUnderTest stuck(queue.space(), Impatient("stuck", {{"steps", 20}, {"stallAtStep", 3}}));
  const std::vector<const JobUnderTest*> jobs = {&late, &slow, &stuck};
  for (const JobUnderTest* job : jobs) ASSERT_TRUE(job->WaitIs("Queued"));
  for (const char* priority_class : {"high", "low"}) {
    Clock().Advance(hours(1));
    for (const JobUnderTest* job : jobs) WaitPass(*job, priority_class);
  }
  for (const JobUnderTest* job : jobs) {
    EXPECT_TRUE(job->Is("Queued"));
    EXPECT_FALSE(job->Status().contains("startTime"));
    EXPECT_FALSE(job->Is("Failed")) << job->Describe();
  }
  plane_.MustKubectl({"delete", "workload", "blocker", "-n", queue.space(), "--wait=false"});
  ASSERT_TRUE(late.WaitPods(4));
  ASSERT_TRUE(slow.WaitIs("Running"));
  ASSERT_TRUE(stuck.WaitIs("Running"));
  for (const JobUnderTest* job : jobs) Touch(*job);
  for (const JobUnderTest* job : jobs) EXPECT_FALSE(job->Is("Failed")) << job->Describe();
  // Half an hour is too long to start in, or without a step, and not to train.
  WaitFor("it is at the step where it stays",
          [&] { return stuck.Status().value("progress", json::object()).value("step", 0) >= 3; });
  Clock().Advance(std::chrono::minutes(31));
  for (const JobUnderTest* job : jobs) plane_.Annotate(kJobs, job->key(), "touched", "again");
  ASSERT_TRUE(late.WaitIs("Failed"));
  EXPECT_EQ(late.Reason("Failed"), "StartupDeadlineExceeded");
  WaitFor(
      "it is restarted", [&] { return stuck.Reason("Restarting") == "Stalled"; },
      std::chrono::seconds(60), [&] { return stuck.Describe(); });
  EXPECT_TRUE(slow.Is("Running")) << slow.Describe();
  Clock().Advance(std::chrono::minutes(31));
  plane_.Annotate(kJobs, slow.key(), "touched", "at last");
  ASSERT_TRUE(slow.WaitIs("Failed"));
  EXPECT_EQ(slow.Reason("Failed"), "DeadlineExceeded");
}

}  // namespace
}  // namespace hetero::testing
