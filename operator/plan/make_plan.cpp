#include "operator/plan/make_plan.h"

#include "api/job_status.h"
#include "operator/plan/accounting.h"
#include "operator/plan/attempt_images.h"
#include "operator/plan/autoscale.h"
#include "operator/plan/checkpoints.h"
#include "operator/plan/children.h"
#include "operator/plan/clean_up.h"
#include "operator/plan/conditions.h"
#include "operator/plan/deadline.h"
#include "operator/plan/disruption.h"
#include "operator/plan/elastic.h"
#include "operator/plan/failure.h"
#include "operator/plan/findings.h"
#include "operator/plan/follow.h"
#include "operator/plan/history.h"
#include "operator/plan/last_report.h"
#include "operator/plan/managed_by.h"
#include "operator/plan/multikueue.h"
#include "operator/plan/pass.h"
#include "operator/plan/pod_deletion.h"
#include "operator/plan/progress.h"
#include "operator/plan/queue.h"
#include "operator/plan/registration.h"
#include "operator/plan/restart.h"
#include "operator/plan/role_counts.h"
#include "operator/plan/running.h"
#include "operator/plan/script_restarts.h"
#include "operator/plan/spec_check.h"
#include "operator/plan/stall.h"
#include "operator/plan/start_up.h"
#include "operator/plan/status_change.h"
#include "operator/plan/suspend.h"
#include "operator/plan/ttl.h"
#include "operator/plan/verdict.h"

namespace hetero::plan {
namespace {

using Step = void (*)(Pass&);

void RunFinished(Pass& pass) {
  ForceStuckPods(pass);
  CompleteEvidence(pass);
  const bool awaited = AwaitLastReport(pass);
  if (!awaited) CleanUp(pass);
  if (!awaited) ExpireJob(pass);
  FinishWorkloads(pass);
}

// Each step may end or pause the job; the later ones then have nothing to say. Forced deletions
// come before all that can be refused: they may be what frees the quota for it. So do notices,
// which a trainer has seconds for. What is said to Kueue comes last, which may be away while pods
// have to be replaced; it is said although creates are refused.
void RunActive(Pass& pass) {
  constexpr Step kSteps[] = {
      CheckSpec,           ReadVerdict,          CopyHistory,
      SuspendOrResume,     HoldRefusedSpec,      CheckMaxWait,
      WaitInQueue,         BeginFirstAttempt,    RememberImages,
      CheckActiveDeadline, CheckBudget,          CountScriptRestarts,
      CountFailures,       CheckServiceAndTrust, CheckStall,
      Autoscale,           DescribeChildren,     DescribeRegistration,
      DescribeRunning,     DescribeCheckpoints,  CheckStartUp,
      CopyProgress,        CopyFindings,         FollowHead,
      TellNotices,         DeleteGivenUpPods,    CreateChildren,
      TellPodsReady,       KeepElasticWorkloads,
  };
  ForceStuckPods(pass);
  for (const Step step : kSteps) {
    if (pass.active()) step(pass);
  }
  if (pass.held) {
    FollowHead(pass);
  } else {
    CountRoles(pass);
  }
}

}  // namespace

Plan MakePlan(const Observed& observed, const children::Settings& settings, base::WallTime now) {
  const Manager manager = ManagerOf(observed.job->job.spec);
  // The garbage collector has a job that is being deleted.
  if (observed.job->deleting || manager == Manager::kAnother) return HandsOff(*observed.job);
  Pass pass(observed, settings, now);
  if (manager == Manager::kMultiKueue) {
    pass.status = pass.before;
    KeepWorkloadForMultiKueue(pass);
    return std::move(pass.plan);
  }
  BeginConditions(pass);
  KeepAccount(pass);
  if (pass.before.finished()) {
    RunFinished(pass);
  } else if (pass.status.attempt == pass.before.attempt) {
    RunActive(pass);
  }  // Otherwise the status is an old view, or was reset: nothing but the attempt is put right.
  StampGeneration(pass);
  DescribeCost(pass);
  CompareStatus(pass);
  return std::move(pass.plan);
}

}  // namespace hetero::plan
