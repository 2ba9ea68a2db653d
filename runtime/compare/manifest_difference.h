#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hetero::compare {

// A field in which manifests differ.
struct Difference {
  std::string path;                                   // "roles[cpu].replicas", below spec
  std::vector<std::optional<nlohmann::json>> values;  // of each manifest; nothing: it has none
};

// Where manifests differ, in the order of the first. Entries of lists are told apart by their name,
// op or prefix, where all have one, a second one of it as "GaussianBlur#2"; other lists are
// compared by place, and lists of plain values as a whole. That entries stand in another order is a
// difference of its own, "pipeline (order)". A field of an entry that some manifests lack is not
// listed beside the entry. Pure; none where there are fewer than two.
std::vector<Difference> ManifestDifferences(const std::vector<nlohmann::json>& manifests);

// The manifests with defaults filled in, where this program can read them all; else as they are.
// What an older program did not write down is no difference then, and neither are the bounds of a
// role's replicas that follow from them.
std::vector<nlohmann::json> WithDefaults(std::vector<nlohmann::json> manifests);

// As a manifest has it on one line: 4, Adam, [0.5, 0.5], {height: 32, width: 32}; "-" for nothing.
std::string ValueText(const std::optional<nlohmann::json>& value);

}  // namespace hetero::compare
