// Trainings with checkpoints that are suspended, resumed and struck: no step is lost, and the
// report tells the whole history and else what it tells of the undisturbed run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "api/job_status.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/integration/e2e/support/nodes.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

// 192 steps in about 20 s, and only a stop leaves a checkpoint before the last step.
json Manifest() {
  json job = SlowJob("disturbed");
  MountData(job);
  job["spec"]["training"]["checkpoint"] = {{"uri", "file:///data/checkpoints"},
                                           {"everySteps", 100000}};
  job["spec"]["output"]["uri"] = "file:///data/output";
  return job;
}

// One of these jobs on a volume of its own.
class Training {
 public:
  explicit Training(const std::string& prefix) : space_(prefix), job_(space_.name(), Manifest()) {}

  const JobUnderTest& job() const { return job_; }
  const std::string& name_space() const { return space_.name(); }
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - applied_).count(); }
  json Report() const {
    const std::string file = space_.folder() + "/output/report.json";
    EXPECT_TRUE(std::filesystem::exists(file)) << job_.Describe();
    return std::filesystem::exists(file) ? json::parse(ReadFileOrDie(file)) : json::object();
  }
  // Steps of the checkpoints that were written to their end.
  std::set<int> Checkpoints() const {
    std::set<int> steps;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(space_.folder() + "/checkpoints", ignored)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("step-") || !std::filesystem::exists(entry.path() / "DONE")) continue;
      steps.insert(std::stoi(name.substr(5)));
    }
    return steps;
  }
  // Names of the pods that nobody has begun to delete.
  std::set<std::string> Pods() const {
    std::set<std::string> names;
    for (const json& pod : ControlPlane::Get().Objects(kube::kPods, name_space())) {
      if (!pod["metadata"].contains("deletionTimestamp")) names.insert(pod["metadata"]["name"]);
    }
    return names;
  }
  // Until no pod is left; returns the checkpoint's step.
  int Suspend() const;
  void Resume() const { job_.PatchSpec({{"runPolicy", {{"suspend", false}}}}); }
  // As a drain of the pod's node does.
  void Evict(const std::string& role, int index) const;

 private:
  const Clock::time_point applied_ = Clock::now();
  JobNamespace space_;
  JobUnderTest job_;
};

int Training::Suspend() const {
  const std::set<std::string> pods = Pods();
  EXPECT_EQ(pods.size(), 5u) << job_.Describe();
  const int64_t seen = StepOf(job_);
  job_.PatchSpec({{"runPolicy", {{"suspend", true}}}});
  const auto end = Clock::now() + kPatience;
  std::set<int> written;
  for (std::set<std::string> left = pods; written.empty() && left == pods && Clock::now() < end;) {
    left = Pods();
    written = Checkpoints();
    if (written.empty()) {
      EXPECT_EQ(left, pods) << "deleted before the checkpoint was there";
    }
  }
  EXPECT_EQ(written.size(), 1u);
  job_.WaitIs("Suspended", kPatience);
  EXPECT_THAT(Pods(), IsEmpty());
  EXPECT_EQ(Checkpoints(), written) << "no rank has done a step more";
  const int step = written.empty() ? 0 : *written.begin();
  EXPECT_GE(step, seen);
  return step;
}

void Training::Evict(const std::string& role, int index) const {
  const kube::ObjectKey pod = job_.PodKey(role, index);
  const json eviction = {{"apiVersion", "policy/v1"},
                         {"kind", "Eviction"},
                         {"metadata", {{"name", pod.name}, {"namespace", pod.name_space}}}};
  ControlPlane::Get().MustKubectl(
      {"create", "--raw",
       "/api/v1/namespaces/" + pod.name_space + "/pods/" + pod.name + "/eviction", "-f", "-"},
      eviction.dump());
}

// Every figure of a report by its path; steps of a curve and members by name, not by place.
void Flatten(const json& value, const std::string& path, std::map<std::string, json>& figures) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) Flatten(member, path + "/" + key, figures);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      std::string place = std::to_string(i);
      if (value[i].contains("step")) place = "step " + std::to_string(value[i].value("step", 0));
      if (value[i].contains("name")) place = value[i].value("name", "");
      Flatten(value[i], path + "/" + place, figures);
    }
  } else {
    figures[path] = value;
  }
}

std::map<std::string, json> Figures(const json& report) {
  std::map<std::string, json> figures;
  Flatten(report, "", figures);
  return figures;
}

