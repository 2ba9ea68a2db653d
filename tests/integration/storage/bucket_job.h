#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/storage/open_store.h"
#include "tests/integration/storage/s3_server.h"
#include "tests/integration/support/program_run.h"
#include "tests/support/paths.h"

namespace hetero::storage {

inline constexpr std::chrono::seconds kJobDeadline(120);
inline const std::string kDatasets = testing::SourceDir() + "/tests/golden/datasets/";

// A small job of what is at `uri`.
std::string ManifestOf(const std::string& uri);

// The golden pictures, as an ImageFolder has them: "class/name", sorted.
std::vector<std::string> Pictures();
// Lists of them, as SageMaker's ManifestFile and as a table, each picture's address
// behind `prefix`; in the order of the folder.
std::string ListOfPictures(const std::string& prefix);
std::string TableOfPictures(const std::string& prefix);

// A real server whose bucket `bucket` holds the golden datasets, one server for all tests.
class BucketJob : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new S3Server;
    server_->MakeBucket("bucket");
    for (const char* format : kFormats) {
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(absl::StrCat(kDatasets, format))) {
        if (!entry.is_regular_file()) continue;
        Upload(entry.path(), entry.path().lexically_relative(kDatasets).string());
      }
    }
    Upload(absl::StrCat(kDatasets, "image_folder/cat/0.png"), "web_dataset/preview/0.png");
    Put("lists/list.manifest", ListOfPictures("s3://bucket/image_folder/"));
    Put("lists/train.csv", TableOfPictures("s3://bucket/image_folder/"));
  }
  static void Upload(const std::filesystem::path& path, const std::string& name) {
    std::ifstream file(path, std::ios::binary);
    Put(name, {std::istreambuf_iterator<char>(file), {}});
  }
  static void Put(const std::string& name, const std::string& bytes) {
    ASSERT_FALSE(bytes.empty()) << name;
    const auto store = OpenWritableStore("s3://bucket", server_->Options());
    ASSERT_TRUE(store.ok()) << store.status();
    auto writer = (*store)->Create(name);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(
        (*writer)->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static std::string AllFilesOf(const std::string& folder) {
    std::string all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  static std::vector<std::string> Access(const std::string& secret) {
    return {absl::StrCat("AWS_ACCESS_KEY_ID=", S3Server::kKey),
            absl::StrCat("AWS_SECRET_ACCESS_KEY=", secret),
            absl::StrCat("AWS_REGION=", S3Server::kRegion),
            absl::StrCat("AWS_ENDPOINT_URL=", server_->endpoint())};
  }

  static constexpr const char* kFormats[] = {"web_dataset", "tf_record", "mds",
                                             "mds_zstd",    "parquet",   "parquet_usual",
                                             "record_io",   "cifar10",   "image_folder"};
  static inline S3Server* server_ = nullptr;
};

}  // namespace hetero::storage
