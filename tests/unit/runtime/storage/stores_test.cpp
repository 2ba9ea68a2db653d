#include "runtime/storage/stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace hetero::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

api::StorageAccess EntryAt(const std::string& prefix, const std::string& region = "region") {
  api::StorageAccess access;
  access.prefix = prefix;
  access.region = region;
  return access;
}

// An entry with a Secret, as spec.storage[0].
std::vector<api::StorageAccess> WithSecret() {
  api::StorageAccess access = EntryAt("s3://bucket");
  access.secret_ref.emplace().name = "keys";
  return {access};
}

absl::StatusOr<AwsCredentials> KeysOf(const std::map<std::string, std::string>& variables) {
  const StoreOptions options = Stores(WithSecret(), [variables](const std::string& name) {
                                 const auto found = variables.find(name);
                                 return found == variables.end() ? "" : found->second;
                               }).OptionsFor("s3://bucket/set");
  EXPECT_TRUE(options.keys.has_value());
  return VariableCredentials(options.environment, options.keys.value_or(KeyVariables()))->Fetch();
}

TEST(StoresTest, TheLongestPrefixOfWholePartsCounts) {
  const Stores stores({EntryAt("s3://bucket/a", "of-a"), EntryAt("s3://bucket", "of-all"),
                       EntryAt("s3://bucket/a/b", "of-b"), EntryAt("https://host", "of-host"),
                       EntryAt("https://Host:443/a%20b", "of-path")});
  const std::map<std::string, std::string> regions = {{"s3://bucket", "of-all"},
                                                      {"s3://bucket/", "of-all"},
                                                      {"s3://bucket/ab", "of-all"},
                                                      {"s3://bucket/a", "of-a"},
                                                      {"s3://bucket/a/", "of-a"},
                                                      {"s3://bucket/a/bc/d", "of-a"},
                                                      {"s3://bucket/a/b/c", "of-b"},
                                                      {"s3://bucket2", ""},
                                                      {"s3://bucke", ""},
                                                      {"https://host/a", "of-host"},
                                                      {"https://host/a%20b/c.csv", "of-path"},
                                                      {"https://host:8443/a", ""},
                                                      {"http://host/a", ""},
                                                      {"file:///bucket", ""},
                                                      {"no uri", ""}};
  for (const auto& [uri, region] : regions) {
    EXPECT_EQ(stores.OptionsFor(uri).region, region) << uri;
  }
}

TEST(StoresTest, ObjectsOfOneBucketMayHaveEntriesOfTheirOwn) {
  const Stores stores({EntryAt("s3://bucket/a"), EntryAt("s3://bucket/b")});
  EXPECT_EQ(stores.EntryOf({"s3://bucket", "a/x.jpg"}), 0);
  EXPECT_EQ(stores.EntryOf({"s3://bucket", "b/x.jpg"}), 1);
  EXPECT_EQ(stores.EntryOf({"s3://bucket", "c/x.jpg"}), -1);
  EXPECT_EQ(stores.EntryOf({"s3://other", "a/x.jpg"}), -1);
  const auto store = stores.OpenRootOf({"s3://bucket", "b/x.jpg"});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->uri(), "s3://bucket");
}

TEST(StoresTest, AnEntrySaysHowItsStoreIsReached) {
  api::StorageAccess access = EntryAt("s3://bucket");
  access.endpoint = "https://minio:9000";
  access.path_style = false;
  access.ca_bundle = "/etc/ca.pem";
  access.anonymous = true;
  const Stores stores({access});
  const StoreOptions options = stores.OptionsFor("s3://bucket/set");
  EXPECT_EQ(options.endpoint, "https://minio:9000");
  EXPECT_EQ(options.region, "region");
  EXPECT_EQ(options.path_style, false);
  EXPECT_EQ(options.ca_bundle, "/etc/ca.pem");
  EXPECT_TRUE(options.anonymous);
  EXPECT_FALSE(options.keys.has_value());

  const StoreOptions others = stores.OptionsFor("s3://other/set");
  EXPECT_EQ(others.endpoint, "");
  EXPECT_FALSE(others.path_style.has_value());
  EXPECT_FALSE(others.anonymous);
}

TEST(StoresTest, KeysAreThoseOfTheSecret) {
  const auto keys = KeysOf({{"HETERO_STORAGE_0_ACCESS_KEY_ID", "AKID"},
                            {"HETERO_STORAGE_0_SECRET_ACCESS_KEY", "hidden"},
                            {"HETERO_STORAGE_0_SESSION_TOKEN", "token"},
                            {"AWS_ACCESS_KEY_ID", "somebody's"},
                            {"AWS_SECRET_ACCESS_KEY", "somebody's"}});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->access_key_id, "AKID");
  EXPECT_EQ(keys->secret_access_key, "hidden");
  EXPECT_EQ(keys->session_token, "token");
}

TEST(StoresTest, AKeyThatTheSecretLacksIsNamedAndNobodyElsesIsTaken) {
  const std::map<std::string, std::string> elsewhere = {{"AWS_ACCESS_KEY_ID", "somebody's"},
                                                        {"AWS_SECRET_ACCESS_KEY", "somebody's"}};
  const absl::Status none = KeysOf(elsewhere).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("spec.storage[0].secretRef: the Secret \"keys\" had no key "
                        "AWS_ACCESS_KEY_ID when this pod was started"));
  std::map<std::string, std::string> half = elsewhere;
  half["HETERO_STORAGE_0_ACCESS_KEY_ID"] = "AKID";
  const absl::Status secret = KeysOf(half).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(secret)) << secret;
  EXPECT_THAT(std::string(secret.message()),
              AllOf(HasSubstr("no key AWS_SECRET_ACCESS_KEY"), Not(HasSubstr("AKID"))));
}

}  // namespace
}  // namespace hetero::storage
