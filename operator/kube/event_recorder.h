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

// events.k8s.io/v1 with client-go's manners: equal events become one with a series count, at most
// 25 at once and then one per 300 s and object, messages cut at 1,024 bytes. Record() never blocks:
// a thread of its own writes, and what cannot be written is dropped after a few tries and counted.
class EventRecorder {
 public:
  struct Options {
    std::string controller = "hetero-operator";  // reportingController
    std::string instance;                        // reportingInstance: the pod's name
  };
  EventRecorder(Client& client, base::Clock& clock, Options options);
  ~EventRecorder();  // writes what is queued, for at most 2 s

  // `action` and `reason` are CamelCase.
  void Record(const ObjectReference& regarding, EventType type, const std::string& reason,
              const std::string& action, const std::string& note);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::kube
