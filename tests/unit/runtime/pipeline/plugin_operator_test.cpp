#include "runtime/pipeline/plugin_operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/support/paths.h"
#include "tests/unit/runtime/pipeline/fixtures.h"

// Plugins are real shared libraries: the example, and three that are wrong.
namespace hetero::pipeline {
namespace {

using job::Split;
using ::testing::HasSubstr;

api::OperatorSpec Plugin(const std::string& path, const std::string& name,
                         std::map<std::string, std::string> parameters = {}) {
  api::OperatorSpec spec = Op(api::OperatorKind::kPlugin);
  spec.path = path;
  spec.name = name;
  spec.parameters = std::move(parameters);
  return spec;
}

void ExpectRefused(const api::OperatorSpec& spec, const std::string& part) {
  const auto pipeline = Pipeline::Create({spec}, {8, 8, 3}, Split::kTrain);
  ASSERT_FALSE(pipeline.ok()) << part;
  EXPECT_THAT(std::string(pipeline.status().message()), HasSubstr("spec.pipeline[0] (Plugin) "));
  EXPECT_THAT(std::string(pipeline.status().message()), HasSubstr(part));
}

std::vector<uint8_t> Produce(const api::OperatorSpec& spec, const Image& image,
                             const SampleKey& key = {}, Split split = Split::kTrain) {
  const auto pipeline = Pipeline::Create({spec}, image.shape, split);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  if (!pipeline.ok()) return {};
  std::vector<uint8_t> out(size_t((*pipeline)->output_bytes()));
  const absl::Status status = (*pipeline)->Run(RawSampleOf(image), key, out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

// What the misbehaving operator `name` makes of one picture.
absl::Status StatusOf(const std::string& name) {
  const auto pipeline =
      Pipeline::Create({Plugin(HETERO_MISBEHAVING_PLUGIN, name)}, {8, 8, 3}, Split::kTrain);
  if (!pipeline.ok()) return pipeline.status();
  std::vector<uint8_t> out(size_t((*pipeline)->output_bytes()));
  return (*pipeline)->Run(RawSampleOf(NoiseImage({8, 8, 3})), {}, out);
}

TEST(PluginOperator, TheExampleMakesAMosaic) {
  const Image in = NoiseImage({10, 13, 3});
  const auto out = Produce(Plugin(HETERO_EXAMPLE_PLUGIN, "Mosaic", {{"block", "4"}}), in);
  ASSERT_EQ(out.size(), in.bytes.size());
  for (int32_t y = 0; y < 10; ++y) {
    for (int32_t x = 0; x < 13; ++x) {
      for (int32_t c = 0; c < 3; ++c) {
        int sum = 0, count = 0;
        for (int32_t v = y / 4 * 4; v < std::min(y / 4 * 4 + 4, 10); ++v) {
          for (int32_t u = x / 4 * 4; u < std::min(x / 4 * 4 + 4, 13); ++u, ++count) {
            sum += in.row(v)[u * 3 + c];
          }
        }
        ASSERT_EQ(out[size_t((y * 13 + x) * 3 + c)], (sum + count / 2) / count);
      }
    }
  }
}

TEST(PluginOperator, ItsRandomNumbersFollowTheSample) {
  const Image in = NoiseImage({40, 40, 3});
  const auto spec = Plugin(HETERO_EXAMPLE_PLUGIN, "SaltAndPepper", {{"probability", "0.25"}});
  const auto first = Produce(spec, in, {1, 2, 3});
  EXPECT_EQ(Produce(spec, in, {1, 2, 3}), first);
  EXPECT_NE(Produce(spec, in, {1, 2, 4}), first);
  int changed = 0;
  for (size_t i = 0; i < first.size(); i += 3) {
    changed += !std::equal(first.begin() + std::ptrdiff_t(i), first.begin() + std::ptrdiff_t(i) + 3,
                           in.bytes.begin() + std::ptrdiff_t(i));
  }
  EXPECT_NEAR(changed, 400, 80);
  // The deterministic form.
  EXPECT_EQ(Produce(spec, in, {1, 2, 3}, Split::kValidation), in.bytes);
}

TEST(PluginOperator, ManyThreadsShareOneOperator) {
  const Image in = NoiseImage({64, 64, 3});
  const auto spec = Plugin(HETERO_EXAMPLE_PLUGIN, "SaltAndPepper", {{"probability", "0.5"}});
  const auto pipeline = Pipeline::Create({spec}, in.shape, Split::kTrain);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const auto expected = Produce(spec, in, {7, 8, 9});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::vector<uint8_t> out(expected.size());
      for (int k = 0; k < 50; ++k) {
        ASSERT_TRUE((*pipeline)->Run(RawSampleOf(in), {7, 8, 9}, out).ok());
        ASSERT_EQ(out, expected);
      }
    });
  }
}

TEST(PluginOperator, PicturesOfAnySizePassThroughTheExample) {
  const auto pipeline = Pipeline::Create({Plugin(HETERO_EXAMPLE_PLUGIN, "Mosaic", {{"block", "4"}}),
                                          SizedOp(api::OperatorKind::kResize, 6, 6)},
                                         {0, 0, 3}, Split::kTrain);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  std::vector<uint8_t> out(6 * 6 * 3);
  EXPECT_TRUE((*pipeline)->Run(RawSampleOf(NoiseImage({11, 9, 3})), {}, out).ok());
}

TEST(PluginOperator, WhatCannotBeLoadedIsExplained) {
  ExpectRefused(Plugin("/nowhere/plugin.so", "Mosaic"), "cannot read /nowhere/plugin.so");
  ExpectRefused(Plugin(testing::SourceDir() + "/README.md", "Mosaic"), "cannot load");
  ExpectRefused(Plugin(HETERO_NO_TABLE_PLUGIN, "Mosaic"), "does not export hetero_operator_table");
  ExpectRefused(Plugin(HETERO_OTHER_VERSION_PLUGIN, "Mosaic"),
                "was built for version 2 of the plugin interface and this program takes version 1");
  ExpectRefused(Plugin(HETERO_EXAMPLE_PLUGIN, "Posaic"), "no operator of that name");
  ExpectRefused(Plugin(HETERO_EXAMPLE_PLUGIN, "Mosaic"), "Mosaic: needs parameter block");
  ExpectRefused(Plugin(HETERO_EXAMPLE_PLUGIN, "Mosaic", {{"block", "x"}}),
                "parameter block: \"x\" must be");
  ExpectRefused(Plugin(HETERO_MISBEHAVING_PLUGIN, "MakesNothing"),
                "makes 0x8x3 of 8x8x3, which is no picture");
}

TEST(PluginOperator, AnExceptionIsAFailureAndABadPictureABadSample) {
  const absl::Status thrown = StatusOf("Throws");
  EXPECT_EQ(thrown.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(thrown.message()),
              HasSubstr("plugin operator Throws: the disk is on fire"));
  EXPECT_EQ(StatusOf("ThrowsAnInt").code(), absl::StatusCode::kInternal);
  const absl::Status refused = StatusOf("RefusesPictures");
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("too dark"));
}

TEST(PluginOperator, AnotherShapeThanAnnouncedIsNoticed) {
  const absl::Status changed = StatusOf("ChangesItsMind");
  EXPECT_EQ(changed.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(changed.message()), HasSubstr("instead of"));
  const absl::Status wrote = StatusOf("WritesTooMuch");
  EXPECT_EQ(wrote.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(wrote.message()), HasSubstr("wrote past its result"));
}

}  // namespace
}  // namespace hetero::pipeline
