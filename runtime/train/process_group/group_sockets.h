#pragma once

#include <functional>
#include <set>
#include <string>

// Finding and cutting the TCP connections of one process group. Gloo has no call that ends a
// collective under way, but a connection that is shut down ends it within milliseconds.
namespace hetero::train {

// Makes a write to a broken connection an error instead of the end of this process: Gloo writes
// without MSG_NOSIGNAL. A handler that somebody else installed stays.
void IgnoreBrokenPipes();

// Address "host:port" of the one listening socket that `open` leaves behind in this process; empty
// when that is not exactly one. Calls are made one after the other in a process, so that two ranks
// in one process do not see each other's.
std::string ListenerOpenedBy(const std::function<void()>& open);

// Shuts down every connection of this process that ends, here or there, at one of `listeners`, and
// returns how many those were. All connections of a group end at the listener of one of its
// members, and those of other groups and services do not, so nothing else is touched. Where several
// members live in one process, the connections between the others fall too; a group that lost one
// member is of no use to them either. Safe from any thread.
int CutConnections(const std::set<std::string>& listeners);

}  // namespace hetero::train
