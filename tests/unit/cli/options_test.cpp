#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace hetero::cli {
namespace {

struct Parsed {
  std::optional<int> code;
  Options options;
  std::string out;
  std::string err;
};

Parsed Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kubectl-hetero");
  Parsed parsed;
  std::ostringstream out, err;
  parsed.code =
      ParseOptions(static_cast<int>(arguments.size()), arguments.data(), out, err, parsed.options);
  parsed.out = out.str();
  parsed.err = err.str();
  return parsed;
}

TEST(OptionsTest, VerbsAndFlagsInAnyOrder) {
  const Parsed status = Parse({"status", "vit-blur", "-n", "team", "--once", "-o", "json"});
  EXPECT_FALSE(status.code) << status.err;
  EXPECT_EQ(status.options.verb, Verb::kStatus);
  EXPECT_EQ(status.options.job, "vit-blur");
  EXPECT_EQ(status.options.name_space, "team");
  EXPECT_EQ(status.options.output, OutputFormat::kJson);
  const Parsed logs = Parse({"--context", "c", "logs", "-f", "vit-blur", "--role", "gpu"});
  EXPECT_FALSE(logs.code) << logs.err;
  EXPECT_EQ(logs.options.verb, Verb::kLogs);
  EXPECT_EQ(logs.options.role, "gpu");
  EXPECT_TRUE(logs.options.follow);
}

TEST(OptionsTest, HelpHasExamplesAndMistakesAreNamed) {
  const Parsed help = Parse({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, ::testing::HasSubstr("kubectl hetero logs vit-blur --role gpu -f"));
  EXPECT_EQ(Parse({}).code, kExitUsage);
  const Parsed wrong = Parse({"status", "a", "-o", "yaml"});
  EXPECT_EQ(wrong.code, kExitUsage);
  EXPECT_THAT(wrong.err, ::testing::HasSubstr("yaml not in {text,json}"));
  for (const auto& unknown : {Parse({}), Parse({"frob"}), Parse({"-n", "x"})}) {
    EXPECT_EQ(unknown.code, kExitUsage);
    EXPECT_THAT(unknown.err,
                ::testing::HasSubstr("list, status, top, cost, logs, suspend, resume, report or "));
  }
  EXPECT_THAT(Parse({"status"}).err, ::testing::HasSubstr("JOB is required"));
  EXPECT_EQ(Parse({"status", "a", "b"}).code, kExitUsage);
  EXPECT_EQ(Parse({"status", "a", "--timeout", "0"}).code, kExitUsage);
}

TEST(OptionsTest, ListsTakeKubectlsFlags) {
  const Parsed list = Parse({"list", "-A", "-l", "team=vision", "-w", "-o", "wide"});
  EXPECT_FALSE(list.code) << list.err;
  EXPECT_EQ(list.options.verb, Verb::kList);
  EXPECT_TRUE(list.options.all_namespaces && list.options.watch);
  EXPECT_EQ(list.options.selector, "team=vision");
  EXPECT_EQ(list.options.output, OutputFormat::kWide);
  EXPECT_EQ(Parse({"list", "vit-blur"}).code, kExitUsage);
  const Parsed top = Parse({"top", "vit-blur", "-w", "--as", "jane"});
  EXPECT_FALSE(top.code) << top.err;
  EXPECT_EQ(top.options.job, "vit-blur");
  EXPECT_EQ(top.options.act_as, "jane");
}

TEST(OptionsTest, CostsAreOfOneJobOrOfAll) {
  const Parsed one = Parse({"cost", "vit-blur", "-o", "json"});
  EXPECT_FALSE(one.code) << one.err;
  EXPECT_EQ(one.options.verb, Verb::kCost);
  EXPECT_EQ(one.options.job, "vit-blur");
  EXPECT_EQ(one.options.output, OutputFormat::kJson);
  const Parsed all = Parse({"cost", "-A", "-l", "team=vision"});
  EXPECT_FALSE(all.code) << all.err;
  EXPECT_TRUE(all.options.all_namespaces && all.options.job.empty());
  EXPECT_EQ(Parse({"cost", "vit-blur", "-A"}).code, kExitUsage);
  EXPECT_EQ(Parse({"cost", "vit-blur", "-o", "wide"}).code, kExitUsage);
}

TEST(OptionsTest, RequestTimeoutIsKubectls) {
  const auto timeout = [](const char* text) {
    const Parsed parsed = Parse({"list", "--request-timeout", text});
    EXPECT_FALSE(parsed.code) << parsed.err;
    return parsed.options.request_timeout;
  };
  EXPECT_EQ(timeout("5"), std::chrono::seconds(5));
  EXPECT_EQ(timeout("1m30s"), std::chrono::seconds(90));
  EXPECT_GT(timeout("0"), std::chrono::hours(24)) << "no limit";
  const Parsed wrong = Parse({"list", "--request-timeout", "soon"});
  EXPECT_EQ(wrong.code, kExitUsage);
  EXPECT_THAT(wrong.err, ::testing::HasSubstr("\"soon\" is no duration such as 30s or 2m"));
  EXPECT_EQ(Parse({"list", "--request-timeout", "-1s"}).code, kExitUsage);
}

TEST(OptionsTest, EveryVerbHelpsWithAnExample) {
  for (const char* verb :
       {"list", "status", "top", "logs", "suspend", "resume", "report", "validate"}) {
    const Parsed help = Parse({verb, "--help"});
    EXPECT_EQ(help.code, 0) << verb;
    EXPECT_THAT(help.out, ::testing::HasSubstr("\n  kubectl hetero " + std::string(verb) + " "));
    EXPECT_THAT(help.out, ::testing::HasSubstr("--namespace")) << verb;
  }
}

}  // namespace
}  // namespace hetero::cli
