#pragma once

#include <map>
#include <string>

#include "tests/integration/prometheus/prometheus_server.h"

namespace hetero::testing {

// Every query of a Grafana board, by "panel: query" as a person reads them, with its variables
// replaced: those that choose by ".*", intervals by ten seconds.
std::map<std::string, std::string> QueriesOfBoard(const std::string& file);

// Every alert that `server` has read, by its name, without what it is compared with: the
// difference of both sides, which has data only where both have.
std::map<std::string, std::string> QueriesOfAlerts(const PrometheusServer& server);

// Fails the test for each query that has given no number by the deadline, a minute and a half.
void ExpectDataOfEach(const PrometheusServer& server,
                      const std::map<std::string, std::string>& queries);

}  // namespace hetero::testing
