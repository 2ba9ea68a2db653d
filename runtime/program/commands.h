#pragma once

namespace CLI {
class App;
}

// The subcommands of hetero-runtime. Each Add function declares one and runs it through
// `*exit_code` when it is chosen.
namespace hetero::commands {

inline constexpr int kExitSucceeded = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;  // invalid manifest or command line
// 3 is `kubectl hetero status` whose time is over.
inline constexpr int kExitFindings = 4;      // --strict-rules: succeeded, with something to change
inline constexpr int kExitStopped = 130;     // by Ctrl-C, as shells report it
inline constexpr int kExitTerminated = 143;  // a head that left its job to the next one

void AddLocal(CLI::App& app, int* exit_code);
void AddValidate(CLI::App& app, int* exit_code);
void AddPreview(CLI::App& app, int* exit_code);
void AddInspect(CLI::App& app, int* exit_code);
void AddIndex(CLI::App& app, int* exit_code);
void AddPack(CLI::App& app, int* exit_code);
void AddMakeDataset(CLI::App& app, int* exit_code);
void AddReport(CLI::App& app, int* exit_code);
void AddCompare(CLI::App& app, int* exit_code);
void AddInstall(CLI::App& app, int* exit_code);
void AddHead(CLI::App& app, int* exit_code);
void AddCpuWorker(CLI::App& app, int* exit_code);
void AddConsumer(CLI::App& app, int* exit_code);
void AddAgent(CLI::App& app, int* exit_code);

}  // namespace hetero::commands
