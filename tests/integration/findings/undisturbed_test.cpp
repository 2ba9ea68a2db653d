// Jobs in which nothing is wrong: nothing is found.
#include <gtest/gtest.h>

#include "tests/integration/findings/cause.h"
#include "tests/integration/findings/setups.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

void ExpectNothingFound(const JobSetup& setup) {
  const OnCores cores(2);
  const json report = RunLocally(setup);
  EXPECT_EQ(json(FindingsOf(report)), json::array());
}

TEST(UndisturbedJob, OfABuiltInLoopHasNoFinding) { ExpectNothingFound({}); }

TEST(UndisturbedJob, OfTheDataPathAloneHasNoFinding) {
  ExpectNothingFound({.arguments = {"--input-only"}});
}

TEST(UndisturbedJob, OfAScriptHasNoFinding) {
  // However slow its cores are: one worker is never too many.
  ExpectNothingFound({.settings = With(ScriptOf({"--compute", "0.03"}),
                                       {"roles.cpu.replicas=1", "pipeline[0].milliseconds=5"})});
}

}  // namespace
}  // namespace hetero::testing
