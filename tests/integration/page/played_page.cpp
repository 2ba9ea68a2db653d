// played_page WORKERS [PORT]: serves the pages of a played job (played_job.h) on 127.0.0.1, a free
// port by default, says where in a line, and plays a second each second. Ends the job at a line
// "end" on standard input, and itself, without a word, at the end of that.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "runtime/process/report_page.h"
#include "tests/integration/page/played_job.h"

namespace {

constexpr int kSecondsBefore = 150;

}  // namespace

int main(int count, char** arguments) {
  using hetero::process::ReportPage;
  const int workers = count > 1 ? std::atoi(arguments[1]) : 1;
  hetero::played::PlayedJob job(workers);
  job.PlaySeconds(kSecondsBefore);
  auto page = ReportPage::Open(std::string("127.0.0.1:") + (count > 2 ? arguments[2] : "0"), job);
  if (!page.ok()) {
    std::cerr << page.status().message() << "\n";
    return 1;
  }
  std::cout << "http://127.0.0.1:" << (*page)->port() << "/live" << std::endl;
  while (true) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, 1000) == 0) {
      job.PlaySeconds(1);
      continue;
    }
    std::string line;
    if (!std::getline(std::cin, line)) return 0;
    if (line != "end") continue;
    job.Succeed();
    (*page)->Finish();
  }
}
