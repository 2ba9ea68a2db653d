#include "runtime/source/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/source/unpacked_archive.h"
#include "runtime/storage/file_store.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CifarTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> Open(job::Split split = job::Split::kTrain,
                                                const api::Label& label = {}) {
    api::DatasetSource source = source_;
    source.uri = folder_.Source().uri;
    return OpenDataset(source, split, 0, label);
  }
  std::string Error(job::Split split = job::Split::kTrain, const api::Label& label = {}) {
    return std::string(Open(split, label).status().message());
  }
  // A record whose pixel p of plane c is p + 85 c.
  static std::string Record(const std::string& labels) {
    std::string record = labels;
    for (int plane = 0; plane < 3; ++plane) {
      for (int pixel = 0; pixel < 1024; ++pixel) {
        record += static_cast<char>(pixel + 85 * plane);
      }
    }
    return record;
  }

  DatasetFolder folder_;
  api::DatasetSource source_;
};

// The pixels of the first picture are the formula's in tests/golden/make_datasets.py.
TEST_F(CifarTest, PlanesBecomePixels) {
  api::DatasetSource source;
  source.uri = "file://" + testing::SourceDir() + "/tests/golden/datasets/cifar10";
  const auto dataset = OpenDataset(source, job::Split::kTrain, 0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 12);
  EXPECT_EQ((*dataset)->classes(), 10);
  EXPECT_EQ((*dataset)->image(), (api::ImageShape{32, 32, 3}));
  EXPECT_EQ((*dataset)->ClassName(2), "ship");
  EXPECT_EQ((*dataset)->ClassName(9), "9");
  RawSample sample;
  ASSERT_TRUE((*dataset)->Read(6, &sample).ok());
  EXPECT_EQ(sample.encoding, Encoding::kRaw);
  EXPECT_EQ(sample.shape, (api::ImageShape{32, 32, 3}));
  EXPECT_EQ(sample.label, 1);
  Bytes wanted;
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      wanted.push_back(static_cast<uint8_t>(x * 16));
      wanted.push_back(static_cast<uint8_t>(y * 8 + 80));
      wanted.push_back(static_cast<uint8_t>(80 + x * y / 4));
    }
  }
  EXPECT_EQ(sample.bytes, wanted);

  const auto test = OpenDataset(source, job::Split::kValidation, 0);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->size(), 1);
  ASSERT_TRUE((*test)->Read(0, &sample).ok());
  EXPECT_EQ(sample.label, 2);
}

TEST_F(CifarTest, Cifar100HasFineAndCoarseLabels) {
  folder_.Write("train.bin", std::string_view(Record("\x07\x63") + Record("\x13\x05")));
  folder_.Write("coarse_label_names.txt", std::string_view("fish\r\nflowers\r\n"));
  auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->classes(), 100);
  RawSample sample;
  ASSERT_TRUE((*dataset)->Read(0, &sample).ok());
  EXPECT_EQ(sample.label, 99);
  EXPECT_EQ(sample.bytes[3 * 7 + 2], 7 + 170);
  source_.fields.label.field = "coarse";
  dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->classes(), 20);
  EXPECT_EQ((*dataset)->ClassName(1), "flowers");
  ASSERT_TRUE((*dataset)->Read(1, &sample).ok());
  EXPECT_EQ(sample.label, 19);
  source_.fields.label.field = "label";
  EXPECT_THAT(Error(), HasSubstr("fine and coarse"));
}

TEST_F(CifarTest, WhatDoesNotFitIsNamed) {
  folder_.Write("data_batch_1.bin", std::string_view(Record("\x03") + Record("\x0b")));
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  RawSample sample;
  const absl::Status read = (*dataset)->Read(1, &sample);
  EXPECT_TRUE(absl::IsDataLoss(read));
  EXPECT_THAT(std::string(read.message()),
              AllOf(HasSubstr("data_batch_1.bin: byte 3073"), HasSubstr("label 11")));
  EXPECT_THAT(Error(job::Split::kValidation), HasSubstr("test_batch.bin"));
  EXPECT_THAT(Error(job::Split::kTrain, {api::LabelType::kInt64}), HasSubstr("Class"));
  EXPECT_TRUE(Open(job::Split::kTrain, {api::LabelType::kNone}).ok());
  source_.classes = 9;
  EXPECT_THAT(Error(), HasSubstr("classes 9"));
  source_.classes = 10;
  source_.image = api::ImageShape{28, 28, 1};
  EXPECT_THAT(Error(), HasSubstr("[32, 32, 3]"));
  source_ = {};
  source_.fields.image = "pixels";
  EXPECT_THAT(Error(), HasSubstr("dataset.fields"));
  source_ = {};
  folder_.Write("data_batch_2.bin", std::string_view(Record("\x03").substr(1)));
  EXPECT_THAT(Error(), AllOf(HasSubstr("data_batch_2.bin: 3072 bytes"), HasSubstr("3073")));
}

