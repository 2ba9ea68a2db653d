#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// The tables of manifests that must be refused (cases.yaml, changes.yaml), read for the two tests
// that use them: the API server's and the parser's.
namespace hetero::testing {

struct BadManifest {
  std::string name;
  std::string refused_by;  // Schema, Strict (an unknown field) or CEL
  nlohmann::json manifest;
  std::string path;         // of the field, as the parser writes it
  std::string server_path;  // as the API server writes it; usually the same
  std::string server_says;  // part of its message
  std::string parser_says;  // part of the parser's; empty: the parser leaves it to the API server
};
std::vector<BadManifest> BadManifests();

// A change to a job that exists.
struct Change {
  std::string name;
  bool suspended = false;   // the job is, when the change arrives
  nlohmann::json manifest;  // after the change
  std::string path;         // of the refusal; empty: the change is accepted
  std::string server_says;
};
std::vector<Change> Changes();

// The manifest that both tables change.
nlohmann::json BaseManifest();

}  // namespace hetero::testing
