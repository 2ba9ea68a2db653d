#include "runtime/head/server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "base/atomic_file.h"
#include "base/await_space.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/head/history_codec.h"
#include "runtime/head/history_keeper.h"
#include "runtime/head/listen_address.h"
#include "runtime/head/membership_service.h"
#include "runtime/head/peer_roles.h"
#include "runtime/head/rendezvous_service.h"
#include "runtime/head/report_builder.h"
#include "runtime/head/report_claim.h"
#include "runtime/head/result.h"
#include "runtime/head/state.h"
#include "runtime/head/status_builder.h"
#include "runtime/head/status_service.h"

namespace hetero::head {
namespace {

constexpr base::Duration kTick = std::chrono::milliseconds(100);
constexpr base::Duration kPublishInterval = std::chrono::milliseconds(500);
// Longer than a disk is full by chance, while everybody waits for the head's last word.
constexpr base::Duration kPatienceForSpace = std::chrono::seconds(10);
constexpr base::Duration kLastWrites = std::chrono::milliseconds(500);

Moment Now(base::Clock& clock) { return {clock.Now(), clock.WallNow()}; }

// What the head before left. Whoever kept it may have kept anything: a history that cannot be is
// worth a line, never a job.
v1::History TakeHistory(const Server::HistoryOptions& options) {
  std::string text = options.text;
  if (!options.file.empty()) {
    if (absl::StatusOr<std::string> read = base::ReadFile(options.file); read.ok()) text = *read;
  }
  if (text.empty()) return {};
  absl::StatusOr<v1::History> history = DecodeHistory(text, options.run, options.attempt.number);
  if (history.ok()) return *std::move(history);
  log::Warning(std::string(history.status().message()));
  return {};
}

// Null: there is to be no report.
std::shared_ptr<ReportPlace> PlaceOf(const Server::Options& options) {
  if (options.report_place != nullptr || options.output_folder.empty()) {
    return options.report_place;
  }
  return ReportFolder(options.output_folder);
}

State::Options MakeStateOptions(const Server::Options& options) {
  return {.job = options.job,
          .job_json = api::ToJson(options.job),
          .input_only = options.input_only,
          .peers = PeerRoles(options.tls),
          .created = options.created,
          .incarnation = options.incarnation,
          .attempt = options.history.attempt,
          .history = TakeHistory(options.history),
          .stop_grace = {.trainers = options.job.spec.training.checkpoint
                                         ? std::max<base::Duration>(
                                               options.stop_grace,
                                               std::chrono::seconds(
                                                   options.job.spec.run_policy.stop_grace_seconds))
                                         : options.stop_grace,
                         .workers = options.stop_grace}};
}

class GrpcServer : public Server {
 public:
  GrpcServer(Options options, base::Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        state_(MakeStateOptions(options_), Now(clock)),
        history_(options_.history.run, options_.history.file),
        membership_([this](Event event) { Apply(event); }, PeerRoles(options_.tls)),
        rendezvous_(PeerRoles(options_.tls)),
        status_service_(
            [this] { return status(); },
            {.stop = [this](const v1::StopRequest& r) { Stop(r.reason(), r.failure()); },
             .report_exit = [this](const v1::ExitReport& report) { OnExit(report); },
             .warn = [this](const v1::Notices& told) { Apply(NoticesReceived{told}); }},
            clock),
        report_place_(PlaceOf(options_)),
        claim_(report_place_.get(), options_.job_uid, options_.incarnation) {}

  ~GrpcServer() override {
    ticker_ = {};
    reporter_ = {};
    membership_.Close();
    rendezvous_.Close();
    status_service_.Close();
    const auto deadline = clock_.WallNow() + kLastWrites;
    if (status_server_) status_server_->Shutdown(deadline);
    if (server_) server_->Shutdown(deadline);
  }

  absl::Status Bind() {
    HETERO_RETURN_IF_ERROR(claim_.Take());
    const bool one_address = options_.status_address.empty();
    std::vector<grpc::Service*> services{&membership_, &rendezvous_};
    if (one_address) services.push_back(&status_service_);
    HETERO_RETURN_IF_ERROR(
        Listen(options_.listen_address, options_.tls, services, server_, address_));
    status_address_ = address_;
    if (!one_address) {
      HETERO_RETURN_IF_ERROR(Listen(options_.status_address,
                                    options_.status_tls.value_or(options_.tls), {&status_service_},
                                    status_server_, status_address_));
    }
    ticker_ = std::jthread([this](std::stop_token stop) { RunTicks(stop); });
    reporter_ = std::jthread([this](std::stop_token stop) { RunReporter(stop); });
    log::Info("head listens", {{"address", address_}, {"status", status_address_}});
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }
  std::string status_address() const override { return status_address_; }

  v1::JobStatus Wait() override {
    const base::MutexLock lock(mutex_);
    changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return final_.has_value() || ((left_ || state_.superseded()) && !state_.ended());
    });
    return StatusLocked();
  }

