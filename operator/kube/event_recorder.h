#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "operator/kube/client.h"

namespace hetero::kube {

// What an event is about.
struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;
};

enum class EventType { kNormal, kWarning };

// events.k8s.io/v1 with client-go's manners. Equal events (note and all) within six minutes of each
// other become one with a series count. Each object has a bucket of 25 writes that refills by one
// per 300 s: repeats beyond it are still counted and told with the series' next write, first
// events are dropped. Record() never blocks: a thread of its own writes, 1,000 events may wait, and
// what cannot be written after a few tries is dropped; dropped events are counted in the log.
//
// Give it a client of its own with a timeout of a few seconds: events must not use up the rate
// limit of the real work, and one that the server does not answer holds up the rest.
class EventRecorder {
 public:
  struct Options {
    std::string controller = "hetero-operator";  // reportingController
    std::string instance;  // reportingInstance: the pod's name; empty: the controller
  };
  // Both outlive the recorder.
  EventRecorder(Client& client, base::Clock& clock, Options options);
  // Writes what is queued, for at most 2 s; then a request under way is abandoned, too.
  ~EventRecorder();

  // `action` and `reason` are CamelCase; an empty action stands for the reason. The note is cut at
  // 1,024 bytes, between characters. An event about an object without a namespace goes to
  // "default", where the API wants it.
  void Record(const ObjectReference& regarding, EventType type, const std::string& reason,
              const std::string& action, const std::string& note);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::kube
