#include "operator/kube/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

namespace hetero::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Member {
  std::string group;
  int value = 0;
};
using MemberStore = Store<Member>;

MemberStore::Value Make(const std::string& group, int value) {
  return std::make_shared<const Member>(Member{group, value});
}
std::string GroupOf(const Member& member) { return member.group; }
std::vector<int> ValuesIn(const MemberStore& store, const std::string& group) {
  std::vector<int> values;
  for (const auto& member : store.In(group)) values.push_back(member->value);
  return values;
}

TEST(StoreTest, PutAndRemoveGiveWhatStoodThere) {
  MemberStore store;
  EXPECT_EQ(store.Get({"n", "a"}), nullptr);
  EXPECT_EQ(store.Remove({"n", "a"}), nullptr);
  const auto first = Make("", 1);
  const auto second = Make("", 2);
  EXPECT_EQ(store.Put({"n", "a"}, first), nullptr);
  EXPECT_EQ(store.Put({"n", "a"}, second), first);
  EXPECT_EQ(store.Get({"n", "a"}), second);
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.Remove({"n", "a"}), second);
  EXPECT_EQ(store.size(), 0u);
}

TEST(StoreTest, PuttingNullRemoves) {
  MemberStore store(GroupOf);
  const auto first = Make("g", 1);
  store.Put({"n", "a"}, first);
  EXPECT_EQ(store.Put({"n", "a"}, nullptr), first);
  EXPECT_EQ(store.size(), 0u);
  EXPECT_THAT(store.In("g"), IsEmpty());
}

TEST(StoreTest, GroupsFollowTheirMembersInKeyOrder) {
  MemberStore store(GroupOf);
  store.Put({"n", "b"}, Make("x", 2));
  store.Put({"n", "c"}, Make("x", 3));
  store.Put({"n", "a"}, Make("x", 1));
  EXPECT_THAT(ValuesIn(store, "x"), ElementsAre(1, 2, 3));
  store.Put({"n", "b"}, Make("y", 2));
  EXPECT_THAT(ValuesIn(store, "x"), ElementsAre(1, 3));
  EXPECT_THAT(ValuesIn(store, "y"), ElementsAre(2));
  store.Put({"n", "b"}, Make("", 2));
  EXPECT_THAT(ValuesIn(store, "y"), IsEmpty());
  store.Remove({"n", "a"});
  EXPECT_THAT(ValuesIn(store, "x"), ElementsAre(3));
}

TEST(StoreTest, ValuesAlreadyHandedOutStay) {
  MemberStore store(GroupOf);
  store.Put({"n", "a"}, Make("x", 1));
  const auto before = store.In("x");
  store.Remove({"n", "a"});
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0]->value, 1);
}

// Against plain maps that are searched from end to end.
TEST(StoreTest, AgreesWithANaiveTwin) {
  MemberStore store(GroupOf);
  std::map<ObjectKey, Member> twin;
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const ObjectKey key{"n", std::to_string(random() % 40)};
    if (random() % 3 == 0) {
      store.Remove(key);
      twin.erase(key);
    } else {
      const Member member{random() % 5 == 0 ? "" : std::to_string(random() % 4), i};
      store.Put(key, std::make_shared<const Member>(member));
      twin[key] = member;
    }
    const std::string group = std::to_string(random() % 4);
    std::vector<int> expected;
    for (const auto& [_, member] : twin) {
      if (member.group == group) expected.push_back(member.value);
    }
    ASSERT_EQ(ValuesIn(store, group), expected) << "after step " << i;
    ASSERT_EQ(store.size(), twin.size());
  }
}

TEST(StoreTest, ReadersSeeWholeValuesWhileOneThreadWrites) {
  MemberStore store(GroupOf);
  std::atomic<bool> go_on = true;
  std::vector<std::jthread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (go_on) {
        for (const auto& member : store.In("even")) ASSERT_EQ(member->value % 2, 0);
        for (const auto& member : store.In("odd")) ASSERT_EQ(member->value % 2, 1);
        for (const ObjectKey& key : store.Keys()) {
          const auto member = store.Get(key);
          ASSERT_TRUE(member == nullptr || !member->group.empty());
        }
      }
    });
  }
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    const ObjectKey key{"n", std::to_string(random() % 20)};
    if (random() % 4 == 0) {
      store.Remove(key);
    } else {
      store.Put(key, Make(i % 2 == 0 ? "even" : "odd", i));
    }
  }
  go_on = false;
}

}  // namespace
}  // namespace hetero::kube
