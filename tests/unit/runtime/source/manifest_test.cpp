#include "runtime/source/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/unit/runtime/source/manifest_stores.h"

namespace hetero::source {
namespace {

using api::LabelType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kManifestJpeg = "\xff\xd8\xff\xe0 a picture";
const api::Label kNoLabel = {LabelType::kNone};

class ManifestTest : public ::testing::Test {
 protected:
  // The labels of all samples, which are put where the manifest says that they are.
  std::vector<int32_t> Labels(const Dataset& dataset) {
    std::vector<int32_t> labels;
    for (int64_t id = 0; id < dataset.size(); ++id) labels.push_back(Sample(dataset, id).label);
    return labels;
  }
  RawSample Sample(const Dataset& dataset, int64_t id) {
    const std::string place = dataset.Describe(id);
    const size_t root = place.find('/', place.find("://") + 3);
    stores_.At(place.substr(0, root)).Put(place.substr(root + 1), kManifestJpeg);
    RawSample sample;
    const absl::Status read = dataset.Read(id, &sample);
    EXPECT_TRUE(read.ok()) << read;
    return sample;
  }
  template <typename T>
  std::vector<T> Numbers(const Dataset& dataset, int64_t id) {
    const RawSample sample = Sample(dataset, id);
    std::vector<T> numbers(sample.fields.size() / sizeof(T));
    std::memcpy(numbers.data(), sample.fields.data(), sample.fields.size());
    return numbers;
  }
  static api::DatasetSource Fields(const std::string& image, const std::string& label,
                                   std::optional<int32_t> offset = std::nullopt) {
    api::DatasetSource source;
    source.fields = {image, {label, offset}};
    return source;
  }

  ManifestStores stores_;
};

// As AWS documents S3DataSource's ManifestFile, with what it says that it is equivalent to.
TEST_F(ManifestTest, SageMakersManifestFile) {
  const auto dataset = stores_.OpenText(R"([ {"prefix": "s3://customer_bucket/some/prefix/"},
  "relative/path/to/custdata-1",
  "relative/path/custdata-2",
  "relative/path/custdata-N"
])",
                                        kNoLabel);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(PlacesIn(**dataset),
              ElementsAre("s3://customer_bucket/some/prefix/relative/path/to/custdata-1",
                          "s3://customer_bucket/some/prefix/relative/path/custdata-2",
                          "s3://customer_bucket/some/prefix/relative/path/custdata-N"));
  EXPECT_EQ((*dataset)->classes(), 0);
  EXPECT_EQ((*dataset)->shards(), 0);
}

// As AWS documents the image classification algorithm's augmented manifest.
TEST_F(ManifestTest, SageMakersAugmentedManifestFile) {
  const auto dataset = stores_.OpenText(
      R"({"source-ref":"s3://image/filename1.jpg", "class":"0"}
{"source-ref":"s3://image/filename2.jpg", "class":"1", "class-metadata": {"class-name": "cat", "type" : "groundtruth/image-classification"}}
)");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(PlacesIn(**dataset),
              ElementsAre("s3://image/filename1.jpg", "s3://image/filename2.jpg"));
  EXPECT_THAT(Labels(**dataset), ElementsAre(0, 1));
  EXPECT_EQ((*dataset)->classes(), 2);
  EXPECT_EQ((*dataset)->ClassName(1), "1");
}

// As AWS documents what Ground Truth writes for image classification.
TEST_F(ManifestTest, GroundTruthsOutput) {
  const std::string line =
      R"({"source-ref":"s3://custom-labels-console/gt-job/manifest/IMG_1133.png","TestCLConsoleBucket":0,)"
      R"("TestCLConsoleBucket-metadata":{"confidence":0.95,"job-name":"labeling-job/testclconsolebucket",)"
      R"("class-name":"Echo Dot","human-annotated":"yes","creation-date":"2020-04-15T20:17:23.433061",)"
      R"("type":"groundtruth/image-classification"}})";
  const auto numbers = stores_.OpenText(line);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_THAT(Labels(**numbers), ElementsAre(0));
  const auto names =
      stores_.OpenText(line, {}, Fields("", "TestCLConsoleBucket-metadata/class-name"));
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ((*names)->ClassName(0), "Echo Dot");
}

