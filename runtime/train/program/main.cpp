#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <string>

#include "base/log.h"
#include "base/version.h"
#include "runtime/process/role_process.h"
#include "runtime/process/secret_variables.h"
#include "runtime/train/program/local_ranks.h"
#include "runtime/train/program/trainer_process.h"

namespace {

// Activations and gradients are as large in every step as in the one before. By default malloc
// gives them back to the kernel each time, and the page faults of taking them again cost a fifth of
// a small step.
void KeepMemory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

// The arguments of each rank: this process's, but one GPU, and the metrics port for the first only.
hetero::train::LocalRankOptions LocalRanks(const std::vector<std::string>& arguments, int gpus) {
  hetero::train::LocalRankOptions options{.count = gpus, .program = "/proc/self/exe"};
  for (int rank = 0; rank < gpus; ++rank) {
    std::vector<std::string> own;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string name = arguments[i].substr(0, arguments[i].find('='));
      const bool left_out = name == "--gpus" || (rank > 0 && name == "--metrics-listen");
      if (!left_out) own.push_back(arguments[i]);
      if (left_out && name == arguments[i]) ++i;  // its value is the next argument
    }
    own.insert(own.end(), {"--gpus", "1"});
    options.arguments.push_back(std::move(own));
  }
  return options;
}

}  // namespace

// hetero-trainer: one GPU worker (one rank on the CPU when it has no GPU).
int main(int argc, char** argv) {
  using namespace hetero;
  process::ProtectSecretVariables();
  CLI::App app{
      "hetero-trainer trains one rank of a HeteroTrainingJob. The operator or `hetero-runtime "
      "local` "
      "starts it and says through HETERO_* variables who it is and where the head is."};
  app.set_version_flag("--version", "hetero-trainer " + base::DescribeVersion());
  train::TrainerProcessOptions options;
  app.add_option("--threads", options.threads,
                 "Threads of one training operation; 0: one per usable core")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--local-threads", options.session.local_threads,
                 "Threads for this host's share of the preprocessing; 0: one per usable core")
      ->capture_default_str();
  options.session.local_share = feed::LocalShare::kBalanced;
  app.add_option("--local-share", options.session.local_share,
                 "What this host's own cores prepare beside CPU workers: LastResort: only what "
                 "none of them can; Balanced: their share by measured rate, where they are idle")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, feed::LocalShare>{{"LastResort", feed::LocalShare::kLastResort},
                                                  {"Balanced", feed::LocalShare::kBalanced}}))
      ->default_str("Balanced");
  app.add_option("--metrics-listen", options.session.metrics_address,
                 "Serve /metrics, /healthz and /readyz on HOST:PORT; default: do not");
  app.add_option("--output", options.output_folder,
                 "Where rank 0 leaves model.safetensors and TensorBoard's curves; default: the "
                 "folder of spec.output");
  app.add_option("--dump-stream", options.session.dump_stream_folder,
                 "Write every consumed batch into this folder as safetensors");
  int gpus = 0;
  app.add_option("--gpus", gpus,
                 "Ranks of this pod, one per GPU; 0: one rank on the CPU. With more than one, this "
                 "process only starts them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--ceiling-probe", options.ceiling_probe_steps,
                 "First measure the rate without input over N steps; 0: do not. The same on "
                 "all ranks")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  options.session.training_threads = options.threads;
  KeepMemory();
  // LibTorch's recorder of collectives is not safe when one group still forms while the next does.
  setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  process::RoleProcess role;
  if (gpus > 1) {
    log::Init("local-ranks");
    return train::RunLocalRanks(LocalRanks({argv + 1, argv + argc}, gpus), base::Clock::Real(),
                                role.stop());
  }
  options.gpu = gpus == 1;
  absl::StatusOr<process::Identity> identity = role.SetUpMember();
  if (!identity.ok()) {
    std::cerr << identity.status().message() << "\n";
    return 2;
  }
  options.session.identity = *std::move(identity);
  options.session.print = process::PrintLine;
  const absl::Status status = train::RunTrainerProcess(options, base::Clock::Real(), role.stop());
  // Threads that wait inside Gloo for a rank that died need not be waited for.
  const auto leave = [](int code) {
    std::fflush(nullptr);
    std::_Exit(code);
  };
  if (status.ok()) leave(0);
  if (absl::IsCancelled(status) || absl::IsAborted(status)) leave(130);
  log::Error("training failed", {{"error", status.message()}});
  leave(1);
}
