#include "runtime/insight/live/merge_patch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace hetero::live {
namespace {

using nlohmann::json;

TEST(MergePatch, NamesWhatIsNewWhatHasChangedAndWhatHasGone) {
  const json before = {{"same", 1}, {"other", 1}, {"gone", {{"a", 1}}}, {"list", {1, 2}}};
  const json after = {{"same", 1}, {"other", 2}, {"new", "x"}, {"list", {1, nullptr}}};
  EXPECT_EQ(MergePatch(before, after),
            json({{"other", 2}, {"gone", nullptr}, {"new", "x"}, {"list", {1, nullptr}}}));
}

TEST(MergePatch, OfInnerObjectsOnlyWhatDiffers) {
  const json before = {{"members", {{"cpu-0", {1, 2}}, {"cpu-1", {3}}}}};
  const json after = {{"members", {{"cpu-0", {1, 2}}, {"cpu-1", {4}}}}};
  EXPECT_EQ(MergePatch(before, after), json({{"members", {{"cpu-1", {4}}}}}));
}

TEST(MergePatch, EqualValuesGiveNothing) {
  const json value = {{"a", {{"b", {1, 2}}}}};
  EXPECT_EQ(MergePatch(value, value), json::object());
}

json RandomObject(std::mt19937& random, int depth) {
  json object = json::object();
  const auto count = random() % 5;
  for (unsigned i = 0; i < count; ++i) {
    const std::string key(1, static_cast<char>('a' + random() % 6));
    switch (random() % (depth > 0 ? 4 : 3)) {
      case 0:
        object[key] = random() % 3;
        break;
      case 1:
        object[key] = {random() % 2, nullptr};
        break;
      case 2:
        object[key] = std::string(random() % 3, 'x');
        break;
      default:
        object[key] = RandomObject(random, depth - 1);
    }
  }
  return object;
}

// The library knows how one is applied, not how one is made.
TEST(MergePatch, TheLibrarysOwnApplicationMakesTheOneOfTheOther) {
  std::mt19937 random(17);
  for (int i = 0; i < 20'000; ++i) {
    const json before = RandomObject(random, 3);
    const json after = RandomObject(random, 3);
    json patched = before;
    patched.merge_patch(MergePatch(before, after));
    ASSERT_EQ(patched, after) << before << " to " << after;
  }
}

}  // namespace
}  // namespace hetero::live
