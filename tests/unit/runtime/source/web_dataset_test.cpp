#include "runtime/source/web_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/unit/runtime/source/dataset_files.h"
#include "tests/unit/runtime/source/tar_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kJpegText = "\xff\xd8\xff\xe0 one";
const std::string kPngText = "\x89PNG\r\n\x1a\n two";

class WebDatasetTest : public ::testing::Test {
 protected:
  void Write(const std::string& file,
             const std::vector<std::pair<std::string, std::string>>& members) {
    folder_.Write(file, std::string_view(TarOf(members)));
  }
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const api::Label& label = {}) {
    api::DatasetSource source = source_;
    if (source.uri.empty()) source.uri = folder_.Source().uri;
    return OpenDataset(source, job::Split::kTrain, 0, label);
  }
  std::string Error(const api::Label& label = {}) {
    return std::string(Open(label).status().message());
  }
  // "png 3 <bytes>" of each sample.
  std::vector<std::string> Samples(const Dataset& dataset) {
    std::vector<std::string> samples;
    RawSample sample;
    for (int64_t id = 0; id < dataset.size(); ++id) {
      const absl::Status read = dataset.Read(id, &sample);
      if (!read.ok()) {
        samples.emplace_back(read.message());
        continue;
      }
      samples.push_back(std::string(sample.encoding == Encoding::kPng ? "png " : "jpeg ") +
                        std::to_string(sample.label) + " " +
                        std::string(sample.bytes.end() - 3, sample.bytes.end()));
    }
    return samples;
  }

  DatasetFolder folder_;
  api::DatasetSource source_;
};

TEST_F(WebDatasetTest, ConsecutiveFilesOfOneNameAreASample) {
  Write("b.tar", {{"x/0.cls", "1\n"}, {"x/0.JPG", kJpegText}, {"README", "no field"}});
  Write("a.tar", {{"__meta__", "passed over"},
                  {"0.png", kPngText},
                  {"0.seg.png", "another field"},
                  {"0.cls", " 2"},
                  {"a.b/1.jpeg", kJpegText},
                  {"a.b/1.cls", "0"}});
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Samples(**dataset), ElementsAre("png 2 two", "jpeg 0 one", "jpeg 1 one"));
  EXPECT_EQ((*dataset)->classes(), 3);
  EXPECT_EQ((*dataset)->image(), api::ImageShape{});
  EXPECT_EQ((*dataset)->Describe(2), folder_.Source().uri + "/b.tar: byte 1536");
}

TEST_F(WebDatasetTest, DeeplyNestedLabelsAreAnErrorAndNothingElse) {
  const std::string deep(1'000'000, '[');
  Write("a.tar", {{"0.jpg", kJpegText},
                  {"0.json", R"({"label": )" + deep + std::string(deep.size(), ']') + "}"}});
  source_.fields.label.field = "json/label";
  EXPECT_THAT(Error(), HasSubstr("has no whole number at label"));
  EXPECT_THAT(Error({.type = api::LabelType::kInt64, .shape = {2}}),
              HasSubstr("has a list of 1, not of 2"));
  source_.fields.label.field = "json";
  EXPECT_THAT(Error({.type = api::LabelType::kInt64, .shape = {2}}), HasSubstr("is no list of 2"));
}