// What time, place and disturbances decide. Nothing else may differ.
bool MayDiffer(const std::string& path) {
  static const std::regex fields(
      // Of the disturbances themselves.
      "/attempt|/attempts/.*|/generations|/faults/.*|/resumedFromStep|/duplicatesDropped|"
      "/ticketsReissued|/workers/.*/restarts|"
      // How long something took, and what is worked out from it.
      "/(startup|train|wall)Seconds|/(phase|wait)Seconds/.*|/timeLines/.*|/samplesPerSecond|"
      "/ceilingSamplesPerSecond|/dataWaitPercent|/lossCurve/.*/secondsPerStep|/verdict|"
      "/predictions/.*|/cpuSecondsPerSample/.*|/placement/.*/(worker|trainer)Seconds|"
      // Which worker of two had how much to do, where it ran and what it needed.
      "/workers/.*/(node|batches|samples|bytes|dataWaitPercent|cpuSeconds|peakRssBytes)|"
      // What this machine and the processes on it were like.
      "/resources/.*|/batchLives/.*|/findings/.*|"
      // Seen by one process of rank 0: since the epoch's beginning, or since its own.
      "/loss|"
      "/config/metadata/(namespace|uid)");
  return std::regex_match(path, fields);
}

void ExpectSameButForDisturbances(const json& report, const json& undisturbed) {
  const std::map<std::string, json> got = Figures(report), wanted = Figures(undisturbed);
  for (const auto& [path, value] : wanted) {
    if (MayDiffer(path)) continue;
    const auto found = got.find(path);
    EXPECT_TRUE(found != got.end() && found->second == value)
        << path << " is " << (found == got.end() ? "absent" : found->second.dump())
        << ", undisturbed " << value;
  }
  for (const auto& [path, value] : got) {
    EXPECT_TRUE(MayDiffer(path) || wanted.contains(path)) << path << " is " << value;
  }
}

std::vector<std::string> FaultsOf(const json& report) {
  std::vector<std::string> faults;
  for (const json& fault : report["faults"]) faults.push_back(fault.value("what", ""));
  return faults;
}

json WorkerOf(const json& report, const std::string& name) {
  for (const json& worker : report["workers"]) {
    if (worker["name"] == name) return worker;
  }
  ADD_FAILURE() << "no " << name << " in " << report["workers"];
  return json::object();
}

double SecondsBetween(const std::string& begin, const std::string& end) {
  const auto from = api::ParseTime(begin), to = api::ParseTime(end);
  EXPECT_TRUE(from.ok() && to.ok()) << begin << ", " << end;
  return from.ok() && to.ok() ? base::ToSeconds(*to - *from) : 0;
}

// "took 1m05s" -> 65.
int SecondsTaken(const std::string& text) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("took (?:(\\d+)m)?(\\d+)s"))) {
    ADD_FAILURE() << text;
    return -1;
  }
  return (found[1].matched ? std::stoi(found[1]) * 60 : 0) + std::stoi(found[2]);
}

class Disturbed : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Installation::Get();
    if (!SharedFolder().empty()) undisturbed_ = new Training("undisturbed");  // beside the others
  }
  static void TearDownTestSuite() { delete undisturbed_; }
  void SetUp() override {
    if (undisturbed_ == nullptr)
      GTEST_SKIP() << "this cluster's nodes share no folder with this machine";
    json local = Manifest();
    local["spec"]["training"].erase("checkpoint");
    digest_ = LocalReport(local).value("streamDigest", "");
    ASSERT_FALSE(digest_.empty());
  }
  std::string digest_;
  static Training* undisturbed_;
};
Training* Disturbed::undisturbed_ = nullptr;

TEST_F(Disturbed, ASuspendedTrainingLosesNoStep) {
  Training training("suspended");
  const JobUnderTest& job = training.job();
  ASSERT_TRUE(WaitStep(job, 10));
  const int stopped_at = training.Suspend();
  training.Resume();
  ExpectSucceededWithDigest(job, digest_);
  EXPECT_EQ(job.Status().value("restarts", 0), 0) << job.Describe();
  const json report = training.Report();
  EXPECT_EQ(report["resumedFromStep"], stopped_at);
  EXPECT_EQ(report["steps"], 192);
  EXPECT_EQ(report["samplesConsumed"], 2 * 1536);
  EXPECT_EQ(report["streamDigest"], digest_);
  EXPECT_THAT(FaultsOf(report), IsEmpty());
  EXPECT_EQ(report["generations"], 2);
  ExpectSucceededWithDigest(undisturbed_->job(), digest_);
  ExpectSameButForDisturbances(report, undisturbed_->Report());
}

