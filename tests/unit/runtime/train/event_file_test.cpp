#include "runtime/train/progress/event_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fake_clock.h"
#include "runtime/train/progress/training_curves.h"
#include "tests/unit/runtime/train/python.h"

namespace hetero::train {
namespace {

class EventFileTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // [tag, step, value] sorted, by TensorBoard's own reader where it is installed.
  nlohmann::json Scalars() {
    std::string files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      files += entry.path().string() + " ";
    }
    const PythonResult read = RunPython("read_events.py", files);
    EXPECT_EQ(read.exit_code, 0) << read.output;
    const nlohmann::json result = nlohmann::json::parse(read.output, nullptr, false);
    std::cout << "read back by the reader of: " << result["reader"] << "\n";
    return result["scalars"];
  }

  const std::string folder_ =
      ::testing::TempDir() + "/events_" + std::to_string(getpid()) + "/tensorboard";
  base::FakeClock clock_;
};

TEST_F(EventFileTest, RecordsAreFramedWithMaskedChecksums) {
  const std::string record = EventRecord("abc");
  ASSERT_EQ(record.size(), 8 + 4 + 3 + 4u);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
}

TEST_F(EventFileTest, ReadersFindEveryScalar) {
  auto file = EventFile::Create(folder_, clock_.WallNow());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Add(1, clock_.WallNow(), {{"loss/train", 2.5}, {"rate", 0.125}}).ok());
  ASSERT_TRUE((*file)->Add(300, clock_.WallNow(), {{"loss/train", -1.0}}).ok());
  EXPECT_EQ(Scalars(), nlohmann::json::parse(
                           R"([["loss/train",1,2.5],["loss/train",300,-1.0],["rate",1,0.125]])"));
}

TEST_F(EventFileTest, CurvesHoldStepsAndEvaluations) {
  TrainingCurves curves(folder_, {.learning_rate = 0.5}, clock_);
  curves.OnPhases({.wait = 1}, 4);
  curves.OnStep({.step = 1, .loss = 3, .seconds = 2, .samples = 64});
  curves.OnEvaluation({.step = 1, .loss = 2, .accuracy = 0.75});
  EXPECT_EQ(Scalars(), nlohmann::json::parse(R"([
    ["accuracy/validation",1,0.75],["learning_rate",1,0.5],["loss/train",1,3.0],
    ["loss/validation",1,2.0],["samples_per_second",1,32.0],["wait_percent",1,25.0]])"));
}

TEST_F(EventFileTest, TrainingGoesOnWithoutAFolder) {
  TrainingCurves curves("/proc/nowhere", {.learning_rate = 0.5}, clock_);
  curves.OnStep({.step = 1, .loss = 3});
}

}  // namespace
}  // namespace hetero::train
