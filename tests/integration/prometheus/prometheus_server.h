#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/storage/server_process.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {

// Debian's Prometheus (get), which ends with this object. It scrapes and looks at its rules twice a
// second.
class PrometheusServer {
 public:
  // `scrape_configs` is the YAML list of that name, from the first column on; `rules` the files of
  // rules. Throws what it printed when it does not begin within 20 s.
  PrometheusServer(const std::string& scrape_configs, const std::vector<std::string>& rules);

  // The result of an instant query: a list of samples, empty without data. A query that is refused
  // fails the test.
  nlohmann::json Query(const std::string& expression) const;
  // The one number that a query gives; empty where it gives none or several.
  std::optional<double> Number(const std::string& expression) const;
  // The alerts and rules that it has read, as /api/v1/rules lists them.
  nlohmann::json Rules() const;
  // The names of alerts that fire now.
  std::vector<std::string> Firing() const;

 private:
  nlohmann::json Ask(const std::string& path, const std::string& expression) const;

  TemporaryFolder folder_;
  int port_ = 0;
  std::optional<storage::ServerProcess> process_;
};

// Runs promtool; what it printed, and its exit code. `input` is the file that it reads on its
// standard input; empty: none.
struct PromtoolResult {
  int exit_code = -1;
  std::string output;
};
PromtoolResult Promtool(const std::string& arguments, const std::string& input = "/dev/null");

}  // namespace hetero::testing
