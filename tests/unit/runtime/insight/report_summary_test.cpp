#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/insight/report.h"
#include "tests/unit/runtime/insight/sample_report.h"

namespace hetero::insight {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportSummary, AlignsItsLines) {
  EXPECT_EQ(ToSummary(FullReport()),
            R"(quickstart: Succeeded after 31.1 s (first step after 1.25 s, training 28.5 s)
  steps       6 in 4 epochs, 6,000 samples
  speed       211 samples/s of 240 without input, 12.5 % waiting for data
  waited      2.50 s for CPU workers at work, 500 ms without a CPU worker, 500 ms for data on its way
  loss        0.412
  accuracy    91.3 % of 300 validation samples
  cpu time    cpu 2.04 ms, gpu 4.50 ms per sample
  python      augment.transform: 3.30 ms of the pipeline's 4.40 ms of CPU per sample (75.0 %), 50.0 µs of it on the way to Python; a native operator would save at most this
  on the way  2 faults, 1 notice of a machine that goes, 3 steps done again, 3 tickets issued again, 1 duplicate dropped, 1 bad sample replaced
  digest      00112233445566778899aabbccddeeff
  cost        $0.0123
  verdict     input-bound: 12.5 % of each step waits for data
  to change   SlowWorker (cpu-1): cpu-1 takes 3.0 times as long for a batch as the others; look at the node of cpu-1, or set roles.cpu.replicas to 3 (cost 2.50 s of training, $0.00110)
  to change   CheckpointStall: training stood still for 500 ms while a checkpoint was written (cost 500 ms of training; not at the end any more)
  checkpoint  file:///out/checkpoint
)");
}

TEST(ReportSummary, NamesTheThreeCostliestFindings) {
  Report report;
  report.job = "quickstart";
  report.state = "Succeeded";
  for (const char* rule : {"A", "B", "C", "D"}) {
    report.findings.push_back({.rule = rule, .message = "is slow", .active = true});
  }
  EXPECT_EQ(ToSummary(report), R"(quickstart: Succeeded
  to change   A: is slow
  to change   B: is slow
  to change   C: is slow
)");
}

TEST(ReportSummary, SaysWhyAJobFailedAndNothingElse) {
  Report report;
  report.job = "quickstart";
  report.state = "Failed";
  report.message = "gpu-0: no such dataset";
  EXPECT_EQ(ToSummary(report), "quickstart: Failed\n  reason      gpu-0: no such dataset\n");
}

TEST(ReportSummary, SaysWhatScriptsAdd) {
  Report report;
  report.job = "quickstart";
  report.state = "Succeeded";
  report.message = "ended after 12 of 40 steps";
  report.steps = 12;
  report.accuracy = 0.5;
  report.evaluations.push_back({.step = 12, .accuracy = 0.5});
  report.script_restarts = 1;
  report.reported = {{"lr", 0.1}, {"perplexity", 12.5}};
  report.digest_problem = "the state knows no digest";
  EXPECT_EQ(ToSummary(report), R"(quickstart: Succeeded
  reason      ended after 12 of 40 steps
  steps       12
  accuracy    50.0 %
  reported    lr 0.100, perplexity 12.5
  on the way  1 restart of the scripts
  digest      not proven: the state knows no digest
)");
}

// A job may succeed without leaving a checkpoint.
TEST(ReportSummary, SaysThatACheckpointIsMissing) {
  Report report;
  report.job = "quickstart";
  report.state = "Succeeded";
  report.checkpoint_problem = "the checkpoint of step 32 could not be written: no space";
  EXPECT_EQ(ToSummary(report), R"(quickstart: Succeeded
  warning     the checkpoint of step 32 could not be written: no space
)");
}

TEST(ReportSummary, LeavesOutNumbersThatAreNotFinite) {
  Report report = FullReport();
  report.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ToSummary(report), Not(HasSubstr("  loss ")));
}

}  // namespace
}  // namespace hetero::insight
