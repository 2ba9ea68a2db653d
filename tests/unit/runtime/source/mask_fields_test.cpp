// Masks beside the pictures, in every format that has names for the parts of a sample.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/source/dataset.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"
#include "tests/unit/runtime/source/manifest_stores.h"
#include "tests/unit/runtime/source/tar_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kOne = "\xff\xd8\xff\xe0 one";
const std::string kTwo = "\x89PNG\r\n\x1a\n two";

// "3 <end of the picture> <mask>" of each sample, or why there is none.
std::vector<std::string> SamplesOf(const Dataset& dataset) {
  std::vector<std::string> samples;
  RawSample sample;
  for (int64_t id = 0; id < dataset.size(); ++id) {
    const absl::Status read = dataset.Read(id, &sample);
    EXPECT_TRUE(read.ok() || absl::IsDataLoss(read)) << read;
    samples.push_back(read.ok()
                          ? absl::StrCat(sample.label,
                                         std::string(sample.bytes.end() - 4, sample.bytes.end()),
                                         " ", std::string(sample.mask.begin(), sample.mask.end()))
                          : std::string(read.message()));
  }
  return samples;
}

class MaskFieldsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const api::Label& label = {}) {
    api::DatasetSource source = source_;
    source.uri = folder_.Source().uri;
    return OpenDataset(source, job::Split::kTrain, 0, label);
  }
  std::unique_ptr<Dataset> MustOpen(const api::Label& label = {}) {
    auto dataset = Open(label);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return dataset.ok() ? *std::move(dataset) : nullptr;
  }
  void CopyGolden(const std::string& name) {
    std::filesystem::copy(absl::StrCat(testing::SourceDir() + "/tests/golden/datasets/", name),
                          folder_.path(), std::filesystem::copy_options::recursive);
  }

  DatasetFolder folder_;
  api::DatasetSource source_;
};

TEST_F(MaskFieldsTest, AWebDatasetsMaskIsAFileOfTheSample) {
  source_.fields.mask = "seg.png;mask";
  const std::string other(3000, 'x');
  folder_.Write("a.tar", std::string_view(TarOf({{"0.jpg", kOne},
                                                 {"0.seg.png", "first"},
                                                 {"0.cls", "2"},
                                                 {"x/1.cls", "1"},
                                                 {"x/1.SEG.png", "second"},
                                                 {"x/1.npy", other},
                                                 {"x/1.mask", "another"},
                                                 {"x/1.png", kTwo},
                                                 {"x/1.json", other},
                                                 {"2.mask", std::string(512, 'm')},
                                                 {"README", "no sample's"},
                                                 {"2.jpg", kOne},
                                                 {"2.cls", "0"}})));
  const auto dataset = MustOpen();
  EXPECT_THAT(SamplesOf(*dataset),
              ElementsAre("2 one first", "1 two second", "0 one " + std::string(512, 'm')));
  EXPECT_EQ(dataset->classes(), 3);
  // Without a mask they are other data, read from other places.
  source_.fields.mask.clear();
  const auto bare = MustOpen();
  EXPECT_THAT(SamplesOf(*bare), ElementsAre("2 one ", "1 two ", "0 one "));
  EXPECT_NE(dataset->fingerprint(), bare->fingerprint());
}

TEST_F(MaskFieldsTest, ArchivesWithLongNamesAreTakenApartToo) {
  CopyGolden("tar");
  for (const char* format : {"pax.tar", "gnu.tar"}) {
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      if (file.path().filename() != format) continue;
      // A sample's name is followed by its parts', so one part is the picture and the mask.
      source_.fields.image = source_.fields.mask = "jpg";
      source_.fields.label = {};
      api::DatasetSource source = source_;
      source.uri = folder_.Source().uri + "/" + format;
      const auto dataset =
          OpenDataset(source, job::Split::kTrain, 0, {.type = api::LabelType::kNone});
      ASSERT_TRUE(dataset.ok()) << dataset.status();
      ASSERT_EQ((*dataset)->size(), 4);
      RawSample sample;
      for (int64_t id = 0; id < 4; ++id) {
        // Dots: they were found, and are no picture.
        EXPECT_THAT(std::string((*dataset)->Read(id, &sample).message()),
                    HasSubstr("the picture: not a JPEG or PNG file (starts with"));
        EXPECT_EQ(sample.mask, sample.bytes);
        EXPECT_FALSE(sample.mask.empty());
      }
    }
  }
}

