// How the pictures of a manifest are read, and how a manifest is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/unit/runtime/source/dataset_files.h"
#include "tests/unit/runtime/source/manifest_stores.h"

namespace hetero::source {
namespace {

using api::DatasetFormat;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kListedPicture = "\xff\xd8\xff\xe0 a picture";
const std::string kGoldenPictures = testing::SourceDir() + "/tests/golden/datasets/image_folder";

class ManifestReadTest : public ::testing::Test {
 protected:
  std::unique_ptr<Dataset> OpenTwo() {
    bucket_.Put("lists/cat/a.jpg", kListedPicture);
    auto dataset = stores_.OpenText("cat/a.jpg,cat\ndog/b.jpg,dog\n", {}, {}, "m.csv");
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return *std::move(dataset);
  }

  ManifestStores stores_;
  HeldStore& bucket_ = stores_.At("s3://bucket");
  RawSample sample_;
};

TEST_F(ManifestReadTest, ASampleIsOneRequest) {
  const auto dataset = OpenTwo();
  EXPECT_EQ(bucket_.heads(), 1) << "the manifest's own";
  EXPECT_EQ(bucket_.reads(), 1);
  for (int epoch = 0; epoch < 3; ++epoch) ASSERT_TRUE(dataset->Read(0, &sample_).ok());
  EXPECT_EQ(bucket_.heads(), 1);
  EXPECT_EQ(bucket_.reads(), 4);
  EXPECT_EQ(std::string(sample_.bytes.begin(), sample_.bytes.end()), kListedPicture);
  EXPECT_EQ(sample_.encoding, Encoding::kJpeg);
  EXPECT_TRUE(absl::IsOutOfRange(dataset->Read(2, &sample_)));
}

// Parts of a bucket may be reached in other ways than the rest of it (spec.storage).
TEST_F(ManifestReadTest, APictureIsReadAsItsOwnPrefixIsReached) {
  const auto other = std::make_shared<HeldStore>("s3://bucket");
  other->Put("private/b.jpg", kListedPicture);
  bucket_.Put("private/b.jpg", "not a picture");
  bucket_.Put("m.csv", "s3://bucket/private/b.jpg,1\ns3://bucket/c.jpg,0\n");
  const StoreOpener usual = stores_.Opener();
  const StoreOpener by_prefix = [&](const storage::ObjectUri& object)
      -> absl::StatusOr<std::shared_ptr<const storage::Store>> {
    if (object.name.starts_with("private/")) return other;
    return usual(object);
  };
  const auto dataset = OpenManifest("s3://bucket/m.csv", by_prefix, {}, {});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_TRUE((*dataset)->Read(0, &sample_).ok());
  EXPECT_EQ(std::string(sample_.bytes.begin(), sample_.bytes.end()), kListedPicture);
  EXPECT_EQ((*dataset)->fingerprint(),
            (*OpenManifest("s3://bucket/m.csv", usual, {}, {}))->fingerprint())
      << "how it is reached says nothing of what it is";
}

TEST(OpenerOfTest, OpensOneStoreForEachEntryAndRoot) {
  std::vector<api::StorageAccess> storage(2);
  storage[0].prefix = "s3://bucket/a";
  storage[1].prefix = "s3://bucket/b";
  const StoreOpener open = OpenerOf(storage::Stores(storage));
  const StoreOpener copy = open;
  const auto at = [&](const StoreOpener& opener, const char* root, const char* name) {
    const auto store = opener({root, name});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.value_or(nullptr);
  };
  EXPECT_EQ(at(open, "s3://bucket", "a/1"), at(copy, "s3://bucket", "a/2"));
  EXPECT_NE(at(open, "s3://bucket", "a/1"), at(open, "s3://bucket", "b/1"));
  EXPECT_EQ(at(open, "s3://bucket", "c"), at(open, "s3://bucket", "d"));
  EXPECT_NE(at(open, "s3://bucket", "c"), at(open, "s3://other", "c"));
}

// Nobody says beforehand which object is meant: the first read does.
TEST_F(ManifestReadTest, AnObjectThatWasReplacedSinceItWasReadIsNamed) {
  const auto dataset = OpenTwo();
  bucket_.Put("lists/cat/a.jpg", kListedPicture, "v0");
  ASSERT_TRUE(dataset->Read(0, &sample_).ok()) << "not read before";
  bucket_.Put("lists/cat/a.jpg", kListedPicture, "v2");
  const absl::Status version = dataset->Read(0, &sample_);
  EXPECT_TRUE(absl::IsFailedPrecondition(version)) << version;
  EXPECT_THAT(std::string(version.message()),
              AllOf(HasSubstr("s3://bucket/lists/cat/a.jpg: it was changed"), HasSubstr("v2"),
                    HasSubstr("put the object back")));
  bucket_.Put("lists/cat/a.jpg", std::string(kListedPicture) + "!", "v0");
  EXPECT_TRUE(absl::IsFailedPrecondition(dataset->Read(0, &sample_))) << "another size";
  bucket_.Put("lists/cat/a.jpg", kListedPicture, "v0");
  EXPECT_TRUE(dataset->Read(0, &sample_).ok());
}

TEST_F(ManifestReadTest, WhatIsNotThereIsNamedWithItsLine) {
  const auto dataset = OpenTwo();
  const absl::Status missing = dataset->Read(1, &sample_);
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()),
              AllOf(HasSubstr("lists/dog/b.jpg"), HasSubstr("line 2 of s3://bucket/lists/m.csv")));
  bucket_.Put("lists/dog/b.jpg", "no picture");
  const absl::Status none = dataset->Read(1, &sample_);
  EXPECT_TRUE(absl::IsDataLoss(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("lists/dog/b.jpg: not a JPEG"));
  bucket_.Claim("lists/dog/b.jpg", int64_t{1} << 40);
  EXPECT_TRUE(absl::IsDataLoss(dataset->Read(1, &sample_))) << "too large: a bad sample";
}

TEST_F(ManifestReadTest, AManifestThatCannotBeReadIsNamed) {
  const absl::Status missing = stores_.Open("s3://bucket/none.csv").status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()),
              AllOf(HasSubstr("s3://bucket/none.csv"), HasSubstr("dataset.uri")));
  bucket_.Put("lists/big.csv", "a.jpg,1\n");
  bucket_.Claim("lists/big.csv", (int64_t{1} << 30) + 1);
  const absl::Status big = stores_.Open("s3://bucket/lists/big.csv").status();
  EXPECT_TRUE(absl::IsInvalidArgument(big)) << big;
  EXPECT_THAT(std::string(big.message()),
              AllOf(HasSubstr("1073741825 bytes"), HasSubstr("into shards")));
  bucket_.error = absl::UnavailableError("s3://bucket/lists/x: no answer");
  for (const char* text : {"[\"cat/a.jpg\"]", "{\"source-ref\": \"a\", \"c\": 1}", "a.jpg,1"}) {
    const absl::Status failed = stores_.OpenText(text).status();
    EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(stores_.Open("https://host/a.csv?secret").status()));
}

