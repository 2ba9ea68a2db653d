#include "runtime/storage/file_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/storage/open_store.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

std::vector<std::string> NamesOf(const absl::StatusOr<std::vector<Object>>& objects) {
  std::vector<std::string> names;
  EXPECT_TRUE(objects.ok()) << objects.status();
  if (objects.ok()) {
    for (const Object& object : *objects) names.push_back(object.name);
  }
  return names;
}

absl::Span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() : store_(*OpenFileStore(folder_.path())) {}

  absl::StatusOr<std::string> Read(const Object& object, int64_t offset, size_t length) {
    std::string text(length, '?');
    const absl::Status status =
        store_->Read(object, offset, {reinterpret_cast<uint8_t*>(text.data()), length});
    if (!status.ok()) return status;
    return text;
  }

  TemporaryFolder folder_;
  std::unique_ptr<WritableStore> store_;
};

TEST_F(FileStoreTest, ListsFilesOfAllDepthsByTheBytesOfTheirNames) {
  folder_.Write("a/b", "12");
  folder_.Write("a-b", "1");  // '-' is before '/', so between them in a walk of folders
  folder_.Write("a.tar", "123");
  folder_.Write("B/\xff\n \"x", "");
  folder_.Write(".hidden", "1");
  std::filesystem::create_directories(folder_ / "empty/folder");
  EXPECT_THAT(NamesOf(store_->List("")),
              ElementsAre(".hidden", "B/\xff\n \"x", "a-b", "a.tar", "a/b"));
  EXPECT_THAT(NamesOf(store_->List("a")), ElementsAre("a-b", "a.tar", "a/b"));
  EXPECT_THAT(NamesOf(store_->List("a/")), ElementsAre("a/b"));
  EXPECT_THAT(NamesOf(store_->List("a/b/c")), IsEmpty());
  EXPECT_THAT(NamesOf(store_->List("nothing")), IsEmpty());
  EXPECT_EQ((*store_->List("a.tar"))[0].size, 3);
}

TEST_F(FileStoreTest, FollowsLinksButNotInCircles) {
  const TemporaryFolder elsewhere;
  elsewhere.Write("deep/picture", "pixels");
  folder_.Write("x/real", "1");
  std::filesystem::create_symlink(elsewhere / "deep/picture", folder_ / "file");
  std::filesystem::create_symlink(elsewhere / "deep", folder_ / "folder");
  std::filesystem::create_symlink("..", folder_ / "x/up");
  std::filesystem::create_symlink("nowhere", folder_ / "broken");
  std::filesystem::create_symlink("self", folder_ / "self");
  mkfifo((folder_ / "pipe").c_str(), 0600);
  EXPECT_THAT(NamesOf(store_->List("")), ElementsAre("file", "folder/picture", "x/real"));
  EXPECT_EQ(*Read(*store_->Head("folder/picture"), 2, 3), "xel");
  EXPECT_TRUE(absl::IsNotFound(store_->Head("pipe").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Head("broken").status()));
  EXPECT_TRUE(absl::IsNotFound(store_->Head("x").status()));
}

TEST_F(FileStoreTest, NoNameLeavesTheRoot) {
  folder_.Write("inside/x", "1");
  const auto inside = *OpenFileStore(folder_ / "inside");
  folder_.Write("outside", "secret");
  for (const std::string& name :
       {std::string("../outside"), std::string("x/../../outside"), std::string("/outside"),
        std::string(""), std::string("."), std::string("x/"), std::string("a//b"),
        std::string("x\0y", 3), std::string(5000, 'x')}) {
    SCOPED_TRACE(name);
    const absl::Status head = inside->Head(name).status();
    EXPECT_TRUE(absl::IsInvalidArgument(head)) << head;
    uint8_t byte;
    EXPECT_TRUE(absl::IsInvalidArgument(inside->Read({name, 6, ""}, 0, {&byte, 1})));
    EXPECT_TRUE(absl::IsInvalidArgument(inside->Create(name).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(inside->Delete(name)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(inside->List("../").status()));
  // Names that only look like it: what Kubernetes makes in a volume of a ConfigMap.
  folder_.Write("inside/..data/x", "1");
  EXPECT_THAT(NamesOf(inside->List("..")), ElementsAre("..data/x"));
}

TEST_F(FileStoreTest, ReadsTheBytesThatWereAskedFor) {
  folder_.Write("x", "0123456789");
  const Object object = *store_->Head("x");
  EXPECT_EQ(object.size, 10);
  EXPECT_EQ(*Read(object, 0, 10), "0123456789");
  EXPECT_EQ(*Read(object, 7, 3), "789");
  EXPECT_EQ(*Read(object, 10, 0), "");
  EXPECT_TRUE(absl::IsOutOfRange(Read(object, 8, 3).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Read(object, 11, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Read(object, -1, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(Read({"y", 10, ""}, 0, 1).status()));
}

TEST_F(FileStoreTest, AllOfAFileIsReadUpToALimit) {
  folder_.Write("a/b", "0123456789");
  std::vector<uint8_t> bytes(100);
  const auto object = store_->ReadAll("a/b", 10, &bytes);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(*object, *store_->Head("a/b"));
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "0123456789");
  const absl::Status large = store_->ReadAll("a/b", 9, &bytes).status();
  EXPECT_TRUE(absl::IsOutOfRange(large)) << large;
  EXPECT_THAT(std::string(large.message()), HasSubstr("/a/b: it has 10 bytes, more than 9"));
  EXPECT_TRUE(absl::IsNotFound(store_->ReadAll("a/c", 10, &bytes).status()));
}

TEST_F(FileStoreTest, AFileThatChangedIsNamedAndNotRead) {
  folder_.Write("x", "0123456789");
  const Object object = *store_->Head("x");
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 5}, {.tv_sec = 1, .tv_nsec = 5}};
  ASSERT_EQ(utimensat(AT_FDCWD, (folder_ / "x").c_str(), times, 0), 0);
  const absl::Status newer = Read(object, 0, 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(newer)) << newer;
  EXPECT_THAT(std::string(newer.message()), HasSubstr("file://" + folder_ / "x"));
  const Object second = *store_->Head("x");
  EXPECT_EQ(second.version, "1.000000005");
  folder_.Write("x", "012345678");
  EXPECT_TRUE(absl::IsFailedPrecondition(Read(second, 0, 1).status()));
  // Without a version the size alone counts.
  EXPECT_TRUE(absl::IsFailedPrecondition(Read({"x", 10, ""}, 0, 1).status()));
  EXPECT_TRUE(Read({"x", 9, ""}, 0, 1).ok());
}

TEST_F(FileStoreTest, AWriteIsThereOnlyWhenItIsClosed) {
  {
    auto abandoned = *store_->Create("new/folder/x");
    ASSERT_TRUE(abandoned->Append(BytesOf("half")).ok());
    EXPECT_THAT(NamesOf(store_->List("")), IsEmpty());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "new/folder"));
  auto writer = *store_->Create("new/folder/x");
  ASSERT_TRUE(writer->Append(BytesOf("who")).ok());
  ASSERT_TRUE(writer->Append(BytesOf("le")).ok());
  const absl::StatusOr<Object> written = writer->Close();
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, *store_->Head("new/folder/x"));
  EXPECT_EQ(*Read(*written, 0, 5), "whole");
  EXPECT_TRUE(store_->Delete("new/folder/x").ok());
  EXPECT_TRUE(store_->Delete("new/folder/x").ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Head("new/folder/x").status()));
}

