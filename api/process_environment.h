#pragma once

// Variables by which one of our processes tells another who it is. Each line says the format, who
// sets it and who reads it:
//   operator   operator/children/environment.cpp, in the container `runtime` of every pod
//   local      `hetero-runtime local`, in the processes it starts (runtime/local)
//   both       these two
//   agent      runtime/agent/script_environment.cpp, in the scripts of a job
//   launcher   runtime/install/launch.cpp, in the environment of a program that was installed
//   trainer    runtime/train/program/local_ranks.cpp, in the processes of the pod's ranks
//   members    head, CPU workers and trainers (runtime/process/identity.cpp)
// docs/kubernetes.md lists them for people; tests/unit/api/documented_names_test.cpp compares the
// two, and sees to it that programs name them by these constants. Not here: HETERO_LOG_LEVEL
// (base/log.h) and HETERO_OPERATOR_<FLAG> (operator/program/options.h), which people set, and what
// serves builds and tests alone.
namespace hetero::api::environment {

// Of all of them. A pod template must not set a variable of such a name.
inline constexpr char kReservedPrefix[] = "HETERO_";

// metadata.name. Both; for plugins: nothing of ours reads it.
inline constexpr char kJobName[] = "HETERO_JOB_NAME";
// metadata.uid, locally the time of the start: tells two runs of a name apart. Both; members.
inline constexpr char kJobUid[] = "HETERO_JOB_UID";
// metadata.namespace. Operator; for plugins: nothing of ours reads it.
inline constexpr char kNamespace[] = "HETERO_NAMESPACE";
// The role's name in the manifest. Both; members.
inline constexpr char kRole[] = "HETERO_ROLE";
// A name of api/role_type.h. Both; members.
inline constexpr char kRoleType[] = "HETERO_ROLE_TYPE";
// Of the replica in its role, from 0. Both; members.
inline constexpr char kIndex[] = "HETERO_INDEX";
// Of the job, from 1. Both; members.
inline constexpr char kAttempt[] = "HETERO_ATTEMPT";
// When the pod or process was made, in nanoseconds since 1970 (64 bits): of two with the same role
// and index the larger is the newer. Both; members.
inline constexpr char kIncarnation[] = "HETERO_INCARNATION";
// Place among the pod's ranks, from 0; unset is 0. Trainer; trainers.
inline constexpr char kLocalRank[] = "HETERO_LOCAL_RANK";

// gRPC target of the head's join port: "10.96.0.7:7070", "unix:/path". Both; members.
inline constexpr char kHeadAddress[] = "HETERO_HEAD_ADDRESS";
// Where peers reach this process; unset is 127.0.0.1. Both; members.
inline constexpr char kPodIp[] = "HETERO_POD_IP";
// Unset is the host's name. Operator; members.
inline constexpr char kNodeName[] = "HETERO_NODE_NAME";
// The container's CPU request in thousandths of a core, 0 without one. Operator; members.
inline constexpr char kCpuRequestMillicores[] = "HETERO_CPU_REQUEST_MILLICORES";

// kPlainText; anything else is mutual TLS with the files below. Both; members.
inline constexpr char kTls[] = "HETERO_TLS";
inline constexpr char kPlainText[] = "plain-text";
// Files in PEM: the job's authority, this role's certificate and its key. Operator; members.
inline constexpr char kTlsCa[] = "HETERO_TLS_CA";
inline constexpr char kTlsCertificate[] = "HETERO_TLS_CERTIFICATE";
inline constexpr char kTlsKey[] = "HETERO_TLS_KEY";
// File in PEM: the only authority that the status port trusts. Operator; head.
inline constexpr char kTlsOperatorCa[] = "HETERO_TLS_OPERATOR_CA";

// With an entry's number and a key behind it, HETERO_STORAGE_0_ACCESS_KEY_ID and so on: what the
// Secret of spec.storage[0].secretRef has (storage_keys.h); unset: the Secret has no such key.
// Operator; members.
inline constexpr char kStorage[] = "HETERO_STORAGE_";

// File for the pod's termination message. Operator; head and rank 0
// (runtime/process/termination_message.h).
inline constexpr char kTerminationLog[] = "HETERO_TERMINATION_LOG";
// What the head before this one left for it (runtime/head/history_codec.h): one line of at most 8
// KiB. Operator; head.
inline constexpr char kHistory[] = "HETERO_HISTORY";
// Why the attempt began, in words; unset in the first. Operator; head.
inline constexpr char kAttemptCause[] = "HETERO_ATTEMPT_CAUSE";
// runPolicy.maxDollars, which the job's own document lacks; unset without one. Operator; head.
inline constexpr char kMaxDollars[] = "HETERO_MAX_DOLLARS";
// Folder for what a worker came to. Local; CPU workers and trainers (runtime/process/last_word.h).
inline constexpr char kLastWords[] = "HETERO_LAST_WORDS";
// Process id whose end ends this process too. Local; all (runtime/process/parent.h).
inline constexpr char kParentPid[] = "HETERO_PARENT_PID";

// LD_PRELOAD of the image, where an installed program runs with its own C library, which must not
// load it: for what that program starts. Launcher (runtime/install/launch.cpp); agents.
inline constexpr char kScriptPreload[] = "HETERO_SCRIPT_LD_PRELOAD";

// Unix socket of the stream of a script's rank (runtime/agent/stream_protocol.h). Agent; the Python
// package.
inline constexpr char kStreamSocket[] = "HETERO_STREAM_SOCKET";
// training.checkpoint.uri; unset without one. Agent; for scripts: nothing of ours reads it.
inline constexpr char kCheckpointUri[] = "HETERO_CHECKPOINT_URI";

}  // namespace hetero::api::environment
