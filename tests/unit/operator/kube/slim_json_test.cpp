#include "operator/kube/slim_json.h"

#include <gtest/gtest.h>

#include <string>

namespace hetero::kube {
namespace {

using nlohmann::json;

TEST(SlimJson, IsWhatTheParserGivesButForManagedFields) {
  const std::string text = R"({"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [
    {"metadata": {"name": "a", "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:a": {}}}],
                  "labels": {"x": "y"}, "annotations": {}},
     "spec": {"list": [1, -2, 2.5, true, null, "text", [], {}, [[3]], {"a": {"b": [4]}}]}},
    {"metadata": {"managedFields": null, "name": "b"}},
    {"metadata": "odd", "managedFields": "stays"},
    {"metadata": [{"managedFields": "stays"}], "x": {"managedFields": [1]}}]})";
  json want = json::parse(text);
  want["items"][0]["metadata"].erase("managedFields");
  want["items"][1]["metadata"].erase("managedFields");
  EXPECT_EQ(ParseWithoutManagedFields(text), want);
}

TEST(SlimJson, TakesAnyValue) {
  for (const char* text : {"1", "\"text\"", "null", "[]", "{}", "[{\"metadata\": {}}]"}) {
    EXPECT_EQ(ParseWithoutManagedFields(text), json::parse(text)) << text;
  }
}

TEST(SlimJson, TextThatIsNoJsonIsDiscarded) {
  for (const char* text : {"", "{", "{\"a\": 1", "{\"metadata\": {\"managedFields\": [", "[1,]",
                           "{} x", "{\"a\": 1}}", "not"}) {
    EXPECT_TRUE(ParseWithoutManagedFields(text).is_discarded()) << text;
  }
}

TEST(SlimJson, TheLastOfTwoOfAKeyCounts) {
  EXPECT_EQ(ParseWithoutManagedFields(R"({"a": {"b": 1}, "a": 2})"), json::parse(R"({"a": 2})"));
  EXPECT_EQ(ParseWithoutManagedFields(R"({"a": 2, "a": [3]})"), json::parse(R"({"a": [3]})"));
}

}  // namespace
}  // namespace hetero::kube
