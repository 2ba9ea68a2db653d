#include "api/yaml_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(YamlDocumentTest, PlainScalarsFollowTheCoreSchema) {
  const std::pair<const char*, json> kCases[] = {
      {"", nullptr},
      {"~", nullptr},
      {"Null", nullptr},
      {"true", true},
      {"FALSE", false},
      {"yes", "yes"},
      {"on", "on"},
      {"12", 12},
      {"-7", -7},
      {"+7", 7},
      {"0x1F", 31},
      {"0o17", 15},
      {"0644", 420},
      {"089", 89},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775808", INT64_MIN},
      {"9223372036854775808", uint64_t{1} << 63},
      {"1e3", 1000.0},
      {"-.5", -0.5},
      {"2.", 2.0},
      {"1.5.2", "1.5.2"},
      {"1e", "1e"},
      {"e3", "e3"},
      {"-", "-"},
      {".", "."},
      {".inf", ".inf"},
      {".nan", ".nan"},
      {"nan", "nan"},
      {"0x", "0x"},
      {"--1", "--1"},
      {"12abc", "12abc"},
      {"2026-01-01", "2026-01-01"},
  };
  for (const auto& [text, wanted] : kCases) {
    EXPECT_EQ(ResolvePlainScalar(text), wanted) << text;
    EXPECT_EQ(ResolvePlainScalar(text).type(), json(wanted).type()) << text;
  }
}

TEST(YamlDocumentTest, QuotedScalarsStayStrings) {
  const YamlDocument document = ReadYaml("{a: '1', b: \"true\", c: '', d: !!str 5, e: 5}");
  ASSERT_TRUE(document.errors.empty());
  EXPECT_EQ(document.root, (json{{"a", "1"}, {"b", "true"}, {"c", ""}, {"d", "5"}, {"e", 5}}));
}

TEST(YamlDocumentTest, PositionsCarryLinesAndOrder) {
  const YamlDocument document = ReadYaml("spec:\n  roles:\n  - name: a\n  - name: b\n");
  EXPECT_EQ(document.positions.at("spec.roles[1].name").line, 4);
  EXPECT_LT(document.positions.at("spec.roles[0].name").order,
            document.positions.at("spec.roles[1].name").order);
}

TEST(YamlDocumentTest, AliasesAreResolved) {
  const YamlDocument document = ReadYaml("a: &x {b: 1}\nc: *x\n");
  EXPECT_EQ(document.root["c"], json({{"b", 1}}));
}

TEST(YamlDocumentTest, UnknownTagsAndOddKeysAreErrors) {
  const YamlDocument tagged = ReadYaml("a: !secret x\n");
  ASSERT_EQ(tagged.errors.size(), 1);
  EXPECT_THAT(tagged.errors[0].reason, HasSubstr("!secret"));
  EXPECT_EQ(ReadYaml("? [a, b]\n: 1\n").errors.size(), 1);
  EXPECT_EQ(ReadYaml("a: {b: 1, b: 2}\n").errors.size(), 1);
}

TEST(YamlDocumentTest, AnEmptyKeyIsAnErrorWithAPlace) {
  const YamlDocument top = ReadYaml("a: 1\n\"\": 2\n");
  ASSERT_EQ(top.errors.size(), 1);
  EXPECT_EQ(top.errors[0].path, "line 2, column 1");
  EXPECT_THAT(top.errors[0].reason, HasSubstr("a key is empty"));
  const YamlDocument within = ReadYaml("a:\n  !x : 2\n");
  ASSERT_EQ(within.errors.size(), 1);
  EXPECT_EQ(within.errors[0].path, "a");
}

// yaml-cpp alone finds empty documents there until no memory is left.
TEST(YamlDocumentTest, ADocumentThatCannotBeginIsAnError) {
  for (const char* text : {", a: b\n", "]", "a: b\n---\n}\n"}) {
    const YamlDocument document = ReadYaml(text);
    ASSERT_EQ(document.errors.size(), 1) << text;
    EXPECT_THAT(document.errors[0].reason, HasSubstr("not valid YAML")) << text;
    EXPECT_GT(document.errors[0].line, 0) << text;
  }
}

TEST(YamlDocumentTest, DeepNestingIsRefused) {
  const YamlDocument document = ReadYaml("a: " + std::string(400, '[') + std::string(400, ']'));
  EXPECT_EQ(document.errors.size(), 1);
}

}  // namespace
}  // namespace hetero::api
