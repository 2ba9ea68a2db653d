#include "base/page_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hetero::metrics {
namespace {

using ::testing::HasSubstr;

// The sums are of Python's hashlib.
TEST(PageDocument, ThePolicyNamesWhatTheDocumentHolds) {
  const PageDocument page =
      MakePageDocument("<style><!-- STYLE --></style><script><!-- SCRIPT --></script>",
                       {"a { color: red; }\n", "b { color: blue; }\n"}, {"one();\n", "two();\n"});
  EXPECT_EQ(page.text,
            "<style>a { color: red; }\nb { color: blue; }\n</style>"
            "<script>(() => {\n'use strict';\none();\ntwo();\n})();\n</script>");
  EXPECT_THAT(page.policy,
              HasSubstr("script-src 'sha256-/8b2Thx7y6iIJOdNOuegglVp1MPHCqQAW9qoHOKCTdE=';"));
  EXPECT_THAT(page.policy,
              HasSubstr("style-src 'sha256-z0B5X4PlHNWdTkZ54fMaCPuSGdu2dxDTOXuHhh7Ysmw=';"));
  EXPECT_THAT(page.policy, HasSubstr("default-src 'none';"));
  EXPECT_THAT(page.policy, HasSubstr("connect-src 'self';"));
}

}  // namespace
}  // namespace hetero::metrics
