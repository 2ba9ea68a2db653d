#include "runtime/local/socket_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace hetero::local {
namespace {

namespace fs = std::filesystem;

class SocketFolderTest : public ::testing::Test {
 protected:
  SocketFolderTest() {
    std::string path = ::testing::TempDir() + "sockets-XXXXXX";
    parent_ = mkdtemp(path.data());
  }
  ~SocketFolderTest() override { fs::remove_all(parent_); }

  // As a killed process leaves it; returns the path of its lock.
  std::string LeaveBehind(const std::string& name) {
    fs::create_directory(parent_ + "/" + name);
    std::ofstream(parent_ + "/" + name + "/head.sock");
    const std::string lock = parent_ + "/" + name + "/lock";
    std::ofstream(lock).flush();
    return lock;
  }

  bool Exists(const std::string& name) const { return fs::exists(parent_ + "/" + name); }

  std::string parent_;
};

TEST_F(SocketFolderTest, IsRemovedAtTheEndWithWhatItHolds) {
  absl::StatusOr<SocketFolder> folder = SocketFolder::Create(parent_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::ofstream(folder->path() + "/head.sock").flush();
  EXPECT_TRUE(fs::exists(folder->path()));
  { const SocketFolder taken = *std::move(folder); }
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(SocketFolderTest, WhatAKilledProcessLeftIsRemovedByTheNext) {
  LeaveBehind("hetero-a1B2c3");
  const absl::StatusOr<SocketFolder> folder = SocketFolder::Create(parent_);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE(Exists("hetero-a1B2c3"));
  EXPECT_TRUE(fs::exists(folder->path()));
}

TEST_F(SocketFolderTest, FoldersOfLivingProcessesAndOthersStay) {
  const absl::StatusOr<SocketFolder> living = SocketFolder::Create(parent_);
  ASSERT_TRUE(living.ok()) << living.status();
  const int lock = open(LeaveBehind("hetero-locked").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  LeaveBehind("hetero-test-a1B2c3");                 // of another name
  fs::create_directory(parent_ + "/hetero-starts");  // not locked yet
  LeaveBehind("elsewhere");
  fs::create_directory_symlink(parent_ + "/elsewhere", parent_ + "/hetero-linked");
  ASSERT_TRUE(SocketFolder::Create(parent_).ok());
  EXPECT_TRUE(fs::exists(living->path()));
  for (const char* name : {"hetero-locked", "hetero-test-a1B2c3", "hetero-starts", "elsewhere"}) {
    EXPECT_TRUE(Exists(name)) << name;
  }
  close(lock);
}

TEST_F(SocketFolderTest, AMissingParentIsNamed) {
  const absl::StatusOr<SocketFolder> folder = SocketFolder::Create(parent_ + "/none");
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.status().message().find(parent_ + "/none"), std::string::npos);
}

}  // namespace
}  // namespace hetero::local
