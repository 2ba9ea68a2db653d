// docs/metrics.md names every metric that a process of a job serves, with its type and labels, and
// no other; the chart's board and alerts of jobs use no other, either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/fake_clock.h"
#include "runtime/process/metrics_port.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace hetero::process {
namespace {

using Names = std::set<std::string>;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::Not;

struct Kind {
  std::string type;
  Names labels;
  bool operator==(const Kind&) const = default;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.type << " {";
  for (const std::string& label : kind.labels) *out << label << " ";
  *out << "}";
}
using Metrics = std::map<std::string, Kind>;

Names AllMatches(absl::string_view text, const std::string& pattern) {
  const std::regex regex(pattern);
  const std::string copy(text);
  Names names;
  for (std::sregex_iterator at(copy.begin(), copy.end(), regex), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  return names;
}

// What the page of the docs says that `process` serves.
Metrics Documented(const std::string& process) {
  Metrics metrics;
  const std::string page =
      testing::ReadFileOrDie(absl::StrCat(testing::SourceDir(), "/docs/metrics.md"));
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    std::vector<absl::string_view> cells = absl::StrSplit(line, '|');
    if (cells.size() != 8 || !absl::StartsWith(line, "| `")) continue;  // another table
    const absl::string_view who = absl::StripAsciiWhitespace(cells[5]);
    const std::vector<absl::string_view> processes = absl::StrSplit(who, ", ");
    if (who != "all" && std::find(processes.begin(), processes.end(), process) == processes.end()) {
      continue;
    }
    const Names name = AllMatches(cells[1], "`(\\w+)`");
    metrics[*name.begin()] = {std::string(absl::StripAsciiWhitespace(cells[2])),
                              AllMatches(cells[3], "`(\\w+)`")};
  }
  return metrics;
}

Metrics Served(const MetricsPort& port) {
  Metrics metrics;
  const std::string page = httplib::Client("127.0.0.1", port.port()).Get("/metrics")->body;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (absl::StartsWith(line, "# TYPE ")) metrics[words.at(2)].type = words.at(3);
    if (line.empty() || line[0] == '#') continue;
    std::string name(line.substr(0, line.find_first_of("{ ")));
    if (!metrics.contains(name)) name = name.substr(0, name.rfind('_'));  // of a histogram
    Names labels = AllMatches(line, "(\\w+)=\"");
    labels.erase("le");
    metrics.at(name).labels.merge(labels);
  }
  return metrics;
}

v1::Heartbeat FullHeartbeat() {
  v1::Heartbeat heartbeat;
  v1::Progress& progress = *heartbeat.mutable_progress();
  progress.set_step(3);
  progress.set_checkpoint_step(2);
  progress.set_ceiling_samples_per_second(7);
  heartbeat.add_operator_costs()->set_cpu_seconds(1);
  return heartbeat;
}

class MetricsPageTest : public ::testing::Test {
 protected:
  std::unique_ptr<MetricsPort> Open() {
    return *MetricsPort::Open("127.0.0.1:0", clock_, HETERO_FAKE_NVML);
  }
  base::FakeClock clock_;
};

TEST_F(MetricsPageTest, OfACpuWorkerIsTheTable) {
  const auto port = Open();
  port->SetOperators({"Decode"});
  port->UpdateWorker(FullHeartbeat());
  EXPECT_EQ(Served(*port), Documented("CPU worker"));
}

TEST_F(MetricsPageTest, OfARankIsTheTable) {
  const auto port = Open();
  port->UpdateRank(FullHeartbeat());
  EXPECT_EQ(Served(*port), Documented("rank"));
}

TEST_F(MetricsPageTest, OfAHeadIsTheTable) {
  const auto port = Open();
  v1::JobStatus status;
  status.add_roles()->set_name("cpu");
  status.add_sizing()->set_role("cpu");
  status.mutable_progress()->set_step(3);
  status.add_findings()->set_rule("InputBound");
  port->SetBudget(10);
  port->UpdateJob(status);
  port->UpdateReport({.accuracy = 0.5, .workers = {{.role = "cpu"}}, .cost_dollars = 1});
  EXPECT_EQ(Served(*port), Documented("head"));
}

TEST_F(MetricsPageTest, BoardAndAlertsOfJobsNameNoOtherMetric) {
  Names known;
  for (const char* process : {"CPU worker", "rank", "head"}) {
    for (const auto& [name, kind] : Documented(process)) {
      known.insert(name);
      if (kind.type == "histogram") known.insert(absl::StrCat(name, "_bucket"));
    }
  }
  for (const char* file : {"dashboards/hetero-jobs.json", "alerts/hetero-jobs.yaml"}) {
    const std::string text = testing::ReadFileOrDie(
        absl::StrCat(testing::SourceDir(), "/charts/hetero-operator/", file));
    Names used = AllMatches(text, "\\b((?:hetero|process)_[a-z_]+)\\b");
    EXPECT_THAT(used, Not(IsEmpty())) << file;
    for (const char* label : {"hetero_job", "hetero_role"}) used.erase(label);  // of the scrape
    EXPECT_THAT(used, IsSubsetOf(known)) << file;
  }
}

}  // namespace
}  // namespace hetero::process
