#include "runtime/process/ready.h"

namespace hetero::process {

v1::Ready MakeReady(const feed::SampleProducer& producer) {
  v1::Ready ready;
  const source::Dataset& train = producer.dataset(job::Split::kTrain);
  ready.set_fingerprint(train.fingerprint());
  ready.set_samples(train.size());
  if (producer.has_validation()) {
    const source::Dataset& validation = producer.dataset(job::Split::kValidation);
    ready.set_validation_fingerprint(validation.fingerprint());
    ready.set_validation_samples(validation.size());
  }
  for (const auto& [key, value] : producer.environment()) {
    (*ready.mutable_environment())[key] = value;
  }
  return ready;
}

}  // namespace hetero::process
