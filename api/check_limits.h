#pragma once

#include <string>

#include "api/field_table.h"
#include "api/findings.h"

// Checks one value against its row's limits and says what is allowed.
namespace hetero::api {

void CheckNumber(double value, const std::string& path, const Limits& limits, Findings& findings);
void CheckString(const std::string& value, const std::string& path, const Limits& limits,
                 Findings& findings);
void CheckCount(size_t count, const std::string& path, const Limits& limits, Findings& findings);

}  // namespace hetero::api
