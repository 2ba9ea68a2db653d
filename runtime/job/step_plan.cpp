#include "runtime/job/step_plan.h"
