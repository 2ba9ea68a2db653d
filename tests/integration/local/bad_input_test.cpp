// Bad input ends in a clear message, never in a hang or a stack dump.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "runtime/job/permutation.h"
#include "runtime/job/replacement.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::ProgramResult;
using testing::ProgramRun;
using testing::RunProgram;
using testing::SmallJobYaml;
using testing::TemporaryFolder;
using testing::WriteFile;

struct BadCase {
  std::string name;
  std::vector<std::string> sets;
  int exit_code;
  std::vector<std::string> expected;  // in the output
};

void Expect(const ProgramResult& result, int exit_code, const std::vector<std::string>& expected) {
  EXPECT_EQ(result.exit_code, exit_code) << result.output;
  for (const std::string& text : expected) {
    EXPECT_NE(result.output.find(text), std::string::npos) << "no \"" << text << "\" in:\n"
                                                           << result.output;
  }
  for (const char* ugly : {"terminate called", "what():", "Segmentation", "core dumped"}) {
    EXPECT_EQ(result.output.find(ugly), std::string::npos) << result.output;
  }
}

std::vector<std::string> Sets(const std::vector<std::string>& sets) {
  std::vector<std::string> arguments;
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return arguments;
}

TEST(BadInput, InManifestOrData) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "empty");
  std::filesystem::create_directories(folder / "idx");
  WriteFile(folder / "idx/train-images-idx3-ubyte",
            std::string("\0\0\x08\x01", 4) + "rubbish, and longer than a header");
  WriteFile(folder / "idx/train-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\x01\0", 9));
  WriteFile(folder / "short/train-images-idx3-ubyte",
            std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x04\0\0\0\x04", 16) + "0123456789");
  WriteFile(folder / "short/train-labels-idx1-ubyte",
            std::string("\0\0\x08\x01\0\0\0\x02\0\x01", 10));
  const auto data = [&](const std::string& name, const std::string& format) {
    return "dataset={uri: 'file://" + (folder / name) + "', format: " + format + "}";
  };
  const std::vector<BadCase> cases = {
      {"unknown field", {"training.epoches=3"}, 2, {"training", "epoches"}},
      {"wrong type", {"training.batchSizePerWorker=many"}, 2, {"spec.training.batchSizePerWorker"}},
      {"missing folder", {data("absent", "ImageFolder")}, 2, {folder / "absent"}},
      {"empty folder", {data("empty", "ImageFolder")}, 2, {folder / "empty"}},
      {"wrong magic", {data("idx", "IDX")}, 2, {"train-images-idx3-ubyte", "magic"}},
      {"short body", {data("short", "IDX")}, 2, {"train-images-idx3-ubyte", "10"}},
      {"batch larger than the dataset",
       {"training.batchSizePerWorker=400"},
       2,
       {"spec.training.batchSizePerWorker", "800", "512"}},
      {"model of a later version",
       {"training.model.name=resnet101"},
       2,
       {"spec.training.model.name", "resnet101"}},
      {"partitions of a model without cut points",
       {"training.parallelism.partitions=2", "training.model.name=resnet50"},
       2,
       {"spec.training.parallelism.partitions", "\"resnet50\" has no cut points"}},
      {"partitions that do not divide the ranks",
       {"training.parallelism.partitions=3", "training.model.name=vit_b_16"},
       2,
       {"spec.training.parallelism.partitions", "must divide the number of ranks"}},
      {"GPUs that a local job has not",
       {"roles.gpu.gpusPerReplica=1"},
       2,
       {"spec.roles[2].gpusPerReplica", "--set roles.gpu.gpusPerReplica=0"}},
  };
  for (const BadCase& bad : cases) {
    SCOPED_TRACE(bad.name);
    Expect(LocalRun(SmallJobYaml(), Sets(bad.sets)).Wait(), bad.exit_code, bad.expected);
  }
}

TEST(BadInput, ManifestThatIsNoManifest) {
  Expect(LocalRun("][").Wait(), 2, {"line 1"});
  Expect(LocalRun("").Wait(), 2, {"empty"});
  Expect(RunProgram("hetero-runtime", {"local", "/does/not/exist.yaml"}), 2,
         {"/does/not/exist.yaml"});
}

