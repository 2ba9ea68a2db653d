#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// Settings that several jobs of these tests are made of.
namespace hetero::testing {

// `settings`, then `more`.
std::vector<std::string> With(std::vector<std::string> settings,
                              const std::vector<std::string>& more);

// Of phaseSeconds in a report; 0: it is not there.
double Phase(const nlohmann::json& report, const char* name);

// In place of the model scripts/paced.py with these arguments.
std::vector<std::string> ScriptOf(const std::vector<std::string>& arguments);

// "training.script.command=[...]" of that script.
std::string ScriptCommand(const std::vector<std::string>& arguments);

}  // namespace hetero::testing
