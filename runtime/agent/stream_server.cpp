#include "runtime/agent/stream_server.h"

#include <algorithm>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/either_stop.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "runtime/agent/batch_arena.h"
#include "runtime/agent/batch_layout.h"
#include "runtime/agent/script_connections.h"
#include "runtime/agent/script_stream.h"
#include "runtime/agent/stream_state.h"

namespace hetero::agent {
namespace {

// Slots are for what waits in the window and, as many again, for what the script holds.
constexpr int64_t kMostSlots = 256;   // of either; more batches wait on the heap
constexpr int64_t kFewestToWait = 2;  // the smallest window
constexpr int64_t kFewestToHold =
    4;  // one in hand, one being made of it, two on their way to a GPU

BatchArena::Options ArenaOptions(const RankFeed& feed) {
  const api::Training& training = feed.job().spec.training;
  // Validation samples have no more.
  const SampleLayout layout = LayoutOf(feed.producer(), job::Split::kTrain);
  const int64_t samples = training.batch_size_per_worker;
  const int64_t slot_bytes = SlotBytes(samples, layout);
  const int64_t slots = feed.byte_budget() / std::max<int64_t>(slot_bytes, 1);
  // A step's samples come in one batch, but a script gets the parts of an accumulated one each in a
  // slot of its own.
  const bool parted = training.gradient_accumulation_steps > 1;
  return {.slot_bytes = slot_bytes,
          .may_wait = parted ? 0 : std::clamp(slots, kFewestToWait, kMostSlots),
          .may_hold = std::clamp(slots, kFewestToHold, kMostSlots),
          .image_bytes = ImageBytes(samples, layout)};
}

// What a GPU copies from is pinned once, so that all has to be in one file.
bool HasGpus(const RankFeed& feed) {
  const std::vector<api::Role>& roles = feed.job().spec.roles;
  return std::any_of(roles.begin(), roles.end(), [](const api::Role& role) {
    return role.type == api::RoleType::kGpuWorker && role.gpus_per_replica.value_or(1) > 0;
  });
}

class StreamServerImpl : public StreamServer {
 public:
  StreamServerImpl(Options options, RankFeed& feed, Coordinator& coordinator, base::Clock& clock,
                   std::shared_ptr<BatchArena> arena)
      : options_(std::move(options)),
        feed_(feed),
        coordinator_(coordinator),
        clock_(clock),
        arena_(std::move(arena)),
        fingerprint_(StreamFingerprint(feed.producer().dataset(job::Split::kTrain).fingerprint(),
                                       feed.job())) {}

  ~StreamServerImpl() override {
    Interrupt();
    answerer_.request_stop();
    if (connections_ != nullptr) connections_->Close();
    if (answerer_.joinable()) answerer_.join();
    connections_.reset();  // with its thread, which looks at the streams
    for (const auto& stream :
         {std::exchange(stream_, nullptr), std::exchange(departed_, nullptr)}) {
      if (stream != nullptr) stream->LeaveHeld();
    }
  }

  absl::Status Start() {
    HETERO_ASSIGN_OR_RETURN(
        connections_,
        ScriptConnections::Listen(
            options_.socket_path,
            {.on_free = [this](const FreeRequest& request) { return OnFree(request); },
             .on_report = [this](const ReportRequest& request) { return OnReport(request); },
             .on_misuse = [this](const absl::Status& misuse) { OnMisuse(misuse); }},
            clock_));
    answerer_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    return absl::OkStatus();
  }

  void Begin(int64_t generation, int restart_count) override {
    std::shared_ptr<ScriptStream> earlier;  // let go of without the lock
    {
      const base::MutexLock lock(mutex_);
      if (!options_.attached) earlier = std::move(departed_);
      over_.request_stop();
      over_ = {};
      generation_ = generation;
      restart_count_ = restart_count;
      last_ = {};
    }
    connections_->Admit();
  }

  void Interrupt() override {
    const base::MutexLock lock(mutex_);
    over_.request_stop();
  }

  Standing standing() const override {
    const base::MutexLock lock(mutex_);
    return stream_ != nullptr && stream_generation_ == generation_ ? Now() : last_;
  }

  const std::string& socket_path() const override { return options_.socket_path; }

 private:
  Standing Now() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Standing standing = stream_->standing();
    standing.connected = true;
    return standing;
  }

  void Run(const std::stop_token& stop) {
    base::SetThreadName("script-stream");
    while (connections_->WaitForScript(stop)) {
      std::stop_token over;
      const std::shared_ptr<ScriptStream> stream = Open(&over);
      Serve(*stream, over);
      connections_->End(/*may_come_again=*/!Leave());
    }
  }

