#include "operator/kube/watch_state.h"

#include <utility>

namespace hetero::kube {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

using Action = WatchAction;

WatchStep Stay(WatchState state) { return {std::move(state), {}}; }

// From Empty: the first page. `before` is done first.
WatchStep ListAnew(WatchState state, std::vector<Action> before) {
  state.phase = InitPage{};
  before.insert(before.end(), {Action::kBeginList, Action::kFetchPage});
  return {std::move(state), std::move(before)};
}

WatchStep OnPage(WatchState state, const PageArrived& page) {
  if (!page.continue_token.empty()) {
    state.phase = InitPage{page.continue_token};
    return {std::move(state), {Action::kApplyPage, Action::kFetchPage}};
  }
  state.phase = InitListed{page.resource_version};
  state.failures = 0;
  return {std::move(state), {Action::kApplyPage, Action::kEndList, Action::kOpenWatch}};
}

WatchStep OnListFailed(WatchState state, const ListFailed& failed) {
  if (failed.expired) return ListAnew(std::move(state), {Action::kWait});
  return {std::move(state), {Action::kWait, Action::kFetchPage}};
}

WatchStep OnCleanEnd(WatchState state, bool lasted) {
  if (lasted) {
    state.short_ends = 0;
    return {std::move(state), {Action::kForgive, Action::kOpenWatch}};
  }
  // A server or proxy that closes each watch at once must not be asked in a hot loop.
  if (++state.short_ends < 2) return {std::move(state), {Action::kOpenWatch}};
  return {std::move(state), {Action::kWait, Action::kOpenWatch}};
}

WatchStep OnFailure(WatchState state, bool lasted) {
  if (lasted) {
    state.failures = 1;
    return {std::move(state), {Action::kForgive, Action::kWait, Action::kOpenWatch}};
  }
  if (++state.failures > kFailuresBeforeRelist) return ListAnew(std::move(state), {Action::kWait});
  return {std::move(state), {Action::kWait, Action::kOpenWatch}};
}

// The server may be as well as ever: the next watch shows it. Should it not be opened, that is a
// failure.
WatchStep OnSilence(WatchState state, bool lasted) {
  if (!lasted) return OnFailure(std::move(state), lasted);
  return {std::move(state), {Action::kForgive, Action::kOpenWatch}};
}

WatchStep OnWatchEnded(WatchState state, const WatchEnded& ended) {
  const bool lasted = ended.lived >= kLasting;
  switch (ended.how) {
    case WatchEnded::How::kClean:
      return OnCleanEnd(std::move(state), lasted);
    case WatchEnded::How::kExpired:
      return ListAnew(std::move(state), {lasted ? Action::kForgive : Action::kWait});
    case WatchEnded::How::kFailed:
      return OnFailure(std::move(state), lasted);
    case WatchEnded::How::kSilent:
      return OnSilence(std::move(state), lasted);
  }
  __builtin_unreachable();
}

// The watch, first or later, has something to say.
WatchStep OnWatch(WatchState state, const std::string& version, const WatchInput& input) {
  // An object without a version moves nothing.
  const auto advance = [&](const std::string& seen) {
    state.phase = Watching{seen.empty() ? version : seen};
  };
  return std::visit(
      Overloaded{
          [&](const Started&) { return Stay(std::move(state)); },
          [&](const PageArrived&) { return Stay(std::move(state)); },
          [&](const ListFailed&) { return Stay(std::move(state)); },
          [&](const ObjectChanged& changed) -> WatchStep {
            advance(changed.resource_version);
            return {std::move(state), {Action::kApplyObject}};
          },
          [&](const ObjectDeleted& deleted) -> WatchStep {
            advance(deleted.resource_version);
            return {std::move(state), {Action::kRemoveObject}};
          },
          [&](const Bookmarked& bookmarked) {
            advance(bookmarked.resource_version);
            return Stay(std::move(state));
          },
          [&](const WatchEnded& ended) { return OnWatchEnded(std::move(state), ended); },
      },
      input);
}

WatchStep OnList(WatchState state, const WatchInput& input) {
  return std::visit(
      Overloaded{
          [&](const Started&) { return Stay(std::move(state)); },
          [&](const PageArrived& page) { return OnPage(std::move(state), page); },
          [&](const ListFailed& failed) { return OnListFailed(std::move(state), failed); },
          [&](const ObjectChanged&) { return Stay(std::move(state)); },
          [&](const ObjectDeleted&) { return Stay(std::move(state)); },
          [&](const Bookmarked&) { return Stay(std::move(state)); },
          [&](const WatchEnded&) { return Stay(std::move(state)); },
      },
      input);
}

}  // namespace

WatchStep Step(WatchState state, const WatchInput& input) {
  // Copies, for the handlers move the state that these would point into.
  const auto phase = state.phase;
  return std::visit(Overloaded{
                        [&](const Empty&) {
                          return std::holds_alternative<Started>(input)
                                     ? ListAnew(std::move(state), {})
                                     : Stay(std::move(state));
                        },
                        [&](const InitPage&) { return OnList(std::move(state), input); },
                        [&](const InitListed& listed) {
                          return OnWatch(std::move(state), listed.resource_version, input);
                        },
                        [&](const Watching& watching) {
                          return OnWatch(std::move(state), watching.resource_version, input);
                        },
                    },
                    phase);
}

std::string PhaseName(const WatchState& state) {
  return std::visit(Overloaded{
                        [](const Empty&) { return "Empty"; },
                        [](const InitPage&) { return "InitPage"; },
                        [](const InitListed&) { return "InitListed"; },
                        [](const Watching&) { return "Watching"; },
                    },
                    state.phase);
}

}  // namespace hetero::kube
