#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "api/manifest.h"
#include "base/crc32c.h"
#include "runtime/agent/stream_server.h"
#include "runtime/feed/ticket_client.h"
#include "runtime/feed/worker_server.h"
#include "runtime/job/permutation.h"
#include "tests/support/temporary_folder.h"

// A rank without a head: real batches of a synthetic dataset from a CPU worker in this process, a
// real server, and the script's side of the socket written down a second time.
namespace hetero::agent {

using nlohmann::json;

// 100 training samples, 30 for validation, 8 x 8 x 3; 2 epochs of 7 steps of 16 samples, of which
// the last has 4.
inline constexpr char kScriptJob[] = R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: script}
spec:
  dataset:
    uri: "synthetic://"
    samples: 100
    classes: 4
    image: {height: 8, width: 8, channels: 3}
    validation: {uri: "synthetic://", samples: 30, classes: 4, image: {height: 8, width: 8, channels: 3}}
  pipeline: [{op: HorizontalFlip}]
  training: {script: {command: [python3, train.py]}, epochs: 2, batchSizePerWorker: 16, seed: 5}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker}
  - {name: gpu, type: GPUWorker, gpusPerReplica: 1}
)";

inline api::HeteroTrainingJob ScriptJob(const std::vector<std::string>& overrides = {}) {
  const api::ManifestResult parsed = api::ParseManifest(kScriptJob, overrides);
  EXPECT_EQ(api::FormatErrors(parsed.errors), "");
  return parsed.job;
}

// What process::RankSession is to SessionFeed.
class LocalFeed : public RankFeed {
 public:
  // `worker`: where the CPU worker listens. On one machine it shares memory, over TCP it sends.
  LocalFeed(const api::HeteroTrainingJob& job, int32_t rank, int64_t byte_budget,
            const std::string& worker = "127.0.0.1:0")
      : job_(job),
        rank_(rank),
        byte_budget_(byte_budget),
        producer_(*feed::SampleProducer::Create(job)),
        schedule_({.training = TrainingOf(job, producer_->dataset(job::Split::kTrain).size())},
                  rank) {
    auto server = feed::WorkerServer::Start(
        {.listen_address = worker, .tls = {.plain_text = true}, .name = "cpu-0", .threads = 2},
        base::Clock::Real());
    EXPECT_TRUE(server.ok()) << server.status();
    worker_ = *std::move(server);
    worker_->SetProducer(producer_.get());
  }

  const api::HeteroTrainingJob& job() const override { return job_; }
  int32_t rank() const override { return rank_; }
  const job::Schedule& schedule() const override { return schedule_; }
  const feed::SampleProducer& producer() const override { return *producer_; }
  int64_t byte_budget() const override { return byte_budget_; }
  void UseMemory(feed::SlabSource slabs, bool moves_shared) override {
    slabs_ = std::move(slabs);
    moves_shared_ = moves_shared;
  }
  feed::BatchStream& TrainingFrom(int64_t step) override {
    streams_opened_.push_back(step);
    training_ = Open(&schedule_, schedule_.IndexOfStep(step));
    return *training_;
  }
  feed::BatchStream& training() { return *training_; }
  void CloseTraining() { training_.reset(); }
  // The stream to the worker ends, and another begins.
  void DialAgain() {
    training_->SetRoster({});
    training_->SetRoster({{"cpu-0", worker_->address(), 1}});
  }
  Validation OpenValidation() override {
    if (!producer_->has_validation()) return {};
    const int64_t samples = producer_->dataset(job::Split::kValidation).size();
    job::StepPlan::Options training = TrainingOf(job_, 100);
    training.epochs.reset();
    training.max_steps = 1;
    validation_ = std::make_unique<job::Schedule>(
        job::Schedule::Options{.training = training, .validation_samples = samples}, rank_);
    return {.batches = validation_->evaluation_batches(), .stream = Open(validation_.get(), 1)};
  }
  void OnPosition(const Position& position) override { positions_.push_back(position); }
  void OnBatch(const feed::Batch& batch) override { batches_ += batch.count() > 0 ? 1 : 0; }
  void OnStep(int64_t step, int64_t samples, double) override {
    steps_.emplace_back(step, samples);
  }
  void OnReported(const std::map<std::string, double>& values, int64_t step) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, value] : values) reported_[name] = {value, step};
  }
  std::stop_token stop_token() const override { return stop_.get_token(); }

  std::map<std::string, std::pair<double, int64_t>> reported() const {
    const std::lock_guard lock(mutex_);
    return reported_;
  }

  std::stop_source stop_;
  std::vector<int64_t> streams_opened_;
  std::vector<Position> positions_;
  std::vector<std::pair<int64_t, int64_t>> steps_;
  int64_t batches_ = 0;
  feed::SlabSource slabs_;
  bool moves_shared_ = false;

 private:
  static job::StepPlan::Options TrainingOf(const api::HeteroTrainingJob& job, int64_t samples) {
    const api::Training& training = job.spec.training;
    return {.samples = samples,
            .batch_size_per_worker = training.batch_size_per_worker,
            .ranks = job.spec.world_size(),
            .accumulation = training.gradient_accumulation_steps,
            .last_batch = training.last_batch,
            .epochs = training.epochs,
            .max_steps = training.max_steps};
  }
  std::unique_ptr<feed::TicketClient> Open(const job::Schedule* schedule, int64_t first) {
    auto client = feed::TicketClient::Start({.rank = rank_,
                                             .first_batch = first,
                                             .byte_budget = byte_budget_,
                                             .local_threads = 0,
                                             .tls = {.plain_text = true},
                                             .slabs = slabs_,
                                             .moves_shared = moves_shared_},
                                            schedule, producer_.get(), base::Clock::Real());
    client->SetRoster({{"cpu-0", worker_->address(), 1}});
    return client;
  }

  const api::HeteroTrainingJob job_;
  const int32_t rank_;
  const int64_t byte_budget_;
  const std::unique_ptr<feed::SampleProducer> producer_;
  const job::Schedule schedule_;
  std::unique_ptr<job::Schedule> validation_;
  std::unique_ptr<feed::WorkerServer> worker_;
  std::unique_ptr<feed::TicketClient> training_;
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<double, int64_t>> reported_;
};