TEST_F(ManifestReadTest, ACopyElsewhereIsTheSameDataset) {
  const auto print = [this](const std::string& uri, std::string_view text) {
    const size_t slash = uri.find('/', uri.find("://") + 3);
    stores_.At(uri.substr(0, slash)).Put(uri.substr(slash + 1), text);
    const auto dataset = stores_.Open(uri);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return (*dataset)->fingerprint();
  };
  const std::string first = print("s3://bucket/lists/m.csv", "a.jpg,cat\nb.jpg,dog\n");
  EXPECT_EQ(print("https://host/x/y/other.csv", "path,label\n./a.jpg,cat\nb.jpg,dog"), first);
  EXPECT_NE(print("s3://bucket/m.csv", "a.jpg,cat\nb.jpg,cow\n"), first);
  EXPECT_NE(print("s3://bucket/m.csv", "b.jpg,cat\na.jpg,dog\n"), first);
  EXPECT_NE(print("s3://bucket/m.csv", "a.jpg,dog\nb.jpg,cat\n"), first);
  EXPECT_NE(print("s3://bucket/m.csv", "s3://other/a.jpg,cat\nb.jpg,dog\n"), first);
}

// All that lies between 1 MiB blocks is found, too.
TEST_F(ManifestReadTest, ManySamplesAreFound) {
  std::string csv;
  nlohmann::json list = {{{"prefix", "pictures/"}}};
  for (int i = 0; i < 200'000; ++i) {
    const std::string name = "class-" + std::to_string(i % 1000) + "/" + std::to_string(i) + ".jpg";
    csv += name + "," + std::to_string(i % 1000) + "\n";
    list.push_back(name);
  }
  const auto table = stores_.OpenText(csv, {}, {}, "m.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  const auto listed = stores_.OpenText(list.dump());
  ASSERT_TRUE(listed.ok()) << listed.status();
  for (const Dataset* dataset : {table->get(), listed->get()}) {
    EXPECT_EQ(dataset->size(), 200'000);
    EXPECT_EQ(dataset->classes(), 1000);
  }
  EXPECT_EQ((*table)->Describe(123'456), "s3://bucket/lists/class-456/123456.jpg");
  EXPECT_EQ((*listed)->Describe(199'999), "s3://bucket/lists/pictures/class-999/199999.jpg");
}

// A manifest in an ImageFolder's order is that ImageFolder: ids, bytes, classes and their names.
TEST(ManifestDatasetTest, HoldsTheSamplesOfTheImageFolder) {
  api::DatasetSource source;
  source.uri = std::string("file://") + kGoldenPictures;
  const auto folder = OpenDataset(source, job::Split::kTrain, 0);
  ASSERT_TRUE(folder.ok()) << folder.status();
  nlohmann::json list = {{{"prefix", source.uri + "/"}}};
  std::string lines;
  std::string csv = "path,label\n";
  RawSample wanted;
  for (int64_t id = 0; id < (*folder)->size(); ++id) {
    const std::string path = (*folder)->Describe(id);
    ASSERT_TRUE((*folder)->Read(id, &wanted).ok());
    list.push_back(path.substr(kGoldenPictures.size() + 1));
    lines += nlohmann::json{{"source-ref", "file://" + path},
                            {"class", (*folder)->ClassName(wanted.label)}}
                 .dump() +
             "\n";
    csv += path + "," + (*folder)->ClassName(wanted.label) + "\n";
  }
  const DatasetFolder manifests;
  manifests.Write("list.json", std::string_view(list.dump()));
  manifests.Write("lines", std::string_view(lines));
  manifests.Write("table.csv", std::string_view(csv));
  for (const char* name : {"list.json", "lines", "table.csv"}) {
    for (const DatasetFormat format : {DatasetFormat::kAuto, DatasetFormat::kManifest}) {
      SCOPED_TRACE(name);
      source = manifests.Source(name);
      source.format = format;
      EXPECT_EQ(*DetectFormat(source), DatasetFormat::kManifest);
      const auto dataset = OpenDataset(source, job::Split::kTrain, 0);
      ASSERT_TRUE(dataset.ok()) << dataset.status();
      ASSERT_EQ((*dataset)->size(), (*folder)->size());
      EXPECT_EQ((*dataset)->classes(), (*folder)->classes());
      RawSample found;
      for (int64_t id = 0; id < (*folder)->size(); ++id) {
        ASSERT_TRUE((*folder)->Read(id, &wanted).ok());
        const absl::Status read = (*dataset)->Read(id, &found);
        ASSERT_TRUE(read.ok()) << read;
        EXPECT_EQ(found.bytes, wanted.bytes) << id;
        EXPECT_EQ(found.encoding, wanted.encoding) << id;
        EXPECT_EQ(found.label, wanted.label) << id;
        EXPECT_EQ((*dataset)->ClassName(found.label), (*folder)->ClassName(wanted.label));
      }
    }
  }
}

TEST(ManifestDatasetTest, AFileThatIsNoManifestIsNoDataset) {
  const DatasetFolder folder;
  for (const std::string_view text :
       {std::string_view(""), std::string_view("x"), std::string_view("[3]"),
        std::string_view("{\"shards\": []}"), std::string_view("a,b\nc,d\n"),
        std::string_view("a.jpg,\0\n", 8), std::string_view("1 2 a.jpg.txt")}) {
    folder.Write("file.json", text);
    const absl::Status status =
        OpenDataset(folder.Source("file.json"), job::Split::kTrain, 0).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("is a file"), HasSubstr("format: Manifest")))
        << text;
  }
  api::DatasetSource web;
  for (const auto& [uri, format] :
       {std::pair("https://127.0.0.1:1/train", DatasetFormat::kWebDataset),
        {"https://127.0.0.1:1/train/", DatasetFormat::kImageFolder},
        {"https://127.0.0.1:1/train-{0..3}.tar", DatasetFormat::kIdx}}) {
    web.uri = uri;
    web.format = format;
    EXPECT_THAT(std::string(OpenDataset(web, job::Split::kTrain, 0).status().message()),
                AllOf(HasSubstr("a web server lists nothing"), HasSubstr("manifest"),
                      ::testing::Not(HasSubstr("looks like"))));
  }
  web.uri = "https://127.0.0.1:1/my%20train-{0..3}.tar";
  web.format = DatasetFormat::kAuto;
  EXPECT_THAT(std::string(OpenDataset(web, job::Split::kTrain, 0).status().message()),
              HasSubstr("write the files' names as they are"));
}

}  // namespace
}  // namespace hetero::source
