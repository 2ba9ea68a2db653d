#include "runtime/source/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "runtime/storage/open_store.h"
#include "tests/unit/runtime/source/dataset_files.h"

namespace hetero::source {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const Bytes kJpeg = {0xff, 0xd8, 0xff, 0xe0, 1, 2, 3};
const Bytes kPng = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 4};

class ImageFolderTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Dataset>> Open() {
    return OpenDataset(folder_.Source(), job::Split::kTrain, 0);
  }
  std::vector<std::string> Names(const Dataset& dataset) {
    std::vector<std::string> names;
    for (int64_t id = 0; id < dataset.size(); ++id) {
      names.push_back(dataset.Describe(id).substr(folder_.path().size() + 1));
    }
    return names;
  }

  DatasetFolder folder_;
};

TEST_F(ImageFolderTest, ASparseFileOf300GigabytesIsABadSampleAndTakesNoMemory) {
  folder_.Write("cat/a.jpg", kJpeg);
  folder_.Write("cat/x.jpg", kJpeg);
  ASSERT_EQ(truncate((folder_ / "cat/x.jpg").c_str(), int64_t{300} << 30), 0);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  RawSample sample;
  const absl::Status read = (*dataset)->Read(1, &sample);
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  EXPECT_THAT(std::string(read.message()),
              AllOf(HasSubstr("cat/x.jpg"), HasSubstr("322122547200 bytes")));
  EXPECT_LT(sample.bytes.capacity(), 1u << 20);
  EXPECT_TRUE((*dataset)->Read(0, &sample).ok());
}

TEST_F(ImageFolderTest, OrderIsTorchvisions) {
  // The order below is what torchvision's ImageFolder gives for this tree.
  folder_.Write("dog/b.JPG", kJpeg);
  folder_.Write("dog/a.png", kPng);
  folder_.Write("dog/sub/0.jpeg", kJpeg);
  folder_.Write("dog/sub-2/0.jpeg", kJpeg);
  folder_.Write("dog/sub/deep/0.Png", kPng);
  folder_.Write("Cat/z.jpg", kJpeg);
  folder_.Write("dog/notes.txt", std::string_view("no picture"));
  folder_.Write("README.md", std::string_view("no class"));
  folder_.Write(".cache/x.jpg", kJpeg);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Names(**dataset), ElementsAre("Cat/z.jpg", "dog/a.png", "dog/b.JPG", "dog/sub/0.jpeg",
                                            "dog/sub-2/0.jpeg", "dog/sub/deep/0.Png"));
  EXPECT_EQ((*dataset)->classes(), 2);
  EXPECT_EQ((*dataset)->ClassName(0), "Cat");
  EXPECT_EQ((*dataset)->ClassName(1), "dog");
  EXPECT_EQ((*dataset)->image(), api::ImageShape{});
  std::vector<int32_t> labels;
  std::vector<Encoding> encodings;
  RawSample sample;
  for (int64_t id = 0; id < (*dataset)->size(); ++id) {
    ASSERT_TRUE((*dataset)->Read(id, &sample).ok());
    labels.push_back(sample.label);
    encodings.push_back(sample.encoding);
  }
  EXPECT_THAT(labels, ElementsAre(0, 1, 1, 1, 1, 1));
  EXPECT_EQ(encodings[0], Encoding::kJpeg);
  EXPECT_EQ(encodings[1], Encoding::kPng);
  EXPECT_EQ(sample.bytes, kPng);
}

TEST_F(ImageFolderTest, FollowsLinksToFoldersAndFiles) {
  DatasetFolder elsewhere;
  elsewhere.Write("set/1.jpg", kJpeg);
  folder_.Write("dog/0.jpg", kJpeg);
  std::filesystem::create_directory_symlink(elsewhere / "set", folder_ / "cat");
  std::filesystem::create_symlink(elsewhere / "set/1.jpg", folder_ / "dog/1.jpg");
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Names(**dataset), ElementsAre("cat/1.jpg", "dog/0.jpg", "dog/1.jpg"));
}