TEST_F(ManifestTest, AListsClassesAreItsFolders) {
  const auto dataset = stores_.OpenText(
      R"([{"prefix": "s3://other/set/"}, "dog/a.jpg", "./cat/deep/b.jpg", "10/c.jpg", "cat/d.jpg",
          "s3://other/set/dog/e.jpg"])");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Labels(**dataset), ElementsAre(2, 1, 0, 1, 2));
  EXPECT_EQ((*dataset)->ClassName(0), "10");
  EXPECT_EQ((*dataset)->ClassName(2), "dog");
  // A prefix is text: it may end inside a name, and begin in the manifest's folder.
  const auto text = stores_.OpenText(R"([{"prefix": "pictures/no-"}, "1/a.jpg"])");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(PlacesIn(**text), ElementsAre("s3://bucket/lists/pictures/no-1/a.jpg"));
  EXPECT_THAT(stores_.ErrorOf(R"([{"prefix": "s3://b/"}, "a.jpg"])"),
              AllOf(HasSubstr("s3://bucket/lists/train.manifest: byte 31: element 1 is a.jpg"),
                    HasSubstr("no folder"), HasSubstr("dataset.label.type: None")));
  EXPECT_THAT(stores_.ErrorOf(R"(["s3://b/cat/a.jpg"])"), HasSubstr("not below the prefix"));
  EXPECT_THAT(stores_.ErrorOf(R"(["train/a.jpg", "val/b.jpg"])"),
              AllOf(HasSubstr("splits"), HasSubstr("dataset.validation.uri")));
}

TEST_F(ManifestTest, WhatIsNoListOfPathsIsRefused) {
  const auto error = [this](std::string_view text) { return stores_.ErrorOf(text, kNoLabel); };
  EXPECT_THAT(error(R"(["a.jpg", 3])"), AllOf(HasSubstr("element 1 is a number, not a path"),
                                              HasSubstr("byte 12"), HasSubstr("write [")));
  EXPECT_THAT(error(R"(["a.jpg", {"prefix": "b/"}])"), HasSubstr("before all paths"));
  EXPECT_THAT(error(R"([{"prefix": "b/"}, {"prefix": "c/"}, "a"])"), HasSubstr("before all paths"));
  EXPECT_THAT(error(R"([{"other": "b/"}])"), HasSubstr("has \"other\""));
  EXPECT_THAT(error(R"([{}, "a.jpg"])"), HasSubstr("without \"prefix\""));
  EXPECT_THAT(error(R"([["a.jpg"]])"), HasSubstr("is a list"));
  EXPECT_THAT(error(R"(["a.jpg")"), HasSubstr("cut short"));
  EXPECT_THAT(error(R"([null])"), HasSubstr("is null"));
  EXPECT_THAT(error("[]"), HasSubstr("lists no pictures"));
  EXPECT_THAT(error(std::string(1'000'000, '[')), HasSubstr("is a list"));
  EXPECT_THAT(error("[\"" + std::string(5 << 20, 'a') + "\"]"),
              HasSubstr("has more than 4194304 bytes"));
  EXPECT_THAT(stores_.ErrorOf("[\"cat/a.jpg\"]", {LabelType::kInt64}), HasSubstr("JSON lines"));
  EXPECT_THAT(stores_.ErrorOf("[\"cat/a.jpg\"]", {}, Fields("x", "")),
              HasSubstr("remove dataset.fields"));
}

TEST_F(ManifestTest, TheOnlyAttributeIsTheLabel) {
  const std::string two = R"({"source-ref": "a.jpg", "class": 3, "class-metadata": {}, "age": 7})";
  EXPECT_THAT(stores_.ErrorOf("\n" + two),
              AllOf(HasSubstr("train.manifest: line 2: has several labels: age, class;"),
                    HasSubstr("dataset.fields.label.field")));
  const auto named = stores_.OpenText(two, {}, Fields("", "age"));
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(Labels(**named), ElementsAre(7));
  EXPECT_EQ((*named)->classes(), 8);
  EXPECT_THAT(
      stores_.ErrorOf(R"({"source-ref": "a.jpg", "mask-ref": "b.png", "label-metadata": {}})"),
      AllOf(HasSubstr("has no label, only label-metadata, mask-ref, source-ref"),
            HasSubstr("class-metadata/class-name")));
  EXPECT_THAT(stores_.ErrorOf("{\"source-ref\": \"a\", \"c\": 1}\n{\"source-ref\": \"b\"}"),
              AllOf(HasSubstr("line 2: has no label in c; has source-ref")));
  EXPECT_TRUE(stores_.OpenText(two, kNoLabel).ok());
}

TEST_F(ManifestTest, OtherFieldsAreNamed) {
  const std::string line =
      R"({"picture": "a.jpg", "box": [1, 2.5], "n": [[1, -2], [3, 4]], "c": 1})";
  EXPECT_THAT(stores_.ErrorOf(line), AllOf(HasSubstr("has no text in source-ref; has box, c, n"),
                                           HasSubstr("dataset.fields.image")));
  const auto floats = stores_.OpenText(line, {LabelType::kFloat32, {2}}, Fields("picture", "box"));
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_THAT(Numbers<float>(**floats, 0), ElementsAre(1, 2.5));
  const auto whole =
      stores_.OpenText(line, {LabelType::kInt64, {2, 2}, "n"}, Fields("picture", ""));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(Numbers<int64_t>(**whole, 0), ElementsAre(1, -2, 3, 4));
  EXPECT_NE((*whole)->fingerprint(), (*floats)->fingerprint());
  EXPECT_THAT(stores_.ErrorOf(line, {LabelType::kInt64, {3}}, Fields("picture", "box")),
              HasSubstr("line 1: box has a list of 2, not of 3, as dataset.label says"));
  EXPECT_THAT(stores_.ErrorOf(line, {}, Fields("picture", "box")),
              AllOf(HasSubstr("box is a value of type array"), HasSubstr("a whole number or a")));
  const auto moved = stores_.OpenText(line, {}, Fields("picture", "c", -1));
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_THAT(Labels(**moved), ElementsAre(0));
}

TEST_F(ManifestTest, WhatIsNoLineOfJsonIsRefused) {
  EXPECT_THAT(stores_.ErrorOf("{\"source-ref\": \"a\", \"c\": 1}\r\n\n{oops}"),
              AllOf(HasSubstr("train.manifest: line 3: is no JSON"), HasSubstr("on each line")));
  EXPECT_THAT(stores_.ErrorOf("{\"source-ref\": \"a\", \"c\": 1}\n7"),
              HasSubstr("line 2: is no JSON object"));
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(stores_.ErrorOf("{\"c\": " + deep + std::string(deep.size(), ']') + "}"),
              HasSubstr("line 1: is nested deeper than 16"));
  EXPECT_THAT(stores_.ErrorOf("{\"c\": \"" + std::string(5 << 20, 'a') + "\"}"),
              HasSubstr("line 1: has more than 4194304 bytes"));
}

TEST_F(ManifestTest, ClassesAreNumbersOrNamesAsTheFirstOneIs) {
  const auto lines = [](const std::vector<std::string>& labels) {
    return absl::StrJoin(labels, "\n", [](std::string* text, const std::string& label) {
      absl::StrAppend(text, R"({"source-ref": "a.jpg", "class": )", label, "}");
    });
  };
  const auto names = stores_.OpenText(lines({"\"dog\"", "\"cat\"", "\"7\"", "\"dog\""}));
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(Labels(**names), ElementsAre(2, 1, 0, 2));
  EXPECT_EQ((*names)->ClassName(1), "cat");
  // In the order of their bytes "10" would come first.
  const auto numbers = stores_.OpenText(lines({"\"10\"", "9", "\"0\""}));
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_THAT(Labels(**numbers), ElementsAre(10, 9, 0));
  EXPECT_EQ((*numbers)->classes(), 11);
  EXPECT_THAT(stores_.ErrorOf(lines({"3", "\"cat\""})),
              AllOf(HasSubstr("line 2"), HasSubstr("\"cat\""), HasSubstr("no whole number")));
  EXPECT_THAT(stores_.ErrorOf(lines({"18446744073709551615"})), HasSubstr("too many digits"));
  EXPECT_THAT(stores_.ErrorOf(lines({"7", "1000000"})),
              AllOf(HasSubstr("line 2"), HasSubstr("more than 1000000 classes"),
                    HasSubstr("dataset.fields.label.field")));
  EXPECT_THAT(stores_.ErrorOf(lines({"3.5"})), HasSubstr("class is a value of type number"));
  EXPECT_THAT(stores_.ErrorOf(lines({"\"\""})), HasSubstr("empty label"));
  EXPECT_THAT(stores_.ErrorOf(lines({"-1"})), HasSubstr("no sample has a class"));
  EXPECT_THAT(stores_.ErrorOf(lines({"\"cat\""}), {}, Fields("", "", 1)), HasSubstr("remove it"));
  api::DatasetSource declared;
  declared.classes = 3;
  EXPECT_THAT(stores_.ErrorOf(lines({"\"cat\"", "\"dog\""}), {}, declared),
              HasSubstr("declares classes 3 but the data has 2"));
  // As in other formats: a class beyond those that there are is a bad sample.
  const auto beyond = stores_.OpenText(lines({"2", "3"}), {}, declared);
  ASSERT_TRUE(beyond.ok()) << beyond.status();
  stores_.At("s3://bucket").Put("lists/a.jpg", kManifestJpeg);
  RawSample sample;
  EXPECT_TRUE((*beyond)->Read(0, &sample).ok());
  const absl::Status bad = (*beyond)->Read(1, &sample);
  EXPECT_TRUE(absl::IsDataLoss(bad)) << bad;
  EXPECT_THAT(std::string(bad.message()),
              AllOf(HasSubstr("lists/a.jpg: label 3 is not in [0, 3)"),
                    HasSubstr("line 2 of s3://bucket/lists/train.manifest")));
}

TEST_F(ManifestTest, PathsBeginInTheManifestsFolderAndNeverLeaveIt) {
  const auto dataset = stores_.OpenText(R"(["a.jpg", "./b/c.jpg", "s3://other/d.jpg",
      "https://host:8443/e%20f.jpg", "s3://bucket/g.jpg", "..h.jpg"])",
                                        kNoLabel);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(
      PlacesIn(**dataset),
      ElementsAre("s3://bucket/lists/a.jpg", "s3://bucket/lists/b/c.jpg", "s3://other/d.jpg",
                  "https://host:8443/e f.jpg", "s3://bucket/g.jpg", "s3://bucket/lists/..h.jpg"));
  const auto error = [this](const std::string& path) {
    return stores_.ErrorOf(absl::StrCat("[\"x.jpg\", \"", path, "\"]"), kNoLabel);
  };
  for (const char* path : {"../a.jpg", "a/../../b.jpg", "s3://other/../a.jpg", "a/./b.jpg"}) {
    EXPECT_THAT(error(path), AllOf(HasSubstr("train.manifest: byte"), HasSubstr("element 1"),
                                   HasSubstr("could leave the root"), HasSubstr("a whole URI")));
  }
  EXPECT_THAT(error(""), HasSubstr("the path is empty"));
  EXPECT_THAT(error("gs://bucket/a.jpg"), HasSubstr("no store that is known"));
  EXPECT_THAT(error("https://host/a.jpg?X-Amz-Signature=secret"),
              AllOf(HasSubstr("query"), ::testing::Not(HasSubstr("secret"))));
  EXPECT_THAT(error("https://host/a%2Fb.jpg"), HasSubstr("%2F"));
  EXPECT_THAT(error(std::string(1100, 'a')), HasSubstr("1024 bytes at most"));
}

