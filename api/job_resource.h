#pragma once

// The custom resource as the API server knows it. crds/ says the same.
namespace hetero::api {

inline constexpr char kGroup[] = "training.hetero.dev";
inline constexpr char kVersion[] = "v1alpha1";
inline constexpr char kApiVersion[] = "training.hetero.dev/v1alpha1";
inline constexpr char kKind[] = "HeteroTrainingJob";
inline constexpr char kPlural[] = "heterotrainingjobs";

// The container of a role's template that runs our program; all others are the user's.
inline constexpr char kRuntimeContainer[] = "runtime";

}  // namespace hetero::api
