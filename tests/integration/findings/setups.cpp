#include "tests/integration/findings/setups.h"

#include "tests/support/paths.h"

namespace hetero::testing {

std::vector<std::string> With(std::vector<std::string> settings,
                              const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

double Phase(const nlohmann::json& report, const char* name) {
  return report["phaseSeconds"].value(name, 0.0);
}

std::string ScriptCommand(const std::vector<std::string>& arguments) {
  std::string list = "'" HETERO_PYTHON "', '" + testing::SourceDir() +
                     "/tests/integration/findings/scripts/paced.py'";
  for (const std::string& argument : arguments) list += ", '" + argument + "'";
  return "training.script.command=[" + list + "]";
}

std::vector<std::string> ScriptOf(const std::vector<std::string>& arguments) {
  // What a model has is taken out.
  return {"training.model=", "training.optimizer=", ScriptCommand(arguments)};
}

}  // namespace hetero::testing
