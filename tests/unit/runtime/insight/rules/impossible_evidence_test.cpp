#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <regex>
#include <vector>

#include "runtime/insight/rules/rule.h"
#include "tests/unit/runtime/insight/rules/examples.h"

// What counters never are but have been: behind 0 after a restart, not finite, too large.
namespace hetero::insight {
namespace {

struct Numbers {
  std::vector<double*> doubles;
  std::vector<int64_t*> integers;
  std::vector<int32_t*> small;

  void Take() {}
  template <typename... Others>
  void Take(double& value, Others&... others) {
    doubles.push_back(&value);
    Take(others...);
  }
  template <typename... Others>
  void Take(int64_t& value, Others&... others) {
    integers.push_back(&value);
    Take(others...);
  }
  template <typename... Others>
  void Take(int32_t& value, Others&... others) {
    small.push_back(&value);
    Take(others...);
  }
  template <typename Value, typename... Others>
  void Take(std::optional<Value>& value, Others&... others) {
    if (!value) value.emplace();
    Take(*value, others...);
  }
};

void TakeMember(MemberEvidence& m, Numbers& numbers) {
  for (ThreadGroupEvidence& group : m.groups) {
    numbers.Take(group.cpu_seconds, group.threads, group.busiest_thread_seconds);
  }
  for (Moment& moment : m.moments) {
    numbers.Take(moment.at_seconds, moment.seconds, moment.cpu_share, moment.io_pressure,
                 moment.rss_bytes);
    for (GpuMoment& gpu : moment.gpus) {
      numbers.Take(gpu.utilization, gpu.memory_used_bytes, gpu.memory_total_bytes);
    }
  }
  for (OperatorEvidence& op : m.operators) {
    numbers.Take(op.samples, op.cpu_seconds, op.python_seconds);
  }
  numbers.Take(m.seconds, m.run_queue_seconds, m.throttled_seconds, m.received_bytes, m.cores,
               m.machine_cores, m.machine_busy_cores, m.memory_limit_bytes, m.clock_offset_seconds,
               m.clock_error_seconds, m.samples, m.busy_seconds, m.work_seconds, m.read_seconds);
  numbers.Take(m.storage.requests, m.storage.retries, m.storage.throttled, m.storage.bytes,
               m.storage.seconds);
}

Numbers AllNumbers(Evidence& e) {
  Numbers numbers;
  numbers.Take(e.window_seconds);
  JobEvidence& job = e.job;
  numbers.Take(job.batch_size, job.partitions, *job.learning_rate, job.startup_seconds,
               job.train_seconds, job.checkpoint_seconds, job.evaluation_seconds, job.checkpoints,
               job.evaluations, job.first_step, job.steps, job.skipped_steps,
               job.checkpoint_every_seconds, job.checkpoint_every_steps,
               job.evaluation_every_epochs);
  for (RoleEvidence& role : job.roles) {
    numbers.Take(role.replicas, role.price_per_hour, role.gpus_per_replica);
  }
  for (LossEvidence& point : job.losses) numbers.Take(point.step, point.loss);
  for (ReportOrder& order : job.orders) numbers.Take(order.requests);
  for (MemberEvidence& member : e.members) TakeMember(member, numbers);
  for (RankEvidence& rank : e.ranks) {
    PhaseSeconds& p = rank.phases;
    numbers.Take(rank.steps, p.wait, p.host_to_device, p.forward, p.backward, p.all_reduce,
                 p.optimizer, p.checkpoint, p.evaluation, p.other, rank.waits.no_worker,
                 rank.waits.workers, rank.waits.transfer, rank.waits.handover);
    for (double& seconds : rank.step_seconds) numbers.Take(seconds);
  }
  return numbers;
}

const std::vector<double>& Doubles() {
  static const std::vector<double> values = {0,
                                             -1,
                                             -1e-300,
                                             1e-300,
                                             1e300,
                                             1e15,
                                             std::numeric_limits<double>::quiet_NaN(),
                                             std::numeric_limits<double>::infinity(),
                                             -std::numeric_limits<double>::infinity()};
  return values;
}

template <typename Integer>
const std::vector<Integer>& Integers() {
  static const std::vector<Integer> values = {0, -1, 1, std::numeric_limits<Integer>::max(),
                                              std::numeric_limits<Integer>::min()};
  return values;
}

template <typename Value>
void Spoil(const std::vector<Value*>& numbers, const std::vector<Value>& values, double share,
           std::mt19937_64& random) {
  for (Value* number : numbers) {
    if (!std::bernoulli_distribution(share)(random)) continue;
    *number = values[random() % values.size()];
  }
}

void ExpectSense(const std::vector<Finding>& findings) {
  static const std::regex nonsense("nan|inf|-[0-9]|(^|[ $])-([ ,.]|$)");
  for (const Finding& finding : findings) {
    EXPECT_TRUE(std::isfinite(finding.seconds) && finding.seconds >= 0) << finding.message;
    EXPECT_TRUE(!finding.dollars || (std::isfinite(*finding.dollars) && *finding.dollars >= 0));
    EXPECT_FALSE(finding.message.empty() || finding.remedy.empty()) << finding.rule;
    // The names of members end with numbers behind a hyphen.
    const std::string text = std::regex_replace(finding.message, std::regex("[cg]pu-[0-9]"), "it");
    EXPECT_FALSE(std::regex_search(text, nonsense)) << finding.rule << ": " << finding.message;
  }
}

TEST(ImpossibleEvidenceTest, NeverGivesNonsense) {
  std::mt19937_64 random(7);
  for (const Rule& rule : AllRules()) {
    for (const double share : {0.01, 0.1, 0.5, 1.0}) {
      for (int turn = 0; turn < 6; ++turn) {
        Evidence evidence = ExampleOf(rule.name);
        const Numbers numbers = AllNumbers(evidence);
        Spoil(numbers.doubles, Doubles(), share, random);
        Spoil(numbers.integers, Integers<int64_t>(), share, random);
        Spoil(numbers.small, Integers<int32_t>(), share, random);
        evidence.complete = turn % 2 == 0;
        ExpectSense(Judge(evidence, {}));
      }
    }
  }
}

TEST(ImpossibleEvidenceTest, OneNumberAtATimeNeverGivesNonsense) {
  for (const Rule& rule : AllRules()) {
    Evidence evidence = ExampleOf(rule.name);
    for (MemberEvidence& member : evidence.members) {
      if (member.moments.size() > 24) member.moments.resize(24);
    }
    const Numbers numbers = AllNumbers(evidence);
    for (size_t i = 0; i < numbers.doubles.size(); i += i < 60 ? 1 : 31) {
      const double kept = *numbers.doubles[i];
      for (const double value : Doubles()) {
        *numbers.doubles[i] = value;
        ExpectSense(Judge(evidence, {}));
      }
      *numbers.doubles[i] = kept;
    }
  }
}

TEST(ImpossibleEvidenceTest, ZeroThresholdsFindNothingInNothing) {
  Settings settings;
  for (const Rule& rule : AllRules()) {
    for (const Threshold& threshold : rule.thresholds) {
      settings[std::string(rule.name)].thresholds[std::string(threshold.name)] = 0;
    }
  }
  Evidence evidence = Usual();
  const Numbers numbers = AllNumbers(evidence);
  for (double* number : numbers.doubles) *number = 0;
  for (int64_t* number : numbers.integers) *number = 0;
  for (int32_t* number : numbers.small) *number = 0;
  evidence.window_seconds = 60;
  EXPECT_TRUE(Judge(evidence, settings).empty()) << Judge(evidence, settings)[0].message;
  EXPECT_TRUE(Judge({.window_seconds = 60, .complete = true}, settings).empty());
}

TEST(ImpossibleEvidenceTest, MembersAndRanksNeedNotFitTogether) {
  for (const Rule& rule : AllRules()) {
    Evidence evidence = ExampleOf(rule.name);
    for (RankEvidence& rank : evidence.ranks) rank.member = "nobody";
    ExpectSense(Judge(evidence, {}));
    evidence.members.clear();
    ExpectSense(Judge(evidence, {}));
    evidence = ExampleOf(rule.name);
    evidence.ranks.clear();
    ExpectSense(Judge(evidence, {}));
    evidence = ExampleOf(rule.name);
    evidence.job = {};
    ExpectSense(Judge(evidence, {}));
  }
}

}  // namespace
}  // namespace hetero::insight