// What comes from elsewhere must not read what only this machine reaches.
TEST_F(ManifestTest, AManifestFromElsewhereNamesNoFilesOfThisMachine) {
  const std::vector<std::string> kinds = {"file://", "s3://bucket", "https://host",
                                          "http://127.0.0.1:8000"};
  const auto allowed = [&](const std::string& from, const std::string& to) {
    stores_.At(from == "file://" ? "file:///" : from)
        .Put("m.csv", absl::StrCat("path\n", to, "/a.jpg"));
    const auto dataset = stores_.Open(from + "/m.csv", {}, kNoLabel);
    if (!dataset.ok()) {
      EXPECT_THAT(std::string(dataset.status().message()),
                  AllOf(HasSubstr("m.csv: line 2"), HasSubstr("may not")));
    }
    return dataset.ok();
  };
  for (const std::string& from : kinds) {
    for (const std::string& to : kinds) {
      const bool is_local = to == "file://" || to == "http://127.0.0.1:8000";
      EXPECT_EQ(allowed(from, to),
                from == "file://" || !is_local || (from == to && to != "file://"))
          << from << " " << to;
    }
  }
  EXPECT_THAT(stores_.ErrorOf(R"(["/data/a.jpg"])", kNoLabel), HasSubstr("begins with \"/\""));
}

TEST_F(ManifestTest, StoresHaveALimit) {
  std::string text = "path\n";
  for (int i = 0; i < 64; ++i) absl::StrAppend(&text, "s3://other-", i, "/a.jpg\n");
  EXPECT_TRUE(stores_.OpenText(text, kNoLabel, {}, "a.csv").ok());
  EXPECT_THAT(stores_.ErrorOf(text + "s3://last/a.jpg\n", kNoLabel, {}, "a.csv"),
              AllOf(HasSubstr("line 66"), HasSubstr("s3://last"), HasSubstr("64 other buckets")));
}

}  // namespace
}  // namespace hetero::source
