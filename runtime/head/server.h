#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "base/tls.h"
#include "hetero/v1/status.pb.h"
#include "runtime/head/history_restore.h"
#include "runtime/head/live_builder.h"
#include "runtime/head/report_place.h"
#include "runtime/insight/live/snapshot.h"
#include "runtime/insight/report.h"

namespace hetero::head {

// The head of one job as a server: Membership, Rendezvous and Status over gRPC, and the report at
// the end. Decisions are State's (state.h); this shell only moves messages. Thread-safe.
class Server {
 public:
  // What this head takes over from the one before it, and leaves to the next (history_codec.h).
  struct HistoryOptions {
    std::string run;      // of the job; another run's history is passed over
    AttemptInfo attempt;  // this one's
    std::string text;     // of the head before; empty: there was none
    std::string file;     // kept up to date; a text in it comes before `text`. Empty: none
  };
  struct Options {
    api::HeteroTrainingJob job;
    std::string
        listen_address;  // Join and Rendezvous: "0.0.0.0:7070", "unix:/path", port 0 allowed
    std::string status_address;  // Status; empty: on listen_address
    base::TlsOptions tls;
    std::optional<base::TlsOptions> status_tls;  // of status_address; without: tls
    bool input_only = false;
    std::string job_uid;        // with incarnation: who may write the report
    int64_t incarnation = 0;    // of this process; 0: not known, and nobody is newer
    std::string output_folder;  // empty: no report files
    // In the place of the folder.
    std::shared_ptr<ReportPlace> report_place;
    base::WallTime created;  // when the job was started; startupSeconds counts from here
    base::Duration stop_grace = std::chrono::seconds(2);  // for members to finish after Stop()
    HistoryOptions history;
  };
  // Binds and serves. Errors name the address and the remedy (port taken, path too long), or the
  // newer head that writes into the output folder.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Options options, base::Clock& clock);
  virtual ~Server() = default;

  virtual std::string address() const = 0;  // bound, with the real port
  virtual std::string status_address() const = 0;
  // Blocks until the job has ended and the report is written; the final status. Or until a newer
  // head has taken over, as after Leave().
  virtual v1::JobStatus Wait() = 0;
  // Ends the job: state Stopped, or Failed when `failure` (one CamelCase word) is not empty. Fail()
  // in place of it names the member (used by a launcher that saw a process die).
  virtual void Stop(const std::string& reason, const std::string& failure = "") = 0;
  virtual void Fail(const std::string& member, const std::string& message) = 0;
  // Ends Wait() with the job as it is, unless it has ended: another head will take over. No member
  // is told and no report written; the members find the new head by themselves.
  virtual void Leave() = 0;
  virtual v1::JobStatus status() const = 0;
  // The report as it would be if the job ended now.
  virtual insight::Report ReportSoFar() const = 0;
  // What the live page shows now. `builder` is the reader's own.
  virtual live::Snapshot Look(LiveBuilder& builder) const = 0;
  // As BuildMemberDetail().
  virtual std::optional<live::MemberDetail> LookAt(const std::string& member, bool whole,
                                                   double after) const = 0;
};

}  // namespace hetero::head
