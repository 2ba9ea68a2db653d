#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// Reading JSON that others wrote, of whatever shape: the value is not an object, the field is
// missing or has another type, and each gives the empty value of the type that was asked for. Where
// that is an error to be reported, decode with api/decode.h or ask for the type first. The
// references are to `object`, or to a constant that is never destroyed. Thread-safe.
namespace hetero::base {

// A null that lives as long as the process, to return where there is no value.
const nlohmann::json& Absent();
// Absent() where there is no such field.
const nlohmann::json& FieldOf(const nlohmann::json& object, std::string_view name);
// {} or [] for anything else.
const nlohmann::json& ObjectOf(const nlohmann::json& object, std::string_view name);
const nlohmann::json& ListOf(const nlohmann::json& object, std::string_view name);
// "", false or 0 for anything else; 0 also for numbers that are no integers or do not fit.
std::string TextOf(const nlohmann::json& object, std::string_view name);
bool IsTrue(const nlohmann::json& object, std::string_view name);
int64_t IntegerOf(const nlohmann::json& object, std::string_view name);
int32_t SmallIntegerOf(const nlohmann::json& object, std::string_view name);

}  // namespace hetero::base