TEST(BadInput, TrainerProgramMissing) {
  Expect(LocalRun(SmallJobYaml(), {"--trainer", "/does/not/exist"}).Wait(), 2,
         {"/does/not/exist", "--trainer"});
}

// A program that starts and fails at once, before it can join.
TEST(BadInput, TrainerProgramThatFails) {
  Expect(LocalRun(SmallJobYaml(), {"--trainer", "/bin/false"}).Wait(), 1,
         {"gpu-", "exit code 1", "failed:"});
}

TEST(BadInput, PortTaken) {
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string listen_address = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", SmallJobYaml());
  const std::vector<std::string> head = {"head", "--job", folder / "job.yaml", "--listen",
                                         listen_address};
  const auto deadline = std::chrono::seconds(60);
  Expect(ProgramRun("hetero-runtime", head, {"HETERO_TLS=plain-text"}).Wait(deadline), 1,
         {listen_address});
  // Plain text has to be asked for.
  Expect(ProgramRun("hetero-runtime", head).Wait(deadline), 1, {"certificate"});
  close(taken);
}

TEST(BadInput, NoDiskForTheOutput) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "disk");
  if (mount("none", (folder / "disk").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "NOT RUN: mounting a small file system needs root";
  }
  WriteFile(folder / "job.yaml", SmallJobYaml());
  Expect(RunProgram("hetero-runtime", {"local", folder / "job.yaml", "--input-only", "--output",
                                       folder / "disk/out"}),
         1, {folder / "disk/out", "No space left on device"});
  umount((folder / "disk").c_str());
}

TEST(BadInput, OutputFolderOfAJobThatStillRuns) {
  std::vector<std::string> endless = Sets({"training.epochs=1000000"});
  endless.push_back("--input-only");  // also where there is no trainer
  LocalRun first(SmallJobYaml(), endless);
  ASSERT_TRUE(first.WaitForLog("gpu-0", "generation opened"));
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", SmallJobYaml());
  Expect(RunProgram("hetero-runtime",
                    {"local", folder / "job.yaml", "--input-only", "--output", first.output()}),
         1, {first.output(), "another job", "--output"});
  EXPECT_TRUE(first.program().running());
}

TEST(BadInput, OutputFolderIsAFile) {
  TemporaryFolder folder;
  WriteFile(folder / "job.yaml", SmallJobYaml());
  Expect(RunProgram("hetero-runtime", {"local", folder / "job.yaml", "--input-only", "--output",
                                       folder / "job.yaml"}),
         1, {folder / "job.yaml"});
}

// Pictures that cannot be decoded are counted, named and replaced.
class BadPictures : public ::testing::Test {
 protected:
  void SetUp() override {
    const ProgramResult made = RunProgram(
        "hetero-runtime", {"make-dataset", "--classes", "4", "--samples", "128",
                           "--validation-samples", "8", "--size", "24", folder_ / "data"});
    ASSERT_EQ(made.exit_code, 0) << made.output;
    std::vector<std::string> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_ / "data/train")) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    const std::string jpeg = testing::ReadFileOrDie(files[5]);
    // A picture's id is its place among the sorted names.
    Spoil(5, files, jpeg.substr(0, jpeg.size() / 2));
    Spoil(40, files, "this is a text file");
    Spoil(63, files, "");
    Spoil(77, files, std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", 18));
    Spoil(100, files, jpeg.substr(0, 2) + std::string(jpeg.size() - 2, '\0'));
  }
  void Spoil(int64_t id, const std::vector<std::string>& files, const std::string& content) {
    const std::string& file = files[static_cast<size_t>(id)];
    WriteFile(file, content);
    bad_files_[id] = std::filesystem::path(file).filename();
  }
  std::vector<std::string> Arguments(std::vector<std::string> sets) {
    sets.push_back("dataset.uri=file://" + (folder_ / "data/train"));
    std::vector<std::string> arguments = Sets(sets);
    arguments.push_back("--input-only");
    return arguments;
  }
  std::string Manifest() {
    std::string yaml = SmallJobYaml();
    const size_t begin = yaml.find("    uri:"), end = yaml.find("  pipeline:");
    return yaml.replace(begin, end - begin, "    uri: file:///replaced\n");
  }
  TemporaryFolder folder_;
  std::map<int64_t, std::string> bad_files_;  // by id
};

