#include "runtime/pipeline/scratch.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "runtime/pipeline/pipeline.h"
#include "runtime/source/jpeg_writer.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

constexpr size_t kMebibyte = 1 << 20;

source::RawSample Grey(int32_t height, int32_t width) {
  source::RawSample sample;
  sample.encoding = source::Encoding::kJpeg;
  const std::vector<uint8_t> pixels(size_t(height) * size_t(width) * 3, 99);
  EXPECT_TRUE(source::EncodeJpeg(pixels, {height, width}, &sample.bytes).ok());
  return sample;
}

// Each case is a thread of its own, whose buffers are new.
void InThread(const std::function<void()>& run) { std::jthread{run}.join(); }

class ScratchTest : public ::testing::Test {
 protected:
  ScratchTest() {
    api::OperatorSpec resize = Op(api::OperatorKind::kResize);
    resize.shorter_side = 64;
    pipeline_ = *Pipeline::Create(
        {Op(api::OperatorKind::kDecode), resize, SizedOp(api::OperatorKind::kCenterCrop, 56, 56)},
        {0, 0, 3}, job::Split::kTrain);
    out_.resize(size_t(pipeline_->output_bytes()));
  }

  absl::Status Run(const source::RawSample& sample) { return pipeline_->Run(sample, {}, out_); }
  void MustRun(const source::RawSample& sample, int times = 1) {
    while (times-- > 0) EXPECT_TRUE(Run(sample).ok());
  }

  std::unique_ptr<Pipeline> pipeline_;
  std::vector<uint8_t> out_;
  const source::RawSample small_ = Grey(300, 400);
  const source::RawSample large_ = Grey(3000, 4000);  // 34 MiB of pixels
};

TEST_F(ScratchTest, OneLargePictureDoesNotStay) {
  InThread([this] {
    MustRun(small_, 3);
    EXPECT_GT(ScratchBytes(), 0u);
    MustRun(large_);
    EXPECT_LT(ScratchBytes(), 2 * kMebibyte);
  });
}

TEST_F(ScratchTest, LargePicturesInARowKeepTheirMemoryUntilThereAreNoMore) {
  InThread([this] {
    MustRun(large_, 2);
    for (int i = 0; i < 20; ++i) {
      MustRun(large_);
      EXPECT_GE(ScratchBytes(), 34 * kMebibyte);
    }
    MustRun(small_, RecentNeeds::kRemembered - 1);
    EXPECT_GE(ScratchBytes(), 34 * kMebibyte);
    MustRun(small_, 2);
    EXPECT_LT(ScratchBytes(), 2 * kMebibyte);
  });
}

TEST_F(ScratchTest, WhatFailsLeavesNothingBehind) {
  source::RawSample torn = large_;
  torn.bytes.resize(torn.bytes.size() / 2);
  InThread([&] {
    EXPECT_FALSE(Run(torn).ok());
    EXPECT_LT(ScratchBytes(), kMebibyte);
  });
}

TEST(RecentNeedsTest, TwiceWhatTheLastOnesNeeded) {
  RecentNeeds needs;
  EXPECT_EQ(needs.Limit(100 * kMebibyte), RecentNeeds::kAlwaysKept);
  for (size_t i = 0; i < RecentNeeds::kRemembered; ++i) {
    EXPECT_EQ(needs.Limit(1), 200 * kMebibyte);
  }
  EXPECT_EQ(needs.Limit(1), RecentNeeds::kAlwaysKept);
}

}  // namespace
}  // namespace hetero::pipeline