TEST_F(MaskFieldsTest, NumbersStayBesideAMaskOfAWebDataset) {
  source_.fields.mask = "seg.png";
  folder_.Write(
      "a.tar", std::string_view(TarOf(
                   {{"0.json", R"({"label": [1, 2]})"}, {"0.seg.png", "first"}, {"0.jpg", kOne}})));
  const auto dataset = MustOpen({.type = api::LabelType::kInt64, .shape = {2}});
  RawSample sample;
  ASSERT_TRUE(dataset->Read(0, &sample).ok());
  EXPECT_EQ(std::string(sample.mask.begin(), sample.mask.end()), "first");
  int64_t numbers[2];
  ASSERT_EQ(sample.fields.size(), sizeof numbers);
  std::memcpy(numbers, sample.fields.data(), sizeof numbers);
  EXPECT_THAT(numbers, ElementsAre(1, 2));
}

TEST_F(MaskFieldsTest, ASampleOfAWebDatasetWithoutItsMaskIsABadOne) {
  source_.fields.mask = "seg.png";
  folder_.Write("a.tar", std::string_view(TarOf({{"0.jpg", kOne},
                                                 {"0.cls", "0"},
                                                 {"1.jpg", kOne},
                                                 {"1.cls", "0"},
                                                 {"1.seg.png", "there"},
                                                 {"2.jpg", kOne},
                                                 {"2.mask.png", "there"},
                                                 {"2.cls", "0"}})));
  EXPECT_THAT(SamplesOf(*MustOpen()),
              ElementsAre(AllOf(HasSubstr("a.tar: byte 0: has no mask under seg.png"),
                                HasSubstr("dataset.fields.mask")),
                          "0 one there", HasSubstr("has no mask under seg.png")));
}

TEST_F(MaskFieldsTest, ATfRecordsMaskIsAFeature) {
  CopyGolden("tf_record");
  source_.fields = {.label = {.offset = -1}, .mask = "mask;image/filename"};
  const auto dataset = MustOpen();
  ASSERT_EQ(dataset->size(), 12);
  EXPECT_THAT(SamplesOf(*dataset)[5], HasSubstr(" 1.png"));
  source_.fields.mask = "seg";
  EXPECT_THAT(SamplesOf(*MustOpen())[5],
              AllOf(HasSubstr("has no feature seg; has"), HasSubstr("image/encoded (bytes)"),
                    HasSubstr("name the mask's in dataset.fields.mask")));
  source_.fields.mask = "box";
  EXPECT_THAT(SamplesOf(*MustOpen())[5], HasSubstr("box is no mask"));
}

TEST_F(MaskFieldsTest, AnMdsDatasetsMaskIsAColumn) {
  CopyGolden("mds");
  source_.fields.mask = "image";
  const auto dataset = MustOpen();
  RawSample sample;
  ASSERT_TRUE(dataset->Read(7, &sample).ok());
  EXPECT_EQ(sample.mask, sample.bytes);
  source_.fields.mask = "seg";
  EXPECT_THAT(std::string(Open().status().message()),
              AllOf(HasSubstr("has no column seg; has"), HasSubstr("dataset.fields.mask")));
  source_.fields.mask = "name";
  EXPECT_THAT(std::string(Open().status().message()),
              HasSubstr("has masks of the encoding str in the column name"));
}

TEST_F(MaskFieldsTest, AParquetFilesMaskIsAColumn) {
  for (const char* name : {"parquet", "parquet_usual", "parquet_pages", "parquet_gzip"}) {
    SCOPED_TRACE(name);
    api::DatasetSource source;
    source.uri = absl::StrCat("file://", testing::SourceDir(), "/tests/golden/datasets/", name);
    source.format = api::DatasetFormat::kParquet;
    source.fields.mask = "image.bytes;image";
    const auto dataset = OpenDataset(source, job::Split::kTrain, 0);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    RawSample sample;
    for (const int64_t id : {11, 0, 7}) {
      ASSERT_TRUE((*dataset)->Read(id, &sample).ok());
      EXPECT_EQ(sample.mask, sample.bytes);
      EXPECT_EQ(sample.label, id / 4);
    }
  }
  CopyGolden("parquet");
  source_.format = api::DatasetFormat::kParquet;
  source_.fields.mask = "image.path";
  EXPECT_THAT(SamplesOf(*MustOpen())[9], HasSubstr("1.png"));
  EXPECT_THAT(SamplesOf(*MustOpen({.type = api::LabelType::kNone}))[2], HasSubstr("2.png"));
  source_.fields.mask = "label";
  EXPECT_THAT(std::string(Open().status().message()),
              HasSubstr("column label is INT64, and a mask is a BYTE_ARRAY"));
  source_.fields.mask = "seg";
  EXPECT_THAT(std::string(Open().status().message()),
              AllOf(HasSubstr("has no column seg"), HasSubstr("dataset.fields.mask")));
}