  void Leave() override {
    const base::MutexLock lock(mutex_);
    left_ = true;
    changed_.NotifyAll();
  }

  void Stop(const std::string& reason, const std::string& failure) override {
    Apply(StopRequested{reason, failure});
  }

  void Fail(const std::string& member, const std::string& message) override {
    Apply(FailureReported{member, message});
  }

  v1::JobStatus status() const override {
    const base::MutexLock lock(mutex_);
    return StatusLocked();
  }

  insight::Report ReportSoFar() const override { return BuildReport(CopyRecord(), Now(clock_)); }

  // Under the lock, for a copy of the record is far more work.
  live::Snapshot Look(LiveBuilder& builder) const override {
    const base::MutexLock lock(mutex_);
    return builder.Build(state_.record(), StatusLocked(), Now(clock_));
  }

  std::optional<live::MemberDetail> LookAt(const std::string& member, bool whole,
                                           double after) const override {
    const base::MutexLock lock(mutex_);
    return BuildMemberDetail(state_.record(), member, whole, after, Now(clock_));
  }

 private:
  absl::Status Listen(const std::string& address, const base::TlsOptions& tls,
                      const std::vector<grpc::Service*>& services,
                      std::unique_ptr<grpc::Server>& server, std::string& bound) {
    HETERO_RETURN_IF_ERROR(CheckListenAddress(address));
    HETERO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                            base::MakeServerCredentials(tls));
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    int port = 0;
    builder.AddListeningPort(address, credentials, &port);
    for (grpc::Service* service : services) builder.RegisterService(service);
    server = builder.BuildAndStart();
    if (!server || port == 0) return CannotListen(address);
    bound = BoundAddress(address, port);
    return absl::OkStatus();
  }

  void Apply(const Event& event) {
    const base::MutexLock lock(mutex_);
    for (const Action& action : state_.Apply(event, Now(clock_))) {
      std::visit([this](const auto& a) { Do(a); }, action);
    }
  }

  void Do(const Send& send) {
    membership_.Send({send.stream}, std::make_shared<v1::HeadMessage>(send.message));
  }
  // One message for all of a kind: a generation of thousands is half a megabyte.
  void Do(const OpenGeneration& open) {
    const auto whole = std::make_shared<v1::HeadMessage>();
    *whole->mutable_generation() = open.generation;
    membership_.Send(open.trainers, whole);
    const auto number = std::make_shared<v1::HeadMessage>();
    number->mutable_generation()->set_number(open.generation.number());
    membership_.Send(open.workers, number);
  }
  void Do(const BroadcastRoster& broadcast) {
    const auto message = std::make_shared<v1::HeadMessage>();
    *message->mutable_roster() = broadcast.roster;
    membership_.Send(broadcast.streams, message);
  }
  void Do(const Refuse& refuse) {
    const auto message = std::make_shared<v1::HeadMessage>();
    *message->mutable_refused() = refuse.refused;
    membership_.Send({refuse.stream}, message);
    membership_.CloseStream(refuse.stream);
  }
  void Do(const CloseStream& close) { membership_.CloseStream(close.stream); }
  void Do(const Note& note) {
    const std::string_view key = note.member.empty() ? "job" : "member";
    const std::string& name = note.member.empty() ? options_.job.metadata.name : note.member;
    if (note.warning) {
      log::Warning(note.message, {{key, name}});
    } else {
      log::Info(note.message, {{key, name}});
    }
  }
  void Do(const EndJob&) { changed_.NotifyAll(); }
  void Do(const StepDown&) { changed_.NotifyAll(); }

  JobRecord CopyRecord() const {
    const base::MutexLock lock(mutex_);
    return state_.record();
  }

