#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "base/clock.h"

// The command line of kubectl-hetero.
namespace hetero::cli {

enum class Verb { kList, kStatus, kTop, kCost, kLogs, kSuspend, kResume, kReport, kValidate };
enum class OutputFormat { kText, kWide, kJson, kName, kHtml };

struct Options {
  Verb verb = Verb::kStatus;
  std::string kubeconfig;
  std::string context;
  std::string name_space;                                     // empty: the context's
  std::string act_as;                                         // user to impersonate; empty: none
  base::Duration request_timeout = std::chrono::seconds(30);  // of one call; watches go on
  std::string job;
  std::string file;  // validate; "-" is standard input
  OutputFormat output = OutputFormat::kText;
  bool all_namespaces = false;  // list, cost
  std::string selector;         // list, cost; of labels
  bool watch = false;           // list, top
  bool once = false;
  int timeout_seconds = 0;  // status: 0 waits forever
  std::string role;         // logs; empty: all
  int index = -1;           // logs; -1: all
  bool follow = false;
  bool server = false;      // validate
  std::string save_folder;  // report; empty: print it
  std::string image;        // report, of the pod that reads it; empty: the head's
};

inline constexpr int kExitUsage = 2;

// The exit code when the process is to end now: 0 after --help and --version (written to `out`),
// kExitUsage after a mistake, which `err` then names.
std::optional<int> ParseOptions(int argc, const char* const* argv, std::ostream& out,
                                std::ostream& err, Options& options);

}  // namespace hetero::cli
