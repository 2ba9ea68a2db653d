#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cstdlib>
#include <exception>
#include <sstream>

#include "base/log.h"

namespace hetero::metrics {
namespace {

// prometheus-cpp throws for bad names only.
template <typename Make>
auto OrAbort(const std::string& name, Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& error) {
    log::Error(
        "metric cannot be registered: its name or labels are not valid, or the name is "
        "already used for another type",
        {{"metric", name}, {"reason", error.what()}});
    std::abort();
  }
}

}  // namespace

struct Registry::Impl {
  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};
};

void Counter::Add(double amount) { counter_->Increment(amount); }
double Counter::value() const { return counter_->Value(); }

void Gauge::Set(double value) { gauge_->Set(value); }
void Gauge::Add(double amount) { gauge_->Increment(amount); }
double Gauge::value() const { return gauge_->Value(); }

void Histogram::Observe(double value) { histogram_->Observe(value); }

std::vector<double> ExponentialBuckets(double first, double factor, int count) {
  std::vector<double> bounds;
  for (double bound = first; static_cast<int>(bounds.size()) < count; bound *= factor) {
    bounds.push_back(bound);
  }
  return bounds;
}

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter Registry::GetCounter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  return OrAbort(name, [&] {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry);
    return Counter(&family.Add(labels));
  });
}

Gauge Registry::GetGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return OrAbort(name, [&] {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry);
    return Gauge(&family.Add(labels));
  });
}

Histogram Registry::GetHistogram(const std::string& name, const std::string& help,
                                 const std::vector<double>& buckets, const Labels& labels) {
  return OrAbort(name, [&] {
    auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(impl_->registry);
    return Histogram(&family.Add(labels, buckets));
  });
}

std::string Registry::Text() const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, impl_->registry.Collect());
  return text.str();
}

}  // namespace hetero::metrics
