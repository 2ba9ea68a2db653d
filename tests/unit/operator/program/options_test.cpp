#include "operator/program/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "base/version.h"
#include "operator/program/option_values.h"

namespace hetero::program {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    unsetenv("POD_NAME");
    unsetenv("POD_NAMESPACE");
  }
  ~OptionsTest() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void SetEnv(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.insert(name);
  }
  std::optional<int> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "hetero-operator");
    options_ = OperatorOptions();
    out_.str("");
    err_.str("");
    return ParseOptions(static_cast<int>(arguments.size()), arguments.data(), out_, err_, options_);
  }
  // The command line is wrong; gives what is said.
  std::string Mistake(const std::vector<const char*>& arguments) {
    EXPECT_EQ(Parse(arguments), kExitUsage);
    return err_.str();
  }

  OperatorOptions options_;
  std::ostringstream out_;
  std::ostringstream err_;
  std::set<std::string> set_;
};

TEST_F(OptionsTest, GangSchedulersAreSwitchedOnByName) {
  ASSERT_EQ(Parse({}), std::nullopt);
  EXPECT_TRUE(options_.gangs.empty());
  ASSERT_EQ(Parse({"--gangs", "Native,Volcano", "--gangs=Volcano"}), std::nullopt);
  EXPECT_THAT(options_.gangs,
              ElementsAre(api::GangScheduler::kVolcano, api::GangScheduler::kNative));
  EXPECT_THAT(Mistake({"--gangs", "Yunikorn"}), HasSubstr("--gangs"));
  EXPECT_THAT(Mistake({"--gangs", "None"}), HasSubstr("Coscheduling"));
}

TEST_F(OptionsTest, Defaults) {
  ASSERT_EQ(Parse({}), std::nullopt);
  EXPECT_TRUE(options_.leader_elect);
  EXPECT_EQ(options_.lease_name, "hetero-operator");
  EXPECT_EQ(options_.lease_duration, seconds(15));
  EXPECT_EQ(options_.metrics_address, "");
  EXPECT_EQ(options_.metrics_port, 8080);
  EXPECT_EQ(options_.probes_address, "");
  EXPECT_EQ(options_.probes_port, 8081);
  EXPECT_EQ(options_.page_address, "127.0.0.1") << "it asks nobody who they are";
  EXPECT_EQ(options_.page_port, 8082);
  EXPECT_EQ(options_.workers, 16);
  EXPECT_EQ(options_.qps, 200);
  EXPECT_EQ(options_.burst, 400);
  EXPECT_EQ(options_.parallelism, 50);
  EXPECT_TRUE(options_.watch_namespaces.empty());
  EXPECT_EQ(options_.settings.operator_labels.at("app.kubernetes.io/name"), "hetero-operator");
  EXPECT_EQ(options_.settings.node_lost_grace, seconds(60));
  EXPECT_TRUE(options_.settings.trainer_has_cuda) << "not known to have none";
  EXPECT_EQ(options_.settings.max_pods, 2000);
  EXPECT_TRUE(options_.settings.storage_defaults.empty());
  EXPECT_FALSE(options_.identity.empty());
}

// The chart writes every flag that it has a value for, and its extraArgs behind them. What is a
// list grows instead.
TEST_F(OptionsTest, AFlagGivenTwiceIsNoMistakeAndTheLastOneCounts) {
  ASSERT_EQ(Parse({"--workers=8", "--qps=200", "--log-level=info", "--metrics-listen=0.0.0.0:8080",
                   "--lease-duration=15s", "--trainer-image-without-cuda", "--runtime-image=a",
                   "--image-pull-secret=a", "--leader-elect", "--workers=3", "--qps=5",
                   "--log-level=debug", "--metrics-listen=[::]:9", "--lease-duration=20s",
                   "--trainer-image-with-cuda", "--runtime-image=b", "--image-pull-secret=b",
                   "--no-leader-elect"}),
            std::nullopt)
      << err_.str();
  EXPECT_EQ(options_.workers, 3);
  EXPECT_EQ(options_.qps, 5);
  EXPECT_EQ(options_.log_level, log::Level::kDebug);
  EXPECT_EQ(options_.metrics_port, 9);
  EXPECT_EQ(options_.lease_duration, seconds(20));
  EXPECT_TRUE(options_.settings.trainer_has_cuda);
  EXPECT_EQ(options_.settings.runtime_image, "b");
  EXPECT_THAT(options_.settings.image_pull_secrets, ElementsAre("a", "b"));
  EXPECT_FALSE(options_.leader_elect);
}

