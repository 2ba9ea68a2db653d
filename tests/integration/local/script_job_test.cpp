// A whole job with a model of its user's that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/local/white_picture.h"
#include "tests/unit/runtime/train/script_file.h"

namespace hetero {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunToTheEnd;
using testing::WhitePictureJob;
using testing::WhitePictureOutcome;

// It counted as the loss of another rank, and generations followed each other without end.
TEST(ScriptJob, AModelThatRaisesFailsTheJobWithItsMessageRankAndStep) {
  const testing::TemporaryFolder folder;
  const std::string model =
      "{torchScript: '" + train::SaveScript(folder, train::kRaisesForWhite, 8 * 8) + "'}";
  // Slot 37 is in step 5 of eight samples, in the second half of it.
  for (const auto& [ranks, where] :
       {std::pair(1, "rank 0, training step 5: "), std::pair(2, "rank 1, training step 5: ")}) {
    const WhitePictureOutcome outcome =
        RunToTheEnd(WhitePictureJob{.pipeline = "[{op: Normalize, mean: [0.485], std: [0.229]}]",
                                    .model = model,
                                    .ranks = ranks});
    EXPECT_EQ(outcome.result.exit_code, 1) << outcome.result.output;
    EXPECT_EQ(outcome.report["state"], "Failed");
    const std::string message = outcome.report["message"];
    EXPECT_THAT(message, HasSubstr(where));
    EXPECT_THAT(message, HasSubstr("the model does not like white"));
    EXPECT_EQ(outcome.report["generations"], 1) << outcome.report;
    EXPECT_THAT(outcome.result.output, Not(HasSubstr("is started again")));
  }
}

}  // namespace
}  // namespace hetero
