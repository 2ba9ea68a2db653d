#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "operator/kube/client.h"

namespace hetero::kube {

// Lists a kind, then watches it, for ever: the five states of kube-rs's watcher (Empty, InitPage,
// InitialWatch, InitListed, Watching). A lost or expired (410) watch starts again from Empty; a
// clean end reopens at once from the last version seen; errors back off 800 ms, x 2, at most 30 s,
// with jitter. Versions are opaque. The transitions are a pure function (watch_state.h), this class
// carries them out.
class Watcher {
 public:
  struct Options {
    Resource resource;
    std::string name_space;  // empty: all
    std::string label_selector;
    std::string field_selector;
    int page_size = 500;
  };
  struct Handler {
    std::function<void()> list_begins;  // what is known may be out of date from here on
    std::function<void(nlohmann::json object)> apply;  // in a list, added or changed
    std::function<void(nlohmann::json object)> remove;
    std::function<void()> list_ends;  // everything that exists has been applied since list_begins
  };

  Watcher(Client& client, base::Clock& clock, metrics::Registry& registry, Options options,
          Handler handler, base::Backoff::Random random = base::Backoff::SystemRandom());
  // Blocks until stop. Handlers run on the calling thread.
  void Run(std::stop_token stop);

 private:
  Client& client_;
  base::Clock& clock_;
  metrics::Registry& registry_;
  Options options_;
  Handler handler_;
  base::Backoff backoff_;
};

}  // namespace hetero::kube