TEST_F(ImageFolderTest, ACycleOfLinksAndABrokenLinkAreErrors) {
  folder_.Write("dog/0.jpg", kJpeg);
  std::filesystem::create_directory_symlink("..", folder_ / "dog/up");
  EXPECT_THAT(std::string(Open().status().message()),
              HasSubstr("too many levels of symbolic links"));
  std::filesystem::remove(folder_ / "dog/up");
  ASSERT_TRUE(Open().ok());
  std::filesystem::create_symlink("nowhere", folder_ / "dog/1.jpg");
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("dog/1.jpg"));
}

TEST_F(ImageFolderTest, AFileThatIsNoPictureIsABadSample) {
  folder_.Write("dog/0.jpg", std::string_view("hello"));
  folder_.Write("dog/1.jpg", std::string_view(""));
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  RawSample sample;
  const absl::Status text = (*dataset)->Read(0, &sample);
  EXPECT_EQ(text.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(text.message()),
              EndsWith("dog/0.jpg: not a JPEG or PNG file (starts with 68 65 6c 6c 6f)"));
  const absl::Status empty = (*dataset)->Read(1, &sample);
  EXPECT_EQ(empty.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(empty.message()), HasSubstr("starts with nothing"));
}

TEST_F(ImageFolderTest, AVanishedFileIsAStorageFault) {
  folder_.Write("dog/0.jpg", kJpeg);
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok());
  std::filesystem::remove(folder_ / "dog/0.jpg");
  RawSample sample;
  const absl::Status status = (*dataset)->Read(0, &sample);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("dog/0.jpg: cannot open"));
}

TEST_F(ImageFolderTest, EmptyClassFolderIsAnError) {
  folder_.Write("dog/0.jpg", kJpeg);
  folder_.MakeFolder("cat");
  const auto dataset = Open();
  EXPECT_EQ(dataset.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(dataset.status().message()),
              HasSubstr("/cat: class folder without .jpg, .jpeg or .png files"));
}

TEST_F(ImageFolderTest, AFolderOfSplitsIsNotTakenForClasses) {
  folder_.Write("train/dog/0.jpg", kJpeg);
  folder_.Write("val/dog/0.jpg", kJpeg);
  const auto dataset = Open();
  EXPECT_EQ(dataset.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(dataset.status().message()),
              AllOf(HasSubstr("splits, not classes"), HasSubstr(folder_.path() + "/train")));
}

TEST_F(ImageFolderTest, DeclaredCountsAreChecked) {
  folder_.Write("dog/0.jpg", kJpeg);
  api::DatasetSource source = folder_.Source();
  source.classes = 2;
  EXPECT_THAT(std::string(OpenDataset(source, job::Split::kTrain, 0).status().message()),
              HasSubstr("declares classes 2 but the data has 1"));
  source.classes = 1;
  source.samples = 9;
  EXPECT_THAT(std::string(OpenDataset(source, job::Split::kTrain, 0).status().message()),
              HasSubstr("declares samples 9 but the data has 1"));
  source.samples = 1;
  source.image = api::ImageShape{32, 32, 3};
  const auto dataset = OpenDataset(source, job::Split::kTrain, 0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->image(), (api::ImageShape{32, 32, 3}));
}

TEST_F(ImageFolderTest, FingerprintCoversNamesAndSizes) {
  folder_.Write("dog/0.jpg", kJpeg);
  const std::string first = (*Open())->fingerprint();
  EXPECT_EQ(first, (*Open())->fingerprint());
  folder_.Write("dog/0.jpg", Join(kJpeg, {9}));
  const std::string longer = (*Open())->fingerprint();
  EXPECT_NE(first, longer);
  std::filesystem::rename(folder_ / "dog/0.jpg", folder_ / "dog/1.jpg");
  EXPECT_NE(longer, (*Open())->fingerprint());
}