// The head's part, of a job with this rank alone unless the test says otherwise.
class PlainCoordinator : public Coordinator {
 public:
  absl::Status AgreePosition(const Position& position, const std::stop_token&,
                             base::Duration) override {
    base_ = position;
    return agreement_;
  }
  bool MayGoOn(int64_t step, const std::stop_token&) override { return step < stop_at_; }
  bool CheckpointDue(int64_t step, const std::stop_token&) override { return step % 3 == 0; }
  void TellDigest(int64_t step, const job::StreamDigest& own) override { told_[step] = own; }
  std::optional<job::StreamDigest> JobDigestAt(int64_t step, const std::stop_token&,
                                               base::Duration) override {
    if (!told_.contains(step)) return std::nullopt;
    job::StreamDigest digest = base_.digest;
    digest += told_[step];
    return digest;
  }

  absl::Status agreement_;
  int64_t stop_at_ = 1 << 20;
  Position base_;
  std::map<int64_t, job::StreamDigest> told_;
};

// The script's end.
class ScriptClient {
 public:
  explicit ScriptClient(const std::string& path) {
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    EXPECT_TRUE(connected_) << path << ": " << std::strerror(errno);
  }
  ~ScriptClient() {
    if (map_ != nullptr) munmap(map_, map_bytes_);
    for (const auto& [number, file] : files_) munmap(file.data(), file.size());
    for (const int fd : passed_) close(fd);
    Close();
  }
  ScriptClient(const ScriptClient&) = delete;
  ScriptClient& operator=(const ScriptClient&) = delete;

