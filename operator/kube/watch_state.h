#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"

// The transitions of a Watcher as a pure function, after kube-rs's watcher. Its fifth state, a list
// streamed through the watch itself, is not used: a list in pages works with every server. From
// Kubernetes 1.31 on it comes from the server's cache; older ones read a list with a limit, or one
// without a version, from etcd.
namespace hetero::kube {

// Nothing is known, or no longer enough to go on: list from the start.
struct Empty {
  bool operator==(const Empty&) const = default;
};
// Listing; `continue_token` names the page asked for, empty the first one.
struct InitPage {
  std::string continue_token;
  bool operator==(const InitPage&) const = default;
};
// All pages are here; the first watch is asked for and has not yet said anything.
struct InitListed {
  std::string resource_version;
  bool operator==(const InitListed&) const = default;
};
// The watch has delivered; `resource_version` is the newest one seen.
struct Watching {
  std::string resource_version;
  bool operator==(const Watching&) const = default;
};

struct WatchState {
  std::variant<Empty, InitPage, InitListed, Watching> phase;
  int short_ends = 0;  // watches in a row that ended cleanly before kLasting
  int failures = 0;    // watches in a row that failed before kLasting
  bool operator==(const WatchState&) const = default;
};

struct Started {};
struct PageArrived {
  std::string resource_version;
  std::string continue_token;  // empty: the last page
};
struct ListFailed {
  bool expired = false;  // 410: the list's snapshot is gone
};
struct ObjectChanged {  // ADDED or MODIFIED
  std::string resource_version;
};
struct ObjectDeleted {
  std::string resource_version;
};
struct Bookmarked {
  std::string resource_version;
};
struct WatchEnded {
  enum class How {
    kClean,    // by the server, for example after the time asked for
    kExpired,  // 410, or a version that the server does not accept
    kFailed,
    kSilent,  // it was opened, and then nothing came for longer than a server keeps quiet
  };
  How how = How::kClean;
  base::Duration lived{};
};
using WatchInput = std::variant<Started, PageArrived, ListFailed, ObjectChanged, ObjectDeleted,
                                Bookmarked, WatchEnded>;

// To be carried out in order. Those about objects mean the objects of the input.
enum class WatchAction {
  kBeginList,
  kFetchPage,  // the one that InitPage names
  kApplyPage,
  kEndList,
  kOpenWatch,  // from the version that the phase names
  kApplyObject,
  kRemoveObject,
  kForgive,  // the next wait is the shortest again
  kWait,     // as long as the backoff says
};

struct WatchStep {
  WatchState state;
  std::vector<WatchAction> actions;
};

// A watch that lives this long was a success whatever its end.
inline constexpr base::Duration kLasting = std::chrono::seconds(1);
// After this many failures in a row the version itself may be what the server chokes on (one
// restored from a backup does not know it): list again.
inline constexpr int kFailuresBeforeRelist = 5;

// Inputs that cannot come in a state (a page while watching) leave it as it is.
WatchStep Step(WatchState state, const WatchInput& input);

// "Watching" and so on, for logs and tests.
std::string PhaseName(const WatchState& state);

}  // namespace hetero::kube
