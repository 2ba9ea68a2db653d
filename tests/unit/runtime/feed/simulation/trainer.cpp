#include "simulation/trainer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/job/permutation.h"

namespace hetero::feed::simulation {
namespace {

constexpr int kMostFailures = Window::kMaxFailures - 1;

Window::Options WindowOptions(const job::Schedule& schedule, const Trainer::Options& options) {
  return {.tickets = schedule.size() - options.first,
          .byte_budget = options.budget,
          .batch_bytes = options.sizes_known ? schedule.At(0).slots.count : 0,
          .local = options.local,
          .is_empty = [&schedule, first = options.first](
                          int64_t id) { return schedule.At(first + id).slots.count == 0; },
          .start = Window::StartOf(options.rank)};
}

std::string Describe(const Window::Event& event) {
  struct Visitor {
    std::string operator()(const Window::WorkerAdded& e) {
      return absl::StrCat("added ", e.producer);
    }
    std::string operator()(const Window::WorkerRemoved& e) {
      return absl::StrCat("removed ", e.producer);
    }
    std::string operator()(const Window::WorkerTurned& e) {
      return absl::StrCat(e.leaving ? "leaving " : "staying ", e.producer);
    }
    std::string operator()(const Window::StreamUp& e) { return absl::StrCat("up ", e.producer); }
    std::string operator()(const Window::StreamDown& e) {
      return absl::StrCat("down ", e.producer);
    }
    std::string operator()(const Window::Started& e) {
      return absl::StrCat("started ", e.ticket, " at ", e.producer);
    }
    std::string operator()(const Window::Arrived& e) {
      return absl::StrCat("arrived ", e.ticket, " from ", e.producer);
    }
    std::string operator()(const Window::Failed& e) {
      return absl::StrCat("failed ", e.ticket, " at ", e.producer);
    }
    std::string operator()(const Window::Consumed&) { return "consumed"; }
    std::string operator()(const Window::LocalChanged&) { return "local changed"; }
    std::string operator()(const Window::Tick&) { return "tick"; }
  };
  return std::visit(Visitor{}, event);
}

}  // namespace

uint32_t SampleCrc(int64_t epoch, int64_t sample) {
  return static_cast<uint32_t>(sample * 2654435761 + epoch * 40503);
}

Trainer::Trainer(const Options& options, Callbacks callbacks, Timeline* timeline)
    : options_(options),
      schedule_(options.schedule, options.rank),
      callbacks_(std::move(callbacks)),
      timeline_(timeline),
      window_(WindowOptions(schedule_, options)) {}

void Trainer::Apply(const Window::Event& event) {
  if (retired_) return;
  const Window::Actions actions = window_.Apply(event, timeline_->now());
  if (timeline_->tracing()) {
    const bool quiet = std::holds_alternative<Window::Tick>(event) && actions.issue.empty();
    if (!quiet) timeline_->Trace(absl::StrCat("rank ", options_.rank, ": ", Describe(event)));
    TraceActions(actions);
  }
  if (const auto* arrived = std::get_if<Window::Arrived>(&event); arrived && actions.accepted) {
    if (!held_.try_emplace(arrived->ticket, arrived->ticket).second) {
      Violate(absl::StrCat("ticket ", arrived->ticket, " filled twice"));
    }
    bytes_ += arrived->bytes;
    largest_ = std::max(largest_, arrived->bytes);
  }
  for (const Window::Assignment& cancel : actions.cancel) {
    if (asked_[cancel.producer].erase(cancel.ticket) == 0) {
      Violate(absl::StrCat("ticket ", cancel.ticket, " called back from ", cancel.producer,
                           ", which does not have it"));
    }
    callbacks_.cancel(cancel);
  }
  for (const Window::Assignment& issue : actions.issue) {
    CheckIssue(issue);
    asked_[issue.producer].insert(issue.ticket);
    callbacks_.issue(issue);
  }
  for (const ProducerId reset : actions.reset) callbacks_.reset(reset);
  CheckBounds();
}

void Trainer::TraceActions(const Window::Actions& actions) {
  for (const auto& [producer, ticket, guarded] : actions.cancel) {
    timeline_->Trace(
        absl::StrCat("rank ", options_.rank, ":   calls ", ticket, " back from ", producer));
  }
  for (const auto& [producer, ticket, guarded] : actions.issue) {
    timeline_->Trace(absl::StrCat("rank ", options_.rank, ":   issues ", ticket, " to ", producer,
                                  ", head ", window_.head()));
  }
  for (const ProducerId producer : actions.reset) {
    timeline_->Trace(absl::StrCat("rank ", options_.rank, ":   resets ", producer));
  }
}

void Trainer::CheckIssue(const Window::Assignment& issue) {
  const auto& producers = window_.producers();
  const auto it = producers.find(issue.producer);
  if (it == producers.end() || !it->second.up()) {
    Violate(absl::StrCat("ticket ", issue.ticket, " issued to ", issue.producer,
                         ", which is not there"));
  }
  if (issue.ticket < window_.head() ||
      issue.ticket >= window_.head() + std::max(window_.capacity(), Window::kMinCapacity)) {
    Violate(absl::StrCat("ticket ", issue.ticket, " issued outside the window at ", window_.head(),
                         " + ", window_.capacity()));
  }
  if (held_.contains(issue.ticket)) {
    Violate(absl::StrCat("ticket ", issue.ticket, " issued though its batch is there"));
  }
}

void Trainer::CheckBounds() {
  most_bytes_ = std::max(most_bytes_, bytes_);
  if (bytes_ > std::max(options_.budget, 2 * largest_)) {
    Violate(absl::StrCat("the window holds ", bytes_, " bytes of a budget of ", options_.budget));
  }
}

void Trainer::Receive(ProducerId producer, int64_t ticket, base::Duration work) {
  asked_[producer].erase(ticket);
  Apply(Window::Arrived{
      .producer = producer, .ticket = ticket, .bytes = PlanOf(ticket).slots.count, .work = work});
}

void Trainer::Fail(ProducerId producer, int64_t ticket) {
  ++failures_[ticket];
  asked_[producer].erase(ticket);
  Apply(Window::Failed{producer, ticket, absl::UnavailableError("disk")});
}

bool Trainer::MayFail(int64_t ticket) const {
  const auto it = failures_.find(ticket);
  return it == failures_.end() || it->second < kMostFailures;
}

void Trainer::Take() {
  const int64_t ticket = window_.head();
  if (ticket != taken_++) Violate(absl::StrCat("ticket ", ticket, " taken out of order"));
  const job::PlannedBatch plan = PlanOf(ticket);
  if (plan.slots.count > 0) {
    const auto it = held_.find(ticket);
    if (it == held_.end() || it->second != ticket) {
      Violate(absl::StrCat("ticket ", ticket, " is not filled with its batch"));
      return;
    }
    held_.erase(it);
    bytes_ -= plan.slots.count;
    const job::Permutation order(options_.seed, plan.epoch, options_.schedule.training.samples, {});
    for (int64_t slot = plan.slots.first; slot < plan.slots.first + plan.slots.count; ++slot) {
      const int64_t sample = order.At(slot);
      taken_digest_.Add(options_.seed, plan.epoch, plan.step, slot, sample,
                        SampleCrc(plan.epoch, sample));
    }
  }
  Apply(Window::Consumed{});
}

void Trainer::Commit() {
  digest_ += taken_digest_;
  taken_digest_ = {};
}

void Trainer::Violate(const std::string& what) {
  callbacks_.on_violation(absl::StrCat("rank ", options_.rank, ": ", what));
}

}  // namespace hetero::feed::simulation
