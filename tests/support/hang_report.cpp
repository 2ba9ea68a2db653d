// Linked into the unit tests. A program that still runs shortly before its time limit says where
// each of its threads is and ends with code 124; at the limit itself CTest kills it without a word.
// Linux only. Nothing here takes a lock or memory: whatever hangs may hold them.
#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kSecondsBefore = 5;
const int kReport = SIGRTMAX - 1;  // to any thread: tell of all
const int kStack = SIGRTMAX - 2;   // to one thread: tell of yourself

std::atomic<bool> told = false;

void Say(const char* text, size_t size) { (void)!write(STDERR_FILENO, text, size); }
void Say(const char* text) { Say(text, strlen(text)); }

// The first line of /proc/self/task/TID/NAME.
void SayFile(const char* tid, const char* name) {
  char path[512];
  snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, name);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char line[512];
  ssize_t size = read(file, line, sizeof(line));
  close(file);
  while (size > 0 && line[size - 1] == '\n') --size;
  Say("  ");
  Say(name);
  Say(": ");
  if (size > 0) Say(line, static_cast<size_t>(size));
  Say("\n");
}

void TellOwnStack(int) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  told = true;
}

void TellOf(const char* tid) {
  Say("thread ");
  Say(tid);
  Say("\n");
  for (const char* name : {"comm", "stat", "wchan", "syscall"}) SayFile(tid, name);
  told = false;
  syscall(SYS_tgkill, getpid(), atoi(tid), kStack);
  for (int i = 0; i < 100 && !told; ++i) {
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  if (!told) Say("  it does not answer\n");
}

void TellOfAll(int) {
  Say("hang report: the time limit is near; where each thread is:\n");
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(dirent64) char entries[8192];
  long size;
  while ((size = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (entry->d_name[0] != '.') TellOf(entry->d_name);
      at += entry->d_reclen;
    }
  }
  _exit(124);
}

[[maybe_unused]] const bool armed = [] {
  const char* limit = getenv("HETERO_TEST_TIMEOUT");
  const int seconds = limit == nullptr ? 0 : atoi(limit) - kSecondsBefore;
  if (seconds <= 0) return false;
  void* frame;
  backtrace(&frame, 1);  // loads what it needs
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = TellOwnStack;
  sigaction(kStack, &action, nullptr);
  action.sa_handler = TellOfAll;
  sigaction(kReport, &action, nullptr);
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = kReport;
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return false;
  const itimerspec when = {.it_interval = {}, .it_value = {seconds, 0}};
  return timer_settime(timer, 0, &when, nullptr) == 0;
}();

}  // namespace