  std::shared_ptr<ScriptStream> Open(std::stop_token* over) {
    std::shared_ptr<ScriptStream> earlier;  // let go of without the lock
    const base::MutexLock lock(mutex_);
    earlier = std::move(departed_);
    *over = over_.get_token();
    stream_generation_ = generation_;
    stream_ = std::make_shared<ScriptStream>(ScriptStream::Context{.options = options_,
                                                                   .feed = feed_,
                                                                   .coordinator = coordinator_,
                                                                   .arena = arena_,
                                                                   .arena_alone = HasGpus(feed_),
                                                                   .clock = clock_,
                                                                   .fingerprint = fingerprint_,
                                                                   .restart_count = restart_count_,
                                                                   .saved_step = &saved_step_});
    return stream_;
  }

  void Serve(ScriptStream& stream, const std::stop_token& over) {
    const base::EitherStop ends(over, feed_.stop_token());
    const base::EitherStop stop(ends.token(), connections_->gone());
    while (const std::optional<absl::StatusOr<Request>> question = connections_->NextQuestion()) {
      const ScriptStream::Reply reply = question->ok() ? stream.Answer(**question, stop.token())
                                                       : stream.Refuse(question->status());
      const absl::Status sent =
          connections_->Send(reply.message, reply.passes != nullptr ? reply.passes->fd() : -1);
      if (!sent.ok()) {
        log::Info("a script's stream is cut off",
                  {{"rank", feed_.rank()}, {"reason", sent.message()}});
      }
      if (!sent.ok() || reply.closes) return;
    }
  }

  // The script has gone. Whether it had its stream: another one would get what it may still hold.
  bool Leave() {
    std::shared_ptr<ScriptStream> earlier;  // let go of without the lock
    const base::MutexLock lock(mutex_);
    earlier = std::exchange(departed_, std::move(stream_));
    const Standing standing = departed_->standing();
    if (stream_generation_ == generation_) last_ = standing;
    return standing.begun || standing.was_given;
  }

  std::shared_ptr<ScriptStream> stream() const {
    const base::MutexLock lock(mutex_);
    return stream_;
  }

  absl::Status OnFree(const FreeRequest& request) {
    const std::shared_ptr<ScriptStream> stream = this->stream();
    if (stream != nullptr) return stream->Free(request.slot);
    // Right behind `bye`.
    const base::MutexLock lock(mutex_);
    if (departed_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError("a slot is freed before any was given");
  }

  absl::Status OnReport(const ReportRequest& request) {
    const std::shared_ptr<ScriptStream> stream = this->stream();
    if (stream != nullptr) return stream->Report(request);
    return absl::FailedPreconditionError("something is reported before the script said hello");
  }

  void OnMisuse(const absl::Status& misuse) {
    log::Warning("a script's stream was misused",
                 {{"rank", feed_.rank()}, {"reason", misuse.message()}});
    const std::shared_ptr<ScriptStream> stream = this->stream();
    if (stream != nullptr) return stream->NoteMisuse(misuse);
    const base::MutexLock lock(mutex_);
    if (last_.misuse.ok()) last_.misuse = misuse;
  }

  const Options options_;
  RankFeed& feed_;
  Coordinator& coordinator_;
  base::Clock& clock_;
  const std::shared_ptr<BatchArena> arena_;
  const std::string fingerprint_;
  int64_t saved_step_ = 0;  // of the answering thread

  mutable base::Mutex mutex_;
  std::stop_source over_ ABSL_GUARDED_BY(mutex_);  // of the generation, or by Interrupt()
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int restart_count_ ABSL_GUARDED_BY(mutex_) = 0;
  Standing last_ ABSL_GUARDED_BY(mutex_);  // of the script that has gone, of this generation
  std::shared_ptr<ScriptStream> stream_ ABSL_GUARDED_BY(mutex_);  // while one is there
  // The one before: a script that has closed its stream may still look at what it held.
  std::shared_ptr<ScriptStream> departed_ ABSL_GUARDED_BY(mutex_);
  int64_t stream_generation_ ABSL_GUARDED_BY(mutex_) = 0;

  std::unique_ptr<ScriptConnections> connections_;
  std::jthread answerer_;  // last: it uses all of the above
};

}  // namespace

absl::StatusOr<std::unique_ptr<StreamServer>> StreamServer::Listen(Options options, RankFeed& feed,
                                                                   Coordinator& coordinator,
                                                                   base::Clock& clock) {
  HETERO_ASSIGN_OR_RETURN(std::shared_ptr<BatchArena> arena,
                          BatchArena::Create(ArenaOptions(feed)));
  feed.UseMemory([arena](int64_t bytes) { return arena->Allocate(bytes); },
                 /*moves_shared=*/HasGpus(feed));
  // Without a place for states a script mostly begins at the beginning: its first batches are made
  // while it starts.
  if (!feed.job().spec.training.checkpoint.has_value()) feed.TrainingFrom(0);
  auto server = std::make_unique<StreamServerImpl>(std::move(options), feed, coordinator, clock,
                                                   std::move(arena));
  HETERO_RETURN_IF_ERROR(server->Start());
  return server;
}

}  // namespace hetero::agent
