// A job's stream does not know in which format its samples lie: the same pictures, as the formats'
// own libraries wrote them (tests/golden/make_datasets.py), have the same digest.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/fake_clock.h"
#include "runtime/feed/digest.h"
#include "runtime/feed/sample_producer.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::feed {
namespace {

api::HeteroTrainingJob JobOn(const std::string& folder, const api::SampleFields& fields = {}) {
  api::HeteroTrainingJob job;
  job.spec.training.seed = 11;
  job.spec.dataset.uri =
      absl::StrCat("file://" + testing::SourceDir() + "/tests/golden/datasets/", folder);
  job.spec.dataset.fields = fields;
  job.spec.pipeline = {{.op = api::OperatorKind::kDecode},
                       {.op = api::OperatorKind::kRandomResizedCrop, .size = api::Size{24, 24}},
                       {.op = api::OperatorKind::kHorizontalFlip}};
  return job;
}

// Of two epochs, and behind it the labels, which are no part of it; the error's message where there
// is one.
std::string DigestOf(const api::HeteroTrainingJob& job, int64_t samples = 12) {
  base::FakeClock clock;
  const auto producer = SampleProducer::Create(job, clock);
  if (!producer.ok()) return std::string(producer.status().message());
  EXPECT_EQ((*producer)->dataset(job::Split::kTrain).size(), samples);
  job::StreamDigest digest;
  std::string labels;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    Batch batch = (*producer)->Allocate({.epoch = epoch, .slots = {0, samples}}, NewSlab);
    for (int64_t i = 0; i < samples; ++i) {
      std::optional<BadSample> bad;
      const absl::Status produced = (*producer)->Produce(&batch, i, &bad);
      if (!produced.ok()) return std::string(produced.message());
      if (bad) return bad->reason;
    }
    for (const int64_t label : batch.labels) absl::StrAppend(&labels, " ", label);
    AddToDigest(static_cast<uint64_t>(job.spec.training.seed), batch, &digest);
  }
  return digest.ToHex() + labels;
}

TEST(FormatsTest, TheSamePicturesHaveTheSameDigest) {
  const std::string digest = DigestOf(JobOn("image_folder"));
  EXPECT_EQ(digest.find_first_not_of("0123456789abcdef "), std::string::npos) << digest;
  EXPECT_EQ(DigestOf(JobOn("web_dataset")), digest);
  EXPECT_EQ(DigestOf(JobOn("tf_record", {.label = {.offset = -1}})), digest);
  EXPECT_EQ(DigestOf(JobOn("mds")), digest);
  EXPECT_EQ(DigestOf(JobOn("mds_zstd")), digest);
  EXPECT_EQ(DigestOf(JobOn("record_io")), digest);
  EXPECT_EQ(DigestOf(JobOn("parquet")), digest);
  // Its pixels were decoded by another program than ours.
  EXPECT_EQ(DigestOf(JobOn("cifar10")), digest);
}

// A manifest in the order of the folder's listing.
TEST(FormatsTest, AManifestOfAFolderHasTheFoldersDigest) {
  api::HeteroTrainingJob job = JobOn("image_folder");
  const std::string digest = DigestOf(job);
  const auto folder = source::OpenDataset(job.spec.dataset, job::Split::kTrain, 11);
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::string lines = "path,label\n";
  source::RawSample sample;
  for (int64_t id = 0; id < (*folder)->size(); ++id) {
    ASSERT_TRUE((*folder)->Read(id, &sample).ok());
    absl::StrAppend(&lines, (*folder)->Describe(id), ",", (*folder)->ClassName(sample.label), "\n");
  }
  const testing::TemporaryFolder manifest;
  job.spec.dataset.uri = "file://" + manifest.Write("train.csv", lines);
  EXPECT_EQ(DigestOf(job), digest);
}

TEST(FormatsTest, OtherLabelsAreSeen) {
  EXPECT_NE(DigestOf(JobOn("tf_record")), DigestOf(JobOn("tf_record", {.label = {.offset = -1}})));
}

}  // namespace
}  // namespace hetero::feed
