#include "tests/integration/prometheus/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

bool HasNumber(const json& result) {
  return std::any_of(result.begin(), result.end(),
                     [](const json& sample) { return sample["value"][1] != "NaN"; });
}

}  // namespace

std::map<std::string, std::string> QueriesOfBoard(const std::string& file) {
  std::map<std::string, std::string> queries;
  const json board = json::parse(ReadFileOrDie(file));
  for (const json& panel : board["panels"]) {
    for (const json& target : panel["targets"]) {
      const std::string expression = target["expr"];
      std::string query = absl::StrReplaceAll(expression, {{"$__rate_interval", "10s"}});
      query = std::regex_replace(query, std::regex(R"("\$\w+")"), "\".*\"");
      EXPECT_EQ(query.find('$'), std::string::npos) << query << ": an unknown variable";
      queries[absl::StrCat(panel["title"].get<std::string>(), ": ", expression)] = query;
    }
  }
  EXPECT_FALSE(queries.empty()) << file;
  return queries;
}

std::map<std::string, std::string> QueriesOfAlerts(const PrometheusServer& server) {
  static const std::regex comparison(R"( (==|!=|<=|>=|<|>) )");
  std::map<std::string, std::string> queries;
  for (const json& rule : server.Rules()) {
    const std::string query = rule["query"];
    EXPECT_TRUE(std::regex_search(query, comparison)) << query << ": compares nothing";
    const std::string both = std::regex_replace(query, comparison, " - ");
    // What is asked for to be absent is there where all is well.
    queries[rule["name"]] = std::regex_replace(both, std::regex(R"(\babsent\()"), "(");
  }
  EXPECT_FALSE(queries.empty()) << "no alerts";
  return queries;
}

void ExpectDataOfEach(const PrometheusServer& server,
                      const std::map<std::string, std::string>& queries) {
  base::Clock& clock = base::Clock::Real();
  const base::Instant end = clock.Now() + std::chrono::seconds(90);
  std::map<std::string, std::string> without = queries;
  while (true) {
    std::erase_if(without,
                  [&](const auto& query) { return HasNumber(server.Query(query.second)); });
    if (without.empty() || clock.Now() > end) break;
    clock.SleepFor(std::chrono::milliseconds(500));  // until the next scrape
  }
  for (const auto& [what, query] : without) {
    ADD_FAILURE() << what << " has no data: " << query << " gives " << server.Query(query).dump();
  }
}

}  // namespace hetero::testing