TEST_F(WebDatasetTest, FieldsMayHaveOtherNames) {
  Write("a.tar", {{"0.left.jpg", kJpegText},
                  {"0.right.jpg", kPngText},
                  {"0.json", R"({"image": {"category": 11}, "box": [0.5, 2]})"}});
  source_.fields.image = "middle.jpg;RIGHT.jpg";
  source_.fields.label = {.field = "json/image/category", .offset = -10};
  auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Samples(**dataset), ElementsAre("png 1 two"));

  source_.fields.label = {.field = "json/box"};
  dataset = Open({api::LabelType::kFloat32, {2}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  RawSample sample;
  ASSERT_TRUE((*dataset)->Read(0, &sample).ok());
  float box[2];
  ASSERT_EQ(sample.fields.size(), sizeof box);
  std::memcpy(box, sample.fields.data(), sizeof box);
  EXPECT_THAT(box, ElementsAre(0.5f, 2.0f));

  source_.fields.label = {};
  EXPECT_TRUE(Open({api::LabelType::kNone}).ok());
}

TEST_F(WebDatasetTest, LabelsThatAreNoneAreFoundAtOnce) {
  Write("a.tar",
        {{"0.jpg", kJpegText}, {"0.cls", "0"}, {"k/1.jpg", kJpegText}, {"k/1.cls", "cat"}});
  EXPECT_THAT(Error(), AllOf(HasSubstr("a.tar: byte 2048: sample k/1"), HasSubstr("\"cat\""),
                             HasSubstr("dataset.fields.label.field")));
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.json", R"({"label": 1.5})"}});
  EXPECT_THAT(Error(), AllOf(HasSubstr("no label under cls"), HasSubstr("has jpg, json")));
  source_.fields.label.field = "json/label";
  EXPECT_THAT(Error(), HasSubstr("no whole number at label"));
  source_.fields.label.field = "json/class";
  EXPECT_THAT(Error(), HasSubstr("json has no class"));
  EXPECT_THAT(Error({api::LabelType::kFloat32, {2}}), HasSubstr("has no class"));
  source_.fields.label.field = "json/label";
  EXPECT_THAT(Error({api::LabelType::kFloat32, {2}}), HasSubstr("is no list of 2"));
}

// frame.000001.jpg, frame.000002.jpg, ...: all of them are files of one sample, "frame".
TEST_F(WebDatasetTest, ASampleOfThousandsOfFilesIsToldSoShortly) {
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 3000; ++i) files.push_back({absl::StrCat("frame.", i, ".jpg"), "x"});
  Write("a.tar", files);
  EXPECT_THAT(Error(), AllOf(HasSubstr("sample frame has more than 1000 files"),
                             HasSubstr("before the first dot")));
  EXPECT_LT(Error().size(), 1000u);
}

TEST_F(WebDatasetTest, ASampleWithoutPictureOrWithAFieldTwice) {
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.cls", "0"}, {"1.gif", "x"}, {"1.cls", "0"}});
  EXPECT_THAT(Error(), AllOf(HasSubstr("sample 1 has no picture under jpg, png, jpeg"),
                             HasSubstr("has gif, cls"), HasSubstr("dataset.fields.image")));
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.cls", "0"}, {"0.JPG", kJpegText}});
  EXPECT_THAT(Error(), AllOf(HasSubstr("the field jpg twice"), HasSubstr("byte 2048")));
  // Not one behind the other: two samples, as webdataset itself has it.
  Write("a.tar", {{"0.jpg", kJpegText}, {"1.jpg", kJpegText}, {"1.cls", "0"}, {"0.cls", "0"}});
  EXPECT_THAT(Error(), HasSubstr("sample 0 has no label"));
}

TEST_F(WebDatasetTest, PackedArchivesAreRefused) {
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.cls", "0"}});
  Write("b.tar.gz", {});
  EXPECT_THAT(Error(), AllOf(HasSubstr("b.tar.gz"), HasSubstr("gunzip")));
}

TEST_F(WebDatasetTest, ARangeNamesTheArchives) {
  for (int i = 8; i < 12; ++i) {
    char name[16];
    std::snprintf(name, sizeof name, "s-%02d.tar", i);
    Write(name, {{"0.jpg", kJpegText}, {"0.cls", std::to_string(i)}});
  }
  source_.uri = folder_.Source().uri + "/s-{09..10}.tar";
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Samples(**dataset), ElementsAre("jpeg 9 one", "jpeg 10 one"));
  source_.uri = folder_.Source().uri + "/s-{09..12}.tar";
  EXPECT_THAT(Error(), HasSubstr("s-12.tar"));
  source_.format = api::DatasetFormat::kImageFolder;
  EXPECT_THAT(Error(), HasSubstr("without ranges and files"));
}

