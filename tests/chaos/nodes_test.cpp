// Jobs on real nodes, struck at random, several at once. HETERO_CHAOS_MINUTES (5) bounds it: no
// round begins after that; HETERO_CHAOS_SEED begins the seeds, of which each round draws one, and
// HETERO_CHAOS_ROUNDS says how many instead. Clocks and disks of the nodes are this machine's, and
// are left alone: local jobs have that (tests/chaos/chaos).
#include "tests/integration/e2e/support/nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <set>
#include <thread>

#include "api/job_status.h"
#include "tests/integration/e2e/support/installation.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds kRoundLimit(900);
constexpr int kJobsAtOnce = 2;

int64_t Number(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

// One job of a round and what befell it. Its checkpoints and its report lie on the shared volume.
class StruckJob {
 public:
  StruckJob(const std::string& name, const json& manifest, bool disturbed)
      : space_(name), job_(space_.name(), manifest), began_(Clock::now()), disturbed_(disturbed) {}

  const JobUnderTest& job() const { return job_; }
  const std::string& name_space() const { return space_.name(); }
  std::string told() const { return told_; }
  void Tell(const std::string& what) { told_ += (told_.empty() ? "" : ", ") + what; }
  bool over() const { return job_.Is("Succeeded") || job_.Is("Failed"); }
  bool disturbed() const { return disturbed_; }
  // `member` was killed after training had begun.
  void Killed(const std::string& member) { killed_.insert(member); }
  // Those of them whose container the operator saw fail: others ended with the job, or were gone.
  std::vector<std::string> Replaced() const {
    const std::string failed = ControlPlane::Get().MustKubectl(
        {"get", "events", "-n", space_.name(), "--field-selector", "reason=PodFailed", "-o",
         "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}"});
    std::vector<std::string> members;
    for (const std::string& member : killed_) {
      if (failed.find(member + " ") != std::string::npos) members.push_back(member);
    }
    return members;
  }
  std::string Final(const std::string& file) const { return space_.folder() + "/output/" + file; }
  // Of the newest checkpoint: that of the last step.
  std::string Weights() const {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(space_.folder() + "/checkpoints", ignored)) {
      if (entry.path().filename().string().starts_with("step-")) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found.empty() ? "" : found.back() + "/model.safetensors";
  }
  // From its creation to its end, by the API server.
  double SecondsInAll() const {
    const json job = job_.Get();
    const auto time = [&job](const char* part, const char* field) {
      const absl::StatusOr<base::WallTime> parsed =
          api::ParseTime(job[part].value(field, std::string()));
      EXPECT_TRUE(parsed.ok()) << field << ": " << parsed.status();
      return parsed.value_or(base::WallTime());
    };
    return std::chrono::duration<double>(time("status", "completionTime") -
                                         time("metadata", "creationTimestamp"))
        .count();
  }
  double SecondsSoFar() const {
    return std::chrono::duration<double>(Clock::now() - began_).count();
  }

 private:
  JobNamespace space_;
  JobUnderTest job_;
  const Clock::time_point began_;
  const bool disturbed_;
  std::string told_;
  std::set<std::string> killed_;
};

class ChaosOnNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    Installation::Get();
    if (!Nodes::reachable()) GTEST_SKIP() << "nodes are out of reach";
    ASSERT_FALSE(SharedFolder().empty());
    manifest_ = SlowJob("chaos");
    manifest_["spec"]["training"]["epochs"] = 4;
    digest_ = LocalReport(manifest_).value("streamDigest", "");
    ASSERT_FALSE(digest_.empty());
    MountData(manifest_);
    manifest_["spec"]["training"]["checkpoint"] = {{"uri", "file:///data/checkpoints"},
                                                   {"everySteps", 40}};
    manifest_["spec"]["output"]["uri"] = "file:///data/output";
    manifest_["spec"]["runPolicy"]["maxRestarts"] = 100;
    undisturbed_ = std::make_unique<StruckJob>("chaos-calm", manifest_, false);
    Expect(*undisturbed_);
  }

  // 0 to n - 1.
  int Draw(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  void Strike(StruckJob& struck);
  void StrikePod(StruckJob& struck, const std::string& role, int index);
  void SuspendAndResume(StruckJob& struck);
  void Drain();
  void Expect(StruckJob& struck);
  void PlayRound(int64_t seed);

  std::mt19937_64 random_;
  json manifest_;
  std::string digest_;
  std::unique_ptr<StruckJob> undisturbed_;
  std::vector<std::unique_ptr<StruckJob>> jobs_;
};

