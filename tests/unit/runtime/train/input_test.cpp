#include "runtime/train/device/input.h"

#include <gtest/gtest.h>

namespace hetero::train {
namespace {

const std::unique_ptr<Device> cpu = MakeCpuDevice();

feed::Batch MakeBatch(int64_t samples) {
  feed::Batch batch;
  batch.shape = {4, 5, 3};
  batch.images = feed::Slab(samples * 4 * 5 * 3);
  for (int64_t i = 0; i < batch.images.size(); ++i) {
    batch.images.data()[i] = static_cast<uint8_t>(i * 37 % 256);
  }
  for (int64_t i = 0; i < samples; ++i) batch.labels.push_back(static_cast<int32_t>(i * 3));
  return batch;
}

TEST(InputConverterTest, NormalisesEveryChannelInBothLayouts) {
  const feed::Batch batch = MakeBatch(6);
  const pipeline::TensorConversion conversion = {
      .unit_scale = true, .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
  for (bool channels_last : {false, true}) {
    const InputConverter input(conversion, 3, channels_last, *cpu);
    const torch::Tensor images = input.Images(batch, 2, 3);
    ASSERT_EQ(images.sizes(), torch::IntArrayRef({3, 3, 4, 5}));
    EXPECT_TRUE(images.is_contiguous(channels_last ? torch::MemoryFormat::ChannelsLast
                                                   : torch::MemoryFormat::Contiguous));
    for (int64_t n = 0; n < 3; ++n) {
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t at = (((n + 2) * 4 + 3) * 5 + 1) * 3 + c;
        const auto channel = static_cast<size_t>(c);
        const double want =
            (batch.images.data()[at] / 255.0 - conversion.mean[channel]) / conversion.std[channel];
        EXPECT_NEAR(images[n][c][3][1].item<double>(), want, 1e-5);
      }
    }
  }
}

TEST(InputConverterTest, CastAloneKeepsTheValues) {
  const feed::Batch batch = MakeBatch(1);
  const torch::Tensor images =
      InputConverter({.unit_scale = false}, 3, false, *cpu).Images(batch, 0, 1);
  EXPECT_EQ(images.dtype(), torch::kFloat32);
  EXPECT_EQ(images[0][1][0][0].item<float>(), 37);
}

TEST(InputConverterTest, LabelsOfAPartOfTheBatch) {
  const feed::Batch batch = MakeBatch(6);
  const torch::Tensor labels = InputConverter({}, 3, false, *cpu).Labels(batch, 4, 2);
  EXPECT_TRUE(labels.equal(torch::tensor({12, 15}, torch::kInt64)));
}

}  // namespace
}  // namespace hetero::train
