#pragma once

#include <sys/types.h>

namespace hetero::agent {

// The process between an agent and the script of one rank. It is forked while the agent has one
// thread, so it may fork in turn, and every process that the script starts stays below it, whatever
// group, session or parent that process takes. It ends them all when the agent says so, and when
// the agent has gone, however it went.
//
// Serves `socket` (keeper_messages.h) until its other end is closed, and does not return. What the
// script and all below it print goes to `output`.
[[noreturn]] void RunKeeper(int socket, int output);

}  // namespace hetero::agent
