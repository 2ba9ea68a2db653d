#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/insight/rules/rule.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/insight/rules/examples.h"

// docs/findings.md has a section for each rule, in which stands between two marked lines what
// follows from the table and from what it finds in an example. HETERO_WRITE_GOLDEN=1 writes it.
namespace hetero::insight {
namespace {

const std::string kPage = testing::SourceDir() + "/docs/findings.md";

std::string Page() {
  std::ifstream in(kPage);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::set<std::string> Sections() {
  const std::string text = Page();
  std::set<std::string> names;
  for (size_t at = text.find("\n### "); at != std::string::npos; at = text.find("\n### ", at + 1)) {
    const size_t begin = at + 5;
    names.insert(text.substr(begin, text.find('\n', begin) - begin));
  }
  return names;
}

const Finding* FoundBy(const std::vector<Finding>& findings, std::string_view rule) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.rule == rule; });
  return found == findings.end() ? nullptr : &*found;
}

std::string ListingOf(const Rule& rule) {
  std::string text = "| threshold | default | |\n|---|---|---|\n";
  for (const Threshold& threshold : rule.thresholds) {
    absl::StrAppend(&text, "| `", std::string(threshold.name), "` | ", threshold.value, " ",
                    std::string(threshold.unit), " | ", std::string(threshold.meaning), " |\n");
  }
  const std::vector<Finding> findings = Judge(ExampleOf(rule.name), {});
  const Finding* finding = FoundBy(findings, rule.name);
  if (finding == nullptr) return text;
  absl::StrAppend(&text, "\n> ", finding->message, ".\n>\n> To change: ", finding->remedy, ".\n");
  return text;
}

void ExpectListing(const std::string& name, const std::string& wanted) {
  const std::string text = Page();
  const size_t marker = text.find("<!-- begin: " + name + ",");
  ASSERT_NE(marker, std::string::npos) << kPage << " has no listing " << name;
  const size_t begin = text.find('\n', marker) + 1;
  const size_t end = text.find("<!-- end: " + name + " -->", begin);
  ASSERT_NE(end, std::string::npos) << kPage << " has no end of listing " << name;
  const std::string found = text.substr(begin, end - begin);
  if (std::getenv("HETERO_WRITE_GOLDEN") != nullptr && found != wanted) {
    std::ofstream(kPage) << text.substr(0, begin) << wanted << text.substr(end);
    return;
  }
  EXPECT_EQ(found, wanted) << "HETERO_WRITE_GOLDEN=1 writes what follows from the table";
}

TEST(FindingsPageTest, RulesAndSectionsAreTheSame) {
  std::set<std::string> rules;
  for (const Rule& rule : AllRules()) rules.emplace(rule.name);
  EXPECT_EQ(rules.size(), AllRules().size()) << "two rules have one name";
  EXPECT_EQ(rules, Sections());
}

TEST(FindingsPageTest, SectionsSayWhatTheTableAndTheExamplesSay) {
  for (const Rule& rule : AllRules()) {
    ASSERT_FALSE(rule.thresholds.empty()) << rule.name;
    ExpectListing(std::string(rule.name), ListingOf(rule));
  }
}

TEST(FindingsPageTest, EachRuleFindsItsExampleFirst) {
  for (const Rule& rule : AllRules()) {
    const std::vector<Finding> findings = Judge(ExampleOf(rule.name), {});
    ASSERT_FALSE(findings.empty()) << rule.name;
    EXPECT_EQ(findings[0].rule, rule.name) << findings[0].message;
    EXPECT_FALSE(findings[0].remedy.empty());
    EXPECT_FALSE(findings[0].field.empty());
    EXPECT_THAT(findings[0].remedy, ::testing::Not(::testing::EndsWith(".")));
    EXPECT_THAT(findings[0].message, ::testing::Not(::testing::EndsWith(".")));
  }
}

TEST(FindingsPageTest, NothingIsFoundInTheUsual) {
  const std::vector<Finding> findings = Judge(Usual(), {});
  EXPECT_TRUE(findings.empty()) << findings[0].message;
}

TEST(FindingsPageTest, WhatExplainsARuleIsARule) {
  std::set<std::string_view> names;
  for (const Rule& rule : AllRules()) names.insert(rule.name);
  for (const Rule& rule : AllRules()) {
    for (const std::string_view cause : rule.explained_by) {
      EXPECT_TRUE(names.contains(cause)) << rule.name << " is explained by " << cause;
      EXPECT_NE(cause, rule.name);
    }
  }
}

}  // namespace
}  // namespace hetero::insight
