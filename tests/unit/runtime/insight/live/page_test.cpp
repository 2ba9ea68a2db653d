#include "runtime/insight/live/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace hetero::live {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(LivePage, IsOneDocumentThatLoadsNothingElse) {
  const std::string& page = Page();
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  EXPECT_EQ(Count(page, "<script>"), 1);
  EXPECT_EQ(Count(page, "</script>"), 1);
  EXPECT_EQ(Count(page, "<style>"), 1);
  EXPECT_THAT(page, Not(HasSubstr("<!-- S"))) << "a placeholder was left";
  for (const char* elsewhere : {"src=", "@import", "url(", "<iframe", "import("}) {
    EXPECT_THAT(page, Not(HasSubstr(elsewhere)));
  }
  // The name spaces of the drawing and of a comment are no places to load from.
  const std::regex address(R"(https?://[^ )'"]+)");
  for (std::sregex_iterator it(page.begin(), page.end(), address), end; it != end; ++it) {
    EXPECT_EQ(it->str(), "http://www.w3.org/2000/svg");
  }
}

// Texts of a job are somebody's else; and the policy would forbid it.
TEST(LivePage, MakesNoMarkupOfTexts) {
  for (const char* forbidden : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                                "eval(", "new Function", " style=", " onclick=", " onload="}) {
    EXPECT_THAT(Page(), Not(HasSubstr(forbidden)));
  }
}

TEST(LivePage, WorksWithoutColoursMotionAndPointer) {
  for (const char* needed :
       {"prefers-color-scheme", "prefers-reduced-motion", "aria-label", "keydown", "<noscript>"}) {
    EXPECT_THAT(Page(), HasSubstr(needed));
  }
}

TEST(LivePagePolicy, AllowsTheDocumentsOwnPartsAlone) {
  const std::string& policy = PagePolicy();
  EXPECT_THAT(policy, StartsWith("default-src 'none'; "));
  EXPECT_EQ(Count(policy, "'sha256-"), 2);
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

}  // namespace
}  // namespace hetero::live
