#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/listen_socket.h"
#include "base/mutex.h"
#include "runtime/agent/stream_protocol.h"

namespace hetero::agent {

// The socket of a rank's stream: lets one script in at a time, reads its messages and turns others
// away by name. A thread of its own reads; another one, the answerer, calls WaitForScript() and
// then, for this script, NextQuestion() and Send() until it calls End(). Thread-safe.
class ScriptConnections {
 public:
  // What has no answer, on the reading thread with no lock held.
  struct Callbacks {
    std::function<absl::Status(const FreeRequest&)> on_free;
    std::function<absl::Status(const ReportRequest&)> on_report;
    std::function<void(const absl::Status&)> on_misuse;
  };
  // Errors as ListenAtPath().
  static absl::StatusOr<std::unique_ptr<ScriptConnections>> Listen(const std::string& path,
                                                                   Callbacks callbacks,
                                                                   base::Clock& clock);
  ~ScriptConnections();

  // From now on one script is let in; one that is there is cut off.
  void Admit();
  // Cuts off the script that is there and lets nobody in any more.
  void Close();

  // For the answerer.
  // False once `stop` is requested.
  bool WaitForScript(const std::stop_token& stop);
  // The next message that has an answer: absent once the script has gone, an error as
  // ParseRequest() or when it asks again before it was answered.
  std::optional<absl::StatusOr<Request>> NextQuestion();
  // The script has gone, was cut off, or spoke nonsense: no answer is worth waiting for.
  std::stop_token gone() const;
  absl::Status Send(const nlohmann::json& answer, int passed = -1);
  // Closes the connection. `may_come_again`: before the next Admit().
  void End(bool may_come_again);

 private:
  struct Connection {
    base::Socket socket;
    MessageReader reader{kMaxRequestBytes};
    std::stop_source gone;
    bool over = false;                                // nothing more is read
    bool asked = false;                               // a question is not answered yet
    std::optional<absl::StatusOr<Request>> question;  // not taken yet
  };
  struct Guest {
    base::Socket socket;
    base::Instant since;
  };

  ScriptConnections(std::string path, base::Socket listener, base::Socket wake, Callbacks callbacks,
                    base::Clock& clock);
  void Read(const std::stop_token& stop);
  void Wake() const;
  void CutOff(bool admits);
  void AcceptGuests();
  void SeeToGuests();
  void TurnAway(const Guest& guest, const std::string& why) const;
  void ReadFrom(const std::shared_ptr<Connection>& connection);
  // False when nothing after it can be read.
  bool Take(const std::shared_ptr<Connection>& connection, const std::string& text);
  void Fault(const std::shared_ptr<Connection>& connection, const absl::Status& why);

  const std::string path_;
  const base::Socket listener_;
  const base::Socket wake_;  // an eventfd
  const Callbacks callbacks_;
  base::Clock& clock_;
  std::deque<Guest> guests_;  // of the reading thread

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);  // null: none
  bool admits_ ABSL_GUARDED_BY(mutex_) = false;
  bool admitted_ ABSL_GUARDED_BY(mutex_) = false;  // Admit() was called

  std::jthread reader_;  // last: uses all of the above
};

}  // namespace hetero::agent
