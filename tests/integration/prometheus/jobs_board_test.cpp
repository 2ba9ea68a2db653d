// A real job whose pods, as processes of this machine, are scraped by a real Prometheus: every
// query of the chart's board and alerts of jobs has data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "api/labels.h"
#include "api/manifest.h"
#include "api/ports.h"
#include "base/clock.h"
#include "runtime/process/metrics_port.h"
#include "tests/integration/local/local_pods.h"
#include "tests/integration/prometheus/board.h"
#include "tests/integration/prometheus/prometheus_server.h"
#include "tests/integration/storage/web_server.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSource = testing::SourceDir() + "/";
const std::string kChart = testing::SourceDir() + "/charts/hetero-operator/";

// Reads pictures of a web server, writes checkpoints, evaluates, has cost its budget at once, and
// has more steps than anybody waits for.
std::string Manifest(const std::string& data, const std::string& checkpoints) {
  return absl::StrCat(R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: pictures}
spec:
  dataset: {uri: ")",
                      data, R"(", validation: {uri: ")", data, R"("}}
  pipeline:
  - {op: Decode}
  - {op: Resize, size: {height: 8, width: 8}}
  - {op: Delay, milliseconds: 5}
  - {op: Normalize}
  training:
    model: {name: mlp}
    batchSizePerWorker: 4
    epochs: 1000000
    seed: 7
    evaluation: {everySteps: 20}
    checkpoint: {uri: ")",
                      checkpoints, R"(", everySteps: 40}
  runPolicy: {maxDollars: "0.000001"}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 2, pricePerHour: "1"}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0, pricePerHour: "2"}
)");
}

// The name that Kubernetes' service discovery gives to a pod's label.
std::string Discovered(const char* label) {
  return absl::StrCat("__meta_kubernetes_pod_label_",
                      std::regex_replace(label, std::regex("[^A-Za-z0-9_]"), "_"));
}

json Target(const std::string& address, const std::string& job, const std::string& role,
            const std::string& pod) {
  return {{"targets", {address}},
          {"labels",
           {{Discovered(api::kJobNameLabel), job},
            {Discovered(api::kJobUidLabel), "uid"},
            {Discovered(api::kRoleLabel), role},
            {"__meta_kubernetes_pod_container_port_name", "metrics"},
            {"__meta_kubernetes_namespace", "team-a"},
            {"__meta_kubernetes_pod_name", absl::StrCat(job, "-", pod)}}}};
}

// The scrape that docs/metrics.md shows, of these targets in the place of a cluster's.
std::string DocumentedScrape(const json& targets) {
  const std::string page = ReadFileOrDie(absl::StrCat(kSource, "docs/metrics.md"));
  const size_t begin = page.find("- job_name: hetero-jobs\n");
  const std::string block = page.substr(begin, page.find("```", begin) - begin);
  const std::string discovery = "kubernetes_sd_configs: [{role: pod}]";
  EXPECT_NE(block.find(discovery), std::string::npos) << block;
  return absl::StrReplaceAll(block,
                             {{discovery, absl::StrCat("static_configs: ", targets.dump())}});
}

// The list of the golden pictures, as SageMaker's ManifestFile has them.
std::string ListOf(const std::string& folder, const std::string& prefix) {
  json list = {{{"prefix", prefix}}};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    list.push_back(entry.path().lexically_relative(folder).string());
  }
  return list.dump();
}

// One for all tests: the job, a head of another one that has findings, and Prometheus.
struct Scraped {
  Scraped()
      : web(files.path()),
        findings(*process::MetricsPort::Open("127.0.0.1:0", base::Clock::Real())) {
    const std::string pictures = absl::StrCat(kSource, "tests/golden/datasets/image_folder");
    std::filesystem::create_symlink(pictures, files / "pictures");
    files.Write("list.manifest", ListOf(pictures, web.url() + "/pictures/"));
    std::filesystem::create_symlink(HETERO_FAKE_NVML, libraries / "libnvidia-ml.so.1");
    const api::ManifestResult manifest = api::ParseManifest(
        Manifest(web.url() + "/list.manifest", "file://" + checkpoints.path()), {});
    EXPECT_TRUE(manifest.errors.empty()) << api::FormatErrors(manifest.errors);
    pods.emplace(manifest.job, std::vector<std::string>{"AWS_CA_BUNDLE=" + web.ca_bundle(),
                                                        "LD_LIBRARY_PATH=" + libraries.path()});
    pods->StartAll();

    v1::JobStatus status;
    status.add_findings()->set_rule("InputBound");
    findings->UpdateJob(status);
    json targets = {
        Target(absl::StrCat("127.0.0.1:", findings->port()), "other", "head", "head-0")};
    for (const char* pod : kPods) {
      const std::string role(pod, std::strchr(pod, '-'));
      targets.push_back(Target(absl::StrCat(pods->AddressOf(pod), ":", api::kMetricsPort),
                               "pictures", role, pod));
    }
    prometheus.emplace(DocumentedScrape(targets),
                       std::vector<std::string>{absl::StrCat(kChart, "alerts/hetero-jobs.yaml")});
  }

