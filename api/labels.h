#pragma once

// Labels and annotations that the operator gives to a job's objects, and by which the operator and
// the command line find them again.
namespace hetero::api {

// Of all labels and annotations of our own: nobody else may set them on a job's pods.
inline constexpr char kLabelPrefix[] = "training.hetero.dev/";

// On every child.
inline constexpr char kJobNameLabel[] = "training.hetero.dev/job-name";
inline constexpr char kJobUidLabel[] = "training.hetero.dev/job-uid";
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedByValue[] = "hetero-operator";
// Selects every child of every job: what the operator watches.
inline constexpr char kChildSelector[] = "app.kubernetes.io/managed-by=hetero-operator";

// On pods besides.
inline constexpr char kRoleLabel[] = "training.hetero.dev/role";  // its name in the manifest
inline constexpr char kReplicaIndexLabel[] = "training.hetero.dev/replica-index";
inline constexpr char kAttemptLabel[] = "training.hetero.dev/attempt";
inline constexpr char kIncarnationAnnotation[] = "training.hetero.dev/incarnation";

// On a Workload: the hash of the spec (spec_hash.h) whose pods it is for.
inline constexpr char kSpecHashAnnotation[] = "training.hetero.dev/spec-hash";

// Kueue's, on a job: the LocalQueue in which it waits, and the WorkloadPriorityClass with which.
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";
inline constexpr char kQueuePriorityLabel[] = "kueue.x-k8s.io/priority-class";

// On the Secret of the operator's identity: when its certificate expires, in RFC 3339.
inline constexpr char kInstanceTypeLabel[] = "node.kubernetes.io/instance-type";
inline constexpr char kOldInstanceTypeLabel[] = "beta.kubernetes.io/instance-type";
inline constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";  // of nodes
inline constexpr char kExpiresAnnotation[] = "training.hetero.dev/expires";

// MultiKueue's, on its copy of a job in a worker cluster: the Workload that was made there for it,
// and the cluster where it comes from.
inline constexpr char kPrebuiltWorkloadLabel[] = "kueue.x-k8s.io/prebuilt-workload-name";
inline constexpr char kMultiKueueOriginLabel[] = "kueue.x-k8s.io/multikueue-origin";

// Values of managedBy: this operator, as an empty one means, and MultiKueue, which copies the job
// to another cluster once its Workload is admitted.
inline constexpr char kManagedBySelf[] = "training.hetero.dev/hetero-operator";
inline constexpr char kManagedByMultiKueue[] = "kueue.x-k8s.io/multikueue";

}  // namespace hetero::api