void ChaosOnNodes::StrikePod(StruckJob& struck, const std::string& role, int index) {
  const std::string pod = struck.job().PodKey(role, index).name;
  const std::string member = role + "-" + std::to_string(index);
  const bool trains = StepOf(struck.job()) > 0;
  switch (Draw(4)) {
    case 0:
      if (Nodes::TrySignalRuntime(struck.name_space(), pod, "SIGKILL")) {
        struck.Tell("kill " + member);
        if (trains && role != "head") struck.Killed(member);
      }
      return;
    case 1:
      if (Nodes::TrySignalRuntime(struck.name_space(), pod, "SIGSTOP")) {
        struck.Tell("freeze " + member);
      }
      return;
    case 2:
      if (Nodes::TrySignalRuntime(struck.name_space(), pod, "SIGSTOP")) {
        struck.Tell("pause " + member);
        std::this_thread::sleep_for(seconds(1 + Draw(8)));
        Nodes::TrySignalRuntime(struck.name_space(), pod, "SIGCONT");
      }
      return;
    default:
      struck.Tell("delete " + member);
      ControlPlane::Get().Kubectl(
          {"delete", "pod", pod, "-n", struck.name_space(), "--wait=false", "--ignore-not-found"});
  }
}

void ChaosOnNodes::SuspendAndResume(StruckJob& struck) {
  struck.Tell("suspend");
  struck.job().PatchSpec({{"runPolicy", {{"suspend", true}}}});
  WaitFor(
      "the job is suspended or over", [&] { return struck.job().Is("Suspended") || struck.over(); },
      kPatience, [&] { return struck.job().Describe(); });
  std::this_thread::sleep_for(seconds(Draw(5)));
  struck.job().PatchSpec({{"runPolicy", {{"suspend", false}}}});
}

// Of one node: every job's pods there go, and perhaps the operator's.
void ChaosOnNodes::Drain() {
  const std::vector<std::string> nodes = Nodes::Workers();
  ASSERT_FALSE(nodes.empty());
  const std::string node = nodes[Draw(static_cast<int>(nodes.size()))];
  for (const auto& struck : jobs_) struck->Tell("drain " + node);
  ControlPlane& plane = ControlPlane::Get();
  plane.Kubectl(
      {"drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s"},
      "", seconds(120));
  plane.MustKubectl({"uncordon", node});
}

void ChaosOnNodes::Strike(StruckJob& struck) {
  const int how = Draw(10);
  if (how == 0) return Drain();
  if (how == 1) return SuspendAndResume(struck);
  const int whom = Draw(5);
  if (whom == 0) return StrikePod(struck, "head", 0);
  StrikePod(struck, whom < 3 ? "cpu" : "gpu", Draw(2));
}

void ChaosOnNodes::Expect(StruckJob& struck) {
  SCOPED_TRACE(struck.job().key().ToString() + ": " + struck.told());
  ExpectSucceededWithDigest(struck.job(), digest_);
  if (!struck.disturbed()) return;
  const std::string judge = testing::SourceDir() + "/tests/chaos/judge.py";
  const CommandResult same =
      RunCommand({judge, "weights", struck.Weights(), undisturbed_->Weights()});
  EXPECT_EQ(same.exit_code, 0) << same.output;
  std::vector<std::string> question = {judge, "history", struck.Final(""),
                                       std::to_string(struck.SecondsInAll())};
  for (const std::string& member : struck.Replaced()) question.push_back(member);
  const CommandResult history = RunCommand(question);
  EXPECT_EQ(history.exit_code, 0) << history.output;
}

void ChaosOnNodes::PlayRound(int64_t seed) {
  random_.seed(static_cast<uint64_t>(seed));
  const Clock::time_point limit = Clock::now() + kRoundLimit;
  jobs_.clear();
  for (int i = 0; i < kJobsAtOnce; ++i) {
    jobs_.push_back(std::make_unique<StruckJob>("chaos-" + std::to_string(i), manifest_, true));
  }
  const auto all_over = [this] {
    return std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job->over(); });
  };
  for (int strikes = 3 + Draw(5); strikes > 0 && !all_over() && Clock::now() < limit; --strikes) {
    std::this_thread::sleep_for(seconds(1 + Draw(12)));
    StruckJob& struck = *jobs_[Draw(kJobsAtOnce)];
    if (!struck.over()) Strike(struck);
  }
  for (const auto& struck : jobs_) {
    Expect(*struck);
    std::cout << seed << "  " << struck->job().key().ToString() << "  "
              << static_cast<int>(struck->SecondsSoFar()) << " s  "
              << (struck->told().empty() ? "nothing" : struck->told()) << std::endl;
  }
  jobs_.clear();
}

TEST_F(ChaosOnNodes, CostsNothingOfTheStream) {
  const int64_t first = Number("HETERO_CHAOS_SEED", std::random_device()() % 1'000'000);
  const int64_t rounds = Number("HETERO_CHAOS_ROUNDS", 0);
  const auto end = Clock::now() + std::chrono::minutes(Number("HETERO_CHAOS_MINUTES", 5));
  for (int64_t i = 0; rounds > 0 ? i < rounds : Clock::now() < end; ++i) {
    PlayRound(first + i);
    if (!HasFailure()) continue;
    std::cout << "repeat: HETERO_CHAOS_SEED=" << first + i
              << " HETERO_CHAOS_ROUNDS=1 tests/chaos/nodes" << std::endl;
    return;
  }
}

}  // namespace
}  // namespace hetero::testing
