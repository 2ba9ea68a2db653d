#include "runtime/feed/guarded_samples.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "runtime/feed/oom_score.h"
#include "runtime/feed/thrown.h"

namespace hetero::feed {
namespace {

constexpr int kDeathsOfASample = 2;
constexpr int kMostDeaths = 256;  // in one call
constexpr int kLookMs = 20;
constexpr int kLooksAfterKill = 50;
constexpr size_t kTextBytes = 1024;
constexpr size_t kAlignment = 64;
constexpr int64_t kNoSample = -1;

// What a child tells its parent, in memory that both see.
struct Board {
  std::atomic<int64_t> done{0};  // entries
  std::atomic<int64_t> touched{kNoSample};
  std::atomic<int32_t> error_code{0};    // of the entry that comes next; 0: none
  std::atomic<int64_t> bytes_before{0};  // resident, when it began
  std::atomic<bool> at_fault{false};     // kResourceExhausted: there were fault_bytes, and no more
  char error[kTextBytes] = {};
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

struct Entry {
  int64_t id = 0;
  int64_t bad_id = 0;
  int32_t label = 0;
  uint32_t crc = 0;
  bool bad = false;
  char reason[kTextBytes] = {};
};

void CopyText(std::string_view text, char (&to)[kTextBytes]) {
  const size_t size = std::min(text.size(), kTextBytes - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

constexpr size_t Aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

size_t ImageBytes(const Batch& batch) {
  return static_cast<size_t>(batch.images.size() / batch.count());
}

std::span<FieldTensor> FieldsOf(Batch& batch) {
  return batch.fields ? std::span(*batch.fields) : std::span<FieldTensor>();
}

// The board, the entries, and their bytes.
class SharedResults {
 public:
  SharedResults(int64_t entries, int64_t sample_bytes)
      : entries_at_(Aligned(sizeof(Board))),
        bytes_at_(entries_at_ + Aligned(sizeof(Entry) * static_cast<size_t>(entries))),
        size_(bytes_at_ + static_cast<size_t>(entries * sample_bytes)),
        sample_bytes_(static_cast<size_t>(sample_bytes)) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<uint8_t*>(memory);
    new (memory_) Board();
    for (int64_t i = 0; i < entries; ++i) new (entry(i)) Entry();
  }
  ~SharedResults() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }
  SharedResults(const SharedResults&) = delete;
  SharedResults& operator=(const SharedResults&) = delete;

  bool ok() const { return memory_ != nullptr; }
  Board& board() { return *std::launder(reinterpret_cast<Board*>(memory_)); }
  Entry* entry(int64_t i) { return reinterpret_cast<Entry*>(memory_ + entries_at_) + i; }
  // Of the picture, and of the fields behind it.
  uint8_t* bytes(int64_t i) { return memory_ + bytes_at_ + static_cast<size_t>(i) * sample_bytes_; }
  size_t size() const { return size_; }

 private:
  const size_t entries_at_;
  const size_t bytes_at_;
  const size_t size_;
  const size_t sample_bytes_;
  uint8_t* memory_ = nullptr;
};

// Everything below until RunChild() happens in a child of a process with many threads: it takes no
// lock that was there before but the allocator's, which fork() leaves in order. Datasets read from
// what storage::OpenStore() gives, which opens connections of its own in a child.

// Bytes of memory, mapped and resident; 0: not known.
std::pair<int64_t, int64_t> OwnMemory() {
  char text[64] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  int64_t mapped = 0, resident = 0;
  const char* const end = text + std::max<ssize_t>(size, 0);
  const std::from_chars_result first = std::from_chars(text, end, mapped);
  if (first.ec != std::errc() || first.ptr == end) return {};
  if (std::from_chars(first.ptr + 1, end, resident).ec != std::errc()) return {};
  const int64_t page = sysconf(_SC_PAGESIZE);
  return {mapped * page, resident * page};
}

// `bytes`: that may be mapped in all; as much as it may if that is less, or negative.
void LimitMemory(int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) return;
  const rlim_t most = limit.rlim_max;
  limit.rlim_cur = bytes < 0 ? most : std::min(most, static_cast<rlim_t>(bytes));
  setrlimit(RLIMIT_AS, &limit);
}

// Of a child that had no memory: whether its own limit was the reason, and no machine gives more.
bool WantsTooMuch(const GuardLimits& limits) {
  if (limits.memory_bytes < limits.fault_bytes) return false;
  LimitMemory(-1);
  const auto size = static_cast<size_t>(limits.fault_bytes);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, size);
  return true;
}

void PrepareChild(pid_t parent, int64_t memory_bytes, Board* board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // A handler of the parent's would speak for it; and only the parent decides when to stop.
  for (const int name : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(name, SIG_DFL);
  for (const int name : {SIGTERM, SIGINT, SIGHUP}) signal(name, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  EndThisProcessFirst();
  const auto [mapped, resident] = OwnMemory();
  board->bytes_before = resident;
  if (mapped > 0) LimitMemory(mapped + memory_bytes);
}

absl::Status ProduceEntry(const BatchProducer& producer, Batch* batch, int64_t index,
                          std::atomic<int64_t>* touched, Entry* entry) {
  try {
    std::optional<BadSample> bad;
    absl::Status status = producer.ProduceNoted(batch, index, &bad, touched);
    if (!status.ok()) return status;
    const auto at = static_cast<size_t>(index);
    entry->id = batch->sample_ids[at];
    if (!batch->fields) entry->label = batch->labels[at];
    entry->crc = batch->crcs[at];
    entry->bad = bad.has_value();
    if (bad.has_value()) {
      entry->bad_id = bad->sample_id;
      CopyText(bad->reason, entry->reason);
    }
    return status;
  } catch (...) {
    return StatusOfThrown();
  }
}

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

[[noreturn]] void RunChild(const BatchProducer& producer, Batch* batch, const Range& range,
                           const GuardLimits& limits, SharedResults* results) {
  Board& board = results->board();
  for (int64_t i = range.begin + board.done; i < range.end; ++i) {
    const int64_t at = i - range.begin;
    const absl::Status status =
        ProduceEntry(producer, batch, i, &board.touched, results->entry(at));
    if (!status.ok()) {
      if (absl::IsResourceExhausted(status)) board.at_fault = WantsTooMuch(limits);
      const absl::string_view text = status.message();
      CopyText({text.data(), text.size()}, board.error);
      board.error_code = static_cast<int32_t>(status.code());
      _exit(0);
    }
    const size_t size = ImageBytes(*batch);
    std::memcpy(results->bytes(at), batch->images.data() + static_cast<size_t>(i) * size, size);
    uint8_t* to = results->bytes(at) + size;
    for (const FieldTensor& field : FieldsOf(*batch)) {
      to = std::copy_n(field.of(i), field.spec.bytes(), to);
    }
    board.done = at + 1;
  }
  _exit(0);
}

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("a sample cannot be guarded: ", what, ": ", std::strerror(errno)));
}

// A process that waits for storage cannot be ended; it is left behind then.
void EndChild(pid_t child) {
  kill(child, SIGKILL);
  for (int i = 0; i < kLooksAfterKill && waitpid(child, nullptr, WNOHANG) == 0; ++i) {
    poll(nullptr, 0, kLookMs);
  }
}

struct Ending {
  int status = 0;     // as of wait()
  int64_t grown = 0;  // by how many bytes, resident and its own
};

// One child, from its start to its end.
absl::StatusOr<Ending> RunToItsEnd(const BatchProducer& producer, Batch* batch, const Range& range,
                                   const GuardLimits& limits, SharedResults* results,
                                   base::Clock& clock, const std::stop_token& stop) {
  Board& board = results->board();
  board.touched = kNoSample;
  board.error_code = 0;
  board.at_fault = false;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe");
  const auto reader = absl::MakeCleanup([&ends] { close(ends[0]); });
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    PrepareChild(parent, limits.memory_bytes, &board);
    RunChild(producer, batch, range, limits, results);
  }
  const int fork_error = errno;
  close(ends[1]);  // the child's alone now: its end wakes poll()
  errno = fork_error;
  if (child < 0) return SystemError("fork");
  std::pair<int64_t, int64_t> seen;
  base::Instant since = clock.Now();
  while (true) {
    pollfd ended = {.fd = ends[0], .events = POLLIN, .revents = 0};
    poll(&ended, 1, kLookMs);
    int status = 0;
    rusage usage{};
    const pid_t found = wait4(child, &status, WNOHANG, &usage);
    if (found == child) {
      const int64_t most = int64_t{usage.ru_maxrss} << 10;
      return Ending{status, most - board.bytes_before - static_cast<int64_t>(results->size())};
    }
    if (found < 0 && errno != EINTR) return SystemError("wait4");
    if (stop.stop_requested()) {
      EndChild(child);
      return absl::CancelledError("stopped");
    }
    const std::pair<int64_t, int64_t> now = {board.done, board.touched};
    if (std::exchange(seen, now) != now) since = clock.Now();
    if (clock.Now() - since <= limits.patience) continue;
    EndChild(child);
    return absl::DeadlineExceededError(absl::StrCat(
        producer.DescribeSample(batch->ticket.split, now.second), ": took longer than ",
        base::ToSeconds(limits.patience), " s in a process of its own"));
  }
}

