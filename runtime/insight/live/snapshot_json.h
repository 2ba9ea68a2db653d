#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/insight/live/snapshot.h"

namespace hetero::live {

// What the page reads (page_model.js says which place means what). Figures are rounded to what a
// person can see, so that little changes from one second to the next; series are objects by their
// place, so that MergePatch() sends new points alone. Objects hold no null.
nlohmann::json ToJson(const Snapshot& snapshot);

// As text; bytes that are not UTF-8 become U+FFFD.
std::string ToText(const nlohmann::json& value);
std::string ToText(const MemberDetail& detail);

}  // namespace hetero::live