  static constexpr const char* kPods[] = {"head-0", "cpu-0", "cpu-1", "gpu-0"};
  TemporaryFolder files, checkpoints, libraries;
  storage::WebServer web;
  std::unique_ptr<process::MetricsPort> findings;
  std::optional<LocalPods> pods;
  std::optional<PrometheusServer> prometheus;
};

class JobsBoardTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { scraped_ = std::make_unique<Scraped>(); }
  static void TearDownTestSuite() { scraped_.reset(); }
  static const PrometheusServer& server() { return *scraped_->prometheus; }
  // What the pods print, when a test has failed.
  void TearDown() override {
    if (!HasFailure()) return;
    for (const char* pod : Scraped::kPods) {
      if (scraped_->pods->Run(pod).running()) continue;
      std::cerr << pod << ": " << scraped_->pods->Run(pod).Wait(std::chrono::seconds(1)).output;
    }
  }
  static inline std::unique_ptr<Scraped> scraped_;
};

TEST_F(JobsBoardTest, EveryQueryOfTheBoardHasData) {
  ExpectDataOfEach(server(), QueriesOfBoard(absl::StrCat(kChart, "dashboards/hetero-jobs.json")));
}

TEST_F(JobsBoardTest, EveryAlertHasDataBesidesItsThreshold) {
  ExpectDataOfEach(server(), QueriesOfAlerts(server()));
}

TEST_F(JobsBoardTest, AJobThatHasSpentItsBudgetFiresAndAHealthyOneNothingElse) {
  ExpectDataOfEach(server(), {{"the budget",
                               "ALERTS{alertname=\"HeteroJobBudgetNearlyUsed\","
                               "alertstate=\"firing\",namespace=\"team-a\","
                               "hetero_job=\"pictures\"}"}});
  EXPECT_THAT(server().Firing(), ElementsAre("HeteroJobBudgetNearlyUsed"));
}

// Against the pages themselves: what belongs together fits, whoever counted it.
TEST_F(JobsBoardTest, TheFiguresFitTogether) {
  ExpectDataOfEach(server(), {{"steps", "hetero_step > 40"}});
  const auto number = [](const std::string& query) { return server().Number(query).value_or(-1); };
  EXPECT_EQ(number("count(up{namespace=\"team-a\"} == 1)"), 5);
  EXPECT_EQ(number("count by (hetero_role) (process_start_time_seconds{hetero_role=\"cpu\"})"), 2);
  EXPECT_NEAR(number("sum(hetero_step_phase_seconds_total) / sum(hetero_training_seconds_total)"),
              1, 0.01);
  EXPECT_NEAR(number("sum(hetero_data_wait_seconds_total)"
                     " / sum(hetero_step_phase_seconds_total{phase=\"wait\"})"),
              1, 0.01);
  // The histogram is as new as the scrape, the step as the last heartbeat.
  EXPECT_GE(number("sum(hetero_step_seconds_count) - sum(hetero_step)"), 0);
  EXPECT_NEAR(number("sum(hetero_step_seconds_count) / sum(hetero_step)"), 1, 0.5);
  // Every sample takes at least the five milliseconds of its Delay, which use no core.
  EXPECT_LT(number("sum(hetero_operator_cpu_seconds_total{op=\"Delay\"})"
                   " / sum(hetero_operator_samples_total{op=\"Delay\"})"),
            0.005);
  EXPECT_EQ(number("count(hetero_operator_samples_total{pod=\"pictures-cpu-0\"})"), 4);
  EXPECT_EQ(number("sum(hetero_samples_total{hetero_role=\"gpu\"})"
                   " / sum(hetero_batches_total{hetero_role=\"gpu\"})"),
            4);
  EXPECT_EQ(number("count(hetero_gpu_utilization_ratio{pod=\"pictures-gpu-0\"} == 0.75)"), 2)
      << "the third GPU of fake_nvml.cpp does not tell all";
  EXPECT_EQ(number("hetero_job_state{hetero_job=\"pictures\",state=\"Running\"}"), 1);
}

TEST_F(JobsBoardTest, PromtoolFindsNothingInThePages) {
  ExpectDataOfEach(server(), {{"a checkpoint", "hetero_checkpoint_step"}});
  const TemporaryFolder folder;
  for (const char* pod : Scraped::kPods) {
    const std::string page = folder.Write(pod, scraped_->pods->Fetch(pod, 9090, "/metrics"));
    const PromtoolResult checked = Promtool("check metrics", page);
    EXPECT_EQ(checked.exit_code, 0) << pod << ": " << checked.output;
  }
}

TEST(JobsAlerts, PromtoolReadsThem) {
  const PromtoolResult checked =
      Promtool(absl::StrCat("check rules ", kChart, "alerts/hetero-jobs.yaml"));
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  EXPECT_THAT(checked.output, HasSubstr("11 rules found"));
}

// Series that are played: each alert fires when it shall, and not before.
TEST(JobsAlerts, FireAtTheirThresholdsAndAfterTheirTimes) {
  const PromtoolResult tested = Promtool(
      absl::StrCat("test rules ", kSource, "tests/integration/prometheus/played_jobs.yaml"));
  EXPECT_EQ(tested.exit_code, 0) << tested.output;
}

}  // namespace
}  // namespace hetero::testing
