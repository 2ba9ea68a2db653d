#include "base/either_stop.h"

#include <gtest/gtest.h>

namespace hetero::base {
namespace {

TEST(EitherStopTest, ComesWithTheFirstOfTheTwo) {
  for (const bool first : {true, false}) {
    std::stop_source one, other;
    const EitherStop either(one.get_token(), other.get_token());
    EXPECT_FALSE(either.token().stop_requested());
    (first ? one : other).request_stop();
    EXPECT_TRUE(either.token().stop_requested());
  }
}

TEST(EitherStopTest, ComesAtOnceWhenOneHasCome) {
  std::stop_source one, other;
  other.request_stop();
  EXPECT_TRUE(EitherStop(one.get_token(), other.get_token()).token().stop_requested());
}

TEST(EitherStopTest, IsTheOtherWhereThereIsOnlyOne) {
  std::stop_source source;
  EXPECT_EQ(EitherStop({}, source.get_token()).token(), source.get_token());
  EXPECT_EQ(EitherStop(source.get_token(), {}).token(), source.get_token());
  EXPECT_FALSE(EitherStop({}, {}).token().stop_possible());
}

}  // namespace
}  // namespace hetero::base
