#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/integration/operator/support/world.h"

// The page of all jobs, of an operator that serves real ones.
namespace hetero::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Prints the lines of an address as they come.
constexpr char kFollow[] =
    "import sys, urllib.request\n"
    "for line in urllib.request.urlopen(sys.argv[1]):\n"
    "    print(line.decode(), end='', flush=True)\n";

std::string PortOfPage(const OperatorProcess& process) {
  const std::string log = process.log();
  std::smatch found;
  const std::regex line("page of all jobs[^\n]*port\"?[=:] ?\"?([0-9]+)");
  return std::regex_search(log, found, line) ? found[1].str() : "";
}

TEST(AllJobsPage, AJobThatRunsIsListedAndFollowed) {
  ControlPlane& plane = ControlPlane::Get();
  OperatorProcess process({.server = "", .arguments = {"--page-listen", "127.0.0.1:0"}});
  TestNamespace space("page");
  JobUnderTest job(space.name(), MakeJob("held", {{"steps", 20}, {"holdAtStep", 10}}));
  ASSERT_TRUE(job.WaitIs("Running"));
  ASSERT_TRUE(WaitFor("the page listens", [&] { return !PortOfPage(process).empty(); }));
  const std::string address = "http://127.0.0.1:" + PortOfPage(process);
  EXPECT_THAT(RunCommand({"python3", "-c", kFollow, address + "/"}).output,
              HasSubstr("<h1>All jobs</h1>"));

  BackgroundProgram events({"python3", "-c", kFollow, address + "/events"},
                           plane.folder() + "/page-events.log");
  const auto tells = [&](const std::string& what) {
    return WaitFor(
        "the page tells " + what, [&] { return events.log().find(what) != std::string::npos; },
        seconds(60), [&] { return events.log(); });
  };
  EXPECT_TRUE(tells("\"" + space.name() + "/held\":{"));
  EXPECT_TRUE(tells("\"Running\""));
  EXPECT_TRUE(tells("\"figures\":[10,20,"));
  EXPECT_THAT(events.log(), AllOf(HasSubstr("event: whole"), HasSubstr("\"ready\":true"),
                                  HasSubstr("\"held-head-0\"")));
  job.Continue();
  EXPECT_TRUE(tells("\"Succeeded\""));
  job.Delete();
  EXPECT_TRUE(tells("\"" + space.name() + "/held\":null"));
}

}  // namespace
}  // namespace hetero::testing
