#include "runtime/insight/live/page.h"

#include "base/page_document.h"
#include "runtime/insight/live/page_source.h"

namespace hetero::live {
namespace {

const metrics::PageDocument& Document() {
  static const metrics::PageDocument document = metrics::MakePageDocument(
      kPageDocument, {kPageStyle}, {kPageParts, kPageModel, kPageCharts, kPageTable, kPageScript});
  return document;
}

}  // namespace

const std::string& Page() { return Document().text; }

const std::string& PagePolicy() { return Document().policy; }

}  // namespace hetero::live
