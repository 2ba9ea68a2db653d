#include "base/json_access.h"

#include <gtest/gtest.h>

namespace hetero::base {
namespace {

using nlohmann::json;

const json kObject = json::parse(R"({
  "object": {"inner": 1}, "list": [1, 2], "text": "words", "yes": true, "no": false,
  "number": 7, "negative": -3, "fraction": 1.5, "large": 9223372036854775808, "long": 2147483648,
  "null": null})");

TEST(JsonAccessTest, GivesWhatIsThere) {
  EXPECT_EQ(FieldOf(kObject, "number"), 7);
  EXPECT_EQ(ObjectOf(kObject, "object"), json({{"inner", 1}}));
  EXPECT_EQ(ListOf(kObject, "list"), json({1, 2}));
  EXPECT_EQ(TextOf(kObject, "text"), "words");
  EXPECT_TRUE(IsTrue(kObject, "yes"));
  EXPECT_FALSE(IsTrue(kObject, "no"));
  EXPECT_EQ(IntegerOf(kObject, "negative"), -3);
  EXPECT_EQ(IntegerOf(kObject, "long"), 2147483648);
  EXPECT_EQ(SmallIntegerOf(kObject, "number"), 7);
  EXPECT_EQ(&FieldOf(kObject, "text"), &kObject["text"]) << "no copy";
}

TEST(JsonAccessTest, GivesTheEmptyValueForAnythingElse) {
  const json no_objects[] = {json(), json("text"), json::array({kObject}), json(3)};
  for (const json& object : no_objects) {
    EXPECT_EQ(&FieldOf(object, "text"), &Absent());
    EXPECT_EQ(TextOf(object, "text"), "");
    EXPECT_EQ(ListOf(object, "list"), json::array());
  }
  for (const char* field : {"gone", "null", "object", "list", "text", "yes", "number"}) {
    const std::string name = field;
    if (name != "object") {
      EXPECT_EQ(ObjectOf(kObject, name), json::object()) << name;
    }
    if (name != "list") {
      EXPECT_EQ(ListOf(kObject, name), json::array()) << name;
    }
    if (name != "text") {
      EXPECT_EQ(TextOf(kObject, name), "") << name;
    }
    if (name != "yes") {
      EXPECT_FALSE(IsTrue(kObject, name)) << name;
    }
    if (name != "number") {
      EXPECT_EQ(IntegerOf(kObject, name), 0) << name;
    }
  }
  EXPECT_EQ(&FieldOf(kObject, "gone"), &Absent());
}

TEST(JsonAccessTest, ANumberThatDoesNotFitIsNone) {
  EXPECT_EQ(IntegerOf(kObject, "fraction"), 0);
  EXPECT_EQ(IntegerOf(kObject, "large"), 0);
  EXPECT_EQ(SmallIntegerOf(kObject, "long"), 0);
}

}  // namespace
}  // namespace hetero::base