TEST_F(FileStoreTest, OfManyWritersOneIsFirst) {
  for (const bool replace : {false, true}) {
    SCOPED_TRACE(replace);
    const Object old = replace ? *store_->Head("lock") : Object();
    std::vector<absl::StatusOr<Object>> results(8, absl::UnknownError(""));
    {
      std::vector<std::jthread> writers;
      for (size_t i = 0; i < results.size(); ++i) {
        writers.emplace_back([&, i] {
          const std::string bytes = absl::StrCat("writer ", i);
          results[i] =
              replace ? store_->WriteIfMatch(old, bytes) : store_->WriteIfAbsent("lock", bytes);
        });
      }
    }
    int winners = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].ok()) {
        ++winners;
        EXPECT_EQ(*results[i], *store_->Head("lock"));
        EXPECT_EQ(*Read(*results[i], 0, 8), absl::StrCat("writer ", i));
      } else {
        EXPECT_EQ(results[i].status().code(), replace ? absl::StatusCode::kFailedPrecondition
                                                      : absl::StatusCode::kAlreadyExists)
            << results[i].status();
      }
    }
    EXPECT_EQ(winners, 1);
    EXPECT_THAT(NamesOf(store_->List("")), ElementsAre("lock"));
  }
}

TEST_F(FileStoreTest, VersionsOfFilesThatAreReplacedInOneInstantDiffer) {
  Object object = *store_->WriteIfAbsent("lock", "0");
  for (int i = 1; i < 50; ++i) {
    const absl::StatusOr<Object> next = store_->WriteIfMatch(object, absl::StrCat(i % 10));
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_NE(next->version, object.version);
    EXPECT_TRUE(absl::IsFailedPrecondition(store_->WriteIfMatch(object, "x").status()));
    object = *next;
  }
}

TEST(OpenStoreTest, AnAddressSaysWhichStoreItIs) {
  const TemporaryFolder folder;
  EXPECT_EQ((*OpenStore("file://" + folder.path() + "//"))->uri(), "file://" + folder.path());
  StoreOptions options{.environment = [](const std::string&) { return ""; }};
  EXPECT_EQ((*OpenStore("s3://bucket/a/b//", options))->uri(), "s3://bucket/a/b");
  EXPECT_EQ((*OpenStore("s3://bucket", options))->uri(), "s3://bucket");
  EXPECT_EQ((*OpenStore("https://Host:443/a%20b/", options))->uri(), "https://host/a%20b");
  EXPECT_EQ((*OpenStore("http://127.0.0.1:80", options))->uri(), "http://127.0.0.1");
}

TEST(OpenStoreTest, RefusalsNameTheAddressAndWhatIsKnown) {
  const TemporaryFolder folder;
  folder.Write("file", "");
  const auto refused = [](const std::string& uri) { return OpenStore(uri).status(); };
  EXPECT_THAT(std::string(refused("ftp://host/x").message()),
              AllOf(HasSubstr("ftp://host/x"), HasSubstr("file:///folder"), HasSubstr("s3://"),
                    HasSubstr("https://")));
  EXPECT_THAT(std::string(refused("file://relative").message()), HasSubstr("absolute"));
  EXPECT_TRUE(absl::IsNotFound(refused("file://" + folder / "none")));
  EXPECT_TRUE(absl::IsNotFound(refused("file://" + folder / "file")));
  EXPECT_TRUE(absl::IsInvalidArgument(refused("s3:///key")));
  EXPECT_TRUE(absl::IsInvalidArgument(refused("s3://bu@cket/key")));
  EXPECT_THAT(std::string(refused("http://example.com/x").message()), HasSubstr("https://"));
  for (const char* uri : {"https://me:secret@host/x", "https://host/x?signature=secret"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(refused(uri)));
    EXPECT_THAT(std::string(refused(uri).message()), Not(HasSubstr("secret")));
  }
  EXPECT_TRUE(absl::IsUnimplemented(OpenWritableStore("https://host/x").status()));
}

}  // namespace
}  // namespace hetero::storage
