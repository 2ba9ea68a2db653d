#pragma once

namespace hetero::base {

// Keeps what this process has in its memory out of core files, and its memory and environment from
// other processes of its user: /proc/<pid>/mem, /proc/<pid>/environ and ptrace() are root's from
// then on (PR_SET_DUMPABLE in prctl(2)). For good; from any thread. A child that fork() makes is so
// from the start, a program that it executes is not. Of its own files in /proc/self a process that
// is not root opens none any more that only the owner may: environ, mem, oom_score_adj for writing.
void MakeNonDumpable();

}  // namespace hetero::base
