#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Passing errors up. `expr` is evaluated once.
//   HETERO_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
//   HETERO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
// Both need a function that returns absl::Status or absl::StatusOr. The second declares or
// assigns `lhs`, so it may not be the only statement of an if without braces.

#define HETERO_RETURN_IF_ERROR(expr)                                \
  do {                                                              \
    if (absl::Status hetero_status = (expr); !hetero_status.ok()) { \
      return hetero_status;                                         \
    }                                                               \
  } while (false)

#define HETERO_ASSIGN_OR_RETURN(lhs, ...) \
  HETERO_ASSIGN_OR_RETURN_IMPL_(HETERO_CONCAT_(hetero_status_or_, __LINE__), lhs, (__VA_ARGS__))

#define HETERO_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr) \
  auto result = expr;                                    \
  if (!result.ok()) return std::move(result).status();   \
  lhs = *std::move(result)

#define HETERO_CONCAT_(a, b) HETERO_CONCAT_INNER_(a, b)
#define HETERO_CONCAT_INNER_(a, b) a##b
