#include "runtime/process/fallback_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/fake_clock.h"
#include "runtime/head/history_codec.h"
#include "tests/support/temporary_folder.h"

namespace hetero::process {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FallbackReportTest : public ::testing::Test {
 protected:
  HeadlessEnd End() {
    api::HeteroTrainingJob job;
    job.metadata.name = "blur";
    return {.job = job,
            .run = "run",
            .history_file = folder_ / "history.txt",
            .created = clock_.WallNow() - seconds(75),
            .message = "the head ended: killed by SIGKILL"};
  }

  testing::TemporaryFolder folder_;
  base::FakeClock clock_;
};

// It once knew nothing but the wall time.
TEST_F(FallbackReportTest, TellsWhatTheHeadHadWrittenDown) {
  v1::History history;
  history.set_run("run");
  history.set_elapsed_seconds(70);
  history.set_generation(2);
  v1::AttemptHistory& attempt = *history.add_attempts();
  attempt.set_number(1);
  attempt.set_end(70);
  history.add_faults()->set_what("gpu-0 was lost: killed by SIGKILL");
  ASSERT_TRUE(base::WriteFileAtomically(folder_ / "history.txt",
                                        head::EncodeHistory(history, head::kMaxHistoryFile))
                  .ok());
  const insight::Report report = MakeFallbackReport(End(), clock_);
  EXPECT_EQ(report.state, "Failed");
  EXPECT_EQ(report.message, "the head ended: killed by SIGKILL");
  EXPECT_DOUBLE_EQ(*report.wall_seconds, 75);
  EXPECT_EQ(report.generations, 2);
  EXPECT_THAT(report.faults, SizeIs(2));  // and the head's own end
}

TEST_F(FallbackReportTest, WithoutAHistoryThereAreStillTheTimes) {
  const insight::Report report = MakeFallbackReport(End(), clock_);
  EXPECT_DOUBLE_EQ(*report.wall_seconds, 75);
  EXPECT_THAT(report.faults, IsEmpty());
}

}  // namespace
}  // namespace hetero::process