TEST_F(BadPictures, AreCountedAndReplaced) {
  LocalRun run(Manifest(), Arguments({"training.batchSizePerWorker=16"}));
  const ProgramResult result = run.Wait();
  Expect(result, 0, {});
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["badSamples"], bad_files_.size()) << report["badSampleList"];
  EXPECT_EQ(report["samplesConsumed"], 2 * 128);
  std::set<int64_t> ids;
  for (const nlohmann::json& bad : report["badSampleList"]) {
    const int64_t id = bad["sampleId"], replacement = bad["replacementId"];
    ids.insert(id);
    ASSERT_TRUE(bad_files_.contains(id)) << bad;
    EXPECT_NE(bad["reason"].get<std::string>().find(bad_files_[id]), std::string::npos) << bad;
    EXPECT_FALSE(bad_files_.contains(replacement)) << bad;
    EXPECT_TRUE(replacement >= 0 && replacement < 128) << bad;
  }
  EXPECT_EQ(ids.size(), bad_files_.size());
}

// The first good one of the candidates that the slot alone gives, and nothing of the bad ones.
TEST_F(BadPictures, AreReplacedByTheSlotsFirstGoodCandidate) {
  LocalRun run(Manifest(), Arguments({"training.batchSizePerWorker=16", "training.epochs=1"}));
  Expect(run.Wait(), 0, {});
  const nlohmann::json report = run.report();
  const uint64_t seed = report["seed"];
  const job::Permutation order(seed, 0, 128, api::Shuffle{});
  for (const nlohmann::json& bad : report["badSampleList"]) {
    int64_t slot = 0;
    while (order.At(slot) != bad["sampleId"]) ++slot;
    int32_t attempt = 1;
    while (bad_files_.contains(job::Replacement(seed, 0, slot, attempt, 128))) ++attempt;
    EXPECT_EQ(bad["replacementId"], job::Replacement(seed, 0, slot, attempt, 128)) << bad;
  }
}

TEST_F(BadPictures, AreReplacedAlikeByAnyWorkersForAnyRanks) {
  std::set<std::string> digests;
  for (const auto& [workers, ranks] : {std::pair(0, 1), std::pair(1, 2), std::pair(3, 2)}) {
    LocalRun run(Manifest(), Arguments({"training.batchSizePerWorker=" + std::to_string(32 / ranks),
                                        "roles.cpu.replicas=" + std::to_string(workers),
                                        "roles.gpu.replicas=" + std::to_string(ranks)}));
    Expect(run.Wait(), 0, {});
    EXPECT_EQ(run.report()["badSamples"], bad_files_.size());
    digests.insert(run.report()["streamDigest"].get<std::string>());
  }
  EXPECT_EQ(digests.size(), 1u);
}

// A class folder that validation lacks would shift its labels.
TEST_F(BadPictures, ValidationWithOtherClassesIsRefused) {
  const std::string first = std::filesystem::directory_iterator(folder_ / "data/val")->path();
  std::filesystem::remove_all(first);
  LocalRun run(Manifest(),
               Arguments({"dataset.validation={uri: 'file://" + (folder_ / "data/val") + "'}"}));
  Expect(run.Wait(), 2, {"spec.dataset.validation", std::filesystem::path(first).filename()});
}

TEST_F(BadPictures, AreAnErrorWhenTheyAreTooMany) {
  LocalRun run(Manifest(), Arguments({"training.batchSizePerWorker=16", "dataset.maxBadSamples=4",
                                      "training.epochs=1000"}));
  Expect(run.Wait(), 1, {"5 bad samples", "spec.dataset.maxBadSamples (4)"});
  EXPECT_EQ(run.report()["state"], "Failed");
}

// The same pictures of a second epoch are no further bad samples.
TEST_F(BadPictures, AreCountedOnceForAllEpochs) {
  LocalRun run(Manifest(), Arguments({"training.batchSizePerWorker=16", "dataset.maxBadSamples=5",
                                      "training.epochs=3"}));
  Expect(run.Wait(), 0, {});
  EXPECT_EQ(run.report()["badSamples"], 5);
  EXPECT_EQ(run.report()["samplesConsumed"], 3 * 128);
}

}  // namespace
}  // namespace hetero
