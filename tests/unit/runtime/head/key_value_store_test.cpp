#include "runtime/head/key_value_store.h"

#include <gtest/gtest.h>

#include <thread>

namespace hetero::head {
namespace {

bool Never() { return false; }
bool AtOnce() { return true; }

TEST(KeyValueStoreTest, SetGetCheckDeleteCount) {
  KeyValueStore store;
  EXPECT_FALSE(store.Check({"a"}));
  store.Set("a", "1");
  store.Set("a", std::string("\0x", 2));
  EXPECT_EQ(*store.Get("a", Never), std::string("\0x", 2));
  EXPECT_TRUE(store.Check({"a"}));
  EXPECT_FALSE(store.Check({"a", "b"}));
  EXPECT_EQ(store.CountKeys(), 1);
  EXPECT_TRUE(store.Delete("a"));
  EXPECT_FALSE(store.Delete("a"));
  EXPECT_EQ(store.CountKeys(), 0);
}

TEST(KeyValueStoreTest, AddCountsInDecimal) {
  KeyValueStore store;
  EXPECT_EQ(*store.Add("n", 3), 3);
  EXPECT_EQ(*store.Add("n", -1), 2);
  EXPECT_EQ(*store.Get("n", Never), "2");
  store.Set("n", "two");
  EXPECT_TRUE(absl::IsInvalidArgument(store.Add("n", 1).status()));
}

TEST(KeyValueStoreTest, CompareSet) {
  KeyValueStore store;
  EXPECT_EQ(store.CompareSet("k", "old", "new"), "old");
  EXPECT_FALSE(store.Check({"k"}));
  EXPECT_EQ(store.CompareSet("k", "", "one"), "one");
  EXPECT_EQ(store.CompareSet("k", "", "two"), "one");
  EXPECT_EQ(store.CompareSet("k", "one", "two"), "two");
}

TEST(KeyValueStoreTest, GivingUpNamesTheKey) {
  KeyValueStore store;
  const absl::Status status = store.Wait({"a"}, AtOnce);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_NE(status.message().find("'a'"), absl::string_view::npos);
}

TEST(KeyValueStoreTest, WaitEndsWithTheLastKey) {
  KeyValueStore store;
  absl::Status waited;
  std::thread waiter([&] { waited = store.Wait({"a", "b"}, Never); });
  store.Set("a", "");
  EXPECT_TRUE(store.Add("b", 1).ok());
  waiter.join();
  EXPECT_TRUE(waited.ok());
}

}  // namespace
}  // namespace hetero::head
