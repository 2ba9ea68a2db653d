#include "runtime/head/member.h"

#include <grpcpp/channel.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "hetero/v1/membership.grpc.pb.h"
#include "runtime/handshake/build.h"
#include "runtime/head/channel.h"
#include "runtime/head/heartbeat_buffer.h"

namespace hetero::head {
namespace {

using JoinClient = grpc::ClientReaderWriter<v1::MemberMessage, v1::HeadMessage>;

constexpr base::Backoff::Options kRedial{.initial = std::chrono::milliseconds(20),
                                         .max = std::chrono::seconds(1)};

// One Join stream, from dialling to its end.
struct Session {
  grpc::ClientContext context;
  std::unique_ptr<JoinClient> stream;
  base::Mutex write_mutex;  // for writing to stream; taken before GrpcMember's
  bool told_ready = false;  // guarded by GrpcMember's mutex

  bool Write(const v1::MemberMessage& message) {
    const base::MutexLock lock(write_mutex);
    return stream->Write(message);
  }
};

class GrpcMember : public Member {
 public:
  GrpcMember(Options options, Callbacks callbacks, HeartbeatSource source, base::Clock& clock)
      : options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        source_(std::move(source)),
        clock_(clock) {
    if (options_.hello.pid() == 0) options_.hello.set_pid(::getpid());
    generation_ = options_.hello.generation();
    runner_ = std::jthread([this](std::stop_token stop) { Run(stop); });
    heart_ = std::jthread([this](std::stop_token stop) { BeatUntil(stop); });
  }

  ~GrpcMember() override {
    runner_.request_stop();
    heart_.request_stop();
    const base::MutexLock lock(mutex_);
    if (session_) session_->context.TryCancel();
  }

  void SetReady(const v1::Ready& ready) override {
    std::shared_ptr<Session> session;
    {
      const base::MutexLock lock(mutex_);
      ready_ = ready;
      session = welcomed_;
    }
    if (session) SendReady(*session);
  }

  void Tell(const v1::ScriptWord& word) override {
    std::shared_ptr<Session> session;
    {
      const base::MutexLock lock(mutex_);
      session = welcomed_;
    }
    if (session) SendScriptWord(*session, word);
  }

  void Beat() override {
    std::shared_ptr<Session> session;
    {
      const base::MutexLock lock(mutex_);
      if (!finished_) session = welcomed_;
    }
    if (session) SendHeartbeat(*session, /*again=*/false);
  }

  absl::Status Finish(const v1::Finished& finished, base::Duration deadline) override {
    std::shared_ptr<Session> session;
    {
      const base::MutexLock lock(mutex_);
      finished_ = finished;
      session = welcomed_;
    }
    if (session) SendFinished(*session, finished);
    // The end of the conversation requests `over_`, so this sleep is a wait with a deadline.
    clock_.SleepFor(deadline, over_.get_token());
    const base::MutexLock lock(mutex_);
    if (acknowledged_) return absl::OkStatus();
    if (!refusal_.ok()) return refusal_;
    return absl::DeadlineExceededError(absl::StrCat(
        "head at ", options_.head_address, " did not acknowledge the end within ",
        base::ToSeconds(deadline), " s", last_error_.ok() ? "" : ": ", last_error_.message()));
  }

  v1::Finished Complete(v1::Finished finished) override {
    const base::MutexLock lock(callback_mutex_);
    *finished.mutable_last() = buffer_.Merge(finished.last());
    return finished;
  }

 private:
  void Run(std::stop_token stop) {
    base::SetThreadName("member");
    base::Backoff backoff(kRedial);
    last_contact_ = clock_.Now();
    while (!stop.stop_requested() && !over_.stop_requested()) {
      // A channel of its own for each attempt: one that failed to connect would wait for seconds
      // before it tries again, whatever the head does meanwhile.
      const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
          DialHead(options_.head_address, options_.tls);
      if (!channel.ok()) {
        if (!lost_) ReportLost(channel.status());
        if (!welcomed_once_) return;
        // The certificates could be read before, and will be again: no file was to be had, say.
        clock_.SleepFor(backoff.Next(), stop);
        continue;
      }
      const base::Instant before = last_contact_;
      const absl::Status status = Converse(*v1::Membership::NewStub(*channel), stop);
      if (stop.stop_requested() || over_.stop_requested()) return;
      if (last_contact_ != before) {
        backoff.Reset();
        log::Warning("lost the head, dialling again", {{"address", options_.head_address},
                                                       {"reason", std::string(status.message())}});
      }
      if (!lost_ && clock_.Now() - last_contact_ > options_.head_timeout) ReportLost(status);
      clock_.SleepFor(backoff.Next(), stop);
    }
  }

