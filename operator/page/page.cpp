#include "operator/page/page.h"

#include "base/page_document.h"
#include "operator/page/page_source.h"

namespace hetero::jobs_page {
namespace {

const metrics::PageDocument& Document() {
  static const metrics::PageDocument document = metrics::MakePageDocument(
      kDocument, {kSharedStyle, kStyle}, {kSharedParts, kSharedModel, kTable, kScript});
  return document;
}

}  // namespace

const std::string& PageText() { return Document().text; }

const std::string& PagePolicy() { return Document().policy; }

}  // namespace hetero::jobs_page
