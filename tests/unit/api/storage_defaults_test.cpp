#include "api/storage_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/paths.h"
#include "tests/unit/api/crd.h"
#include "tests/unit/api/test_manifest.h"

namespace hetero::api {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> PrefixesOf(const std::vector<StorageAccess>& storage) {
  std::vector<std::string> prefixes;
  for (const StorageAccess& access : storage) prefixes.push_back(access.prefix);
  return prefixes;
}

// A list of entries, each of a bucket of its own.
std::string Entries(int count) {
  std::string list = "[";
  for (int i = 0; i < count; ++i) absl::StrAppend(&list, "{prefix: 's3://bucket-", i, "'},");
  return list + "]";
}

TEST(StorageDefaultsTest, EveryFieldThatIsTaken) {
  const auto storage = ParseStorageDefaults(
      R"([{"prefix":"s3://datasets","endpoint":"https://minio.example:9000","region":"eu-north-1",)"
      R"("pathStyle":false,"caBundle":"/etc/minio/ca.pem",)"
      R"("prices":{"perThousandGets":"0.0004","perGBEgress":"0.09"}},)"
      R"({"prefix":"s3://open/a\u0026b","anonymous":true},{"prefix":"https://host/a"}])");
  ASSERT_TRUE(storage.ok()) << storage.status();
  ASSERT_THAT(PrefixesOf(*storage),
              ElementsAre("s3://datasets", "s3://open/a&b", "https://host/a"));
  const StorageAccess& first = storage->front();
  EXPECT_EQ(first.endpoint, "https://minio.example:9000");
  EXPECT_EQ(first.region, "eu-north-1");
  EXPECT_EQ(first.path_style, false);
  EXPECT_EQ(first.anonymous, std::nullopt);
  EXPECT_EQ(first.ca_bundle, "/etc/minio/ca.pem");
  EXPECT_FALSE(first.secret_ref);
  ASSERT_TRUE(first.prices);
  EXPECT_EQ(first.prices->per_thousand_gets, "0.0004");
  EXPECT_EQ(first.prices->per_gb_egress, "0.09");
  EXPECT_EQ((*storage)[1].anonymous, true);
}

TEST(StorageDefaultsTest, NoneAndTheMost) {
  const auto none = ParseStorageDefaults("[]");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(*none, IsEmpty());
  const auto most = ParseStorageDefaults(Entries(16));
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->size(), 16u);
}

TEST(StorageDefaultsTest, MistakesNameEntryAndField) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"[{prefix: 's3://a'", "line 1, column"},
      {"", "storage: must be a list, got null"},
      {"{prefix: 's3://bucket'}", "storage: must be a list, got a map"},
      {"['s3://bucket']", "storage[0]: must be a map of fields"},
      {Entries(17), "storage: has 17 entries; at most 16 are allowed"},
      {"[{prefix: 's3://bucket'}, {region: eu}]", "storage[1].prefix: is required"},
      {"[{prefix: 's3://bucket/'}]", "storage[0].prefix: must be s3://bucket, s3://bucket/prefix"},
      {"[{prefix: 's3://bucket', endpoint: 'minio.example:9000'}]",
       "storage[0].endpoint: must be http://host, https://host or either with :port"},
      {"[{prefix: 's3://bucket', caBundle: ca.pem}]",
       "storage[0].caBundle: must be an absolute path"},
      {"[{prefix: 's3://bucket', pathStyle: 'no'}]", "storage[0].pathStyle: must be true or false"},
      {"[{prefix: 's3://bucket', end_point: 'https://host'}]",
       "storage[0].end_point: unknown field; did you mean endpoint?"},
      {"[{prefix: 's3://bucket', prices: {perGBEgress: 0.09}}]",
       "storage[0].prices.perGBEgress: must be a string: write \"0.09\""},
      {"[{prefix: 's3://bucket'}, {prefix: 's3://other'}, {prefix: 's3://bucket'}]",
       "storage[2].prefix: 's3://bucket' is the prefix of storage[0] too; remove one of them"},
      {"[{prefix: 'https://host', region: eu}]",
       "storage[0].region: is taken only with a prefix of s3://; leave it out"},
      {"[{prefix: 's3://bucket'}, {prefix: 's3://other', secretRef: {name: keys}}]",
       "storage[1].secretRef: is not taken here"}};
  for (const auto& [text, wanted] : table) {
    const auto storage = ParseStorageDefaults(text);
    ASSERT_FALSE(storage.ok()) << text;
    EXPECT_THAT(std::string(storage.status().message()), HasSubstr(wanted)) << text;
  }
}

