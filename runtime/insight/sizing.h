#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hetero::insight {

// One CPU role as measured at one moment.
struct SizingRole {
  std::string name;
  int32_t replicas = 1;  // in the manifest: where it begins
  int32_t min_replicas = 0;
  int32_t max_replicas = 1;
  std::optional<double> price_per_hour;
  // By replica: samples per second that it can do; absent where nothing new was measured.
  std::vector<std::optional<double>> rates;
};

struct SizingInput {
  double demand = 0;             // samples per second that the trainers take when none waits
  double data_wait_percent = 0;  // of the worst rank, lately
  std::vector<SizingRole> roles;
};

struct SizingTarget {
  std::string role;
  int32_t replicas = 0;
  std::string reason;
  bool operator==(const SizingTarget&) const = default;
};

// How many replicas of each CPU role the job needs, from measured rates. A state machine without a
// clock; not thread-safe.
//
// Demand and rates are smoothed, and a replica that is away counts with what it did before, or with
// the mean of its role: crashes and slow starts change nothing. After kFirstLook of measuring one
// jump goes to the number that covers the demand with a small reserve. From then on a role moves by
// one, up after the demand was not covered for a while, down after it would have been covered with
// a margin for longer without the last replica. Between the two nothing moves, and each change of
// direction doubles both times, so noise cannot make it swing. More replicas are asked for only
// while trainers wait. Roles that do more for their price grow first and shrink last.
class Sizing {
 public:
  static constexpr base::Duration kFirstLook = std::chrono::seconds(10);
  static constexpr base::Duration kUpAfter = std::chrono::seconds(10);
  static constexpr base::Duration kDownAfter = std::chrono::seconds(30);

  // At most about once a second; the roles are the same each time. Empty until something can be
  // said, then one entry per role in their order.
  std::vector<SizingTarget> Step(const SizingInput& input, base::Instant now);

 private:
  struct Smoothed {
    std::optional<double> value;
    base::Instant at{};
    void Add(double measured, base::Instant now);
  };
  struct Role {
    int32_t target = 0;
    std::map<int32_t, Smoothed> rates;  // by replica
    double mean = 0;                    // of these; 0: nothing known
    std::string reason;
  };
  enum class Direction { kNone, kUp, kDown };

  void Measure(const SizingInput& input, base::Instant now);
  double Mean(const std::string& role) const { return roles_.at(role).mean; }
  double Rate(const std::string& role, int32_t replica) const;
  double Supply() const;
  // Most for the price first; only roles of which something is known.
  std::vector<const SizingRole*> Preferred(const SizingInput& input) const;
  void Jump(const SizingInput& input);
  void StepUp(const SizingInput& input);
  void StepDown(const SizingInput& input);
  const SizingRole* Removable(const SizingInput& input) const;
  bool Move(Direction direction, base::Instant now);
  void Explain(const SizingInput& input);

  Smoothed demand_;
  std::map<std::string, Role> roles_;
  std::optional<base::Instant> first_;  // something was measured
  bool jumped_ = false;
  std::optional<base::Instant> lacking_since_, spare_since_;
  Direction last_ = Direction::kNone;
  int patience_ = 1;  // factor on both times
};

}  // namespace hetero::insight
