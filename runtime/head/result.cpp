#include "runtime/head/result.h"

namespace hetero::head {

v1::Result BuildResult(const insight::Report& report) {
  v1::Result result;
  if (report.loss) result.set_loss(*report.loss);
  if (report.accuracy) result.set_accuracy(*report.accuracy);
  if (report.samples_per_second) result.set_samples_per_second(*report.samples_per_second);
  if (report.steps) result.set_steps(*report.steps);
  if (report.stream_digest) result.set_stream_digest(*report.stream_digest);
  if (report.cost_dollars) result.set_cost_dollars(*report.cost_dollars);
  if (report.checkpoint_uri) result.set_checkpoint_uri(*report.checkpoint_uri);
  return result;
}

}  // namespace hetero::head