// The store of a folder lists what a bucket with the same objects would.
TEST_F(ImageFolderTest, AStoreWithTheSamePicturesIsTheSameDataset) {
  folder_.Write("a-b/x.jpg", kJpeg);
  folder_.Write("a/sub-2/0.jpeg", kJpeg);
  folder_.Write("a/sub/0.png", kPng);
  folder_.Write("a/z.JPG", kJpeg);
  folder_.Write("a/notes.txt", std::string_view("no picture"));
  folder_.Write("README.md", std::string_view("no class"));
  folder_.Write(".cache/x.jpg", kJpeg);
  std::shared_ptr<const storage::Store> store = *storage::OpenStore("file://" + folder_.path());
  for (const api::LabelType type : {api::LabelType::kClass, api::LabelType::kNone}) {
    const api::Label label = {type};
    const auto files = OpenImageFolder(folder_.path(), {}, folder_.Source(), label);
    const auto objects = OpenImageFolder(store->uri(), {store}, folder_.Source(), label);
    ASSERT_TRUE(files.ok()) << files.status();
    ASSERT_TRUE(objects.ok()) << objects.status();
    EXPECT_EQ((*objects)->fingerprint(), (*files)->fingerprint());
    EXPECT_EQ((*objects)->classes(), (*files)->classes());
    ASSERT_EQ((*objects)->size(), 4);
    for (int64_t id = 0; id < 4; ++id) {
      RawSample file;
      RawSample object;
      ASSERT_TRUE((*files)->Read(id, &file).ok());
      ASSERT_TRUE((*objects)->Read(id, &object).ok());
      EXPECT_EQ(object.bytes, file.bytes);
      EXPECT_EQ(object.label, file.label);
      EXPECT_EQ((*objects)->Describe(id), "file://" + (*files)->Describe(id));
    }
  }
}

TEST_F(ImageFolderTest, LabelsThatAreNoClassesStandInTheStoreToo) {
  folder_.Write("b.png", kPng);
  folder_.Write("a.jpg", kJpeg);
  std::shared_ptr<const storage::Store> store = *storage::OpenStore("file://" + folder_.path());
  const api::Label label = {api::LabelType::kInt64};
  const auto missing = OpenImageFolder(store->uri(), {store}, folder_.Source(), label);
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  folder_.Write("metadata.jsonl", std::string_view("{\"file_name\": \"b.png\", \"label\": 7}\n"
                                                   "{\"file_name\": \"a.jpg\", \"label\": 5}\n"));
  const auto files = OpenImageFolder(folder_.path(), {}, folder_.Source(), label);
  const auto objects = OpenImageFolder(store->uri(), {store}, folder_.Source(), label);
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_EQ((*objects)->fingerprint(), (*files)->fingerprint());
  RawSample sample;
  ASSERT_TRUE((*objects)->Read(1, &sample).ok());
  EXPECT_THAT(sample.fields, ElementsAre(7, 0, 0, 0, 0, 0, 0, 0));
}

// Their pictures would belong to a class without a name, which stands before all others.
TEST_F(ImageFolderTest, AnObjectWithAnEmptyPartInItsNameIsRefused) {
  ShardSource pictures = {*storage::OpenStore("file://" + folder_.path())};
  for (const char* name : {"/cat/1.jpg", "cat//1.jpg", "//1.jpg"}) {
    pictures.listed = std::make_shared<const std::vector<storage::Object>>(
        std::vector<storage::Object>{{name, 3}, {"dog/1.jpg", 3}});
    for (const api::LabelType type : {api::LabelType::kClass, api::LabelType::kNone}) {
      const absl::Status status =
          OpenImageFolder(pictures.store->uri(), pictures, folder_.Source(), {type}).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    }
  }
}

// Other bytes under a listed name are an error, and never the sample.
TEST_F(ImageFolderTest, AnObjectThatWasReplacedIsNamed) {
  folder_.Write("cat/a.jpg", kJpeg);
  std::shared_ptr<const storage::Store> store = *storage::OpenStore("file://" + folder_.path());
  const auto dataset = OpenImageFolder(store->uri(), {store}, folder_.Source());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  folder_.Write("cat/a.jpg", kPng);
  RawSample sample;
  const absl::Status read = (*dataset)->Read(0, &sample);
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_THAT(std::string(read.message()), HasSubstr("cat/a.jpg"));
}

TEST_F(ImageFolderTest, ManyThreadsReadAtOnce) {
  for (uint8_t i = 0; i < 8; ++i) {
    folder_.Write("dog/" + std::to_string(i) + ".jpg", Join(kJpeg, Bytes(i + 1, i)));
  }
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok());
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        RawSample sample;
        for (int i = 0; i < 100; ++i) {
          const int id = i % 8;
          if (!(*dataset)->Read(id, &sample).ok() || sample.bytes.back() != id) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hetero::source
