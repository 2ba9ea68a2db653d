#include "runtime/feed/placement.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/operators.h"

namespace hetero::feed {
namespace {

constexpr double kWorthACut = 1.1;
constexpr double kEqual = 0.98;
constexpr int kTimes = 3;  // each cut; the fastest counts

struct Rate {
  double samples_per_second = std::numeric_limits<double>::infinity();
  const char* limit = "";
};

void Limit(double samples_per_second, const char* limit, Rate* rate) {
  if (samples_per_second < rate->samples_per_second) *rate = {samples_per_second, limit};
}

Rate RateOf(const PlacementInput& input, const CutCost& cut) {
  const CutCost& first = input.cuts.front();
  double workers = input.worker_samples_per_second;
  if (cut.front_seconds > 0) workers *= first.front_seconds / cut.front_seconds;
  // Cores without a rest to do take whole batches.
  const double whole = first.front_seconds + first.rest_seconds;
  if (cut.rest_seconds <= 0 && input.shares_whole_batches && whole > 0) {
    workers += input.trainer_cores / whole;
  }
  Rate rate;
  Limit(workers, "the CPU workers", &rate);
  if (cut.rest_seconds > 0) {
    Limit(input.trainer_cores / cut.rest_seconds, "the trainer's idle cores", &rate);
  }
  if (input.bytes_per_second > 0 && cut.bytes > 0) {
    Limit(input.bytes_per_second / static_cast<double>(cut.bytes), "the network", &rate);
  }
  if (input.demand > 0) Limit(input.demand, "training", &rate);
  return rate;
}

bool IsUint8(const api::OperatorSpec& spec) {
  return spec.op != api::OperatorKind::kNormalize && spec.op != api::OperatorKind::kCast;
}

std::string Place(size_t index, const api::OperatorSpec& spec) {
  return absl::StrCat("spec.pipeline[", index, "].placement (", api::OperatorName(spec.op), ")");
}

double FastestSeconds(const pipeline::Pipeline& pipe, const source::RawSample& sample,
                      base::Duration budget, base::Clock& clock) {
  std::vector<uint8_t> out(static_cast<size_t>(pipe.output_bytes()));
  double fastest = std::numeric_limits<double>::infinity();
  const base::Instant began = clock.Now();
  for (int i = 0; i < kTimes; ++i) {
    const base::Instant before = clock.Now();
    if (!pipe.Run(sample, {}, out).ok()) return 0;
    const base::Instant after = clock.Now();
    fastest = std::min(fastest, base::ToSeconds(after - before));
    if (after - began > budget) break;
  }
  return fastest;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> AllowedCuts(const std::vector<api::OperatorSpec>& operators,
                                                 const SampleProducer& producer) {
  const CutPipeline& train = producer.cut(job::Split::kTrain);
  const int32_t entries = train.entries();
  int32_t least = 0;       // entries that must be left
  int32_t most = entries;  // that may be
  for (int32_t i = 0; i < static_cast<int32_t>(operators.size()); ++i) {
    const api::OperatorSpec& spec = operators[static_cast<size_t>(i)];
    const std::string place = Place(static_cast<size_t>(i), spec);
    if (spec.placement == api::Placement::kCpuWorker) {
      if (!IsUint8(spec)) {
        return absl::InvalidArgumentError(absl::StrCat(
            place,
            " cannot be CPUWorker: types are converted on the trainer, so that a quarter of "
            "the bytes travel; leave it out"));
      }
      if (least > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, " cannot be CPUWorker: an operator before it is the trainer's"));
      }
      most = entries - i - 1;
    } else if (spec.placement == api::Placement::kTrainer && IsUint8(spec) && least == 0) {
      if (api::HasPython({operators.begin() + i, operators.end()})) {
        return absl::InvalidArgumentError(absl::StrCat(
            place,
            " cannot be Trainer: a Python operator comes after it, and runs on CPU workers only"));
      }
      least = entries - i;
      const bool validates = producer.has_validation();
      if (!train.CanLeave(least) ||
          (validates && !producer.cut(job::Split::kValidation).CanLeave(least))) {
        return absl::InvalidArgumentError(absl::StrCat(
            place,
            " cannot be Trainer: the size of the pictures is not fixed there; put an "
            "operator that fixes it (Resize with size, a crop) before it, on the CPU workers"));
      }
    }
  }
  std::vector<int32_t> cuts;
  for (int32_t left = least; left <= most; ++left) {
    if (!train.CanLeave(left)) continue;
    if (producer.has_validation() && !producer.cut(job::Split::kValidation).CanLeave(left)) {
      continue;
    }
    cuts.push_back(left);
  }
  return cuts;
}

std::vector<CutCost> MeasureCuts(const std::vector<int32_t>& cuts, const SampleProducer& producer,
                                 base::Duration budget, base::Clock& clock) {
  const CutPipeline& train = producer.cut(job::Split::kTrain);
  source::RawSample sample;
  const bool readable =
      budget > base::Duration::zero() && producer.dataset(job::Split::kTrain).Read(0, &sample).ok();
  const base::Duration each = budget / static_cast<int64_t>(cuts.size() + 1);
  const double whole = readable ? FastestSeconds(train.whole(), sample, each, clock) : 0;
  std::vector<CutCost> costs;
  for (const int32_t left : cuts) {
    const pipeline::Pipeline& front = train.front(left);
    CutCost cost{.left = left, .bytes = front.output_bytes()};
    if (readable) {
      cost.front_seconds = left == 0 ? whole : FastestSeconds(front, sample, each, clock);
      cost.front_seconds = std::min(cost.front_seconds, whole);
      cost.rest_seconds = left == 0 ? 0 : whole - cost.front_seconds;
    }
    costs.push_back(cost);
  }
  return costs;
}

PlacementChoice ChooseCut(const PlacementInput& input) {
  const CutCost& first = input.cuts.front();
  if (input.cuts.size() == 1) return {first.left, "the manifest or the pipeline leaves no choice"};
  if (input.trainer_cores <= 0) return {first.left, "the trainer has no idle core"};
  if (first.front_seconds + first.rest_seconds <= 0 || input.worker_samples_per_second <= 0) {
    return {first.left, "nothing could be measured"};
  }
  const Rate begin = RateOf(input, first);
  const CutCost* best = &first;
  Rate best_rate = begin;
  for (const CutCost& cut : input.cuts) {
    const Rate rate = RateOf(input, cut);
    const bool faster = rate.samples_per_second >= kWorthACut * begin.samples_per_second &&
                        rate.samples_per_second > best_rate.samples_per_second;
    const bool cheaper = input.fewer_workers_cost_less &&
                         rate.samples_per_second >= kEqual * best_rate.samples_per_second &&
                         cut.front_seconds < best->front_seconds;
    if (!faster && !cheaper) continue;
    best = &cut;
    best_rate = rate;
  }
  if (best == &first) {
    return {first.left,
            absl::StrFormat("no other cut is a tenth faster: %s set%s the pace", begin.limit,
                            std::string(begin.limit).back() == 's' ? "" : "s")};
  }
  if (best_rate.samples_per_second < kWorthACut * begin.samples_per_second) {
    return {best->left, "as fast, with fewer CPU workers to pay"};
  }
  return {best->left,
          absl::StrFormat("%.1f times the rate: %s would be the limit otherwise",
                          best_rate.samples_per_second / begin.samples_per_second, begin.limit)};
}

std::vector<PlacedOperator> DescribePlacement(const std::vector<api::OperatorSpec>& operators,
                                              const SampleProducer& producer,
                                              const std::vector<CutCost>& cuts,
                                              const PlacementChoice& choice,
                                              double worker_seconds) {
  const CutPipeline& train = producer.cut(job::Split::kTrain);
  const int32_t entries = train.entries();
  const auto cost = [&cuts](int32_t left) -> const CutCost* {
    const auto found =
        std::find_if(cuts.begin(), cuts.end(), [left](const CutCost& c) { return c.left == left; });
    return found == cuts.end() ? nullptr : &*found;
  };
  const auto bytes = [&train](int32_t left) {
    return train.CanLeave(left) ? train.front(left).output_bytes() : 0;
  };
  const double first = cuts.empty() ? 0 : cuts.front().front_seconds;
  std::vector<PlacedOperator> placed;
  for (int32_t i = 0; i < static_cast<int32_t>(operators.size()); ++i) {
    const api::OperatorSpec& spec = operators[static_cast<size_t>(i)];
    PlacedOperator entry{.op = api::OperatorName(spec.op)};
    if (i >= entries) {
      entry.on_trainer = true;
      entry.reason = "types are converted on the trainer: a quarter of the bytes travel";
      placed.push_back(std::move(entry));
      continue;
    }
    const int32_t before = entries - i;  // left when this entry is the trainer's too
    entry.on_trainer = before <= choice.left;
    entry.reason = spec.placement == api::Placement::kAuto ? choice.reason : "the manifest says so";
    entry.bytes_in = bytes(before);
    entry.bytes_out = bytes(before - 1);
    const CutCost* without = cost(before);
    const CutCost* with = cost(before - 1);
    if (without != nullptr && with != nullptr) {
      entry.trainer_seconds = std::max(0.0, with->front_seconds - without->front_seconds);
      if (first > 0) entry.worker_seconds = worker_seconds * entry.trainer_seconds / first;
    }
    placed.push_back(std::move(entry));
  }
  return placed;
}

}  // namespace hetero::feed
