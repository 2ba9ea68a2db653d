#pragma once

namespace hetero::train {

// Seconds of one rank since it asked for its first batch, by what it did; they sum to the whole.
struct Phases {
  double wait = 0, host_to_device = 0, forward = 0, backward = 0, all_reduce = 0, optimizer = 0,
         checkpoint = 0, evaluation = 0, other = 0;

  double Sum() const {
    return wait + host_to_device + forward + backward + all_reduce + optimizer + checkpoint +
           evaluation + other;
  }
  // What has been added since `earlier`.
  Phases Since(const Phases& earlier) const {
    return {.wait = wait - earlier.wait,
            .host_to_device = host_to_device - earlier.host_to_device,
            .forward = forward - earlier.forward,
            .backward = backward - earlier.backward,
            .all_reduce = all_reduce - earlier.all_reduce,
            .optimizer = optimizer - earlier.optimizer,
            .checkpoint = checkpoint - earlier.checkpoint,
            .evaluation = evaluation - earlier.evaluation,
            .other = other - earlier.other};
  }
};

}  // namespace hetero::train
