#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

// Figures of a process for Prometheus. prometheus-cpp stays inside metrics.cpp.
namespace hetero::metrics {

using Labels = std::map<std::string, std::string>;

// Handles are cheap to copy, safe from any thread and valid as long as their registry lives.
class Counter {
 public:
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  // A negative amount is ignored: counters only rise.
  void Add(double amount = 1);
  double value() const;

 private:
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  void Set(double value);
  void Add(double amount);
  double value() const;

 private:
  prometheus::Gauge* gauge_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
  void Observe(double value);

 private:
  prometheus::Histogram* histogram_;
};

// Bucket bounds `first`, `first` x `factor`, ... of `count` buckets.
std::vector<double> ExponentialBuckets(double first, double factor, int count);

// All metrics of one process. Safe from any thread. Asking again for the same name and labels
// gives the same metric; the first call's help text and buckets stay. A name that Prometheus does
// not allow, or one already used for another type, is a programming error and ends the process.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter GetCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge GetGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `buckets`: rising upper bounds; an infinite one is added.
  Histogram GetHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& buckets, const Labels& labels = {});

  // Everything in Prometheus' text format 0.0.4.
  std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::metrics