// Whether a child ended for want of memory that another machine may have. The system kills who
// takes too much, and some libraries abort where there is none.
bool LackedMemory(const Ending& ending, bool starved, const GuardLimits& limits,
                  const Board& board) {
  if (starved) return !board.at_fault;
  if (ending.grown >= limits.fault_bytes) return false;
  if (WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGKILL) return true;
  return limits.memory_bytes < limits.fault_bytes && ending.grown >= limits.memory_bytes / 2;
}

// How a child ended that should not have.
std::string Describe(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("signal ", WTERMSIG(status), ", ", strsignal(WTERMSIG(status)));
  }
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

void CopyResults(const Range& range, SharedResults* results, Batch* batch,
                 std::vector<BadSample>* bad_samples) {
  const size_t size = ImageBytes(*batch);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Entry& entry = *results->entry(i - range.begin);
    const auto at = static_cast<size_t>(i);
    std::memcpy(batch->images.data() + at * size, results->bytes(i - range.begin), size);
    batch->sample_ids[at] = entry.id;
    if (!batch->fields) batch->labels[at] = entry.label;
    const uint8_t* from = results->bytes(i - range.begin) + size;
    for (FieldTensor& field : FieldsOf(*batch)) {
      std::copy_n(from, field.spec.bytes(), field.of(i));
      from += field.spec.bytes();
    }
    batch->crcs[at] = entry.crc;
    if (!entry.bad) continue;
    bad_samples->push_back(
        {batch->ticket.slots.first + i, entry.bad_id, entry.id, std::string(entry.reason)});
  }
}

}  // namespace

