#pragma once

#include <string>
#include <vector>

// Settings that several jobs of these tests are made of.
namespace hetero::testing {

// In place of the model scripts/paced.py with these arguments.
std::vector<std::string> ScriptOf(const std::vector<std::string>& arguments);

// "training.script.command=[...]" of that script.
std::string ScriptCommand(const std::vector<std::string>& arguments);

}  // namespace hetero::testing
