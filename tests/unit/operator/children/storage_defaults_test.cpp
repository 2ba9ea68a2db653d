// Entries of the operator's settings beside those of a job's spec.storage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/operator/children/test_job.h"

namespace hetero::children {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

constexpr char kOwn[] =
    "storage=[{prefix: 's3://mine', secretRef: {name: keys}}, {prefix: 's3://datasets', "
    "region: eu, secretRef: {name: others}}]";

Settings WithDefaults(const std::vector<std::string>& prefixes) {
  Settings settings;
  for (const std::string& prefix : prefixes) {
    api::StorageAccess& access = settings.storage_defaults.emplace_back();
    access.prefix = prefix;
    access.endpoint = "https://minio.example:9000";
  }
  return settings;
}

std::string DocumentOf(const api::HeteroTrainingJob& job, const Settings& settings) {
  return ConfigMap(job, settings, "a", "b")["data"]["job.json"];
}

std::vector<std::string> PrefixesIn(const std::string& document) {
  std::vector<std::string> prefixes;
  for (const json& access : json::parse(document)["spec"].value("storage", json::array())) {
    prefixes.push_back(access["prefix"]);
  }
  return prefixes;
}

TEST(ChildrensStorageTest, AJobWithoutEntriesHasTheDefaults) {
  const std::string document =
      DocumentOf(QuickstartJob(), WithDefaults({"s3://datasets", "s3://open"}));
  EXPECT_THAT(PrefixesIn(document), ElementsAre("s3://datasets", "s3://open"));
  EXPECT_EQ(json::parse(document)["spec"]["storage"][0]["endpoint"], "https://minio.example:9000");
}

TEST(ChildrensStorageTest, DefaultsStandBehindTheJobsOwnWhichWin) {
  const api::HeteroTrainingJob job = QuickstartJob({kOwn});
  const std::string document = DocumentOf(job, WithDefaults({"s3://datasets", "s3://open"}));
  EXPECT_THAT(PrefixesIn(document), ElementsAre("s3://mine", "s3://datasets", "s3://open"));
  const json own = json::parse(document)["spec"]["storage"][1];
  EXPECT_EQ(
      own,
      (json{{"prefix", "s3://datasets"}, {"region", "eu"}, {"secretRef", {{"name", "others"}}}}));
}

TEST(ChildrensStorageTest, WithoutDefaultsOfItsOwnPrefixesTheDocumentIsTheSameText) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{}, std::vector<std::string>{kOwn}}) {
    const api::HeteroTrainingJob job = QuickstartJob(overrides);
    const std::string usual = DocumentOf(job, Settings());
    EXPECT_EQ(PrefixesIn(usual).size(), job.spec.storage.size());
    EXPECT_EQ(DocumentOf(job, WithDefaults({})), usual);
  }
  const api::HeteroTrainingJob job = QuickstartJob({kOwn});
  EXPECT_EQ(DocumentOf(job, WithDefaults({"s3://datasets", "s3://mine"})),
            DocumentOf(job, Settings()));
}

TEST(ChildrensStorageTest, PodsAreTheSame) {
  const api::HeteroTrainingJob job = QuickstartJob({kOwn});
  for (const api::Role& role : job.spec.roles) {
    const json pod = Pod(job, SlotOf(role), WithDefaults({"s3://datasets", "s3://open"}));
    EXPECT_EQ(pod.dump(), Pod(job, SlotOf(role), Settings()).dump()) << role.name;
    EXPECT_EQ(Named(RuntimeOf(pod)["env"],
                    "HETERO_STORAGE_1_ACCESS_KEY_ID")["valueFrom"]["secretKeyRef"]["name"],
              "others");
  }
}

TEST(ChildrensStorageTest, TheProgramsReadAFullListBehindAFullList) {
  std::string own;
  std::vector<std::string> defaults;
  for (int i = 0; i < 16; ++i) {
    absl::StrAppend(&own, "{prefix: 's3://own-", i, "'},");
    defaults.push_back(absl::StrCat("s3://default-", i));
  }
  const api::HeteroTrainingJob job = QuickstartJob({absl::StrCat("storage=[", own, "]")});
  const api::ManifestResult read = api::ParseJobDocument(DocumentOf(job, WithDefaults(defaults)));
  EXPECT_TRUE(read.errors.empty()) << api::FormatErrors(read.errors);
  ASSERT_EQ(read.job.spec.storage.size(), 32u);
  EXPECT_EQ(read.job.spec.storage[15].prefix, "s3://own-15");
  EXPECT_EQ(read.job.spec.storage[16].prefix, "s3://default-0");
}

}  // namespace
}  // namespace hetero::children