GuardLimits DefaultGuardLimits() {
  GuardLimits limits;
  if (const std::optional<int64_t> cgroup = base::CgroupMemoryLimit()) {
    limits.memory_bytes = std::min(limits.memory_bytes, *cgroup / 2);
  }
  return limits;
}

absl::StatusOr<GuardedSamples> ProduceGuarded(const BatchProducer& producer, Batch* batch,
                                              int64_t begin, int64_t end, const GuardLimits& limits,
                                              base::Clock& clock, const std::stop_token& stop) {
  GuardedSamples made;
  const Range range{begin, end};
  if (begin >= end) return made;
  int64_t sample_bytes = static_cast<int64_t>(ImageBytes(*batch));
  for (const FieldTensor& field : FieldsOf(*batch)) sample_bytes += field.spec.bytes();
  SharedResults results(end - begin, sample_bytes);
  if (!results.ok()) return SystemError("mmap");
  Board& board = results.board();
  const job::Split split = batch->ticket.split;
  int64_t suspect = kNoSample;
  int deaths = 0, deaths_of_suspect = 0, lacks_of_suspect = 0;
  while (board.done < end - begin) {
    HETERO_ASSIGN_OR_RETURN(const Ending ending,
                            RunToItsEnd(producer, batch, range, limits, &results, clock, stop));
    if (board.done == end - begin) break;
    const auto code = static_cast<absl::StatusCode>(board.error_code.load());
    const bool starved = code == absl::StatusCode::kResourceExhausted;
    if (code != absl::StatusCode::kOk && !starved) return absl::Status(code, board.error);
    const std::string how =
        starved ? absl::StrCat("it needs more than ", limits.memory_bytes >> 20, " MiB of memory")
                : Describe(ending.status);
    const int64_t id = board.touched;
    if (id == kNoSample || ++deaths > kMostDeaths) {
      return absl::UnavailableError(absl::StrCat(
          "child processes end while samples are produced in them (", how, "), and no sample of ",
          "ticket ", batch->ticket.id, " is found to be the cause"));
    }
    if (std::exchange(suspect, id) != id) deaths_of_suspect = lacks_of_suspect = 0;
    if (LackedMemory(ending, starved, limits, board)) {
      if (++lacks_of_suspect < kDeathsOfASample) continue;
      return absl::ResourceExhaustedError(
          absl::StrCat(producer.DescribeSample(split, id),
                       ": there is no memory for it in a process of its own (", how,
                       "); give the processes that prepare batches more"));
    }
    if (++deaths_of_suspect < kDeathsOfASample) continue;
    const FatalSample fatal{split, id,
                            absl::StrCat(producer.DescribeSample(split, id),
                                         starved ? ": ends the process that reads it: "
                                                 : ": ends the process that reads it (",
                                         how, starved ? "" : ")")};
    producer.Avoid(fatal);
    made.fatal.push_back(fatal);
    suspect = kNoSample;
  }
  CopyResults(range, &results, batch, &made.bad_samples);
  return made;
}

}  // namespace hetero::feed
