#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What an agent and the keeper of a script (keeper_process.h) say to each other over a socket pair:
// a header and `size` bytes. Both are the same program.
namespace hetero::agent {

// A program to run. The first argument is looked for in the PATH of `environment`.
struct ScriptCommand {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value", and nothing else
  std::string working_directory;         // empty: the agent's own
};

struct KeeperHeader {
  enum class Kind : uint32_t {
    // To the keeper.
    kStart,   // a ScriptCommand
    kSignal,  // value: to the script alone
    kEnd,     // value: nanoseconds of grace
    // To the agent.
    kStarted,      // value: process id
    kCannotFind,   // value: errno of the program
    kCannotEnter,  // value: errno of the working directory
    kCannotStart,  // value: errno of anything else
    kExited,       // value: as waitpid() says it
    kAllEnded,     // value: how many processes are left that nothing ends
  };
  Kind kind = Kind::kStart;
  uint32_t size = 0;
  int64_t value = 0;
};

std::string Encode(const ScriptCommand& command);
ScriptCommand DecodeCommand(const std::string& bytes);

// False when the other side has gone.
bool SendMessage(int socket, KeeperHeader::Kind kind, int64_t value = 0,
                 const std::string& bytes = "");
struct KeeperMessage {
  KeeperHeader header;
  std::string bytes;
};
// Waits for one; empty when the other side has gone.
std::optional<KeeperMessage> ReceiveMessage(int socket);

}  // namespace hetero::agent