  // Between the end and the written report watchers still see the job as running.
  v1::JobStatus StatusLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (final_) return *final_;
    v1::JobStatus status = BuildStatus(state_.record(), state_.plan());
    status.set_history(history_text_);
    if (state_.ended()) status.set_state(v1::JobStatus::RUNNING);
    status.set_head_incarnation(options_.incarnation);
    return status;
  }

  void RunTicks(std::stop_token stop) {
    base::SetThreadName("head-tick");
    v1::JobStatus published;
    base::Instant published_at = clock_.Now() - kPublishInterval;
    while (clock_.SleepFor(kTick, stop)) {
      Apply(Tick{});
      rendezvous_.Wake();
      status_service_.Wake();
      if (clock_.Now() - published_at < kPublishInterval) continue;
      const base::MutexLock lock(mutex_);
      if (final_) continue;
      history_text_ = history_.Look(state_.record(), Now(clock_));
      v1::JobStatus status = StatusLocked();
      if (google::protobuf::util::MessageDifferencer::Equals(status, published)) continue;
      published_at = clock_.Now();
      status_service_.Publish(status, /*last=*/false);
      published = std::move(status);
    }
  }

  void RunReporter(std::stop_token stop) {
    base::SetThreadName("head-report");
    base::MutexLock lock(mutex_);
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return state_.ended(); };
    if (!changed_.Wait(mutex_, stop, ended)) return;
    const JobRecord record = state_.record();
    v1::JobStatus status = BuildStatus(record, state_.plan());
    status.set_head_incarnation(options_.incarnation);
    // The last words of the members are in no other: a suspended job is resumed with it.
    status.set_history(history_.Look(record, Now(clock_)));
    lock.Unlock();
    WriteReport(record, status, stop);
    lock.Lock();
    final_ = status;
    status_service_.Publish(status, /*last=*/true);
    changed_.NotifyAll();
  }

  // The end of a trainer, or of a CPU worker which the job still waits for, fails the job when
  // nobody replaces it. The end of another CPU worker shows in its broken stream.
  void OnExit(const v1::ExitReport& report) {
    const std::string member = absl::StrCat(report.role(), "-", report.index());
    const bool ok = report.exit_code() == 0 && report.signal() == 0 && !report.replaced();
    for (const api::Role& role : options_.job.spec.roles) {
      if (role.name != report.role() || role.type == api::RoleType::kHead) continue;
      const bool trainer = role.type == api::RoleType::kGpuWorker;
      const bool waited_for = trainer || WaitsForWorkers();
      if (!ok && !report.replaced() && waited_for) {
        Fail(member, report.message());
        continue;
      }
      const int32_t ranks = trainer ? role.ranks_per_replica() : 1;
      for (int32_t local = 0; local < ranks; ++local) {
        ProcessEnded ended{.member = ranks > 1 ? absl::StrCat(member, ".", local) : member,
                           .ok = ok,
                           .incarnation = report.incarnation(),
                           .message = report.message()};
        if (local < report.last_words_size()) ended.last_word = report.last_words(local);
        Apply(std::move(ended));
      }
    }
  }

  // Not under a head that takes over: it does without those that ended while no head was there.
  bool WaitsForWorkers() const {
    const base::MutexLock lock(mutex_);
    const JobRecord& record = state_.record();
    const bool took_over = record.past.same_attempt && record.past.generation > 0;
    return record.state == v1::JobStatus::WAITING && !took_over;
  }

  // What a full disk costs is the report, never the result of the training.
  void WriteReport(const JobRecord& record, v1::JobStatus& status,
                   const std::stop_token& stop) const {
    const insight::Report report = BuildReport(record, Now(clock_));
    status.set_summary(insight::ToSummary(report));
    *status.mutable_result() = BuildResult(report);
    if (report_place_ == nullptr) return;
    absl::Status written = claim_.Check();
    if (written.ok()) {
      const auto write = [&] {
        return insight::WriteReport(report, [this](const auto& file, const auto& bytes) {
          return report_place_->Write(file, bytes);
        });
      };
      const auto on_wait = [](const absl::Status& full) {
        log::Warning("the report cannot be written yet",
                     {{"reason", std::string(full.message())},
                      {"waitsSeconds", base::ToSeconds(kPatienceForSpace)}});
      };
      written = base::WriteWhenThereIsSpace(write, kPatienceForSpace, clock_, on_wait, stop);
    }
    if (written.ok()) {
      status.set_report_uri(report_place_->UriOf("report.json"));
      status.mutable_result()->set_report_uri(status.report_uri());
      return;
    }
    log::Error("the report could not be written", {{"reason", std::string(written.message())}});
    if (!status.has_first_failure()) {
      status.mutable_first_failure()->set_member("head");
      status.mutable_first_failure()->set_message(
          absl::StrCat("the report could not be written: ", written.message()));
    }
  }

  const Options options_;
  base::Clock& clock_;
  std::string address_;
  std::string status_address_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::JobStatus> final_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  std::string history_text_ ABSL_GUARDED_BY(mutex_);
  HistoryKeeper history_ ABSL_GUARDED_BY(mutex_);
  MembershipService membership_;
  RendezvousService rendezvous_;
  StatusService status_service_;
  const std::shared_ptr<ReportPlace> report_place_;
  ReportClaim claim_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> status_server_;
  std::jthread ticker_;
  std::jthread reporter_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Options options, base::Clock& clock) {
  auto server = std::make_unique<GrpcServer>(std::move(options), clock);
  HETERO_RETURN_IF_ERROR(server->Bind());
  return server;
}

}  // namespace hetero::head
