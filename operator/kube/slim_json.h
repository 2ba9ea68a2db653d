#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace hetero::kube {

// The JSON text without metadata.managedFields, wherever an object has them: a third of a pod that
// nobody here reads, and it never becomes values. Text that is no JSON gives a discarded value, as
// of json::parse without exceptions.
nlohmann::json ParseWithoutManagedFields(std::string_view text);

}  // namespace hetero::kube