TEST_F(MaskFieldsTest, AManifestsMaskIsAnotherPath) {
  ManifestStores stores;
  HeldStore& bucket = stores.At("s3://bucket");
  bucket.Put("lists/a.jpg", kOne);
  bucket.Put("lists/b.png", kTwo);
  bucket.Put("lists/masks/a.png", "first");
  stores.At("s3://other").Put("b.png", "second");
  api::DatasetSource source;
  source.fields.mask = "seg";
  const auto expect = [&](const std::string& text, const std::string& name) {
    const auto dataset = stores.OpenText(text, {}, source, name);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_THAT(SamplesOf(**dataset),
                ElementsAre("0 one first", "1 two second",
                            AllOf(HasSubstr("a.jpg: has no mask; line"), HasSubstr(name)),
                            AllOf(HasSubstr("a.jpg: its mask:"), HasSubstr("masks/none.png"))));
    source.fields.mask = "depth";
    const auto other = stores.OpenText(text, {}, source, name);
    source.fields.mask = "seg";
    // Lines may lack what others have; a table has one header.
    if (name.ends_with(".csv")) {
      EXPECT_THAT(std::string(other.status().message()),
                  AllOf(HasSubstr("line 1: is a header without a column depth"),
                        HasSubstr("dataset.fields.mask")));
    } else {
      EXPECT_THAT(SamplesOf(**other)[0], HasSubstr("has no mask; line 1"));
    }
  };
  source.fields.label.field = "label";
  source.fields.image = "path";
  expect(
      "path,seg,label\na.jpg,masks/a.png,0\nb.png,s3://other/b.png,1\na.jpg,,1\n"
      "a.jpg,masks/none.png,1\n",
      "m.csv");
  expect(R"({"path": "a.jpg", "seg": "masks/a.png", "label": 0})"
         "\n"
         R"({"path": "b.png", "seg": "s3://other/b.png", "label": 1})"
         "\n"
         R"({"path": "a.jpg", "label": 1})"
         "\n"
         R"({"path": "a.jpg", "seg": "masks/none.png", "label": 1})"
         "\n",
         "m.manifest");
}

TEST_F(MaskFieldsTest, OfAManifestBelongToWhatTheDataIs) {
  ManifestStores stores;
  api::DatasetSource source;
  source.fields = {.image = "path", .label = {.field = "label"}, .mask = "seg"};
  const auto print = [&](const std::string& mask) {
    return (*stores.OpenText("path,seg,label\na.jpg," + mask + ",0\n", {}, source, "m.csv"))
        ->fingerprint();
  };
  EXPECT_EQ(print("a.png"), print("a.png"));
  EXPECT_NE(print("a.png"), print("b.png"));
}

TEST_F(MaskFieldsTest, FormatsWithoutThemSaySo) {
  for (const auto& [folder, format] :
       {std::pair{"record_io", api::DatasetFormat::kRecordIo},
        std::pair{"cifar10", api::DatasetFormat::kCifar10},
        std::pair{"image_folder", api::DatasetFormat::kImageFolder}}) {
    api::DatasetSource source;
    source.uri = absl::StrCat("file://", testing::SourceDir(), "/tests/golden/datasets/", folder);
    source.format = format;
    source.fields.mask = "seg";
    const absl::Status opened = OpenDataset(source, job::Split::kTrain, 0).status();
    EXPECT_TRUE(absl::IsInvalidArgument(opened)) << opened;
    EXPECT_THAT(std::string(opened.message()), HasSubstr("fields"));
  }
}

}  // namespace
}  // namespace hetero::source
