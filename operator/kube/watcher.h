#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "operator/kube/client.h"
#include "operator/kube/watch_state.h"

namespace hetero::kube {

// Lists a kind, then watches it, for ever. The list is a consistent read (no version given), so it
// never goes back behind what was known. A lost or expired (410) watch lists again; a clean end and
// a silence reopen at once from the last version seen; errors, and watches that are closed again
// and again within a second, back off 800 ms, x 2, at most 30 s, with jitter. Versions are opaque.
// The transitions are a pure function (watch_state.h), this class carries them out.
//
// Metrics, by `name`, the plural of the kind: reflector_lists_total, reflector_watches_total,
// reflector_short_watches_total.
class Watcher {
 public:
  struct Options {
    Resource resource;
    std::string name_space;  // empty: all
    std::string label_selector;
    std::string field_selector;
    int page_size = 500;  // at most: fewer of larger objects
    // Asked of the server, shortened by up to half so that watches do not all end together.
    base::Duration watch_timeout = std::chrono::seconds(290);
    // A watch that brings nothing for longer, not even a bookmark, is opened anew: its server may
    // be gone without a word.
    base::Duration watch_silence = std::chrono::seconds(75);
    // Whether the cluster may do without the kind, which may come and go with its definition, as
    // may the right to list it.
    bool optional = false;
  };
  struct Handler {
    std::function<void()> list_begins;  // what is known may be out of date from here on
    std::function<void(nlohmann::json object)> apply;  // in a list, added or changed
    std::function<void(nlohmann::json object)> remove;
    std::function<void()> list_ends;  // everything that exists has been applied since list_begins
    std::function<void()> absent = nullptr;  // of an optional kind: it is not served to us
    // In place of the log's warnings: why the next try has to wait, OK once the server is reached.
    std::function<void(const absl::Status& status)> trouble = nullptr;
  };

  Watcher(Client& client, base::Clock& clock, metrics::Registry& registry, Options options,
          Handler handler, base::Backoff::Random random = base::Backoff::SystemRandom());
  // Blocks until stop. Handlers run on the calling thread.
  void Run(std::stop_token stop);

 private:
  // Carries out a step's actions; the last one asks the server and gives the next input.
  WatchInput CarryOut(const std::vector<WatchAction>& actions, std::stop_token stop);
  WatchInput FetchPage(std::stop_token stop);
  WatchInput OpenWatch(std::stop_token stop);
  void ChoosePageLimit();
  void OnWatchEvent(std::string_view type, nlohmann::json object);
  void ApplyPage();
  void Wait(std::stop_token stop);
  void Complain(base::Duration wait);
  void Reached();

  Client& client_;
  base::Clock& clock_;
  Options options_;
  Handler handler_;
  base::Backoff::Random random_;
  base::Backoff backoff_;
  metrics::Counter lists_;
  metrics::Counter watches_;
  metrics::Counter short_watches_;

  WatchState state_;
  ObjectList page_;             // just fetched
  int page_limit_;              // of the next one
  int64_t listed_ = 0;          // objects of the list so far
  bool heard_ = false;          // the running watch has delivered something
  absl::Status error_;          // why the next wait; OK: the server keeps closing the watch
  std::string last_complaint_;  // empty: the server was reached since
};

}  // namespace hetero::kube
