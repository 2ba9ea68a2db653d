// Manifests that are tables: CSV (RFC 4180) and TSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/runtime/source/manifest_stores.h"

namespace hetero::source {
namespace {

using api::LabelType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ManifestCsvTest : public ::testing::Test {
 protected:
  // The table's samples: "lists/a.jpg=cat", without a label where none is wanted.
  std::vector<std::string> Rows(std::string_view text, const api::Label& label = {},
                                const api::DatasetSource& source = {},
                                const std::string& name = "train.csv") {
    const auto dataset = stores_.OpenText(text, label, source, name);
    if (!dataset.ok()) return {std::string(dataset.status().message())};
    std::vector<std::string> rows;
    for (int64_t id = 0; id < (*dataset)->size(); ++id) {
      const std::string path = (*dataset)->Describe(id).substr(sizeof "s3://bucket/lists/" - 1);
      stores_.At("s3://bucket").Put("lists/" + path, "\xff\xd8 a picture");
      RawSample sample;
      const absl::Status read = (*dataset)->Read(id, &sample);
      if (!read.ok()) return {std::string(read.message())};
      if (label.numbers()) {
        float number = 0;
        std::memcpy(&number, sample.fields.data(), sizeof number);
        rows.push_back(absl::StrCat(path, "=", number));
      } else {
        rows.push_back(label.type == LabelType::kNone
                           ? path
                           : absl::StrCat(path, "=", (*dataset)->ClassName(sample.label)));
      }
    }
    return rows;
  }
  std::string Error(std::string_view text, const api::Label& label = {},
                    const api::DatasetSource& source = {}) {
    return stores_.ErrorOf(text, label, source, "train.csv");
  }
  static api::DatasetSource Columns(const std::string& image, const std::string& label) {
    api::DatasetSource source;
    source.fields = {image, {label, std::nullopt}};
    return source;
  }

  ManifestStores stores_;
};

TEST_F(ManifestCsvTest, HasAHeaderOrNone) {
  const auto wanted = ElementsAre("a.jpg=cat", "b/c.png=dog");
  EXPECT_THAT(Rows("a.jpg,cat\nb/c.png,dog\n"), wanted);
  EXPECT_THAT(Rows("path,label\na.jpg,cat\nb/c.png,dog"), wanted);
  EXPECT_THAT(Rows("label,id,file_name\ncat,1,a.jpg\ndog,2,b/c.png\n"), wanted);
  EXPECT_THAT(Rows("Image,kind\na.jpg,cat\nb/c.png,dog\n"), wanted) << "the other of two columns";
  EXPECT_THAT(Rows("\xef\xbb\xbfpath, label \r\na.jpg, cat \r\n\r\nb/c.png,dog\r\n"), wanted);
  EXPECT_THAT(Rows("x,y,z\n1,a.jpg,cat\n2,b/c.png,dog\n", {}, Columns("y", "z")), wanted);
  EXPECT_THAT(Rows("path\tlabel\na.jpg\tcat\nb/c.png\tdog\n", {}, {}, "train.tsv"), wanted);
  EXPECT_THAT(Rows("a.jpg\tcat\nb/c.png\tdog\n", {}, {}, "train"), wanted);
  EXPECT_THAT(Rows("a.jpg,3\nb.jpg,0\n"), ElementsAre("a.jpg=3", "b.jpg=0"));
  EXPECT_THAT(Rows("a.jpg\nb.jpg\n", {LabelType::kNone}), ElementsAre("a.jpg", "b.jpg"));
  // A name of a file is as it is, but for the label's spaces.
  EXPECT_THAT(Rows(" a.jpg,cat\n"), ElementsAre(" a.jpg=cat"));
}

TEST_F(ManifestCsvTest, FieldsInQuotesHoldAnything) {
  EXPECT_THAT(Rows("\"a, b.jpg\",\"the \"\"big\"\" cat\"\r\n\"c\nd.jpg\",dog\n\"e.jpg\",\"dog\""),
              ElementsAre("a, b.jpg=the \"big\" cat", "c\nd.jpg=dog", "e.jpg=dog"));
  EXPECT_THAT(Rows("a.jpg\t\"x\ty\"\n", {}, {}, "a.tsv"), ElementsAre("a.jpg=x\ty"));
  EXPECT_THAT(
      Error("a.jpg,cat\nb.jpg,\"dog\n\n"),
      AllOf(HasSubstr("s3://bucket/lists/train.csv: line 2: has a quote that is not closed"),
            HasSubstr("close it")));
  EXPECT_THAT(Error("\"c\nd.jpg\",cat\na\"b.jpg,cat\n"),
              HasSubstr("line 3: has a quote inside a field; put the field into quotes"));
  EXPECT_THAT(Error("\"a\"b.jpg,cat\n"), HasSubstr("line 1: has a quote inside a field"));
}

TEST_F(ManifestCsvTest, LabelsMayBeNumbers) {
  EXPECT_THAT(Rows("a.jpg,0.5\nb.jpg,-3\n", {LabelType::kFloat32}),
              ElementsAre("a.jpg=0.5", "b.jpg=-3"));
  EXPECT_THAT(Rows("a.jpg,\"[2.5, 1]\"\n", {LabelType::kFloat32, {2}}), ElementsAre("a.jpg=2.5"));
  EXPECT_THAT(Error("a.jpg,0.5\nb.jpg,cat\n", {LabelType::kFloat32}),
              HasSubstr("line 2: has a label that is no JSON, as dataset.label says"));
  EXPECT_THAT(Error("a.jpg,1\n", {LabelType::kInt64, {2}}),
              HasSubstr("has a label that is no list of 2"));
}

TEST_F(ManifestCsvTest, ColumnsThatAreNotThereAreNamed) {
  EXPECT_THAT(
      Error("img,lbl\na.jpg,cat\n"),
      AllOf(HasSubstr("line 1: has no column path, image, file_name"), HasSubstr("has img, lbl"),
            HasSubstr("dataset.fields.image"), HasSubstr("path,label")));
  EXPECT_THAT(Error("path,x,y\na.jpg,1,2\n"),
              AllOf(HasSubstr("a header without a column label, class; has path, x, y"),
                    HasSubstr("dataset.fields.label.field")));
  EXPECT_THAT(Error("path,label\na.jpg,cat\n", {}, Columns("", "kind")),
              HasSubstr("without a column kind"));
  EXPECT_THAT(Error("a.jpg,cat\n", {}, Columns("p", "")), HasSubstr("has no column p"));
  EXPECT_THAT(Error("a.jpg,cat,x\n"), HasSubstr("3 columns and no header"));
  EXPECT_THAT(Error("a.jpg\n"), HasSubstr("1 columns and no header"));
  EXPECT_THAT(Error("path,label\na.jpg,cat\nb, c.jpg,dog\n"),
              HasSubstr("line 3: has 3 columns, and the first line has 2"));
  EXPECT_THAT(Error("path,label\n"), HasSubstr("lists no pictures"));
  EXPECT_THAT(Error(""), HasSubstr("lists no pictures"));
}

TEST_F(ManifestCsvTest, RecordsHaveALimit) {
  EXPECT_THAT(Error("\"" + std::string(5 << 20, 'a')), HasSubstr("more than 4194304 bytes"));
  EXPECT_THAT(Error("a.jpg" + std::string(2000, ',')), HasSubstr("1024 columns"));
}

}  // namespace
}  // namespace hetero::source
