// A dataset of 100 million samples by its index: how long it takes to open, what a process holds of
// it, and how fast samples are found, after five million reads in the order of shuffle.mode Full.
// Beside it, in the same run: reads of a tenth of the samples with their
// table in memory.
//   index_bench [MILLIONS]
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "runtime/job/permutation.h"
#include "runtime/source/dataset.h"
#include "runtime/source/index_place.h"
#include "runtime/source/make_dataset.h"
#include "runtime/source/sample_finder.h"
#include "runtime/storage/open_store.h"
#include "tests/support/paths.h"

namespace {

using namespace hetero;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kShards = 1281;
constexpr int64_t kReads = 5'000'000;
constexpr int kThreads = 4;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// In MiB, of this process.
double Resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib / 1024;
  }
  return 0;
}

template <typename Value>
Value OrDie(absl::StatusOr<Value> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

// Finds the samples of one shard, again and again, until there are as many as are wanted; keeps
// them in memory, or in an index.
class Repeat : public source::SampleFinder {
 public:
  explicit Repeat(int64_t samples, std::string index = "")
      : samples_(samples), index_(std::move(index)) {}

  absl::StatusOr<source::SampleTable> Find(const source::SampleSearch& search) const override {
    const auto one = OrDie(source::ScanShards(search.store, {search.shards.shards.front()},
                                              search.scan(/*count_classes=*/true)));
    std::vector<source::SampleLocation> all(static_cast<size_t>(samples_));
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = one[i % one.size()];
      all[i].shard = static_cast<uint32_t>(static_cast<int64_t>(i) * kShards / samples_);
    }
    if (index_.empty()) return source::SampleTable(std::move(all));
    auto output = OrDie(source::IndexOutput::Create(index_, {}));
    const absl::Status stored = output.Write(search.shards, all);
    if (!stored.ok()) return stored;
    return source::SampleTable(one);
  }

 private:
  const int64_t samples_;
  const std::string index_;
};

// As many shards as ImageNet has, all of them one file, and an index that finds its samples there
// again and again.
class Folder {
 public:
  explicit Folder(int64_t samples) : root_(absl::StrCat("/var/tmp/hetero-index-bench-", getpid())) {
    fs::create_directories(root_ + "/data");
    const std::string golden =
        testing::SourceDir() + "/tests/golden/datasets/record_io/pictures.rec";
    const std::string first = Shard(0);
    fs::copy_file(golden, first);
    for (int64_t i = 1; i < kShards; ++i) fs::create_hard_link(first, Shard(i));
    OrDie(source::OpenDataset(Source(), job::Split::kTrain, 0, {}, {},
                              std::make_shared<const Repeat>(samples, index())));
  }
  ~Folder() { fs::remove_all(root_); }

  api::DatasetSource Source() const {
    api::DatasetSource source;
    source.uri = "file://" + root_ + "/data";
    source.format = api::DatasetFormat::kRecordIo;
    source.index = api::DatasetIndex{.uri = index(), .build = api::IndexBuild::kNever};
    return source;
  }

 private:
  std::string Shard(int64_t i) const {
    return absl::StrCat(root_, "/data/pictures-", 1'000'000 + i, ".rec");
  }
  std::string index() const { return absl::StrCat("file://", root_, "/index"); }

  const std::string root_;
};

// Microseconds for a sample, of a thread.
double ReadAll(const source::Dataset& dataset, int64_t reads) {
  const job::Permutation order(/*seed=*/7, /*epoch=*/0, dataset.size(), api::Shuffle{});
  const Clock::time_point begin = Clock::now();
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      source::RawSample sample;
      for (int64_t i = thread; i < reads; i += kThreads) {
        const absl::Status read = dataset.Read(order.At(i % dataset.size()), &sample);
        if (read.ok()) continue;
        std::fprintf(stderr, "%s\n", std::string(read.message()).c_str());
        std::exit(1);
      }
    });
  }
  threads.clear();
  return 1e6 * SecondsSince(begin) * kThreads / static_cast<double>(reads);
}

}  // namespace

int main(int argc, char** argv) {
  log::Init("index_bench", log::Level::kWarning);
  const int64_t samples = (argc > 1 ? std::atoll(argv[1]) : 100) * 1'000'000;
  const Folder folder(samples);
  const Clock::time_point begin = Clock::now();
  const auto dataset = OrDie(source::OpenDataset(folder.Source(), job::Split::kTrain, 0));
  const double opened = SecondsSince(begin);
  std::printf(
      "index of %lld samples in %lld shards, %.2f GB: opened in %.2f s, %.0f MiB resident\n",
      static_cast<long long>(dataset->size()), static_cast<long long>(kShards),
      24e-9 * static_cast<double>(samples), opened, Resident());
  const double each = ReadAll(*dataset, kReads);
  std::printf("after %lld reads in order Full: %.0f MiB resident, %.2f us of a thread for a read\n",
              static_cast<long long>(kReads), Resident(), each);
  const auto in_memory = OrDie(source::OpenDataset(folder.Source(), job::Split::kTrain, 0, {}, {},
                                                   std::make_shared<const Repeat>(samples / 10)));
  const double usual = ReadAll(*in_memory, kReads / 5);
  std::printf("with a table of %lld samples in memory: %.2f us; ratio %.3f\n",
              static_cast<long long>(in_memory->size()), usual, each / usual);
  return 0;
}
