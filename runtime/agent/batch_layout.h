#pragma once

#include <cstdint>
#include <vector>

#include "api/hetero_training_job.h"
#include "runtime/agent/stream_protocol.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/field_set.h"

// How a batch lies in its slot: the images from its beginning on, the other fields behind them,
// each at a multiple of 64 bytes.
namespace hetero::agent {

// Entries [first, first + count) of a batch.
struct BatchPart {
  int64_t first = 0;
  int64_t count = 0;
};

// What every sample of a split has.
struct SampleLayout {
  api::ImageShape shape;  // of one picture
  int32_t views = 1;      // pictures of its image
  job::FieldSet fields;   // beside its image
};
// Empty for validation where there is none.
SampleLayout LayoutOf(const feed::SampleProducer& producer, job::Split split);

// Bytes that the images of so many samples take, and that all fields take.
int64_t ImageBytes(int64_t samples, const SampleLayout& layout);
int64_t SlotBytes(int64_t samples, const SampleLayout& layout);

// What a script is given for each sample: the image, the label, what else the job's samples have,
// and their ids; the first dimension of each shape is left out.
std::vector<FieldLayout> FieldsOf(const SampleLayout& layout);
// The same for `part` of a batch: shapes, places and sizes.
std::vector<FieldLayout> FieldsOf(const SampleLayout& layout, const BatchPart& part);
// Writes all fields but the images to where `fields` says.
void WriteFields(const feed::Batch& batch, const BatchPart& part,
                 const std::vector<FieldLayout>& fields, uint8_t* slot);

// Part `micro` of `parts` of `samples` samples: sizes differ by at most one, the first are longer.
BatchPart PartOf(int64_t samples, int64_t parts, int64_t micro);

}  // namespace hetero::agent
