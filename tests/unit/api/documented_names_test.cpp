// docs/kubernetes.md names every reason, port and variable that the headers of api define, and no
// other. Both are read as text: a name that is only in one of them is what this is about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "api/job_status.h"
#include "api/ports.h"
#include "api/process_environment.h"
#include "tests/support/paths.h"

namespace hetero::api {
namespace {

using Names = std::set<std::string>;
using ::testing::IsEmpty;
using ::testing::Not;

std::string TextOf(const std::string& path) {
  std::ifstream file(absl::StrCat(testing::SourceDir(), "/", path));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

// What lies between `begin` and the first `end` after it.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  if (from == std::string::npos) return "";
  return text.substr(from + begin.size(), text.find(end, from + begin.size()) - from);
}

// The first group of every match.
Names Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    names.insert((*at)[1]);
  }
  EXPECT_THAT(names, Not(IsEmpty())) << pattern;
  return names;
}

// The values of the constants in `space` of reasons.h.
Names ReasonsIn(const std::string& space) {
  return Matches(Between(TextOf("api/reasons.h"), absl::StrCat("namespace ", space, " {"),
                         absl::StrCat("}  // namespace ", space)),
                 R"(\[\] = "(\w+)\")");
}

std::string Page() { return TextOf("docs/kubernetes.md"); }

constexpr char kQuoted[] = "`(\\w+)`";

// The quoted names in column `column` of the table under the line `heading`.
Names Column(const std::string& heading, size_t column) {
  std::string cells;
  for (const absl::string_view line :
       absl::StrSplit(Between(Page(), absl::StrCat("\n", heading, "\n"), "\n\n"), '\n')) {
    const std::vector<std::string> row = absl::StrSplit(line, '|');
    if (row.size() > column) absl::StrAppend(&cells, row[column], "\n");
  }
  return Matches(cells, kQuoted);
}

Names Union(const Names& some, const Names& others) {
  Names all = some;
  all.insert(others.begin(), others.end());
  return all;
}

constexpr char kWhenTrue[] = "| condition | True when | reason when True |";
constexpr char kWhenNotTrue[] = "| reason | of | meaning |";
constexpr char kOfFailedJob[] = "### Why a job failed\n";
constexpr char kOfFirstFailure[] = "| `firstFailure.reason` | |";
constexpr char kVariables[] = "| variable | set by | |";

TEST(DocumentedNamesTest, EveryConditionIsInTheTable) {
  Names conditions;
  for (int i = 0; i < kConditionTypes; ++i) {
    conditions.insert(std::string(NameOf(static_cast<ConditionType>(i))));
  }
  EXPECT_EQ(Column(kWhenTrue, 1), conditions);
}

TEST(DocumentedNamesTest, EveryReasonOfAConditionIsInATable) {
  const Names of_true = Column(kWhenTrue, 3);
  const Names of_others = Column(kWhenNotTrue, 1);
  const Names of_failed = Column(kOfFailedJob, 1);
  EXPECT_EQ(Union(Union(of_true, of_others), of_failed), ReasonsIn("reason"));
}

TEST(DocumentedNamesTest, EveryEventIsListed) {
  EXPECT_EQ(Matches(Between(Page(), "### Events\n", ". A job gets"), kQuoted), ReasonsIn("event"));
}

TEST(DocumentedNamesTest, EveryReasonOfAFirstFailureIsInTheTable) {
  EXPECT_EQ(Column(kOfFirstFailure, 1), ReasonsIn("failure"));
}

TEST(DocumentedNamesTest, EveryPortIsInTheTable) {
  const std::string table = Between(Page(), "## Who may call whom\n\n", "\n\n");
  Names ports;
  for (const int port : {kHeadPort, kStatusPort, kPagePort, kFeedPort, kMetricsPort}) {
    ports.insert(absl::StrCat(port));
  }
  EXPECT_EQ(Matches(table, R"(\n\| (\d+) )"), ports);
  EXPECT_EQ(Matches(TextOf("api/ports.h"), R"(= (\d+);)"), ports) << "one that this test lacks";
}

Names Variables() {
  return Matches(TextOf("api/process_environment.h"), R"re(\[\] = "(HETERO_\w+)")re");
}

TEST(DocumentedNamesTest, EveryProcessVariableIsInTheTable) {
  EXPECT_EQ(Column(kVariables, 1), [] {
    Names variables = Variables();
    variables.erase(environment::kReservedPrefix);
    return variables;
  }());
}

// Programs name the variables by their constants, so that one that is written here and read there
// is in the header. People set the two that are left out; macros of the build are no text.
TEST(DocumentedNamesTest, NoProgramSpellsOutAProcessVariable) {
  const std::regex variable(R"re("(HETERO_\w+))re");
  for (const char* folder : {"api", "base", "cli", "operator", "runtime"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             absl::StrCat(testing::SourceDir(), "/", folder))) {
      const std::string path = entry.path().string();
      if (!absl::EndsWith(path, ".cpp") && !absl::EndsWith(path, ".h")) continue;
      if (absl::EndsWith(path, "api/process_environment.h")) continue;
      std::ifstream file(path);
      std::stringstream text;
      text << file.rdbuf();
      const std::string source = text.str();
      for (std::sregex_iterator at(source.begin(), source.end(), variable), end; at != end; ++at) {
        const std::string name = (*at)[1];
        if (name == "HETERO_LOG_LEVEL" || name == "HETERO_OPERATOR_") continue;
        ADD_FAILURE() << path << " spells out " << name << "; name it by its constant in "
                      << "api/process_environment.h";
      }
    }
  }
}

}  // namespace
}  // namespace hetero::api
