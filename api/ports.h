#pragma once

// Where the processes of a job listen in their pods. Who may call whom: docs/kubernetes.md.
namespace hetero::api {

inline constexpr int kHeadPort = 7070;     // join and rendezvous store
inline constexpr int kStatusPort = 7071;   // operator and command line
inline constexpr int kPagePort = 7072;     // live page
inline constexpr int kFeedPort = 7080;     // CPU worker
inline constexpr int kMetricsPort = 9090;  // every pod

}  // namespace hetero::api