TEST_F(WebDatasetTest, OneArchiveMayBeNamedAlone) {
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.cls", "1"}});
  Write("b.tar", {{"0.jpg", kJpegText}, {"0.cls", "2"}});
  source_.uri = folder_.Source().uri + "/b.tar";
  for (const auto format : {api::DatasetFormat::kAuto, api::DatasetFormat::kWebDataset}) {
    source_.format = format;
    const auto dataset = Open();
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_THAT(Samples(**dataset), ElementsAre("jpeg 2 one"));
  }
  for (const char* typo : {"c.rec", "c.tfrecord", "c.parquet", "c.tar.gz", "c.tgz", "c.tar"}) {
    source_.uri = absl::StrCat(folder_.Source().uri, "/", typo);
    source_.format = api::DatasetFormat::kAuto;
    EXPECT_THAT(Error(), AllOf(HasSubstr(typo), HasSubstr("no such folder or file")));
  }
  // A folder of such a name is one.
  std::filesystem::create_directory(folder_ / "c.tar");
  std::filesystem::copy(folder_ / "a.tar", folder_ / "c.tar");
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Samples(**dataset), ElementsAre("jpeg 1 one"));
}

TEST_F(WebDatasetTest, WhatTheManifestDeclaresIsChecked) {
  Write("a.tar", {{"0.jpg", kJpegText},
                  {"0.cls", "0"},
                  {"1.jpg", "GIF8"},
                  {"1.cls", "5"},
                  {"2.jpg", kJpegText},
                  {"2.cls", "5"}});
  source_.samples = 4;
  EXPECT_THAT(Error(), AllOf(HasSubstr("samples 4"), HasSubstr("has 3")));
  source_.samples = 3;
  source_.classes = 3;
  source_.image = api::ImageShape{8, 8, 3};
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->image(), (api::ImageShape{8, 8, 3}));
  EXPECT_THAT(Samples(**dataset),
              ElementsAre("jpeg 0 one", AllOf(HasSubstr("a.tar: byte 2560"), HasSubstr("47 49 46")),
                          HasSubstr("label 5 is not in [0, 3)")));
  RawSample sample;
  EXPECT_TRUE(absl::IsDataLoss((*dataset)->Read(2, &sample)));
  EXPECT_TRUE(absl::IsOutOfRange((*dataset)->Read(3, &sample)));
}

TEST_F(WebDatasetTest, TheFingerprintIsOfNamesSizesAndRules) {
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.cls", "0"}, {"0.json", "1"}});
  const std::string before = (*Open())->fingerprint();
  Write("a.tar", {{"0.jpg", kPngText}, {"0.cls", "0"}, {"0.json", "1"}});  // as long: 512 bytes
  EXPECT_EQ((*Open())->fingerprint(), before);
  source_.fields.label.field = "json/";
  EXPECT_FALSE(Open().ok());
  source_.fields.label.offset = 1;
  source_.fields.label.field = "cls";
  EXPECT_NE((*Open())->fingerprint(), before);
  source_ = {};
  Write("b.tar", {{"0.jpg", kJpegText}, {"0.cls", "0"}});
  EXPECT_NE((*Open())->fingerprint(), before);
}

// Storage that fails is no bad sample.
TEST_F(WebDatasetTest, AnArchiveThatChangesIsNoBadSample) {
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.cls", "0"}});
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok());
  Write("a.tar", {{"0.jpg", kJpegText}, {"0.cls", "0"}, {"1.jpg", kJpegText}, {"1.cls", "0"}});
  RawSample sample;
  const absl::Status read = (*dataset)->Read(0, &sample);
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("a.tar"));
}

}  // namespace
}  // namespace hetero::source
