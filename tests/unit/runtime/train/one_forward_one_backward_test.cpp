#include "runtime/train/pipeline_parallel/one_forward_one_backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hetero::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = PipelineAction::Kind;

// "F0 F1 B0 B1"
std::string Text(const std::vector<PipelineAction>& actions) {
  std::string text;
  for (const PipelineAction& action : actions) {
    if (!text.empty()) text += ' ';
    text += action.kind == Kind::kForward ? 'F' : 'B';
    text += std::to_string(action.microbatch);
  }
  return text;
}

struct Row {
  int32_t stage, partitions;
  int64_t microbatches;
  std::string want;
};

TEST(OneForwardOneBackwardTest, Table) {
  const std::vector<Row> rows = {
      {0, 1, 3, "F0 B0 F1 B1 F2 B2"},
      {0, 2, 1, "F0 B0"},
      {1, 2, 1, "F0 B0"},
      {0, 2, 4, "F0 F1 B0 F2 B1 F3 B2 B3"},
      {1, 2, 4, "F0 B0 F1 B1 F2 B2 F3 B3"},
      {0, 3, 2, "F0 F1 B0 B1"},
      {1, 3, 2, "F0 F1 B0 B1"},
      {2, 3, 2, "F0 B0 F1 B1"},
      {0, 4, 6, "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5"},
      {1, 4, 6, "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5"},
      {2, 4, 6, "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5"},
      {3, 4, 6, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Text(OneForwardOneBackward(row.stage, row.partitions, row.microbatches)), row.want)
        << "stage " << row.stage << " of " << row.partitions;
  }
}

// Every stage does what it can do next, as messages allow; all of them must come to their end.
void PlayOut(int32_t partitions, int64_t microbatches) {
  SCOPED_TRACE(std::to_string(partitions) + " x " + std::to_string(microbatches));
  std::vector<std::vector<PipelineAction>> actions;
  for (int32_t stage = 0; stage < partitions; ++stage) {
    actions.push_back(OneForwardOneBackward(stage, partitions, microbatches));
  }
  std::vector<size_t> next(actions.size(), 0);
  std::vector<std::set<int64_t>> forward(actions.size()), backward(actions.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < actions.size(); ++stage) {
      if (next[stage] == actions[stage].size()) continue;
      const auto [kind, microbatch] = actions[stage][next[stage]];
      const bool last = stage + 1 == actions.size();
      if (kind == Kind::kForward) {
        if (stage > 0 && !forward[stage - 1].contains(microbatch)) continue;
        EXPECT_TRUE(forward[stage].insert(microbatch).second);
      } else {
        if (!last && !backward[stage + 1].contains(microbatch)) continue;
        EXPECT_TRUE(forward[stage].contains(microbatch));
        // In order, so that the last microbatch's gradients are the last.
        EXPECT_EQ(backward[stage].size(), static_cast<size_t>(microbatch));
        EXPECT_TRUE(backward[stage].insert(microbatch).second);
      }
      EXPECT_LE(forward[stage].size() - backward[stage].size(), actions.size() - stage);
      ++next[stage];
      moved = true;
    }
  }
  for (size_t stage = 0; stage < actions.size(); ++stage) {
    EXPECT_EQ(backward[stage].size(), static_cast<size_t>(microbatches)) << "stage " << stage;
  }
}

TEST(OneForwardOneBackwardTest, EveryStageComesToItsEndAndHoldsFewActivations) {
  for (int32_t partitions = 1; partitions <= 6; ++partitions) {
    for (int64_t microbatches = 1; microbatches <= 9; ++microbatches) {
      PlayOut(partitions, microbatches);
    }
  }
}

TEST(MicrobatchSizesTest, DifferByOneAtMostAndNoneIsEmpty) {
  EXPECT_THAT(MicrobatchSizes(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(MicrobatchSizes(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(MicrobatchSizes(3, 4), ElementsAre(1, 1, 1));
  EXPECT_THAT(MicrobatchSizes(5, 1), ElementsAre(5));
  EXPECT_THAT(MicrobatchSizes(0, 4), IsEmpty());
}

}  // namespace
}  // namespace hetero::train
