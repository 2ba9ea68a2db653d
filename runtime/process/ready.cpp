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
  const auto add = [&ready](const char* key, const std::string& value) {
    if (!value.empty()) (*ready.mutable_environment())[key] = value;
  };
  add("places of training samples", train.places());
  add("versions of training objects", train.versions());
  if (producer.has_validation()) {
    const source::Dataset& validation = producer.dataset(job::Split::kValidation);
    add("places of validation samples", validation.places());
    add("versions of validation objects", validation.versions());
  }
  for (const auto& [key, value] : producer.environment()) {
    (*ready.mutable_environment())[key] = value;
  }
  return ready;
}

}  // namespace hetero::process
