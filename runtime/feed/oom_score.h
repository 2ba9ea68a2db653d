#pragma once

namespace hetero::feed {

// When the machine or the container runs out of memory, the kernel ends this process before others.
// Calls only what a child of a process with many threads may, and leaves a process that is
// non-dumpable (base/non_dumpable.h) so: the file that says it is root's as long as it is, so that
// for the moment in which it is opened, the process is not. Does nothing where it may not be
// opened.
void EndThisProcessFirst();

}  // namespace hetero::feed
