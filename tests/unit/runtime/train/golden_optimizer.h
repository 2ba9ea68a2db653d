#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/hetero_training_job.h"

namespace hetero::train {

// The optimiser of a case of tests/golden/make_training_vectors.py.
inline api::Optimizer OptimizerOf(const nlohmann::json& golden) {
  api::Optimizer optimizer;
  const std::string name = golden["optimizer"];
  optimizer.name = name == "SGD"    ? api::OptimizerKind::kSgd
                   : name == "Adam" ? api::OptimizerKind::kAdam
                                    : api::OptimizerKind::kAdamW;
  optimizer.learning_rate = golden["learning_rate"];
  optimizer.momentum = golden.value("momentum", 0.0);
  optimizer.weight_decay = golden.value("weight_decay", 0.0);
  optimizer.betas = golden.value("betas", optimizer.betas);
  return optimizer;
}

}  // namespace hetero::train