TEST_F(OptionsTest, EveryFlagOnTheCommandLine) {
  ASSERT_EQ(Parse({"--kubeconfig=/tmp/k",
                   "--context=c",
                   "--watch-namespaces=a,b",
                   "--operator-namespace=ops",
                   "--identity-secret=me",
                   "--no-leader-elect",
                   "--lease-namespace=leases",
                   "--lease-name=mine",
                   "--lease-duration=1m",
                   "--renew-deadline=40s",
                   "--retry-period=500ms",
                   "--identity=pod-1",
                   "--workers=3",
                   "--qps=7.5",
                   "--burst=9",
                   "--parallelism=4",
                   "--runtime-image=r:1",
                   "--trainer-image=t:1",
                   "--image-pull-policy=Never",
                   "--image-pull-secret=s1,s2",
                   "--image-pull-secret=s3",
                   "--operator-label=a=b,example.com/c=d",
                   "--disruption-taints=corp.example/going,other.example/",
                   "--spot-labels=a=spot",
                   "--spot-labels=example.com/b=yes",
                   "--metrics-from=monitoring",
                   "--trainer-image-without-cuda",
                   "--max-pods-per-job=77",
                   "--storage-defaults=[{prefix: 's3://datasets'}]",
                   "--pod-backoff=2s",
                   "--pod-backoff-limit=20s",
                   "--node-lost-grace=2m",
                   "--pod-kill-grace=4m",
                   "--metrics-listen=[::1]:0",
                   "--probes-listen=127.0.0.1:9",
                   "--page-listen=[::1]:10",
                   "--log-level=debug"}),
            std::nullopt)
      << err_.str();
  EXPECT_EQ(options_.kubeconfig, "/tmp/k");
  EXPECT_EQ(options_.context, "c");
  EXPECT_THAT(options_.watch_namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(options_.operator_namespace, "ops");
  EXPECT_EQ(options_.identity_secret, "me");
  EXPECT_THAT(options_.disruption_taints, ElementsAre("corp.example/going", "other.example/"));
  EXPECT_EQ(options_.settings.spot_labels,
            (std::map<std::string, std::string>{{"a", "spot"}, {"example.com/b", "yes"}}));
  EXPECT_FALSE(options_.leader_elect);
  EXPECT_EQ(options_.lease_namespace, "leases");
  EXPECT_EQ(options_.lease_name, "mine");
  EXPECT_EQ(options_.lease_duration, minutes(1));
  EXPECT_EQ(options_.renew_deadline, seconds(40));
  EXPECT_EQ(options_.retry_period, milliseconds(500));
  EXPECT_EQ(options_.identity, "pod-1");
  EXPECT_EQ(options_.workers, 3);
  EXPECT_EQ(options_.qps, 7.5);
  EXPECT_EQ(options_.burst, 9);
  EXPECT_EQ(options_.parallelism, 4);
  EXPECT_EQ(options_.settings.runtime_image, "r:1");
  EXPECT_EQ(options_.settings.trainer_image, "t:1");
  EXPECT_EQ(options_.settings.image_pull_policy, "Never");
  EXPECT_THAT(options_.settings.image_pull_secrets, ElementsAre("s1", "s2", "s3"));
  EXPECT_EQ(options_.settings.operator_labels,
            (std::map<std::string, std::string>{{"a", "b"}, {"example.com/c", "d"}}));
  EXPECT_EQ(options_.settings.metrics_from, "monitoring");
  EXPECT_FALSE(options_.settings.trainer_has_cuda);
  EXPECT_EQ(options_.settings.max_pods, 77);
  ASSERT_EQ(options_.settings.storage_defaults.size(), 1u);
  EXPECT_EQ(options_.settings.pod_backoff, seconds(2));
  EXPECT_EQ(options_.settings.pod_backoff_limit, seconds(20));
  EXPECT_EQ(options_.settings.node_lost_grace, minutes(2));
  EXPECT_EQ(options_.settings.pod_kill_grace, minutes(4));
  EXPECT_EQ(options_.metrics_address, "::1");
  EXPECT_EQ(options_.metrics_port, 0);
  EXPECT_EQ(options_.probes_address, "127.0.0.1");
  EXPECT_EQ(options_.probes_port, 9);
  EXPECT_EQ(options_.page_address, "::1");
  EXPECT_EQ(options_.page_port, 10);
  EXPECT_EQ(options_.log_level, log::Level::kDebug);
}

TEST_F(OptionsTest, TheEnvironmentSetsWhatTheCommandLineDoesNot) {
  SetEnv("HETERO_OPERATOR_WATCH_NAMESPACES", "a,b");
  SetEnv("HETERO_OPERATOR_LEADER_ELECT", "false");
  SetEnv("HETERO_OPERATOR_LEASE_DURATION", "30s");
  SetEnv("HETERO_OPERATOR_WORKERS", "2");
  SetEnv("HETERO_OPERATOR_METRICS_LISTEN", ":9");
  SetEnv("HETERO_OPERATOR_OPERATOR_LABEL", "x=y");
  SetEnv("POD_NAMESPACE", "hetero-system");
  SetEnv("POD_NAME", "hetero-operator-abc");
  ASSERT_EQ(Parse({"--workers=5"}), std::nullopt) << err_.str();
  EXPECT_THAT(options_.watch_namespaces, ElementsAre("a", "b"));
  EXPECT_FALSE(options_.leader_elect);
  EXPECT_EQ(options_.lease_duration, seconds(30));
  EXPECT_EQ(options_.workers, 5);
  EXPECT_EQ(options_.metrics_port, 9);
  EXPECT_EQ(options_.settings.operator_labels, (std::map<std::string, std::string>{{"x", "y"}}));
  EXPECT_EQ(options_.operator_namespace, "hetero-system");
  EXPECT_THAT(options_.identity, ::testing::StartsWith("hetero-operator-abc_"));
}

TEST_F(OptionsTest, ThePageOfAllJobsCanBeLeftOut) {
  ASSERT_EQ(Parse({"--page-listen=none"}), std::nullopt) << err_.str();
  EXPECT_EQ(options_.page_port, std::nullopt);
  ASSERT_EQ(Parse({"--page-listen=none", "--page-listen=127.0.0.1:0"}), std::nullopt);
  EXPECT_EQ(options_.page_port, 0);
  ASSERT_EQ(Parse({"--page-listen", ""}), std::nullopt) << err_.str();
  EXPECT_EQ(options_.page_port, std::nullopt);
}

TEST_F(OptionsTest, AMistakeInTheEnvironmentIsOneToo) {
  SetEnv("HETERO_OPERATOR_LEASE_DURATION", "soon");
  EXPECT_THAT(Mistake({}), HasSubstr("--lease-duration: 'soon' is not a positive duration"));
}

// As the chart writes it: a list in brackets is one value.
TEST_F(OptionsTest, DefaultsOfStores) {
  ASSERT_EQ(Parse({R"(--storage-defaults=[{"endpoint":"https://minio.example:9000",)"
                   R"("prefix":"s3://datasets"},{"anonymous":true,"prefix":"s3://open"}])"}),
            std::nullopt)
      << err_.str();
  ASSERT_EQ(options_.settings.storage_defaults.size(), 2u);
  EXPECT_EQ(options_.settings.storage_defaults[0].prefix, "s3://datasets");
  EXPECT_EQ(options_.settings.storage_defaults[0].endpoint, "https://minio.example:9000");
  EXPECT_EQ(options_.settings.storage_defaults[1].anonymous, true);
  ASSERT_EQ(Parse({R"(--storage-defaults=[{"prefix":"s3://datasets"}])", "--storage-defaults=[]"}),
            std::nullopt)
      << err_.str();
  EXPECT_TRUE(options_.settings.storage_defaults.empty()) << "the last one counts";
  SetEnv("HETERO_OPERATOR_STORAGE_DEFAULTS", "[{prefix: 's3://datasets'}]");
  ASSERT_EQ(Parse({}), std::nullopt) << err_.str();
  EXPECT_EQ(options_.settings.storage_defaults.size(), 1u);
}

TEST_F(OptionsTest, IdentitiesOfTwoProcessesDiffer) {
  ASSERT_EQ(Parse({}), std::nullopt);
  const std::string first = options_.identity;
  ASSERT_EQ(Parse({}), std::nullopt);
  EXPECT_NE(options_.identity, first);
}

TEST_F(OptionsTest, MistakesNameTheFlagAndTheRemedy) {
  const std::vector<std::pair<const char*, const char*>> table = {
      {"--lease-duration=-5s", "--lease-duration: '-5s' is not a positive duration such as 15s"},
      {"--lease-duration=9s", "--lease-duration: must be longer than --renew-deadline (10s)"},
      {"--retry-period=9s", "--renew-deadline: must be longer than 1.2 times --retry-period (9s)"},
      {"--workers=0", "--workers: Value 0 not in range 1 to 256"},
      {"--burst=0", "--burst"},
      {"--qps=0", "--qps"},
      {"--parallelism=many", "--parallelism"},
      {"--metrics-listen=8080", "--metrics-listen: '8080' is not an address such as :8080"},
      {"--probes-listen=8081", "--probes-listen: '8081' is not an address such as :8080"},
      {"--metrics-listen=a:65536", "--metrics-listen"},
      {"--page-listen=off", "--page-listen: 'off' is not an address such as :8080"},
      {"--page-listen=8082", "or none"},
      {"--metrics-listen=::1:80", "--metrics-listen"},
      {"--image-pull-policy=Sometimes", "--image-pull-policy"},
      {"--operator-label=app", "--operator-label: 'app' is not a label such as"},
      {"--operator-label=-a=b", "--operator-label"},
      {"--spot-labels=spot", "--spot-labels: 'spot' is not a label such as"},
      {"--watch-namespaces=a,B", "--watch-namespaces: 'B' is not the name of a namespace"},
      {"--metrics-from=a_b", "--metrics-from"},
      {"--lease-name=Big", "--lease-name: 'Big' is not the name of an object"},
      {"--image-pull-secret=a/b", "--image-pull-secret"},
      {"--storage-defaults=[{prefix: 's3://one'}, {prefix: 's3://two', endpoint: host}]",
       "--storage-defaults: storage[1].endpoint: must be http://host"},
      {"--storage-defaults=[{prefix: 's3://one', secretRef: {name: keys}}]",
       "--storage-defaults: storage[0].secretRef: is not taken here"},
      {"--log-level=loud", "--log-level: 'loud' is not one of debug, info, warning, error"},
      {"--no-such-flag", "--no-such-flag"},
      {"stray", "stray"},
  };
  for (const auto& [argument, wanted] : table) {
    EXPECT_THAT(Mistake({argument}), HasSubstr(wanted));
    EXPECT_TRUE(out_.str().empty()) << argument;
  }
}

TEST_F(OptionsTest, HelpAndVersionEndWithZero) {
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_EQ(out_.str(), "hetero-operator " + base::DescribeVersion() + "\n");
  EXPECT_EQ(Parse({"--help"}), 0);
  const std::string help = out_.str();
  for (const char* group : {"Cluster:", "Leader election:", "Capacity:", "Jobs:", "Observation:"}) {
    EXPECT_THAT(help, HasSubstr(group));
  }
  EXPECT_THAT(help, HasSubstr("HETERO_OPERATOR_LEASE_NAME"));
  EXPECT_THAT(help, HasSubstr("15s"));
}

TEST(OptionValuesTest, Durations) {
  EXPECT_EQ(*ParseDuration("1m30s"), seconds(90));
  EXPECT_EQ(*ParseDuration("0.5s"), milliseconds(500));
  for (const char* wrong : {"", "5", "0s", "-1s", "inf", "9000h", "1 s"}) {
    EXPECT_FALSE(ParseDuration(wrong).ok()) << wrong;
  }
  EXPECT_EQ(FormatDuration(seconds(90)), "1m30s");
}

}  // namespace
}  // namespace hetero::program
