// The real operator on a control plane, scraped by a real Prometheus: every query of its board, and
// of its alerts as Helm renders them, has data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/operator/support/api_proxy.h"
#include "tests/integration/operator/support/command.h"
#include "tests/integration/operator/support/control_plane.h"
#include "tests/integration/operator/support/world.h"
#include "tests/integration/prometheus/board.h"
#include "tests/integration/prometheus/prometheus_server.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

const std::string kOperatorChart = testing::SourceDir() + "/charts/hetero-operator";

// The groups of rules in the chart's PrometheusRule, as Prometheus reads them from a file.
std::string RenderedRules() {
  const CommandResult rendered = RunCommand(
      {"helm", "template", "hetero", kOperatorChart, "--namespace", kSystemNamespace, "--show-only",
       "templates/prometheusrule.yaml", "--set", "metrics.prometheusRule.enabled=true"});
  EXPECT_EQ(rendered.exit_code, 0) << rendered.output;
  const std::string spec = "\nspec:\n";
  const size_t begin = rendered.output.find(spec);
  EXPECT_NE(begin, std::string::npos) << rendered.output;
  const std::string groups = rendered.output.substr(begin + spec.size());
  return std::regex_replace(groups, std::regex("(^|\n)  "), "$1");
}

// One write of a status in three fails: the alerts on errors have no data where all is well.
ProxyAction FailSome(const ProxiedRequest& request) {
  static std::atomic<int> writes = 0;
  if (!request.write() || !absl::StrContains(request.path, "/status") || ++writes % 3 != 0) {
    return {};
  }
  return {.kind = ProxyAction::Kind::kReply, .status = 500, .body = "{}"};
}

class OperatorBoardTest : public ::testing::Test {
 protected:
  OperatorBoardTest() { proxy_.SetRule(FailSome); }

  ControlPlane& plane_ = ControlPlane::Get();
  World& world_ = World::Get();
  TestNamespace space_{"board"};
  ApiProxy proxy_{plane_.ProxyOptions()};
  OperatorProcess operator_{{.server = proxy_.url(),
                             .arguments = {"--watch-namespaces", space_.name(), "--leader-elect"}}};
};

TEST_F(OperatorBoardTest, EveryQueryOfBoardAndAlertsHasData) {
  const TemporaryFolder folder;
  const std::string rules = folder.Write("rules.yaml", RenderedRules());
  const PromtoolResult checked = Promtool("check rules " + rules);
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  ASSERT_TRUE(WaitFor("the operator is ready", [&] { return operator_.ready(); }));
  // Before there is a job, so that rates count from nothing.
  const PrometheusServer server(
      absl::StrCat("- job_name: hetero-hetero-operator-metrics\n  static_configs: [{targets: "
                   "['127.0.0.1:",
                   operator_.port(), "'], labels: {namespace: ", kSystemNamespace,
                   ", pod: operator}}]\n"),
      {rules});
  ExpectDataOfEach(server, {{"the operator", "hetero_operator_build_info"}});

  JobUnderTest job(space_.name(), MakeJob("job", {{"steps", 100000}, {"stepMillis", 20}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  job.EndPod("cpu", 1, 3, "segmentation fault in Decode");
  ExpectDataOfEach(
      server, QueriesOfBoard(absl::StrCat(kOperatorChart, "/dashboards/hetero-operator.json")));
  ExpectDataOfEach(server, QueriesOfAlerts(server));

  const PromtoolResult page = Promtool("check metrics", folder.Write("page", operator_.metrics()));
  EXPECT_EQ(page.exit_code, 0) << page.output;
}

}  // namespace
}  // namespace hetero::testing