TEST_F(Disturbed, TheReportTellsWhatBefellAJobAndElseWhatItTellsOfAnother) {
  if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
  Training training("disturbed");
  const JobUnderTest& job = training.job();
  ASSERT_TRUE(WaitStep(job, 10));
  const double first_step = training.Seconds();
  const int stopped_at = training.Suspend();
  const double suspended = training.Seconds();
  training.Resume();
  ASSERT_TRUE(WaitStep(job, stopped_at + 5));
  const std::string trainer = job.PodUid("gpu", 1), evicted = job.PodUid("cpu", 1),
                    killed = job.PodUid("cpu", 0);
  training.Evict("gpu", 1);
  training.Evict("cpu", 1);
  Nodes::KillRuntime(training.name_space(), job.PodKey("cpu", 0).name);
  ASSERT_TRUE(WaitReplaced(job, "gpu", 1, trainer));
  ASSERT_TRUE(WaitReplaced(job, "cpu", 1, evicted));
  ASSERT_TRUE(WaitReplaced(job, "cpu", 0, killed));
  ASSERT_TRUE(WaitStep(job, StepOf(job) + 5));
  const std::string head = job.PodUid("head", 0);
  Nodes::KillRuntime(training.name_space(), job.PodKey("head", 0).name);
  ASSERT_TRUE(WaitReplaced(job, "head", 0, head));
  ASSERT_TRUE(job.WaitIs("Succeeded", seconds(300)));
  const double over = training.Seconds();
  const json status = job.Status(), report = training.Report();
  EXPECT_EQ(status.value("attempt", 0), 2) << status.dump(1);
  EXPECT_EQ(status.value("restarts", 0), 2) << "of cpu-0 and the head\n" << status.dump(1);

  // The API server counts whole seconds.
  EXPECT_NEAR(report.value("wallSeconds", -1.0), over, 10);
  EXPECT_LE(report.value("wallSeconds", -1.0), over + 1);
  EXPECT_GT(report.value("startupSeconds", -1.0), 0);
  EXPECT_LE(report.value("startupSeconds", -1.0), first_step + 1);
  EXPECT_EQ(report["attempt"], 2);
  ASSERT_EQ(report["attempts"].size(), 2u) << report["attempts"];
  EXPECT_LE(report["attempts"][0].value("seconds", -1.0), suspended + 1);
  EXPECT_GT(report["attempts"][0].value("seconds", -1.0), 0);
  EXPECT_GT(report["attempts"][1].value("seconds", -1.0), 0);
  EXPECT_EQ(report["attempts"][1].value("cause", ""), "resumed after a suspension");
  EXPECT_EQ(report["resumedFromStep"], stopped_at);

  const std::vector<std::string> faults = FaultsOf(report);
  for (const char* member : {"the head was lost", "gpu-1 left, as it was asked to", "cpu-0 was"}) {
    EXPECT_EQ(std::count_if(faults.begin(), faults.end(),
                            [&](const auto& what) { return what.starts_with(member); }),
              1)
        << member << " in " << report["faults"];
  }
  for (const json& fault : report["faults"]) {
    EXPECT_GE(fault.value("recoverySeconds", -1.0), 0) << fault;
    EXPECT_THAT(fault.value("what", ""), HasSubstr("replaced by a new process"));
  }
  EXPECT_EQ(WorkerOf(report, "gpu-1")["restarts"], 1);
  EXPECT_EQ(WorkerOf(report, "cpu-0")["restarts"], 1);
  EXPECT_EQ(WorkerOf(report, "gpu-0")["restarts"], 0) << "a new attempt is nobody's restart";
  EXPECT_EQ(WorkerOf(report, "cpu-1")["restarts"], 0)
      << "it ended well, as one that is scaled away";

  // All rounded on their own.
  double waits = 0;
  for (const auto& [cause, time] : report["waitSeconds"].items()) {
    EXPECT_GE(time.get<double>(), 0) << cause;
    waits += time.get<double>();
  }
  EXPECT_NEAR(waits, report["phaseSeconds"].value("wait", -1.0), 0.01) << report["waitSeconds"];
  double phases = 0;
  for (const auto& [phase, time] : report["phaseSeconds"].items()) phases += time.get<double>();
  EXPECT_NEAR(phases, report.value("trainSeconds", -1.0), 0.02 * phases) << report["phaseSeconds"];

  const CommandResult told = RunCommand(
      {testing::BinDir() + "/kubectl-hetero", "report", job.name(), "-n", training.name_space()},
      "", seconds(60));
  EXPECT_EQ(told.exit_code, 0) << told.output;
  const double took = SecondsBetween(job.Get()["metadata"]["creationTimestamp"],
                                     status.value("completionTime", ""));
  EXPECT_EQ(SecondsTaken(told.output), took) << told.output;
  EXPECT_LE(took, over + 1);
  EXPECT_GE(took, over - 15) << "seen late by the test, where all processors are busy";

  ExpectSucceededWithDigest(undisturbed_->job(), digest_);
  ExpectSameButForDisturbances(report, undisturbed_->Report());
}

}  // namespace
}  // namespace hetero::testing
