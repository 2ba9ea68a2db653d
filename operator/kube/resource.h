#pragma once

#include <string>
#include <string_view>

#include "operator/kube/client.h"

namespace hetero::kube {

// Everything but letters, digits and -._~ as %XX; fits both a path segment and a query value.
std::string Escape(std::string_view text);

// "/apis/batch/v1/namespaces/x/jobs/y/status". Empty parts are left out; a namespace given for a
// cluster-wide kind too.
std::string ResourcePath(const Resource& resource, const std::string& name_space,
                         const std::string& name = "", const std::string& subresource = "");

// A query string built field by field; empty values are left out.
class Query {
 public:
  Query& Add(std::string_view name, std::string_view value);
  // "?a=b&c=d", or empty.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace hetero::kube
