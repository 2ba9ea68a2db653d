#include "tests/unit/operator/children/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/paths.h"
#include "tests/unit/operator/children/test_job.h"

// Every object of the quickstart job.
namespace hetero::children {

using nlohmann::json;

const std::string kFolder = testing::SourceDir() + "/tests/unit/operator/children/golden/";

void ExpectGolden(const std::string& name, const json& object) {
  const std::string path = kFolder + name + ".json";
  const std::string text = object.dump(2) + "\n";
  if (std::getenv("HETERO_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing; run with HETERO_WRITE_GOLDEN=1";
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

namespace {

TEST(GoldenTest, QuickstartJob) {
  const api::HeteroTrainingJob job = QuickstartJob();
  Settings settings;
  settings.image_pull_policy = "IfNotPresent";
  settings.image_pull_secrets = {"registry"};
  settings.metrics_from = "monitoring";
  ExpectGolden("service", HeadService(job));
  ExpectGolden("config_map", ConfigMap(job, settings, "JOB CA\n", "OPERATOR CA\n"));
  ExpectGolden("secret", TlsSecret(job, {"head.crt", "head.key"}, {"cpu.crt", "cpu.key"},
                                   {"gpu.crt", "gpu.key"}));
  ExpectGolden("network_policy", NetworkPolicy(job, settings));
  for (const api::Role& role : job.spec.roles) {
    ExpectGolden("pod_" + role.name, Pod(job, SlotOf(role), settings));
  }
}

}  // namespace
}  // namespace hetero::children