TEST(StorageDefaultsTest, AllMistakesAreToldAtOnce) {
  const auto storage = ParseStorageDefaults("[{prefix: x}, {prefix: 's3://bucket', region: '?'}]");
  const std::string message(storage.status().message());
  EXPECT_THAT(message, HasSubstr("storage[0].prefix: "));
  EXPECT_THAT(message, HasSubstr("; storage[1].region: "));
}

TEST(StorageDefaultsTest, AJobsOwnEntriesStayWhereTheyAreAndCountAsAWhole) {
  std::vector<StorageAccess> storage(2);
  storage[0].prefix = "s3://mine";
  storage[1].prefix = "s3://datasets";
  storage[1].region = "own";
  std::vector<StorageAccess> defaults(3);
  defaults[0].prefix = "s3://open";
  defaults[1].prefix = "s3://datasets";
  defaults[1].endpoint = "https://host";
  defaults[2].prefix = "s3://datasets/a";
  AddStorageDefaults(defaults, storage);
  EXPECT_THAT(PrefixesOf(storage),
              ElementsAre("s3://mine", "s3://datasets", "s3://open", "s3://datasets/a"));
  EXPECT_EQ(storage[1].region, "own");
  EXPECT_EQ(storage[1].endpoint, "") << "nothing is inherited";
}

std::string ManifestWith(int entries) {
  const ManifestResult smallest = ParseManifest(kSmallest);
  EXPECT_THAT(smallest.errors, IsEmpty());
  HeteroTrainingJob job = smallest.job;
  for (int i = 0; i < entries; ++i) {
    job.spec.storage.emplace_back().prefix = absl::StrCat("s3://bucket-", i);
  }
  return ToJson(job);
}

// A job may have as many entries as ever, whatever its cluster adds.
TEST(StorageDefaultsTest, TheProgramsOfAJobReadBothListsAtTheirLongest) {
  const ManifestResult document = ParseJobDocument(ManifestWith(32));
  EXPECT_THAT(document.errors, IsEmpty()) << FormatErrors(document.errors);
  EXPECT_EQ(document.job.spec.storage.size(), 32u);
  EXPECT_THAT(FormatErrors(ParseJobDocument(ManifestWith(33)).errors),
              HasSubstr("spec.storage: has 33 entries; at most 32 are allowed"));
  EXPECT_THAT(FormatErrors(ParseManifest(ManifestWith(17)).errors),
              HasSubstr("spec.storage: has 17 entries; at most 16 are allowed"));
}

// Without what only one of the two schemas says.
json Plain(json schema) {
  schema.erase("description");
  schema.erase("additionalProperties");
  for (auto& [name, property] : schema["properties"].items()) {
    property.erase("description");
    if (property.contains("properties")) property = Plain(property);
  }
  return schema;
}

TEST(StorageDefaultsTest, TheChartTakesTheSameFieldsButSecretRef) {
  std::ifstream file(testing::SourceDir() + "/charts/hetero-operator/values.schema.json");
  const json chart = json::parse(file, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(chart.is_object());
  const json& given = chart["properties"]["jobs"]["properties"]["storage"];
  const json& of_jobs = RootSchema()["properties"]["spec"]["properties"]["storage"];
  EXPECT_EQ(given["type"], "array");
  EXPECT_EQ(given["maxItems"], of_jobs["maxItems"]);
  EXPECT_EQ(given["items"]["additionalProperties"], false);
  EXPECT_EQ(given["items"]["properties"]["prices"]["additionalProperties"], false);
  json wanted = of_jobs["items"];
  wanted.erase("x-kubernetes-validations");
  wanted["properties"].erase("secretRef");
  EXPECT_EQ(Plain(given["items"]), Plain(wanted));
}

}  // namespace
}  // namespace hetero::api
