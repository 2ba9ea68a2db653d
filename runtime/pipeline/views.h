#pragma once

#include <cstdint>
#include <memory>

#include "runtime/pipeline/pipeline.h"

namespace hetero::pipeline {

// What SampleKey::view is for picture `index` of a view: `view` is 0 for "image", and for the
// others their place among api::FurtherViews(), from 1 on. Distinct for all that a manifest can
// have (api/fields.h: 8 views of 64 pictures at most), below RandomStream's limit; 0 for the one
// picture of a job without views.
int32_t KeyOfView(int32_t view, int32_t index);

// `one`, run `count` times for each sample, with the keys of `view`: its pictures lie one behind
// the other. One picture of "image" is `one` itself.
std::unique_ptr<Pipeline> MakeViews(std::unique_ptr<Pipeline> one, int32_t view, int32_t count);

}  // namespace hetero::pipeline
