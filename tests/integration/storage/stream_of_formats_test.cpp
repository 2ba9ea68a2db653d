// The same pictures in every format, as the formats' own libraries wrote them, on this machine, in
// a bucket and on a web server: jobs of each get the samples and labels of the ImageFolder, in its
// order. By the programs as a user runs them, against real servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/feed/safetensors.h"
#include "tests/integration/storage/bucket_job.h"
#include "tests/integration/storage/web_server.h"
#include "tests/support/temporary_folder.h"

namespace hetero::storage {
namespace {

using ::testing::HasSubstr;
using testing::LocalRun;
using ::testing::Not;
using testing::ProgramResult;

namespace fs = std::filesystem;

// What a job of 24 samples consumed.
struct Stream {
  std::string digest;
  std::string labels;  // int32 of each batch, in the order of the steps
  bool operator==(const Stream&) const = default;
};

void PrintTo(const Stream& stream, std::ostream* out) {
  *out << stream.digest << ", labels " << absl::CHexEscape(stream.labels);
}

// Where a web server lists nothing, its files are named.
struct FormatCase {
  const char* name;
  std::string path;             // of a folder or a prefix
  std::string on_the_web = "";  // empty: not there
  std::vector<std::string> settings = {};
  std::vector<std::string> web_settings = {};
};

void PrintTo(const FormatCase& format, std::ostream* out) { *out << format.name; }

std::string LinesOfPictures(const std::string& prefix) {
  std::string lines, last;
  int label = -1;
  for (const std::string& name : Pictures()) {
    const std::string folder = name.substr(0, name.find('/'));
    if (folder != last) ++label;
    last = folder;
    absl::StrAppend(&lines, R"({"source-ref": ")", prefix, name, R"(", "class": )", label, "}\n");
  }
  return lines;
}

class StreamOfFormats : public BucketJob, public ::testing::WithParamInterface<FormatCase> {
 protected:
  static void SetUpTestSuite() {
    BucketJob::SetUpTestSuite();
    folder_ = new testing::TemporaryFolder;
    fs::create_directory(*folder_ / "a set");
    for (const auto& entry : fs::directory_iterator(kDatasets)) {
      fs::create_symlink(entry.path(), *folder_ / ("a set/" + entry.path().filename().string()));
    }
    WriteLists("a set/", "image_folder/");
    WriteLists("a set/file_lists/", absl::StrCat("file://", kDatasets, "image_folder/"));
    Put("lists/train.jsonl", LinesOfPictures("s3://bucket/image_folder/"));
    const testing::TemporaryFolder packing;
    fs::copy(absl::StrCat(kDatasets, "cifar10"), packing / "cifar-10-batches-bin");
    fs::create_directory(*folder_ / "a set/cifar_archive");
    const std::string archive = *folder_ / "a set/cifar_archive/cifar-10-binary.tar.gz";
    const std::string command =
        "tar -C '" + packing.path() + "' -czf '" + archive + "' cifar-10-batches-bin";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    Upload(archive, "cifar_archive/cifar-10-binary.tar.gz");
    web_server_ = new WebServer(folder_->path());
  }
  static void TearDownTestSuite() {
    delete web_server_;
    delete folder_;
    BucketJob::TearDownTestSuite();
  }

  static void WriteLists(const std::string& where, const std::string& prefix) {
    folder_->Write(where + "list.manifest", ListOfPictures(prefix));
    folder_->Write(where + "train.csv", TableOfPictures(prefix));
    folder_->Write(where + "train.jsonl", LinesOfPictures(prefix));
  }

  static Stream StreamOf(const std::string& uri, const std::vector<std::string>& settings,
                         const std::vector<std::string>& environment = {}) {
    const testing::TemporaryFolder dump;
    std::vector<std::string> arguments = {"--input-only", "--dump-stream", dump / "stream"};
    for (const std::string& setting : settings) {
      arguments.push_back("--set");
      arguments.push_back(setting);
    }
    LocalRun run(ManifestOf(uri), arguments, environment);
    const ProgramResult result = run.Wait(kJobDeadline);
    EXPECT_EQ(result.exit_code, 0) << uri << "\n" << result.output;
    if (result.exit_code != 0) return {};
    EXPECT_EQ(run.report()["samplesConsumed"], 24) << uri;
    EXPECT_EQ(run.report().contains("storage"), !uri.starts_with("file://")) << uri;
    EXPECT_THAT(result.output + AllFilesOf(run.output()), Not(HasSubstr(S3Server::kSecret)));
    Stream stream{run.report()["streamDigest"], ""};
    for (int step = 0; step < 6; ++step) {
      const auto batch = feed::ReadSafetensors(
          absl::StrCat(dump / "stream/rank0-step00000", step, ".safetensors"));
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) return {};
      const std::vector<uint8_t>& labels = batch->tensors.at("labels").data;
      stream.labels.append(labels.begin(), labels.end());
    }
    return stream;
  }
  static const Stream& StreamOfFolder() {
    static const Stream stream = StreamOf(absl::StrCat("file://", kDatasets, "image_folder"), {});
    return stream;
  }
  static std::string FolderOf(const std::string& path) {
    const bool list = path.starts_with("lists/");
    return absl::StrCat("file://", folder_->path(), "/a set/", list ? "file_" : "", path);
  }
  static std::string WebOf(const std::string& path) {
    return absl::StrCat(web_server_->url(), "/a%20set/", path);
  }
  static std::vector<std::string> OfTheWeb() {
    return {"AWS_CA_BUNDLE=" + web_server_->ca_bundle()};
  }
  static std::vector<std::string> WebSettings(const FormatCase& format) {
    std::vector<std::string> settings = format.settings;
    settings.insert(settings.end(), format.web_settings.begin(), format.web_settings.end());
    return settings;
  }