  // One stream from hello to its end; why it ended.
  absl::Status Converse(v1::Membership::Stub& stub, const std::stop_token& stop) {
    const auto session = std::make_shared<Session>();
    {
      const base::MutexLock lock(mutex_);
      if (stop.stop_requested()) return absl::CancelledError("stopped");
      session_ = session;
    }
    session->stream = stub.Join(&session->context);
    v1::MemberMessage hello;
    *hello.mutable_hello() = options_.hello;
    hello.mutable_hello()->set_generation(generation_);
    hello.mutable_hello()->set_head_incarnation(newest_head_);
    if (welcomed_once_) {
      hello.mutable_hello()->set_headless_ns((clock_.Now() - last_contact_).count());
    }
    if (session->Write(hello)) {
      v1::HeadMessage message;
      while (session->stream->Read(&message)) {
        if (message.has_welcome() && IsOlder(message.welcome())) {
          session->context.TryCancel();
          break;
        }
        last_contact_ = clock_.Now();
        lost_ = false;
        Handle(message, *session);
      }
    }
    {
      const base::MutexLock lock(mutex_);
      session_.reset();
      welcomed_.reset();
    }
    const base::MutexLock write_lock(session->write_mutex);
    absl::Status status = ToAbsl(session->stream->Finish(), options_.head_address);
    if (status.ok()) status = absl::UnavailableError("the head closed the stream");
    const base::MutexLock lock(mutex_);
    last_error_ = status;
    return status;
  }

  void Handle(const v1::HeadMessage& message, Session& session) {
    switch (message.message_case()) {
      case v1::HeadMessage::kWelcome:
        OnWelcome(message.welcome(), session);
        break;
      case v1::HeadMessage::kGeneration:
        if (message.generation().number() <= generation_) break;
        generation_ = message.generation().number();
        Call(callbacks_.on_generation, message.generation());
        break;
      case v1::HeadMessage::kRoster:
        Call(callbacks_.on_roster, message.roster());
        break;
      case v1::HeadMessage::kCommand:
        Call(callbacks_.on_command, message.command());
        break;
      case v1::HeadMessage::kScriptDecision:
        Call(callbacks_.on_script_decision, message.script_decision());
        break;
      case v1::HeadMessage::kNotAdmitted:
        Call(callbacks_.on_not_admitted, message.not_admitted());
        break;
      case v1::HeadMessage::kRefused:
        EndConversation(absl::FailedPreconditionError(
            absl::StrCat("the head refuses this process: ", message.refused().reason())));
        Call(callbacks_.on_refused, message.refused());
        break;
      case v1::HeadMessage::kFinishAck: {
        EndConversation(absl::OkStatus());
        const base::MutexLock lock(session.write_mutex);
        session.stream->WritesDone();
        break;
      }
      case v1::HeadMessage::MESSAGE_NOT_SET:  // of a newer version
        break;
    }
  }

  // A head that was thought dead, and replaced, may come back: what it says counts no more.
  bool IsOlder(const v1::Welcome& welcome) const {
    const int64_t incarnation = welcome.head_incarnation();
    if (incarnation == 0 || incarnation >= newest_head_) return false;
    log::Warning("passed over a head that another one has replaced",
                 {{"incarnation", incarnation}, {"newest", newest_head_}});
    return true;
  }

  // A head of another build would have let this process in: older ones look at the version alone.
  bool Refuses(const v1::Welcome& welcome) {
    const v1::Build& build = welcome.build();
    const absl::Status met = handshake::CheckPeers(
        "the head",
        {.version = build.version(), .commit = build.commit(), .protocol = build.protocol()},
        "this process", handshake::ThisBuild());
    if (met.ok()) return false;
    EndConversation(met);
    v1::Refused refused;
    refused.set_reason(std::string(met.message()));
    Call(callbacks_.on_refused, refused);
    return true;
  }

  void OnWelcome(const v1::Welcome& welcome, Session& session) {
    if (Refuses(welcome)) {
      session.context.TryCancel();
      return;
    }
    newest_head_ = std::max(newest_head_, welcome.head_incarnation());
    std::optional<v1::Finished> finished;
    {
      const base::MutexLock lock(mutex_);
      welcomed_ = session_;  // the one that hears this
      finished = finished_;
    }
    if (!std::exchange(welcomed_once_, true)) Call(callbacks_.on_welcome, welcome);
    SendReady(session);
    SendHeartbeat(session, /*again=*/true);
    SendScriptWords(session);
    if (finished) SendFinished(session, *finished);
  }

