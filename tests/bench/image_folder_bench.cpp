// An ImageFolder of many pictures, opened by several processes at a time, as those of a job on one
// machine do: seconds until the last has opened it, and the most memory of each. The pictures are
// hard links to a few small files, in class folders of 1,000 with names as ImageNet's.
//   image_folder_bench [--entries 1000000] [--processes 4] [--folder /var/tmp] [--cold]
//   image_folder_bench --open FOLDER [--processes 4] [--cold]
// --cold: the kernel's caches of files and names are emptied first, for which one must be root.
// Without it they hold what making the links left there. --open: a folder that there is.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process_usage.h"
#include "runtime/source/dataset.h"

namespace {

using namespace hetero;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kPerFolder = 1000;
constexpr int64_t kLinksOfAFile = 60'000;  // ext4 takes 65,000

struct Options {
  int64_t entries = 1'000'000;
  int64_t processes = 4;
  std::string folder = "/var/tmp";
  std::string open;
  bool cold = false;
};

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Removed at the end.
class Pictures {
 public:
  explicit Pictures(const Options& options)
      : root_(absl::StrCat(options.folder, "/hetero-image-folder-bench-", getpid())) {
    fs::create_directories(root_ + "/files");
    for (int64_t first = 0; first < options.entries; first += kPerFolder) {
      AddFolder(first, std::min(kPerFolder, options.entries - first));
    }
  }
  ~Pictures() { fs::remove_all(root_); }
  Pictures(const Pictures&) = delete;
  Pictures& operator=(const Pictures&) = delete;

  std::string uri() const { return absl::StrCat("file://", root_, "/train"); }

 private:
  void AddFolder(int64_t first, int64_t count) const {
    const std::string name = absl::StrCat("n", 10'000'000 + first / kPerFolder);
    const std::string path = absl::StrCat(root_, "/train/", name);
    fs::create_directories(path);
    const int folder = open(path.c_str(), O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) Die(path);
    for (int64_t i = first; i < first + count; ++i) {
      const int64_t file = i / kLinksOfAFile;
      const std::string from = absl::StrCat(root_, "/files/", file);
      if (i % kLinksOfAFile == 0) std::ofstream(from) << std::string(1000 + file, 'x');
      // In an order that is not that of the names, as what was unpacked has it.
      const std::string link = absl::StrCat(name, "_", (i - first) * 7919 % kPerFolder, ".JPEG");
      if (linkat(AT_FDCWD, from.c_str(), folder, link.c_str(), 0) != 0) Die(path + "/" + link);
    }
    close(folder);
  }

  const std::string root_;
};

// What a process tells of itself.
struct Opened {
  double seconds = 0;
  double peak_mib = 0;
  double cpu_seconds = 0;
  int64_t samples = 0;
  std::array<char, 17> fingerprint = {};
};

Opened Open(const std::string& uri) {
  const Clock::time_point begin = Clock::now();
  const double cpu = base::ReadProcessUsage().cpu_seconds;
  api::DatasetSource source;
  source.uri = uri;
  source.format = api::DatasetFormat::kImageFolder;
  const auto dataset = source::OpenDataset(source, job::Split::kTrain, 0);
  if (!dataset.ok()) {
    std::fprintf(stderr, "%s\n", std::string(dataset.status().message()).c_str());
    _exit(1);
  }
  Opened opened;
  opened.seconds = SecondsSince(begin);
  const base::ProcessUsage usage = base::ReadProcessUsage();
  opened.cpu_seconds = usage.cpu_seconds - cpu;
  opened.peak_mib = static_cast<double>(usage.peak_resident_bytes) / (1 << 20);
  opened.samples = (*dataset)->size();
  const std::string fingerprint = (*dataset)->fingerprint();
  std::copy_n(fingerprint.begin(), std::min<size_t>(fingerprint.size(), 16),
              opened.fingerprint.begin());
  return opened;
}

std::vector<Opened> OpenInProcesses(const std::string& uri, int64_t processes) {
  std::array<int, 2> words;
  if (pipe2(words.data(), O_CLOEXEC) != 0) Die("pipe");
  for (int64_t i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child < 0) Die("fork");
    if (child > 0) continue;
    const Opened opened = Open(uri);
    const bool told = write(words[1], &opened, sizeof opened) == sizeof opened;
    _exit(told ? 0 : 1);
  }
  close(words[1]);
  std::vector<Opened> all;
  for (Opened one; read(words[0], &one, sizeof one) == sizeof one;) all.push_back(one);
  close(words[0]);
  while (wait(nullptr) > 0) {
  }
  return all;
}

void EmptyCaches() {
  sync();
  std::ofstream("/proc/sys/vm/drop_caches") << "3" << std::flush;
  if (access("/proc/sys/vm/drop_caches", W_OK) != 0) Die("--cold: drop_caches");
}

Options OptionsOf(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--cold") {
      options.cold = true;
      continue;
    }
    const char* value = i + 1 < count ? arguments[++i] : "";
    const bool number = name == "--entries" || name == "--processes";
    int64_t& field = name == "--entries" ? options.entries : options.processes;
    if (name == "--folder" || name == "--open") {
      (name == "--open" ? options.open : options.folder) = value;
    } else if (!number || !absl::SimpleAtoi(value, &field) || field < 1) {
      std::fprintf(stderr, "%s: see the first lines of image_folder_bench.cpp\n", arguments[i]);
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  log::Init("image_folder_bench", log::Level::kWarning);
  const Options options = OptionsOf(count, arguments);
  const Clock::time_point made = Clock::now();
  std::optional<Pictures> pictures;
  std::string uri = "file://" + options.open;
  if (options.open.empty()) {
    uri = pictures.emplace(options).uri();
    std::printf("%lld pictures in folders of %lld, made in %.0f s\n",
                static_cast<long long>(options.entries), static_cast<long long>(kPerFolder),
                SecondsSince(made));
  }
  if (options.cold) EmptyCaches();
  std::printf("the kernel's caches are %s\n", options.cold ? "empty" : "as they were left");
  std::fflush(stdout);
  const Clock::time_point begin = Clock::now();
  const std::vector<Opened> all = OpenInProcesses(uri, options.processes);
  const double seconds = SecondsSince(begin);
  for (const Opened& one : all) {
    std::printf(
        "  %.2f s, %.2f s of CPU, %.0f MiB at most (%.0f bytes a picture), %lld samples, %s\n",
        one.seconds, one.cpu_seconds, one.peak_mib,
        one.peak_mib * (1 << 20) / static_cast<double>(one.samples),
        static_cast<long long>(one.samples), one.fingerprint.data());
  }
  const bool whole = static_cast<int64_t>(all.size()) == options.processes;
  std::printf("%zu of %lld processes have opened it after %.2f s\n", all.size(),
              static_cast<long long>(options.processes), seconds);
  return whole ? 0 : 1;
}
