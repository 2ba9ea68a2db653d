#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "api/status_fields.h"
#include "tests/unit/api/crd.h"

// The hand-written CRD and the C++ tables must describe the same status.
namespace hetero::api {
namespace {

using nlohmann::json;
using ::testing::UnorderedElementsAreArray;

template <typename T>
void ExpectObject(const json& schema, const std::string& path);

void ExpectText(const Limits& limits, const json& schema, const std::string& path) {
  ASSERT_EQ(schema.value("type", ""), "string") << path;
  EXPECT_EQ(schema.value("maxLength", 0), limits.max_length) << path;
  EXPECT_EQ(schema.value("pattern", ""), limits.pattern == nullptr ? "" : limits.pattern) << path;
}

template <typename T>
void ExpectNumber(const Limits& limits, const json& schema, const std::string& path) {
  const bool whole = std::is_integral_v<T>;
  ASSERT_EQ(schema.value("type", ""), whole ? "integer" : "number") << path;
  EXPECT_EQ(schema.value("format", ""), !whole           ? "double"
                                        : sizeof(T) == 4 ? "int32"
                                                         : "int64")
      << path;
  EXPECT_EQ(schema.contains("minimum"), std::isfinite(limits.min)) << path;
  EXPECT_EQ(schema.value("minimum", limits.min), limits.min) << path;
  EXPECT_FALSE(schema.contains("maximum")) << path;
}

template <typename T>
void ExpectValue(const Limits& limits, const json& schema, const std::string& path) {
  if constexpr (IsOptional<T>::value) {
    ExpectValue<typename T::value_type>(limits, schema, path);
  } else if constexpr (IsVector<T>::value) {
    ASSERT_EQ(schema.value("type", ""), "array") << path;
    EXPECT_EQ(schema.value("maxItems", 0), limits.max_items) << path;
    ExpectValue<typename T::value_type>(limits, schema["items"], path + "[]");
  } else if constexpr (std::is_same_v<T, ConditionType>) {
    EXPECT_EQ(schema.value("type", ""), "string") << path << ": open, as Kubernetes' own";
  } else if constexpr (std::is_enum_v<T>) {
    EXPECT_EQ(schema.value("enum", std::vector<std::string>()), AllNames<T>()) << path;
  } else if constexpr (std::is_same_v<T, std::string>) {
    ExpectText(limits, schema, path);
  } else if constexpr (std::is_same_v<T, base::WallTime>) {
    ExpectText(limits, schema, path);
    EXPECT_EQ(schema.value("format", ""), "date-time") << path;
  } else if constexpr (std::is_same_v<T, bool>) {
    EXPECT_EQ(schema.value("type", ""), "boolean") << path;
  } else if constexpr (std::is_arithmetic_v<T>) {
    ExpectNumber<T>(limits, schema, path);
  } else {
    ExpectObject<T>(schema, path);
  }
}

template <typename T>
void ExpectObject(const json& schema, const std::string& path) {
  ASSERT_EQ(schema.value("type", ""), "object") << path;
  std::vector<std::string> ours, required, theirs;
  for (const auto& [name, unused] : schema["properties"].items()) theirs.push_back(name);
  ForEachField<T>([&](const auto& field) {
    ours.push_back(field.name);
    if (field.limits.presence == Presence::kRequired) required.push_back(field.name);
    if (!schema["properties"].contains(field.name)) return;
    using Member = std::remove_cvref_t<decltype(std::declval<T>().*(field.member))>;
    ExpectValue<Member>(field.limits, schema["properties"][field.name], Child(path, field.name));
  });
  EXPECT_THAT(theirs, UnorderedElementsAreArray(ours)) << path;
  EXPECT_THAT(schema.value("required", std::vector<std::string>()),
              UnorderedElementsAreArray(required))
      << path;
}

TEST(StatusSchemaTest, StatusHasTheSameFieldsTypesAndLimitsOnBothSides) {
  ExpectObject<JobStatus>(RootSchema()["properties"]["status"], "status");
}

}  // namespace
}  // namespace hetero::api