  // Once on each stream, when both the head has let this process in and the dataset is open: one of
  // another build, or one that was replaced, hears nothing of it.
  void SendReady(Session& session) {
    v1::MemberMessage message;
    {
      const base::MutexLock lock(mutex_);
      if (!ready_ || session.told_ready) return;
      session.told_ready = true;
      *message.mutable_ready() = *ready_;
    }
    session.Write(message);
  }

  void EndConversation(absl::Status refusal) {
    {
      const base::MutexLock lock(mutex_);
      acknowledged_ = refusal.ok();
      refusal_ = std::move(refusal);
    }
    over_.request_stop();
  }

  void BeatUntil(const std::stop_token& stop) {
    base::SetThreadName("member-beat");
    while (clock_.SleepFor(options_.heartbeat, stop) && !over_.stop_requested()) Beat();
  }

  // With `again`, also what an earlier stream may have lost. Taken and written in one go: an older
  // state must not be told after a newer one, least of all after the last word.
  void SendHeartbeat(Session& session, bool again) {
    const base::MutexLock write_lock(session.write_mutex);
    v1::MemberMessage message;
    {
      const base::MutexLock lock(callback_mutex_);
      const v1::Heartbeat latest = source_ ? source_() : v1::Heartbeat();
      *message.mutable_heartbeat() = again ? buffer_.Merge(latest) : latest;
      buffer_.Add(latest);
    }
    message.mutable_heartbeat()->set_sent_unix_ns(UnixNow());
    session.stream->Write(message);
  }

  int64_t UnixNow() const {
    return std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch()).count();
  }

  void SendScriptWords(Session& session) {
    if (!callbacks_.script_words) return;
    std::vector<v1::ScriptWord> words;
    {
      const base::MutexLock lock(callback_mutex_);
      words = callbacks_.script_words();
    }
    for (const v1::ScriptWord& word : words) SendScriptWord(session, word);
  }

  static void SendScriptWord(Session& session, const v1::ScriptWord& word) {
    v1::MemberMessage message;
    *message.mutable_script_word() = word;
    session.Write(message);
  }

  void SendFinished(Session& session, const v1::Finished& finished) const {
    v1::MemberMessage message;
    *message.mutable_finished() = finished;
    if (finished.has_last()) {
      message.mutable_finished()->mutable_last()->set_sent_unix_ns(UnixNow());
    }
    session.Write(message);
  }

  void ReportLost(const absl::Status& status) {
    lost_ = true;
    {
      const base::MutexLock lock(mutex_);
      last_error_ = status;
    }
    Call(callbacks_.on_head_lost, status);
  }

  template <typename Argument>
  void Call(const std::function<void(const Argument&)>& callback, const Argument& argument) {
    if (!callback) return;
    const base::MutexLock lock(callback_mutex_);
    callback(argument);
  }

  Options options_;
  const Callbacks callbacks_;
  const HeartbeatSource source_;
  base::Clock& clock_;

  // Of the runner thread alone.
  base::Instant last_contact_;
  bool lost_ = false;
  bool welcomed_once_ = false;
  int64_t generation_ = 0;
  int64_t newest_head_ = 0;  // incarnation; 0: none has said its own

  base::Mutex mutex_;
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mutex_);   // under way
  std::shared_ptr<Session> welcomed_ ABSL_GUARDED_BY(mutex_);  // the same, after its Welcome
  std::optional<v1::Ready> ready_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::Finished> finished_ ABSL_GUARDED_BY(mutex_);
  bool acknowledged_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);

  base::Mutex callback_mutex_;  // held during callbacks and the heartbeat source
  HeartbeatBuffer buffer_ ABSL_GUARDED_BY(callback_mutex_);
  std::stop_source over_;  // acknowledged or refused: no more dialling
  std::jthread runner_;
  std::jthread heart_;
};

}  // namespace

std::unique_ptr<Member> Member::Start(Options options, Callbacks callbacks, HeartbeatSource source,
                                      base::Clock& clock) {
  return std::make_unique<GrpcMember>(std::move(options), std::move(callbacks), std::move(source),
                                      clock);
}

}  // namespace hetero::head