  static inline testing::TemporaryFolder* folder_ = nullptr;
  static inline WebServer* web_server_ = nullptr;
};

TEST_P(StreamOfFormats, IsThatOfTheImageFolderWhereverItLies) {
  const FormatCase& format = GetParam();
  EXPECT_EQ(StreamOfFolder().labels.size(), 24 * sizeof(int32_t));
  EXPECT_EQ(StreamOf(FolderOf(format.path), format.settings), StreamOfFolder());
  EXPECT_EQ(StreamOf("s3://bucket/" + format.path, format.settings, Access(S3Server::kSecret)),
            StreamOfFolder());
  if (format.on_the_web.empty()) return;
  EXPECT_EQ(StreamOf(WebOf(format.on_the_web), WebSettings(format), OfTheWeb()), StreamOfFolder());
}

INSTANTIATE_TEST_SUITE_P(
    Formats, StreamOfFormats,
    ::testing::Values(
        FormatCase{"ImageFolder", "image_folder"},
        FormatCase{"WebDataset", "web_dataset", "web_dataset/pictures-{000000..000002}.tar"},
        FormatCase{"TFRecord",
                   "tf_record",
                   "tf_record/pictures-{00000..00001}-of-00002",
                   {"dataset.fields={label: {offset: -1}}"}},
        FormatCase{"MDS", "mds", "mds", {}, {"dataset.format=MDS"}},
        FormatCase{"MDSWithZstd", "mds_zstd", "mds_zstd", {}, {"dataset.format=MDS"}},
        FormatCase{"RecordIO", "record_io", "record_io/pictures.rec"},
        FormatCase{"Parquet", "parquet", "parquet/train-{00000..00001}-of-00002.parquet"},
        FormatCase{"PackedParquet", "parquet_usual", "parquet_usual/pictures.parquet"},
        FormatCase{"ManifestFile", "lists/list.manifest", "list.manifest"},
        FormatCase{"AugmentedManifest", "lists/train.jsonl", "train.jsonl"},
        FormatCase{"Table", "lists/train.csv", "train.csv"}),
    [](const auto& info) { return info.param.name; });

// CIFAR has pictures of its own: its files, and the archive that they are published in.
class StreamOfCifar : public StreamOfFormats {};

TEST_P(StreamOfCifar, IsThatOfItsFilesWhereverItLies) {
  const Stream files = StreamOf(FolderOf("cifar10"), {"training.epochs=", "training.maxSteps=6"});
  EXPECT_EQ(files.labels.size(), 24 * sizeof(int32_t));
  std::vector<std::string> settings = WebSettings(GetParam());
  settings.insert(settings.end(), {"training.epochs=", "training.maxSteps=6"});
  EXPECT_EQ(StreamOf("s3://bucket/" + GetParam().path, settings, Access(S3Server::kSecret)), files);
  EXPECT_EQ(StreamOf(WebOf(GetParam().on_the_web), settings, OfTheWeb()), files);
}

INSTANTIATE_TEST_SUITE_P(Formats, StreamOfCifar,
                         ::testing::Values(FormatCase{"Files",
                                                      "cifar10",
                                                      "cifar10/data_batch_{1..3}.bin",
                                                      {},
                                                      {"dataset.format=CIFAR10"}},
                                           FormatCase{"Archive",
                                                      "cifar_archive/cifar-10-binary.tar.gz",
                                                      "cifar_archive/cifar-10-binary.tar.gz",
                                                      {},
                                                      {"dataset.format=CIFAR10"}}),
                         [](const auto& info) { return info.param.name; });

TEST_F(StreamOfFormats, OfAServerForWhomNobodyVouchesIsNotRead) {
  LocalRun strange(ManifestOf(WebOf("train.csv")), {"--input-only"});
  const ProgramResult refused = strange.Wait(kJobDeadline);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("train.csv"));
}

TEST_F(StreamOfFormats, OfAShardThatIsNotThereIsNamed) {
  LocalRun run(ManifestOf(WebOf("web_dataset/pictures-{000000..000003}.tar")), {"--input-only"},
               OfTheWeb());
  const ProgramResult refused = run.Wait(kJobDeadline);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("/a%20set/web_dataset/pictures-000003.tar"));
}

}  // namespace
}  // namespace hetero::storage