  void Close() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  bool SendBytes(const std::string& bytes) const {
    return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  bool Send(const json& message) const {
    const std::string text = message.dump();
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i)));
    return SendBytes(bytes + text);
  }
  // Null at the end of the connection; a test that waits for ten seconds has failed.
  json Receive() {
    std::string length(4, '\0');
    if (!ReadFully(&length)) return nullptr;
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= size_t{static_cast<uint8_t>(length[i])} << (8 * i);
    std::string text(size, '\0');
    json answer = ReadFully(&text) ? json::parse(text) : json();
    if (answer.is_object() && answer.contains("new_file")) TakeFile(answer["new_file"]);
    return answer;
  }
  json Ask(const json& question) { return Send(question) ? Receive() : json(); }
  bool HasAnswer(std::chrono::milliseconds patience) const {
    pollfd ready = {.fd = socket_, .events = POLLIN, .revents = 0};
    return poll(&ready, 1, static_cast<int>(patience.count())) > 0;
  }

  json Hello(bool one_file = false) {
    json welcome = Ask({{"type", "hello"},
                        {"protocol", 1},
                        {"package", "0.3.0"},
                        {"pid", getpid()},
                        {"python", "3.11.7"},
                        {"numpy", "2.1.0"},
                        {"torch", nullptr},
                        {"one_file", one_file}});
    if (welcome.value("type", "") != "welcome") return welcome;
    EXPECT_EQ(passed_.size(), 1);
    slot_bytes_ = welcome["slot_bytes"];
    map_bytes_ = welcome["slots"].get<size_t>() * slot_bytes_;
    void* map = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, passed(), 0);
    EXPECT_NE(map, MAP_FAILED);
    map_ = static_cast<uint8_t*>(map);
    return welcome;
  }
  json Begin(const json& state = nullptr) { return Ask({{"type", "begin"}, {"position", state}}); }
  json Next() { return Ask({{"type", "next"}}); }
  json State() { return Ask({{"type", "state"}}); }
  void Free(const json& batch) const { Send({{"type", "free"}, {"slot", batch["slot"]}}); }

  // Where a field of a batch lies.
  uint8_t* Field(const json& batch, size_t index) const {
    const json& field = batch["fields"][index];
    if (field.contains("file")) {
      return files_.at(field["file"]).data() + field["offset"].get<size_t>();
    }
    return map_ + batch["slot"].get<size_t>() * slot_bytes_ + field["offset"].get<size_t>();
  }
  int64_t Integer(const json& batch, size_t field, int64_t index) const {
    int64_t value = 0;
    std::memcpy(&value, Field(batch, field) + index * 8, sizeof value);
    return value;
  }
  // What a script can know of the samples that it got, added up as the job does.
  void AddToDigest(const json& batch, uint64_t seed, job::StreamDigest* digest) const {
    const auto count = batch["count"].get<int64_t>();
    const size_t sample_bytes = count == 0 ? 0 : batch["fields"][0]["bytes"].get<size_t>() / count;
    for (int64_t i = 0; i < count; ++i) {
      digest->Add(seed, batch["epoch"], batch["step"], batch["first_slot"].get<int64_t>() + i,
                  Integer(batch, 2, i),
                  base::Crc32c(Field(batch, 0) + i * sample_bytes, sample_bytes));
    }
  }
  int passed() const { return passed_.front(); }
  size_t files() const { return files_.size(); }
  uint8_t* map() const { return map_; }
  size_t map_bytes() const { return map_bytes_; }

 private:
  bool ReadFully(std::string* out) {
    for (size_t done = 0; done < out->size();) {
      if (!HasAnswer(std::chrono::seconds(10))) {
        ADD_FAILURE() << "no answer";
        return false;
      }
      iovec part = {.iov_base = out->data() + done, .iov_len = out->size() - done};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
      msghdr message = {};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t size = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
      if (size <= 0) return false;
      for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
           header = CMSG_NXTHDR(&message, header)) {
        std::memcpy(&passed_.emplace_back(), CMSG_DATA(header), sizeof(int));
      }
      done += static_cast<size_t>(size);
    }
    return true;
  }

  void TakeFile(const json& file) {
    const size_t bytes = file["bytes"];
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, passed_.back(), 0);
    ASSERT_NE(map, MAP_FAILED);
    EXPECT_TRUE(
        files_.emplace(file["number"], std::span(static_cast<uint8_t*>(map), bytes)).second);
  }

  int socket_ = -1;
  bool connected_ = false;
  std::vector<int> passed_;                      // files, as they came
  std::map<int64_t, std::span<uint8_t>> files_;  // beside the arena, by number
  uint8_t* map_ = nullptr;
  size_t map_bytes_ = 0;
  size_t slot_bytes_ = 0;
};

class StreamFixture : public ::testing::Test {
 protected:
  static constexpr int64_t kSampleBytes = int64_t{8} * 8 * 3;

  // `budget`: of the window, in bytes.
  void Listen(const std::vector<std::string>& overrides = {}, int32_t rank = 0,
              int64_t budget = int64_t{1} << 20, const std::string& worker = "127.0.0.1:0") {
    server_.reset();
    feed_ = std::make_unique<LocalFeed>(ScriptJob(overrides), rank, budget, worker);
    options_.socket_path = folder_ / "s";
    auto server = StreamServer::Listen(options_, *feed_, coordinator_, base::Clock::Real());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Begin(1, 0);
  }
  std::unique_ptr<ScriptClient> Connect() {
    return std::make_unique<ScriptClient>(server_->socket_path());
  }
  // A script that has begun.
  std::unique_ptr<ScriptClient> Start(const json& state = nullptr) {
    auto script = Connect();
    EXPECT_EQ(script->Hello().value("type", ""), "welcome");
    const json begun = script->Begin(state);
    EXPECT_EQ(begun.value("type", ""), "begun") << begun;
    return script;
  }
  // The sum of steps [begin, end) of all ranks, made of the job alone.
  job::StreamDigest Expected(int64_t begin, int64_t end) const {
    const feed::SampleProducer& producer = feed_->producer();
    const job::StepPlan& plan = feed_->schedule().training();
    const auto seed = static_cast<uint64_t>(feed_->job().spec.training.seed);
    job::StreamDigest digest;
    for (int64_t at = begin; at < end; ++at) {
      const job::Step step = plan.At(at);
      feed::Batch batch =
          producer.Allocate({.epoch = step.epoch, .step = at, .slots = step.slots}, feed::NewSlab);
      for (int64_t i = 0; i < step.slots.count; ++i) {
        std::optional<feed::BadSample> bad;
        EXPECT_TRUE(producer.Produce(&batch, i, &bad).ok());
        digest.Add(seed, step.epoch, at, step.slots.first + i,
                   batch.sample_ids[static_cast<size_t>(i)],
                   base::Crc32c(batch.images.data() + i * producer.sample_bytes(),
                                static_cast<size_t>(producer.sample_bytes())));
      }
    }
    return digest;
  }
  // Until it holds, for ten seconds.
  template <typename Condition>
  static bool Eventually(Condition holds) {
    for (int i = 0; i < 2000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return holds();
  }

  testing::TemporaryFolder folder_;
  StreamServer::Options options_;
  PlainCoordinator coordinator_;
  std::unique_ptr<LocalFeed> feed_;
  std::unique_ptr<StreamServer> server_;
};

}  // namespace hetero::agent
