#include "runtime/source/synthetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <thread>

#include "base/crc32c.h"
#include "hwy/highway.h"

namespace hetero::source {
namespace {

using ::testing::HasSubstr;

api::DatasetSource Source(int64_t samples, int32_t classes, api::ImageShape image) {
  api::DatasetSource source;
  source.uri = "synthetic://";
  source.samples = samples;
  source.classes = classes;
  source.image = image;
  return source;
}

std::unique_ptr<Dataset> Open(const api::DatasetSource& source,
                              job::Split split = job::Split::kTrain, uint64_t seed = 1) {
  auto dataset = OpenDataset(source, split, seed);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return *std::move(dataset);
}

std::vector<uint8_t> Read(const Dataset& dataset, int64_t id) {
  RawSample sample;
  EXPECT_TRUE(dataset.Read(id, &sample).ok());
  return sample.bytes;
}

TEST(SyntheticTest, HasTheDeclaredShapeAndEveryClass) {
  const auto dataset = Open(Source(25, 10, {7, 5, 3}));
  EXPECT_EQ(dataset->size(), 25);
  EXPECT_EQ(dataset->classes(), 10);
  EXPECT_EQ(dataset->image(), (api::ImageShape{7, 5, 3}));
  std::array<int, 10> seen{};
  RawSample sample;
  for (int64_t id = 0; id < 25; ++id) {
    ASSERT_TRUE(dataset->Read(id, &sample).ok());
    EXPECT_EQ(sample.encoding, Encoding::kRaw);
    EXPECT_EQ(sample.shape, dataset->image());
    EXPECT_EQ(sample.bytes.size(), 7u * 5 * 3);
    ++seen[sample.label];
  }
  for (const int count : seen) EXPECT_GE(count, 2);
  EXPECT_EQ(dataset->Read(25, &sample).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(dataset->Read(-1, &sample).code(), absl::StatusCode::kOutOfRange);
}

// Jobs that resume, and digests that others wrote down, need the same pictures forever.
TEST(SyntheticTest, PicturesNeverChangeOnAnyInstructionSet) {
  struct Case {
    api::ImageShape shape;
    int64_t id;
    uint32_t crc;
  };
  const std::vector<Case> cases = {
      {{224, 224, 3}, 0, 4169349352},   {{224, 224, 3}, 12345, 288243746},
      {{28, 28, 1}, 7, 2156040802},     {{7, 5, 3}, 16, 2579620110},
      {{33, 1001, 4}, 999, 3875381298}, {{1, 1, 1}, 3, 2597397177}};
  for (const Case& c : cases) {
    const auto dataset = Open(Source(64000, 1000, c.shape));
    for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
      hwy::SetSupportedTargetsForTest(rest & -rest);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      const std::vector<uint8_t> bytes = Read(*dataset, c.id);
      EXPECT_EQ(base::Crc32c(bytes.data(), bytes.size()), c.crc)
          << c.id << " " << hwy::TargetName(rest & -rest);
      hwy::SetSupportedTargetsForTest(0);
    }
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(SyntheticTest, IsAFunctionOfSeedSplitAndId) {
  const api::DatasetSource source = Source(100, 10, {8, 8, 3});
  const auto train = Open(source);
  const auto again = Open(source);
  const auto validation = Open(source, job::Split::kValidation);
  const auto reseeded = Open(source, job::Split::kTrain, 2);
  for (int64_t id = 0; id < 100; ++id) {
    const std::vector<uint8_t> bytes = Read(*train, id);
    EXPECT_EQ(bytes, Read(*again, id));
    EXPECT_NE(bytes, Read(*validation, id));
    EXPECT_NE(bytes, Read(*reseeded, id));
    if (id > 9) {
      EXPECT_NE(bytes, Read(*train, id - 10));  // the same class
    }
  }
  EXPECT_EQ(train->fingerprint(), again->fingerprint());
  EXPECT_NE(train->fingerprint(), validation->fingerprint());
  EXPECT_NE(train->fingerprint(), reseeded->fingerprint());
}

// The stream of samples may not change between builds or machines. The sum was computed by a
// separate program in Python that follows the formulas in synthetic.cpp pixel by pixel.
TEST(SyntheticTest, BytesAreFrozen) {
  const auto dataset = Open(Source(1000, 10, {224, 224, 3}), job::Split::kTrain, 42);
  uint64_t sum = 0;
  for (const uint8_t byte : Read(*dataset, 123)) sum = sum * 31 + byte;
  EXPECT_EQ(sum, 1514664061828082018u);
}

TEST(SyntheticTest, NearestClassMeanFindsTheClass) {
  constexpr int kClasses = 20;
  const api::DatasetSource source = Source(400, kClasses, {16, 16, 3});
  const auto train = Open(source);
  const auto validation = Open(source, job::Split::kValidation);
  const size_t bytes = 16 * 16 * 3;
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(bytes));
  RawSample sample;
  for (int64_t id = 0; id < 400; ++id) {
    ASSERT_TRUE(train->Read(id, &sample).ok());
    for (size_t i = 0; i < bytes; ++i) means[sample.label][i] += sample.bytes[i] / 20.0;
  }
  int right = 0;
  for (int64_t id = 0; id < 400; ++id) {
    ASSERT_TRUE(validation->Read(id, &sample).ok());
    int best = 0;
    double best_distance = HUGE_VAL;
    for (int label = 0; label < kClasses; ++label) {
      double distance = 0;
      for (size_t i = 0; i < bytes; ++i) {
        const double difference = means[label][i] - sample.bytes[i];
        distance += difference * difference;
      }
      if (distance < best_distance) {
        best_distance = distance;
        best = label;
      }
    }
    right += best == sample.label;
  }
  EXPECT_GT(right, 300);
}

TEST(SyntheticTest, MissingFieldsAreNamed) {
  for (const char* missing : {"samples", "classes", "image"}) {
    api::DatasetSource source = Source(10, 2, {4, 4, 1});
    if (missing == std::string("samples")) source.samples.reset();
    if (missing == std::string("classes")) source.classes.reset();
    if (missing == std::string("image")) source.image.reset();
    const absl::Status status = OpenDataset(source, job::Split::kTrain, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::string("dataset.") + missing + " is missing"));
  }
  EXPECT_FALSE(OpenDataset(Source(0, 2, {4, 4, 1}), job::Split::kTrain, 0).ok());
  EXPECT_FALSE(OpenDataset(Source(1, 2, {4, 0, 1}), job::Split::kTrain, 0).ok());
  EXPECT_FALSE(OpenDataset(Source(1, 2, {4, 1 << 30, 1}), job::Split::kTrain, 0).ok());
}

TEST(SyntheticTest, ManyThreadsReadAtOnce) {
  const auto dataset = Open(Source(50, 5, {9, 9, 1}));
  std::vector<std::vector<uint8_t>> expected;
  for (int64_t id = 0; id < 50; ++id) expected.push_back(Read(*dataset, id));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        RawSample sample;
        for (int64_t i = 0; i < 500; ++i) {
          const int64_t id = (i * (t + 1)) % 50;
          if (!dataset->Read(id, &sample).ok() || sample.bytes != expected[id]) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hetero::source