// As they are published, packed by the system's tar.
class CifarArchiveTest : public CifarTest {
 protected:
  inline static const std::string kGolden = testing::SourceDir() + "/tests/golden/datasets/cifar10";

  // The golden files below cifar-10-batches-bin, named as `tar` is told.
  void Pack(const std::string& archive, const std::string& what = "cifar-10-batches-bin") {
    const std::string folder = packing_ / "cifar-10-batches-bin";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(kGolden, folder);
    const std::string command =
        absl::StrCat("tar -C ", packing_.path(), " -czf ", folder_ / archive, " ", what);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static std::unique_ptr<Dataset> Golden(job::Split split) {
    api::DatasetSource source;
    source.uri = absl::StrCat("file://", kGolden);
    return *OpenDataset(source, split, 0);
  }
  static void ExpectSame(const Dataset& dataset, const Dataset& golden) {
    ASSERT_EQ(dataset.size(), golden.size());
    EXPECT_EQ(dataset.ClassName(2), golden.ClassName(2));
    RawSample sample, wanted;
    for (int64_t id = 0; id < golden.size(); ++id) {
      ASSERT_TRUE(dataset.Read(id, &sample).ok());
      ASSERT_TRUE(golden.Read(id, &wanted).ok());
      EXPECT_EQ(sample.bytes, wanted.bytes);
      EXPECT_EQ(sample.label, wanted.label);
    }
  }

  DatasetFolder packing_;
};

TEST_F(CifarArchiveTest, HasTheSamplesOfItsFiles) {
  for (const char* what : {"cifar-10-batches-bin", "./cifar-10-batches-bin"}) {
    ASSERT_NO_FATAL_FAILURE(Pack("cifar-10-binary.tar.gz", what));
    for (const job::Split split : {job::Split::kTrain, job::Split::kValidation}) {
      const auto dataset = Open(split);
      ASSERT_TRUE(dataset.ok()) << dataset.status();
      ExpectSame(**dataset, *Golden(split));
      EXPECT_FALSE((*dataset)->is_remote());
      EXPECT_THAT((*dataset)->Describe(0),
                  HasSubstr("cifar-10-binary.tar.gz/cifar-10-batches-bin/"));
    }
  }
}

TEST_F(CifarArchiveTest, OfAnotherNameIsReadWhereTheFormatIsGivenAndIsTheOnlyOne) {
  ASSERT_NO_FATAL_FAILURE(Pack("mine.tgz"));
  EXPECT_THAT(Error(), HasSubstr("a compressed archive"));
  source_.format = api::DatasetFormat::kCifar10;
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ExpectSame(**dataset, *Golden(job::Split::kTrain));
  ASSERT_NO_FATAL_FAILURE(Pack("other.tar.gz"));
  EXPECT_THAT(Error(), AllOf(HasSubstr("2 archives"), HasSubstr("mine.tgz")));
  // The name that it is published by tells it from others.
  ASSERT_NO_FATAL_FAILURE(Pack("cifar-10-binary.tar.gz"));
  EXPECT_EQ((*Open())->size(), 12);
  // Unpacked files are what is meant where there are some.
  folder_.Write("data_batch_1.bin", std::string_view(Record(std::string(1, '\x03'))));
  EXPECT_EQ((*Open())->size(), 1);
}

TEST_F(CifarArchiveTest, OfCifar100HasBothSplitsAndBothLabels) {
  packing_.Write("cifar-100-binary/train.bin", std::string_view(Record("\x07\x63")));
  packing_.Write("cifar-100-binary/test.bin", std::string_view(Record("\x13\x05")));
  packing_.Write("cifar-100-binary/fine_label_names.txt", std::string_view("apple\nbear\n"));
  packing_.Write("cifar-100-binary/coarse_label_names.txt", std::string_view("fish\nflowers\n"));
  const std::string command = absl::StrCat("tar -C ", packing_.path(), " -czf ",
                                           folder_ / "cifar-100-binary.tar.gz", " ./");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  RawSample sample;
  for (const bool train : {true, false}) {
    const job::Split split = train ? job::Split::kTrain : job::Split::kValidation;
    source_.fields = {};
    const auto fine = Open(split);
    ASSERT_TRUE(fine.ok()) << fine.status();
    EXPECT_EQ((*fine)->size(), 1);
    EXPECT_EQ((*fine)->classes(), 100);
    EXPECT_EQ((*fine)->ClassName(1), "bear");
    ASSERT_TRUE((*fine)->Read(0, &sample).ok());
    EXPECT_EQ(sample.label, train ? 99 : 5);
    EXPECT_EQ(sample.bytes[3 * 7 + 2], 7 + 170);
    source_.fields.label.field = "coarse";
    const auto coarse = Open(split);
    ASSERT_TRUE(coarse.ok()) << coarse.status();
    EXPECT_EQ((*coarse)->ClassName(1), "flowers");
    ASSERT_TRUE((*coarse)->Read(0, &sample).ok());
    EXPECT_EQ(sample.label, train ? 7 : 19);
  }
}

TEST_F(CifarArchiveTest, IsNamedByARange) {
  ASSERT_NO_FATAL_FAILURE(Pack("cifar-10-binary.tar.gz"));
  api::DatasetSource source = folder_.Source("cifar-{10..10}-binary.tar.gz");
  const auto dataset = OpenDataset(source, job::Split::kTrain, 0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ExpectSame(**dataset, *Golden(job::Split::kTrain));
  // One that is not there has its name in the error.
  source = folder_.Source("cifar-{11..11}-binary.tar.gz");
  source.format = api::DatasetFormat::kCifar10;
  const absl::Status missing = OpenDataset(source, job::Split::kTrain, 0).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("cifar-11-binary.tar.gz"));
}

TEST_F(CifarArchiveTest, IsNamedAlone) {
  ASSERT_NO_FATAL_FAILURE(Pack("cifar-10-binary.tar.gz"));
  ASSERT_NO_FATAL_FAILURE(Pack("mine.tgz"));
  for (const char* name : {"cifar-10-binary.tar.gz", "mine.tgz"}) {
    api::DatasetSource source = folder_.Source(name);
    if (std::string_view(name) == "mine.tgz") source.format = api::DatasetFormat::kCifar10;
    const auto dataset = OpenDataset(source, job::Split::kTrain, 0);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    ExpectSame(**dataset, *Golden(job::Split::kTrain));
  }
}

// As those have it who download and unpack it in one folder, which is no ImageFolder.
TEST_F(CifarArchiveTest, UnpackedBesideItIsRecognised) {
  ASSERT_NO_FATAL_FAILURE(Pack("cifar-10-binary.tar.gz"));
  std::filesystem::copy(kGolden, folder_ / "cifar-10-batches-bin");
  auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ExpectSame(**dataset, *Golden(job::Split::kTrain));
  EXPECT_THAT((*dataset)->Describe(0), Not(HasSubstr("tar.gz")));
  std::filesystem::remove(folder_ / "cifar-10-binary.tar.gz");
  dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ExpectSame(**dataset, *Golden(job::Split::kTrain));
  // Folders of pictures beside it are classes, as ever.
  std::filesystem::create_directory(folder_ / "photos");
  EXPECT_THAT(Error(), HasSubstr("class folder without"));
}

TEST_F(CifarArchiveTest, WithoutASplitSaysWhatItHas) {
  packing_.Write("one/data_batch_1.bin", std::string_view(Record(std::string(1, '\x03'))));
  const std::string command = absl::StrCat("tar -C ", packing_.path(), " -czf ",
                                           folder_ / "cifar-10-binary.tar.gz", " one");
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_TRUE(Open().ok());
  EXPECT_THAT(Error(job::Split::kValidation),
              AllOf(HasSubstr("cifar-10-binary.tar.gz: looked for test_batch.bin"),
                    HasSubstr("one/data_batch_1.bin")));
}

TEST_F(CifarArchiveTest, ThatIsDamagedIsNamedWithTheByte) {
  ASSERT_NO_FATAL_FAILURE(Pack("cifar-10-binary.tar.gz"));
  const std::string path = folder_ / "cifar-10-binary.tar.gz";
  const std::string whole = testing::ReadFileOrDie(path);
  testing::WriteFile(path, whole.substr(0, whole.size() - 20));
  EXPECT_THAT(Error(), AllOf(HasSubstr("cifar-10-binary.tar.gz"), HasSubstr("cut short at byte ")));
  std::string damaged = whole;
  for (size_t i = whole.size() / 2; i < whole.size() / 2 + 40; ++i) damaged[i] = '\x55';
  testing::WriteFile(path, damaged);
  EXPECT_THAT(Error(), HasSubstr("cifar-10-binary.tar.gz"));
  testing::WriteFile(path, "no archive");
  EXPECT_THAT(Error(), HasSubstr("damaged gzip data near byte"));
  // Two members of gzip, one behind the other, are one file.
  const std::string second = packing_ / "second";
  ASSERT_EQ(
      std::system(absl::StrCat("cd ", folder_.path(), " && printf '' | gzip > ", second).c_str()),
      0);
  testing::WriteFile(path, testing::ReadFileOrDie(second) + whole);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 12);
}

TEST_F(CifarArchiveTest, ThatUnpacksToMoreThanIsAllowedIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Pack("cifar-10-binary.tar.gz"));
  const auto store = *storage::OpenFileStore(folder_.path());
  const storage::Object archive = *store->Head("cifar-10-binary.tar.gz");
  const auto opened = UnpackedArchive::Open(*store, archive, {.bytes = archive.size + 1000});
  EXPECT_TRUE(absl::IsDataLoss(opened.status())) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("holds more than the"));
  const auto refused = UnpackedArchive::Open(*store, archive, {.bytes = archive.size - 1});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
}

}  // namespace
}  // namespace hetero::source
